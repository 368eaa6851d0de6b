//! Traces: what somebody else's cluster was asked for, as CSV text.
//!
//! The schema is that of [docs/trace-format.md](../../../../docs/trace-format.md). Columns are
//! found by name, so files with other columns in another order are read as they are. All
//! quantities are exact: a duration of 12.5 s is 12,500 ms and not a float near it.

pub mod csv;
mod error;
mod jobs;
mod nodes;
mod prices;
mod select;
mod spot;
mod table;
mod write;

pub use error::{Column, Error};
pub use jobs::{Job, jobs, shuffle_ties};
pub use nodes::{Node, nodes};
pub use prices::prices;
pub use select::Select;
pub use spot::{SpotSeries, spot};
pub use write::to_csv;

/// What two clusters of Microsoft's ITP were asked for in a month. Its licence is beside it.
pub const MONTH: &str = include_str!("../../data/itp_month.csv");

/// A small trace of our own making, so that the simulator runs where no other trace is at hand.
/// [`crate::synthetic`] made it; a test makes it again and compares.
pub const BUNDLED: &str = include_str!("../../data/sample_jobs.csv");

#[cfg(test)]
mod tests;
