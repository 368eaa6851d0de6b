//! Who had which GPUs, has them, and gets them next.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::jobs::find;
use crate::jobs::timeline::job_ref;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{HeldLease, LeaseList, LeaseState, PromisedPlace, PromisedPlaces};
use berth_api::{Code, wire};
use berth_core::Progress;
use berth_engine::{Core, Stopped, clock};
use berth_model::{Exit, ExitKind, JobId, LeaseId, LeaseOutcome, Place, Span};
use berth_store::{self as store, LeaseFilter};
use std::collections::BTreeMap;

const LIMIT: u32 = 2_000;
const MOST: u32 = 10_000;
/// What is looked at where nobody says.
const USUAL: Span = Span::days(1);

pub async fn list(
    service: &Service,
    caller: &Caller,
    query: wire::LeaseQuery,
) -> Result<LeaseList, Fault> {
    let now = clock::now();
    let to = query.to.map_or(now + Span(1), |at| at.0);
    let from = query.from.map_or_else(|| to.min(now) - USUAL, |at| at.0);
    if to <= from {
        let detail = format!("from {from} to {to} is no time at all");
        return Err(Fault::new(Code::BadRequest, detail).next("put the earlier moment in `from`"));
    }
    let job = match &query.job {
        None => None,
        Some(job) => Some(find::job(service, caller, job, Permission::JobsRead).await?.id),
    };
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let teams = query.team.clone().into_iter().collect();
    let filter = LeaseFilter { from, to, node: query.node.clone(), job, teams };
    let mut rows = service.store.leases_in(&filter, limit + 1).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let core = service.engine.core();
    let mut known = BTreeMap::new();
    let leases = rows.iter().map(|held| shown(caller, &core, &mut known, held)).collect();
    let wanted = |id: JobId, team: &str, nodes: &[Place]| {
        job.is_none_or(|job| job == id || (job.element.is_none() && job.number == id.number))
            && query.team.as_deref().is_none_or(|wish| wish == team)
            && query
                .node
                .as_deref()
                .is_none_or(|wish| nodes.iter().any(|place| *place.node == *wish))
    };
    let promised = promised(caller, &core, wanted);
    let mut reserved = Vec::new();
    for one in core.state.reservations().filter(|one| one.from < to.max(now) && one.to > from) {
        let on = query.node.as_deref();
        if on.is_none_or(|wish| one.nodes.iter().any(|node| node.as_str() == wish)) {
            reserved.push(wire::ReservedNodes {
                name: one.name.to_string(),
                owner: one.owner.to_string(),
                nodes: one.nodes.iter().map(ToString::to_string).collect(),
                from: one.from.into(),
                to: one.to.into(),
            });
        }
    }
    Ok(LeaseList { from: from.into(), to: to.into(), leases, promised, reserved, more })
}

fn shown(
    caller: &Caller,
    core: &Core,
    known: &mut BTreeMap<JobId, Option<Progress>>,
    held: &store::HeldLease,
) -> HeldLease {
    let row = &held.lease;
    let LeaseId { job, task, attempt } = row.id;
    let slices = live::slices(&row.slices);
    let progress = *known.entry(job).or_insert_with(|| core.state.progress(job));
    let progress = progress.filter(|_| row.closed.is_none());
    let state = match (row.closed, row.stop_at, row.started) {
        (Some(_), _, _) => LeaseState::Ended,
        (None, Some(_), _) => LeaseState::Stopping,
        (None, None, Some(_)) => LeaseState::Running,
        (None, None, None) => LeaseState::Starting,
    };
    let told: Option<Stopped> =
        row.stop.as_deref().and_then(|stop| serde_json::from_str(stop).ok());
    // A job that its own rule ends was stopped, but counts as done.
    let told = told.filter(|_| row.outcome != Some(LeaseOutcome::Done));
    let end = told.map(|told| told.cause.code()).or(row.outcome.map(|outcome| word(outcome, row)));
    HeldLease {
        id: format!("{job}/{task}#{attempt}"),
        of: job_ref(caller, job, &held.name, &held.user, &held.team),
        task,
        attempt,
        node: row.node.clone(),
        gpus: slices.iter().map(|slice| slice.gpu).collect(),
        gpus_milli: slices.iter().map(|slice| live::share(&slice.share).0).sum(),
        state,
        from: row.opened.into(),
        started: row.started.map(wire::At),
        to: row.closed.map(wire::At),
        expected_to: progress.and_then(|progress| progress.ends).map(wire::At),
        at_most_to: progress
            .and_then(|progress| progress.ends_at_most)
            .filter(|end| !(*end - row.opened).is_unlimited())
            .map(wire::At),
        end_reason: end.map(str::to_owned),
        price_micros_per_hour: row.price.0,
    }
}

/// How a lease ended by itself. The core counts a retried failure as lost.
fn word(outcome: LeaseOutcome, row: &store::LeaseRow) -> &'static str {
    let exit: Option<Exit> = row.exit.as_deref().and_then(|exit| serde_json::from_str(exit).ok());
    match (outcome, exit.map(|exit| exit.kind)) {
        (LeaseOutcome::Done, _) => "done",
        (LeaseOutcome::Failed, _)
        | (
            LeaseOutcome::Lost,
            Some(
                ExitKind::Failed | ExitKind::Signalled | ExitKind::OutOfMemory | ExitKind::NotReady,
            ),
        ) => "failed",
        (LeaseOutcome::Stopped, _) => "stopped",
        (LeaseOutcome::Lost, _) => "lost",
    }
}

/// What the plan of now keeps for jobs that wait.
fn promised(
    caller: &Caller,
    core: &Core,
    wanted: impl Fn(JobId, &str, &[Place]) -> bool,
) -> Vec<PromisedPlaces> {
    let mut all = Vec::new();
    for promise in core.state.promise_snapshots() {
        let Some(job) = core.jobs.get(&promise.job) else { continue };
        let row = &job.row;
        if !wanted(promise.job, &row.team, &promise.places) {
            continue;
        }
        let place = |place: &Place| PromisedPlace {
            task: place.task,
            node: place.node.to_string(),
            gpus: place.slices.iter().map(|slice| slice.gpu).collect(),
        };
        let from = promise.at;
        let estimate = core.state.estimate(promise.job);
        all.push(PromisedPlaces {
            of: job_ref(caller, promise.job, &row.name, &row.user, &row.team),
            from: from.into(),
            to: estimate.map(|estimate| wire::At(from + estimate)),
            firm: promise.firm,
            places: promise.places.iter().map(place).collect(),
        });
    }
    all
}
