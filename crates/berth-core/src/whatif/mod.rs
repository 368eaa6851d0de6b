//! What single change would start a waiting job now. Each change is made on a copy of the state,
//! and counts only if a plan made there starts the job; nothing is guessed.

mod spec;
mod text;
mod tries;

use crate::jobs::Standing;
use crate::state::State;
use crate::whatif::tries::Tries;
use berth_model::{Bound, JobId, Lifecycle, Milli, Name, Span, Time};

/// One change, and what it would bring about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    pub starts: Starts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Starts {
    Now,
    /// After so many running jobs were stopped for it.
    By {
        at: Time,
        stops: u32,
    },
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Release,
    NoDependencies,
    NoBeginTime,
    Preemptible,
    Model {
        model: Name,
    },
    Lifecycle {
        lifecycle: Lifecycle,
    },
    /// Its tasks need not lie in one domain of the level.
    Apart {
        level: Name,
    },
    /// Its tasks need not be spread over the level.
    Unspread {
        level: Name,
    },
    /// It need not be near to other jobs, or away from them.
    Anywhere,
    FewerTasks {
        tasks: u32,
        of: u32,
    },
    PartOfGpu {
        part: Milli,
    },
    TimeLimit {
        limit: Span,
        of: Span,
    },
    Class {
        class: Name,
    },
    Queue {
        queue: Name,
    },
    Raise {
        queue: Name,
        bound: Bound,
        resource: Name,
        from: Milli,
        to: Milli,
    },
}

/// The changes that would each start the job, easier ones first. Nothing for a job that runs, that
/// the next plan starts anyway, or that no single change would help.
pub fn what_would_start(state: &State, job: JobId) -> Vec<Change> {
    let mut base = state.clone();
    base.refresh();
    let Some(ix) = base.jobs.find(job) else { return Vec::new() };
    let mut tries = Tries { scratch: base.clone(), base, job, ix, found: Vec::new(), later: true };
    match tries.base.jobs.get(ix).standing.clone() {
        Standing::Running | Standing::Ending => return Vec::new(),
        Standing::Parked(parked) => tries.parked(&parked),
        Standing::Waiting => {
            let under_way = tries.base.promises.get(&ix).is_some_and(|promised| promised.firm);
            match tries.outcome(|_| true) {
                Some(Starts::Now) => return Vec::new(),
                Some(Starts::By { .. }) => tries.later = false,
                None => tries.later = !under_way,
            }
            tries.waiting();
        }
    }
    tries.found
}
