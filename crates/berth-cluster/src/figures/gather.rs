//! Rounds in which all exporters are asked.

use super::ClusterFigures;
use super::exporters::Exporter;
use super::join;
use super::known::News;
use super::reading::{PodName, Reading};
use super::scrape::{ScrapeError, scrape};
use crate::observe::Tasks;
use crate::shared::SharedState;
use berth_engine::clock;
use berth_figures::{Sample, Series};
use berth_kube::Api;
use berth_model::{LeaseId, Span, Time};
use berth_service::{Service, figures};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// Exporters that are asked at once.
const AT_ONCE: usize = 48;
/// Exporters that one line of the log names.
const MOST_NAMED: usize = 3;
/// What says nothing for so long, or for so many rounds, has ended.
const STALE: Span = Span::mins(30);
const STALE_ROUNDS: i64 = 20;

/// Gathers figures until the future is dropped.
pub async fn gather(
    service: Service,
    api: Api,
    state: Arc<SharedState>,
    cluster: Arc<ClusterFigures>,
) {
    let every = Duration::from_millis(u64::try_from(cluster.figures.every.0).unwrap_or(1_000));
    let mut tasks = Tasks::default();
    cluster.exporters.follow(&api, &cluster.rules, &mut tasks);
    let round = Round { service: &service, state: &state, cluster: &cluster, every };
    figures::run(&service, every, round.again_and_again()).await;
}

struct Round<'a> {
    service: &'a Service,
    state: &'a SharedState,
    cluster: &'a ClusterFigures,
    every: Duration,
}

/// The figures of one round.
type Told = Vec<(Exporter, Reading)>;

impl Round<'_> {
    async fn again_and_again(&self) {
        let mut ticks = tokio::time::interval(self.every);
        // One that comes late is not made up for.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // One moment for all, and whole seconds, so that the time between two rounds is mostly
            // the same.
            let at = Time(clock::now().0.div_euclid(1_000) * 1_000);
            let told = self.ask_all().await;
            self.keep(at, &told);
        }
    }

    async fn ask_all(&self) -> Told {
        let ClusterFigures { exporters, known, .. } = self.cluster;
        let all = exporters.by_node();
        known.retain(&all.keys().collect());
        let begun = Instant::now();
        let due = all.into_values().filter(|exporter| known.is_due(exporter, begun));
        let mut answers = stream::iter(due.collect::<Vec<_>>()).map(ask).buffer_unordered(AT_ONCE);
        let (mut told, mut news) = (Vec::new(), News::default());
        while let Some((exporter, answer)) = answers.next().await {
            match answer {
                Ok(reading) => {
                    known.told(&exporter, &reading, &mut news);
                    told.push((exporter, reading));
                }
                Err(why) => known.failed(&exporter, &why, (begun, self.every), &mut news),
            }
        }
        log(&news);
        told
    }

    /// Enters the figures in the book.
    fn keep(&self, at: Time, told: &Told) {
        let book = self.cluster.book();
        let leases = self.leases(told);
        let mut seen = BTreeSet::new();
        let mut push = |series: Series, values| {
            book.push(series.clone(), Sample { at, values });
            seen.insert(series);
        };
        for (Exporter { node, .. }, reading) in told {
            for (index, gpu) in reading.gpus.iter().filter(|(_, gpu)| !gpu.values.is_empty()) {
                let series = Series::Gpu { node: node.clone(), index: *index };
                push(series, gpu.values.clone());
            }
            for (lease, values) in join::of_leases(node, reading, &leases) {
                push(Series::Task(lease), values);
            }
        }
        book.forget_newest(|series| !seen.contains(series));
        {
            let core = self.service.engine.core();
            book.end_tasks(|lease| {
                let job = core.jobs.get(&lease.job);
                job.is_some_and(|job| job.leases.contains_key(&lease))
            });
        }
        let rounds = Span(self.cluster.figures.every.0.saturating_mul(STALE_ROUNDS));
        book.end_older(at - STALE.max(rounds));
    }

    /// The leases of the pods that were named, with their nodes.
    fn leases(&self, told: &Told) -> BTreeMap<PodName, Vec<(LeaseId, String)>> {
        let gpus = told.iter().flat_map(|(_, reading)| reading.gpus.values());
        let named: BTreeSet<(&str, &str)> = gpus
            .flat_map(|gpu| &gpu.pods)
            .map(|pod| (pod.namespace.as_str(), pod.name.as_str()))
            .collect();
        if named.is_empty() {
            return BTreeMap::new();
        }
        let holders = self.state.read(|state| state.holders_of_pods(&named));
        let core = self.service.engine.core();
        let mut leases: BTreeMap<PodName, Vec<(LeaseId, String)>> = BTreeMap::new();
        for (pod, holder) in holders {
            let pod = PodName { namespace: pod.namespace, name: pod.name };
            leases.entry(pod).or_default().extend(holder.leases(&core));
        }
        leases
    }
}

async fn ask(exporter: Exporter) -> (Exporter, Result<Reading, ScrapeError>) {
    let address = exporter.address;
    let answer = scrape(address).await.and_then(|text| {
        let reading = Reading::of(&text);
        let is_empty = reading.gpus.is_empty();
        if is_empty { Err(ScrapeError::NothingOfGpus { address }) } else { Ok(reading) }
    });
    (exporter, answer)
}

/// One line for all that is new: a network policy keeps all of them away at once.
fn log(news: &News) {
    if let Some(which) = some(&news.silent) {
        tracing::warn!(
            which,
            "exporters tell no figures of GPUs; asking again, less and less often"
        );
    }
    if let Some(which) = some(&news.back) {
        tracing::warn!(which, "exporters tell figures of GPUs again");
    }
}

/// The first few of them.
fn some(all: &[String]) -> Option<String> {
    let named = all.get(..all.len().min(MOST_NAMED)).filter(|named| !named.is_empty())?.join("; ");
    let others = all.len().saturating_sub(MOST_NAMED);
    Some(if others > 0 { format!("{named}; and {others} more") } else { named })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_names_a_few_of_many() {
        let some = |count: usize| some(&vec!["gpus/x on a".to_owned(); count]);
        assert_eq!((some(0), some(1).as_deref()), (None, Some("gpus/x on a")));
        let many = some(MOST_NAMED + 7).unwrap();
        assert!(many.ends_with("; and 7 more"), "{many}");
    }
}
