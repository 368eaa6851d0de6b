//! Writes on pending pods why they are pending. What starts at once is not explained, and what was
//! written is not written again: each reason is a request to the API server.

use crate::shared::SharedState;
use crate::state::Explanation;
use crate::state::orders::{GANG_INCOMPLETE, UNSCHEDULABLE};
use berth_engine::Handle;
use berth_engine::clock;
use berth_model::{JobId, Reason, Span, Time};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often Berth looks for pending jobs, and how long a job waits before its reasons are written.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
const REPORT_AFTER: Span = Span::secs(2);
/// Jobs that are looked at in one round, and before the loop may have the state again. Each job
/// costs a look at the whole cluster.
const MAX_JOBS_PER_ROUND: usize = 500;
const JOBS_PER_LOCK: usize = 10;
/// Added to reasons that no waiting changes.
const LASTING_HINT: &str = ". Waiting does not help: change what the pod asks for, or add or change \
    nodes so that they have it";
/// How much longer than that the state is left to the loop.
const REST_FACTOR: u32 = 4;

pub async fn run(engine: Handle, state: Arc<SharedState>) {
    let mut last = None;
    loop {
        tokio::time::sleep(REPORT_INTERVAL).await;
        let waiting = waiting(&engine, last);
        // The next round goes on where this one ends, and begins anew behind the last job.
        last = waiting.last().copied().filter(|_| waiting.len() == MAX_JOBS_PER_ROUND);
        for some in waiting.chunks(JOBS_PER_LOCK) {
            let (clock, engine, state, jobs) =
                (Instant::now(), engine.clone(), state.clone(), some.to_vec());
            let explained = tokio::task::spawn_blocking(move || explain(&engine, &state, &jobs));
            if let Err(panic) = explained.await {
                // What it left of the state is nothing to go on with.
                return tracing::error!(%panic, "pods are not told any more why they wait");
            }
            tokio::time::sleep(clock.elapsed() * REST_FACTOR).await;
        }
    }
}

/// Jobs of pods that have waited for a while, from the one behind `last` on.
fn waiting(engine: &Handle, last: Option<JobId>) -> Vec<JobId> {
    let since = clock::now() - REPORT_AFTER;
    let core = engine.core();
    let from = last.map_or(Bound::Unbounded, Bound::Excluded);
    let waits = core.jobs.range((from, Bound::Unbounded)).filter(|(_, job)| {
        let is_new = job.row.submitted > since;
        !is_new && !job.detail.workload.pods().is_empty() && job.leases.is_empty()
    });
    waits.map(|(id, _)| *id).take(MAX_JOBS_PER_ROUND).collect()
}

/// Writes the reasons of these jobs on their pods.
fn explain(engine: &Handle, state: &SharedState, jobs: &[JobId]) {
    let now = clock::now();
    let told: Vec<(JobId, Explanation)> = {
        let mut core = engine.core();
        let reasons = core.state.reasons_of(jobs);
        let core = &*core;
        let told = jobs.iter().zip(reasons).filter_map(|(job, reasons)| {
            let groups = core.state.asks_of(*job).unwrap_or_default();
            let reasons = state.read(|state| state.refine(core, Some(*job), groups, reasons));
            let eta = core.forecast.as_ref().and_then(|forecast| forecast.jobs.get(job)?.p50);
            Some((*job, explanation(*job, &reasons, eta.filter(|eta| *eta > now))?))
        });
        told.collect()
    };
    state.update(|state| told.iter().for_each(|(job, why)| state.explain(*job, why, now)));
}

