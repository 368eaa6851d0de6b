//! What the simulator uses of the core, in one place.

pub use berth_core::{
    Applied, Arrived, Ask, Finding, LoadError, Plan, Starts, State, Transaction, check, forecast,
    forecast_with, vetted, what_would_start,
};
use berth_model::{JobId, Reason};

pub fn reasons(state: &mut State, job: JobId) -> Vec<Reason> {
    state.reasons(job)
}
