//! Events about jobs and their leases.

use crate::apply::validate::groups::{JobOrigin, group};
use crate::apply::validate::limits::{MAX_SPAN, is_plausible_time};
use crate::jobs::Standing;
use crate::state::State;
use berth_model::{GroupSpec, JobChange, JobId, JobSpec, LeaseId, Name, Rejected, Span};
use std::collections::BTreeSet;

pub(crate) fn bad_job(job: JobId, why: &str) -> Rejected {
    Rejected::BadJob { what: format!("job {job}"), why: why.to_owned() }
}

pub(crate) fn lease_is_open(state: &State, lease: LeaseId) -> Result<(), Rejected> {
    let unknown = Rejected::UnknownLease { lease };
    let Some(ix) = state.jobs.find(lease.job) else { return Err(unknown) };
    let task = state.jobs.get(ix).tasks.get(lease.task as usize);
    let held = task.and_then(|task| task.lease.as_ref());
    match held {
        Some(held) if held.attempt == lease.attempt => Ok(()),
        _ => Err(unknown),
    }
}

pub(crate) fn leaf_queue(state: &State, queue: &Name) -> Result<(), Rejected> {
    let Some(ix) = state.queues.find(queue) else {
        return Err(Rejected::UnknownQueue { queue: queue.clone() });
    };
    match state.queues.get(ix).children.is_empty() {
        true => Ok(()),
        false => Err(Rejected::NotALeaf { queue: queue.clone() }),
    }
}

pub(crate) fn job(state: &State, spec: &JobSpec, origin: JobOrigin) -> Result<(), Rejected> {
    leaf_queue(state, &spec.queue)?;
    let bad = |why: &str| Err(bad_job(spec.id, why));
    if spec.time_limit.is_some_and(|limit| limit <= Span::ZERO) {
        return bad("its time limit must be longer than nothing");
    }
    let spans = [spec.restart_cost, spec.grace, spec.min_runtime, spec.preempt_after];
    if spans.into_iter().flatten().any(|span| span < Span::ZERO) {
        return bad("a length of time is negative");
    }
    if spans.into_iter().chain([spec.time_limit]).flatten().any(|span| span > MAX_SPAN) {
        return bad("a length of time is over a hundred years; check its unit");
    }
    let times = [spec.deadline, spec.begin, Some(spec.submitted)];
    if !times.into_iter().flatten().all(is_plausible_time) {
        return bad("a time is not between 1970 and the year 287,000; check its unit");
    }
    if spec.groups.is_empty() {
        return bad("it asks for nothing; give it a group of tasks");
    }
    if let Some(array) = &spec.array {
        let distinct: BTreeSet<&u32> = array.elements.iter().collect();
        if array.elements.is_empty() || distinct.len() != array.elements.len() {
            return bad("its array needs elements, each named once");
        }
        if array.at_most == Some(0) {
            return bad("its array may run no element at a time; allow at least one");
        }
    }
    let mut tasks: u64 = 0;
    for top in &spec.groups {
        group(state, spec.id, top, origin)?;
        tasks += top.leaves().iter().map(|leaf| u64::from(leaf.count)).sum::<u64>();
    }
    if tasks > 1_000_000 {
        return bad("it has more than a million tasks; split it");
    }
    Ok(())
}

pub(super) fn submitted(state: &State, spec: &JobSpec) -> Result<(), Rejected> {
    let taken = |id: JobId| state.jobs.find(id).is_some() || state.outcomes.contains_key(&id);
    let elements = spec.array.iter().flat_map(|array| &array.elements);
    if taken(spec.id) || elements.map(|e| spec.id.element(*e)).any(taken) {
        return Err(Rejected::JobExists { job: spec.id });
    }
    job(state, spec, JobOrigin::Submitted)
}

pub(super) fn cancelled(state: &State, job: JobId) -> Result<(), Rejected> {
    let elements = state.jobs.by_id.range(job.element(0)..=job.element(u32::MAX));
    let any = state.jobs.find(job).is_some() || (job.element.is_none() && elements.count() > 0);
    if any { Ok(()) } else { Err(Rejected::UnknownJob { job }) }
}

pub(super) fn changed(state: &State, job: JobId, change: &JobChange) -> Result<(), Rejected> {
    let ix = state.jobs.find(job).ok_or(Rejected::UnknownJob { job })?;
    match change {
        JobChange::Queue(queue) => {
            leaf_queue(state, queue)?;
            if state.jobs.get(ix).open > 0 {
                return Err(bad_job(
                    job,
                    "it runs: move it to another queue while it waits, or stop it first",
                ));
            }
            Ok(())
        }
        JobChange::TimeLimit(limit) if *limit <= Span::ZERO => {
            Err(bad_job(job, "its time limit must be longer than nothing"))
        }
        JobChange::TimeLimit(limit) if *limit > MAX_SPAN => {
            Err(bad_job(job, "its time limit is over a hundred years; check its unit"))
        }
        JobChange::Deadline(Some(deadline)) if !is_plausible_time(*deadline) => {
            Err(bad_job(job, "its deadline is no time anybody means; check its unit"))
        }
        JobChange::Nodes(nodes) => {
            let known = state.jobs.get(ix);
            let leaves = known.spec.groups.iter().flat_map(GroupSpec::leaves).count();
            // Members that a running gang takes in later have to be somewhere, too.
            if known.open > 0 && known.standing != Standing::Running {
                return Err(bad_job(job, "it is ending: its nodes are chosen while it waits"));
            }
            if job.element.is_some() || nodes.len() != leaves {
                return Err(bad_job(job, "say for each group of tasks where it may lie"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

pub(super) fn saved(state: &State, job: JobId) -> Result<(), Rejected> {
    let ix = state.jobs.find(job).ok_or(Rejected::UnknownJob { job })?;
    match state.jobs.get(ix).open {
        0 => Err(bad_job(job, "it does not run, so it has nothing new to save")),
        _ => Ok(()),
    }
}
