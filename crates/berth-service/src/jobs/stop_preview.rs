//! What ending a job would do, before it is done.

use super::timeline::job_ref;
use super::{at_risk, expected, find};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::trial::Trial;
use berth_api::access::Permission;
use berth_api::wire::StopPreview;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::{Decision, Event, JobId};
use std::collections::BTreeSet;

/// Jobs that one answer names.
const MOST: usize = 100;

pub async fn preview(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<StopPreview, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    if found.is_array() {
        let next = format!("name one, such as {}", found.first().id);
        let detail = format!("job {} is an array; ask about one element", found.id);
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    let id = found.first().id;
    let now = clock::now();
    let (mut job, cost, saves) = {
        let core = service.engine.core();
        let Some(live) = core.jobs.get(&id) else {
            let detail = format!("job {id} is {} already", found.first().state.as_str());
            return Err(Fault::new(Code::WrongState, detail).next("there is nothing to stop"));
        };
        let cost = core.cost(live, now);
        let saves = expected::cost(&core, live).map(|all| all - cost);
        (at_risk::of(caller, &core, live, now), cost, saves)
    };
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
