//! The scheduling core: `apply` folds events into a state, `plan` decides what to do next,
//! `check` verifies a plan with code of its own, `forecast` runs the state forward.
//!
//! Nothing here reads a clock, a random number or the outside: the same events give the same plan,
//! byte for byte.

// Integers only, so that a plan and a bill come out the same on every machine. The ban of types in
// clippy.toml catches a float that is named; this catches one that is inferred.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod amounts;
mod apply;
mod check;
mod cluster;
mod draft;
mod fair_share;
mod forecast;
mod fragmentation;
mod index;
mod ix;
mod jobs;
mod plan;
mod queues;
mod reasons;
mod report;
mod shape;
mod snapshot;
mod state;
mod transaction;
mod whatif;

pub use apply::applied::Applied;
pub use check::{Finding, FindingCode, check, vetted};
pub use forecast::{
    Arrived, Ask, Copies, Eta, Forecast, STEPS as FORECAST_STEPS, forecast, forecast_with,
};
pub use report::QueueReport;
pub use snapshot::load::LoadError;
pub use state::{Progress, State};
pub use transaction::{Blocked, Blockers, Plan, Transaction};
pub use whatif::{Change, Starts, What, what_would_start};
