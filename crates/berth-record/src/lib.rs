//! What joins jobs with what is tracked.
//!
//! [`runs`] keeps the tracked run of each job true. [`lineage`] says what came from what,
//! [`reproduce`] says how to run a finished job again, [`returns`] what its money has brought, and [`stop_rule`] stops jobs whose metrics say
//! so. Scheduling knows nothing of this crate.

pub mod lineage;
pub mod reproduce;
pub mod returns;
pub mod runs;
pub mod stop_rule;
