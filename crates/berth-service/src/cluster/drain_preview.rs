//! What draining a machine would do, before it is done.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::jobs::at_risk;
use crate::jobs::timeline::job_ref;
use crate::live;
use crate::names;
use crate::service::Service;
use crate::trial::Trial;
use berth_api::wire;
use berth_api::wire::{AtRisk, DrainPreview};
use berth_core::{Forecast, forecast};
use berth_engine::clock;
use berth_model::{Decision, Event, JobId, Name, NodeState};
use std::collections::BTreeSet;

/// Runs of the forecast: few, because the caller waits for the answer.
const RUNS: u32 = 8;

pub async fn preview(
    service: &Service,
    caller: &Caller,
    node: &str,
) -> Result<DrainPreview, Fault> {
    let now = clock::now();
    let (jobs, mut stops, gpus_milli, empty_at, promised) = {
        let core = service.engine.core();
        let nodes = core.state.node_snapshots();
        let spec = nodes.iter().find(|one| *one.spec.name == *node);
        let known = || nodes.iter().map(|one| one.spec.name.as_str());
        let spec = &spec.ok_or_else(|| names::unknown("node", node, known()))?.spec;
        let (mut jobs, mut stops, mut held) = (Vec::new(), Vec::new(), 0);
        let mut empty_at = None;
        for (id, live) in &core.jobs {
            let here = live.leases.values().filter(|lease| lease.row.node == node);
            let milli: Vec<i64> = here
                .flat_map(|lease| live::slices(&lease.row.slices))
                .map(|slice| live::share(&slice.share).0)
                .collect();
            if live.leases.values().all(|lease| lease.row.node != node) {
                continue;
            }
            held += milli.iter().sum::<i64>();
            let risk = at_risk::of(caller, &core, live, now);
            if risk.runs_on {
                let ends = core.state.progress(*id).and_then(|progress| progress.ends);
                empty_at = empty_at.max(ends);
            }
            jobs.push(*id);
            stops.push(risk);
        }
        let promises = core.state.promise_snapshots();
        let here = promises.iter().filter(|one| one.places.iter().any(|at| *at.node == *node));
        let promised: Vec<wire::JobRef> = here
            .filter_map(|promise| {
                let row = &core.jobs.get(&promise.job)?.row;
                Some(job_ref(caller, promise.job, &row.name, &row.user, &row.team))
            })
            .collect();
        let all = spec.gpus.len() as i64 * 1_000;
        (jobs, stops, (all - held).max(0), empty_at, promised)
    };
    let (trial, name) = (Trial::of(service), Name::new(node));
    let tried = tokio::task::spawn_blocking(move || drained(trial, name)).await.ok();
    if let Some((stopped, forecast)) = tried {
        for (id, risk) in jobs.iter().zip(&mut stops) {
            told(risk, *id, &stopped, &forecast);
        }
    }
    let lost = stops.iter().filter(|risk| !risk.runs_on).map(|risk| risk.lost_micros).sum();
    Ok(DrainPreview {
        node: node.to_owned(),
        stops,
        lost_micros: lost,
        gpus_milli,
        empty_at: empty_at.map(wire::At),
        promised,
    })
}

fn told(risk: &mut AtRisk, id: JobId, stopped: &BTreeSet<JobId>, forecast: &Forecast) {
    let stops = stopped.contains(&id);
    (risk.restarts, risk.runs_on) = (stops, !stops);
    if risk.runs_on {
        (risk.lost_ms, risk.lost_micros) = (0, 0);
    }
    if let Some(eta) = forecast.jobs.get(&id).filter(|_| stops) {
        risk.restarts_at = eta.p50.map(wire::At);
        risk.restarts_at_p90 = eta.p90.map(wire::At);
    }
}

/// Which jobs are stopped, and when jobs start then.
fn drained(mut trial: Trial, node: Name) -> (BTreeSet<JobId>, Forecast) {
    trial.happens(Event::NodeChanged { node, state: NodeState::Draining });
    let stopped = trial.settle().into_iter().filter_map(|decision| match decision {
        Decision::Stop { lease, .. } => Some(lease.job),
        _ => None,
    });
    let stopped = stopped.collect();
    (stopped, forecast(&trial.state, RUNS, 1))
}
