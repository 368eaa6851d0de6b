//! Connects jobs with tracking.
//!
//! [`runs`] keeps the tracked run of each job up to date. [`lineage`] finds the inputs and outputs of runs,
//! [`reproduce`] repeats finished jobs, [`returns`] compares cost with results, and [`stop_rule`] stops
//! jobs whose metrics meet a rule. No scheduling crate depends on this crate.

mod gpu_time;
pub mod lineage;
pub mod reproduce;
mod restart;
pub mod returns;
pub mod runs;
mod snapshot;
pub mod stop_rule;