/// What the pods of a job say. Nothing where nothing stands in its way.
fn explanation(job: JobId, reasons: &[Reason], eta: Option<Time>) -> Option<Explanation> {
    let main = reasons.first()?;
    let words: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    let (mut text, lasting) = (words.join("; "), lasting(reasons));
    if lasting.is_some() {
        text.push_str(LASTING_HINT);
    }
    let expected = match eta {
        _ if lasting.is_some() => "no start is expected".to_owned(),
        Some(eta) => format!("it is expected to start about {eta}"),
        None => "no start is in sight yet".to_owned(),
    };
    // What starts next has not failed.
    let event = (*main != Reason::Next).then(|| {
        let main = capital(&main.to_string());
        format!("{main}. Forecast: {expected}. Next: `berth why {job}`")
    });
    // A note cannot be changed, so another forecast is another event, if it is another by much.
    let hour = eta.map(|eta| eta.0 / Span::hours(1).0);
    let key = format!("{} {hour:?}", main.code());
    let reason = match main {
        Reason::GangIncomplete { .. } => GANG_INCOMPLETE,
        _ => UNSCHEDULABLE,
    };
    Some(Explanation { reason, text, event, key, lasting })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

/// The codes of what no waiting changes. Nothing where nodes are closed that would make room: they
/// may be opened.
fn lasting(reasons: &[Reason]) -> Option<String> {
    let opens = |reason: &Reason| matches!(reason, Reason::Closed { .. });
    if reasons.iter().any(opens) {
        return None;
    }
    let lasting = reasons.iter().filter(|reason| is_lasting(reason));
    let codes: Vec<&str> = lasting.map(Reason::code).collect();
    (!codes.is_empty()).then(|| codes.join(" "))
}

/// Whether a reason stays until the request or the nodes are changed. Rules about other pods
/// (`NoNode`) may be met when those pods come.
fn is_lasting(reason: &Reason) -> bool {
    match reason {
        Reason::Tainted { taints, .. } => !taints.iter().any(|taint| passes(taint)),
        Reason::NodesRuledOut { causes, .. } => !causes.iter().any(|cause| cause.passes),
        Reason::NoModel { .. }
        | Reason::NoProfile { .. }
        | Reason::GpuMemory { .. }
        | Reason::NoLabel { .. }
        | Reason::NoLifecycle { .. }
        | Reason::TooLarge { .. }
        | Reason::TooLargeForDomain { .. }
        | Reason::TooLargeCpu { .. }
        | Reason::TooLargeMemory { .. }
        | Reason::TooLargeCounted { .. } => true,
        _ => false,
    }
}

/// What nodes are tainted with while they come up or recover goes by itself.
fn passes(taint: &str) -> bool {
    const OF_NODES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
    OF_NODES.iter().any(|of_nodes| taint.starts_with(of_nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::RuledOut;

    #[test]
    fn only_what_no_waiting_changes_is_lasting() {
        let tainted = |taint: &str| Reason::Tainted { taints: vec![taint.to_owned()], nodes: 1 };
        let label = Reason::NoLabel { labels: vec!["disk=none".to_owned()] };
        let all = [Reason::Next, label, tainted("team=vision")];
        assert_eq!(lasting(&all).as_deref(), Some("no-label tainted"));
        assert_eq!(lasting(&[Reason::Next, Reason::NoNode]), None);
        assert_eq!(lasting(&[tainted("node.kubernetes.io/not-ready")]), None);
        let closed = [tainted("team=vision"), Reason::Closed { nodes: 1 }];
        assert_eq!(lasting(&closed), None, "the nodes may be opened");
        let ruled_out = |passes| {
            let cause = RuledOut { nodes: 2, why: "cordoned".to_owned(), passes };
            Reason::NodesRuledOut { nodes: 2, causes: vec![cause] }
        };
        assert_eq!(lasting(&[ruled_out(false)]).as_deref(), Some("nodes-ruled-out"));
        assert_eq!(lasting(&[ruled_out(true)]), None, "what keeps it away may go by itself");
    }

    #[test]
    fn an_event_names_the_main_blocker_the_forecast_and_the_next_step() {
        let (job, now) = (JobId::new(7), Time(0));
        let reasons = [Reason::NoNode, Reason::Next];
        let why = |eta| explanation(job, &reasons, eta).unwrap();
        let soon = why(Some(now + Span::mins(5)));
        assert_eq!(
            soon.event.as_deref(),
            Some(
                "None of the nodes it may run on is there. Forecast: it is expected to start about \
             1970-01-01T00:05:00Z. Next: `berth why 7`"
            )
        );
        assert_eq!(soon.key, why(Some(now + Span::mins(20))).key, "it is the same by and large");
        assert_ne!(soon.key, why(Some(now + Span::hours(20))).key);
        assert_eq!(
            soon.text,
            "none of the nodes it may run on is there; nothing stands in its way; it starts next"
        );
        assert!(why(None).event.unwrap().contains("no start is in sight yet"));
        let next = explanation(job, &[Reason::Next], None).unwrap();
        assert_eq!(next.event, None, "what starts next has not failed");
        assert_eq!(explanation(job, &[], None), None);
    }
}
