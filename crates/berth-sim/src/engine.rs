//! What the simulator uses of the core, in one place.

pub use berth_core::{Applied, LoadError, Plan, State, Transaction};
use berth_model::{JobId, Reason};

/// What the checker has against a transaction of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub transaction: usize,
    pub text: String,
}

pub fn check(_state: &State, _plan: &Plan) -> Vec<Finding> {
    Vec::new()
}

pub fn reasons(state: &mut State, job: JobId) -> Vec<Reason> {
    state.reasons(job)
}
