//! What keeps a job from even being considered.

use crate::ix::JobIx;
use crate::jobs::{Parked, Standing};
use crate::state::State;
use crate::state::parking::DependencyStatus;
use berth_model::{Awaited, Dependency, JobRef, Name, Reason};

pub(super) fn reasons(state: &State, ix: JobIx) -> Vec<Reason> {
    let job = state.jobs.get(ix);
    let mut found = Vec::new();
    if job.hold {
        found.push(Reason::Held);
    }
    if let Some(finding) = &job.set_aside {
        found.push(Reason::SetAside { finding: finding.clone() });
    }
    match &job.standing {
        Standing::Running => {
            found.extend(job.stale_since.map(|since| Reason::Stale {
                missing: state.missing_tasks(ix),
                until: since + state.policy.stale,
            }));
            return found;
        }
        Standing::Parked(Parked::Singleton(first)) => {
            found.push(Reason::Singleton { first: *first });
        }
        Standing::Parked(Parked::Array) => {
            let at_most = job.spec.array.as_ref().and_then(|array| array.at_most);
            found.extend(at_most.map(|at_most| Reason::ArrayLimit { at_most }));
        }
        Standing::Parked(_) | Standing::Waiting | Standing::Ending => {}
    }
    if matches!(job.standing, Standing::Parked(_)) {
        found
            .extend(job.spec.begin.filter(|at| *at > state.now).map(|at| Reason::BeginTime { at }));
        found.extend(dependencies(state, ix));
    }
    if job.paused {
        found.extend(job.pauses.last().map(|since| Reason::Paused { since: *since }));
    }
    found
}

fn dependencies(state: &State, ix: JobIx) -> Vec<Reason> {
    let job = state.jobs.get(ix);
    let mut found = Vec::new();
    let mut on = Vec::new();
    for dependency in &job.spec.after {
        match state.dependency_status(dependency.after, &dependency.job, job.id) {
            DependencyStatus::Yes => {}
            DependencyStatus::NotYet => on.push(awaited(state, dependency)),
            DependencyStatus::Never => {
                found.push(Reason::DependencyNever { on: awaited(state, dependency) })
            }
        }
    }
    if !on.is_empty() {
        found.push(Reason::Dependency { on });
    }
    found
}

/// A job by its name and its number.
fn awaited(state: &State, dependency: &Dependency) -> Awaited {
    let job = match &dependency.job {
        JobRef::Name(name) => name.clone(),
        JobRef::Id(id) => {
            let mut elements = state.jobs.by_id.range(*id..=id.element(u32::MAX));
            let alive = elements.next().map(|(_, ix)| state.jobs.get(*ix).spec.name.clone());
            // For an array, look at the outcomes of its elements.
            let mut ended = state.outcomes.range(*id..=id.element(u32::MAX));
            let name = alive.or_else(|| ended.next().map(|(_, (name, _))| name.clone()));
            match name.filter(|name| !name.is_empty()) {
                Some(name) => Name::from(format!("{name} (job {id})")),
                None => Name::from(format!("job {id}")),
            }
        }
    };
    Awaited { job, after: dependency.after }
}
