//! What jobs would lose if they were stopped now.

use super::timeline::job_ref;
use crate::caller::Caller;
use berth_api::wire::{self, AtRisk};
use berth_engine::{Core, LiveJob};
use berth_ledger::cost::cumulative;
use berth_model::{Span, Time};
use std::collections::BTreeSet;

pub fn of(caller: &Caller, core: &Core, live: &LiveJob, now: Time) -> AtRisk {
    let row = &live.row;
    let progress = core.state.progress(row.id);
    let lost = progress.and_then(|progress| {
        let started = progress.started?;
        let since = progress.last_checkpoint.map_or(started, |saved| saved.max(started));
        Some((now - since).max(Span::ZERO))
    });
    let lost = lost.unwrap_or(Span::ZERO);
    let preemptible = progress.is_some_and(|progress| progress.preemptible);
    let nodes: BTreeSet<&str> = live.leases.values().map(|lease| lease.row.node.as_str()).collect();
    AtRisk {
        of: job_ref(caller, row.id, &row.name, &row.user, &row.team),
        gpus_milli: row.gpus.0,
        nodes: nodes.into_iter().map(str::to_owned).collect(),
        lost_ms: lost.0,
        lost_micros: cumulative(live.price(), lost).0,
        last_checkpoint: progress.and_then(|progress| progress.last_checkpoint).map(wire::At),
        may_save: live.detail.workload.run().is_some_and(|run| {
            let checkpoint = &run.checkpoint;
            checkpoint.signal.is_some() || checkpoint.path.is_some()
        }),
        restarts: preemptible,
        restarts_at: None,
        restarts_at_p90: None,
        runs_on: !preemptible,
    }
}
