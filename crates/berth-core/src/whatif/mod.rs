//! What single change would start a waiting job now. Each change is made on a copy of the state,
//! and counts only if a plan made there starts the job; nothing is guessed.

mod change;
mod queues;
mod requests;
mod spec;
mod text;
mod tries;

pub use change::{Change, Starts, What};

use crate::jobs::Standing;
use crate::state::State;
use crate::whatif::tries::Tries;
use berth_model::JobId;

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
