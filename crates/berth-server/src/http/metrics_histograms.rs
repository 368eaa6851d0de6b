//! Histograms of what was counted elsewhere, and the counters of teams.

use super::metrics::{Labels, Page, of_team};
use crate::app::App;
use berth_engine::Durations;
use berth_model::Cause;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;

/// How often, how long in all in seconds, and how many in each class.
#[derive(Debug)]
struct Counted {
    seconds: f64,
    count: u64,
    classes: Vec<(f64, u64)>,
}

impl From<Durations> for Counted {
    fn from(times: Durations) -> Counted {
        Counted { seconds: times.seconds(), count: times.count(), classes: times.classes() }
    }
}

/// One histogram for each value of its labels, or one without any.
#[derive(Debug)]
struct Histograms(Vec<(Labels, Counted)>);

impl EncodeMetric for Histograms {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, Counted { seconds, count, classes }) in &self.0 {
            match labels.is_empty() {
                true => {
                    encoder.encode_histogram::<NoLabelSet>(*seconds, *count, classes, None)?;
                }
                false => {
                    let mut of_labels = encoder.encode_family(labels)?;
                    of_labels.encode_histogram::<NoLabelSet>(*seconds, *count, classes, None)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Page {
    pub(super) fn histogram(&mut self, name: &str, help: &str, all: Vec<(Labels, Durations)>) {
        let all = all.into_iter().map(|(labels, times)| (labels, Counted::from(times)));
        self.register(name, help, Histograms(all.collect()));
    }

    /// Of which only the number and the time in all are known.
    pub(super) fn counted_time(&mut self, name: &str, help: &str, seconds: f64, count: u64) {
        let classes = vec![(f64::INFINITY, count)];
        let counted = Counted { seconds, count, classes };
        self.register(name, help, Histograms(vec![(Vec::new(), counted)]));
    }

    /// What has happened to the jobs of each team since the server was started.
    pub(super) fn teams(&mut self, app: &App) {
        let tallies = app.service.engine.core().tallies.clone();
        let submitted = self.counts("jobs_submitted", "Jobs that were submitted, by team");
        let ended = self.counts("jobs_ended", "Jobs that ended, by how");
        let help = "Jobs that had to stop for a job of a higher class, whole queues apart";
        let preempted = self.counts("preemptions", help);
        let help = "Jobs that had to stop because another queue took its share back";
        let reclaimed = self.counts("reclaims", help);
        let stopped = self.counts("job_stops", "Jobs that Berth has stopped, by cause");
        let mut waits = Vec::new();
        for (team, of) in tallies.teams() {
            let labels = of_team(team);
            let with =
                |name, value: &str| [labels.clone(), vec![(name, value.to_owned())]].concat();
            submitted.get_or_create(&labels).inc_by(of.submitted);
            for (state, count) in &of.ended {
                ended.get_or_create(&with("state", state.as_str())).inc_by(*count);
            }
            for (cause, count) in &of.stops {
                stopped.get_or_create(&with("cause", cause.code())).inc_by(*count);
            }
            let sum = |causes: &[Cause]| -> u64 {
                causes.iter().filter_map(|cause| of.stops.get(cause)).sum()
            };
            preempted.get_or_create(&labels).inc_by(sum(&[Cause::Preempt, Cause::Across]));
            reclaimed.get_or_create(&labels).inc_by(sum(&[Cause::Reclaim]));
            waits.push((labels, of.waits.clone()));
        }
        let help = "From the submission of a job to its first start";
        self.histogram("job_wait_seconds", help, waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Span;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn a_histogram_has_classes_that_sum_up_and_a_last_one_without_a_bound() {
        const BOUNDS: [Span; 2] = [Span::ms(1), Span::secs(1)];
        let mut times = Durations::new(&BOUNDS);
        [500, 2_000, 9_000_000].into_iter().for_each(|us| times.add_us(us));
        let mut registry = Registry::default();
        let labels = of_team("nlp");
        registry.register("t_seconds", "T", Histograms(vec![(labels, times.into())]));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE t_seconds histogram",
            "t_seconds_sum{team=\"nlp\",queue=\"nlp\"} 9.0025",
            "t_seconds_count{team=\"nlp\",queue=\"nlp\"} 3",
            "t_seconds_bucket{le=\"0.001\",team=\"nlp\",queue=\"nlp\"} 1",
            "t_seconds_bucket{le=\"1.0\",team=\"nlp\",queue=\"nlp\"} 2",
            "t_seconds_bucket{le=\"+Inf\",team=\"nlp\",queue=\"nlp\"} 3",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
    }
}
