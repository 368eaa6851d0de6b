//! What an operator of a Kubernetes cluster looks at beside the figures that every server has.

use super::metrics::Page;
use crate::app::App;
use berth_engine::Core;
use berth_kube::ClientMetrics;
use berth_model::JobId;
use berth_service::{JobHost, jobs::reasons};
use std::collections::BTreeMap;

/// Jobs whose reasons are looked for in one scrape: those that have waited longest.
const LOOKED_AT: usize = 500;
/// The reason of those beyond.
const NOT_LOOKED_AT: &str = "not-looked-at";

impl Page {
    pub(super) fn cluster(&mut self, app: &App) {
        let Some(figures) = &app.figures else { return };
        self.figure("leader", "1 for the replica that leads; the others answer nothing", 1.0);
        self.bindings(figures);
        self.watches(figures);
        self.exporters(app);
        self.pod_events(app);
        let help = "Pods of Berth's that wait, by what stands in the way of their gang";
        let waiting = self.family("pods_waiting", help);
        let service = &app.service;
        for (reason, pods) in waiting_pods(&*service.host, &mut service.engine.core()) {
            waiting.get_or_create(&vec![("reason", reason.to_owned())]).set(pods as f64);
        }
    }

    fn exporters(&mut self, app: &App) {
        let Some((up, down)) = app.pods.as_ref().and_then(|jobs| jobs.exporters()) else { return };
        let help = "Exporters of GPU figures, by whether they answered when they were last asked";
        let exporters = self.family("exporters", help);
        for (state, count) in [("up", up), ("down", down)] {
            exporters.get_or_create(&vec![("state", state.to_owned())]).set(count as f64);
        }
    }

    fn pod_events(&mut self, app: &App) {
        let Some(counts) = app.pods.as_ref().map(|jobs| jobs.pod_events()) else { return };
        let help = "Events on pods, by whether they were written or the full queue dropped them";
        let events = self.counts("pod_events", help);
        let outcomes =
            [("written", counts.written), ("dropped", counts.dropped), ("failed", counts.failed)];
        for (outcome, count) in outcomes {
            events.get_or_create(&vec![("outcome", outcome.to_owned())]).inc_by(count);
        }
        let help = "Events on pods that wait to be written";
        self.figure("pod_events_waiting", help, counts.waiting as f64);
    }

    fn bindings(&mut self, figures: &ClientMetrics) {
        let family = self.counts("bindings", "Bindings asked of the API server");
        let mut all = 0;
        for (outcome, count) in figures.bindings() {
            family.get_or_create(&vec![("outcome", outcome.word().to_owned())]).inc_by(count);
            all += count;
        }
        let time = figures.binding_time().as_secs_f64();
        let help = "Time the API server took for bindings";
        self.counted_time("binding_duration_seconds", help, time, all);
        let denied = self.counts("requests_denied", "Requests for which a right is missing");
        for (right, count) in figures.denied() {
            denied.get_or_create(&vec![("right", right)]).inc_by(count);
        }
    }

    fn watches(&mut self, figures: &ClientMetrics) {
        let lists = self.counts("watch_lists", "How often everything of a kind was listed");
        let watches = self.counts("watch_starts", "How often a watch was begun or taken up again");
        let binary = self.counts("watch_binary", "Lists and watches that were answered in binary");
        for (kind, watched) in figures.watched() {
            let labels = vec![("resource", kind)];
            binary.get_or_create(&labels).inc_by(watched.in_binary);
            lists.get_or_create(&labels).inc_by(watched.lists);
            watches.get_or_create(&labels).inc_by(watched.watches);
        }
    }
}

/// Each pod under the first reason of its job.
fn waiting_pods(host: &dyn JobHost, core: &mut Core) -> BTreeMap<&'static str, usize> {
    let waits = core.jobs.values().filter(|job| {
        !job.detail.workload.pods().is_empty() && job.leases.is_empty() && !job.row.state.is_final()
    });
    let mut jobs: Vec<(JobId, usize)> =
        waits.map(|job| (job.row.id, job.detail.workload.pods().len())).collect();
    let rest = jobs.split_off(jobs.len().min(LOOKED_AT));
    let ids: Vec<JobId> = jobs.iter().map(|(id, _)| *id).collect();
    let reasons = reasons::of(host, core, &ids);
    let mut counts = BTreeMap::new();
    for ((_, pods), reasons) in jobs.iter().zip(reasons) {
        let reason = reasons.first().map_or("next", |reason| reason.code());
        *counts.entry(reason).or_default() += pods;
    }
    if !rest.is_empty() {
        counts.insert(NOT_LOOKED_AT, rest.iter().map(|(_, pods)| pods).sum());
    }
    counts
}
