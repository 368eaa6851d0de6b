//! What the simulator uses of the core, in one place.

pub use berth_core::{Applied, Finding, LoadError, Plan, State, Transaction, check, vetted};
use berth_model::{JobId, Reason};

pub fn reasons(state: &mut State, job: JobId) -> Vec<Reason> {
    state.reasons(job)
}
