//! What ending a job would do, before it is done.

use super::find::{self, Found};
use super::timeline::job_ref;
use super::{at_risk, expected};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::trial::Trial;
use berth_api::access::Permission;
use berth_api::wire::{AtRisk, StopPreview};
use berth_api::{Code, wire};
use berth_engine::{LiveJob, clock};
use berth_model::{Decision, Event, JobId, Micros};
use berth_store::JobRow;
use std::collections::BTreeSet;

/// Jobs that one answer names.
const MOST: usize = 100;

pub async fn preview(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<StopPreview, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    let id = found.id;
    let sums = sums(service, caller, &found);
    let Sums { mut job, cost, saves } = sums.ok_or_else(|| {
        let detail = format!("job {id} is {} already", found.first().state.as_str());
        Fault::new(Code::WrongState, detail).next("there is nothing to stop")
    })?;
    // It was asked for: nothing starts it again, and nothing keeps it running.
    (job.restarts, job.runs_on) = (false, false);
    let trial = Trial::of(service);
    let starts = tokio::task::spawn_blocking(move || starts(trial, id)).await.unwrap_or_default();
    let core = service.engine.core();
    let named = |id: &JobId| {
        let row = &core.jobs.get(id)?.row;
        Some(job_ref(caller, *id, &row.name, &row.user, &row.team))
    };
    let starts: Vec<wire::JobRef> = starts.iter().take(MOST).filter_map(named).collect();
    Ok(StopPreview { job, cost_micros: cost.0, saves_micros: saves.map(|saves| saves.0), starts })
}

/// A job, or all elements of an array.
struct Sums {
    job: AtRisk,
    cost: Micros,
    saves: Option<Micros>,
}

/// Nothing where all of it has ended.
fn sums(service: &Service, caller: &Caller, found: &Found) -> Option<Sums> {
    let (core, now) = (service.engine.core(), clock::now());
    let live: Vec<&LiveJob> = found
        .rows
        .iter()
        .filter_map(|row| core.jobs.get(&row.id))
        .filter(|job| is_live(job))
        .collect();
    let risks = live.iter().map(|job| {
        let risk = at_risk::of(caller, &core, job, now);
        // An element that waits holds nothing; one job shows what it asks for.
        let gpus_milli =
            if found.is_array() && job.leases.is_empty() { 0 } else { risk.gpus_milli };
        AtRisk { gpus_milli, ..risk }
    });
    let mut job = risks.reduce(together)?;
    let row = found.first();
    job.of = job_ref(caller, found.id, &row.name, &row.user, &row.team);
    let cost_of = |row: &JobRow| core.jobs.get(&row.id).map_or(row.cost, |job| core.cost(job, now));
    let cost = found.rows.iter().fold(Micros::ZERO, |sum, row| sum + cost_of(row));
    let saved = |job: &LiveJob| Some(expected::cost(&core, job)? - core.cost(job, now));
    let saves = live.iter().try_fold(Micros::ZERO, |sum, job| Some(sum + saved(job)?));
    Some(Sums { job, cost, saves })
}

fn is_live(job: &LiveJob) -> bool {
    !job.row.state.is_final()
}

/// The sum of what two elements would lose.
fn together(mut all: AtRisk, one: AtRisk) -> AtRisk {
    all.gpus_milli += one.gpus_milli;
    all.lost_ms += one.lost_ms;
    all.lost_micros += one.lost_micros;
    all.last_checkpoint = all.last_checkpoint.min(one.last_checkpoint);
    all.may_save |= one.may_save;
    all.nodes.extend(one.nodes);
    all.nodes.sort();
    all.nodes.dedup();
    all
}

/// Who starts once the job is gone, and would not otherwise.
fn starts(mut trial: Trial, id: JobId) -> BTreeSet<JobId> {
    let started = |decisions: &[Decision]| {
        let each = decisions.iter().filter_map(|decision| match decision {
            Decision::Start { lease, .. } => Some(lease.job),
            _ => None,
        });
        each.collect::<BTreeSet<JobId>>()
    };
    let anyway = started(&trial.settle());
    trial.happens(Event::JobCancelled { job: id });
    // The first plan has it stopped, the second gives away what it had.
    let mut then = started(&trial.settle());
    then.extend(started(&trial.settle()));
    &then - &anyway
}
