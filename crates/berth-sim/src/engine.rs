//! What the simulator uses of the core, in one place.

pub use berth_core::{Applied, Finding, LoadError, Plan, State, Transaction, check, vetted};
use berth_core::{forecast, what_would_start};
use berth_model::{JobId, Reason};

pub fn reasons(state: &mut State, job: JobId) -> Vec<Reason> {
    state.reasons(job)
}

/// Where a job stands in line, when it is likely to start, and what would start it now.
pub fn outlook(state: &mut State, job: JobId) -> Vec<String> {
    let mut told = Vec::new();
    if let Some((ahead, all)) = state.position(job) {
        told.push(format!("it is number {} of {all} that wait in its queue", ahead + 1));
    }
    let made = forecast(state, state.policy().forecast_runs, job.number);
    told.extend(made.jobs.get(&job).map(ToString::to_string));
    told.extend(what_would_start(state, job).iter().map(ToString::to_string));
    told
}
