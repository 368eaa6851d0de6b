//! The control loop: inputs are applied, a plan is made and checked, everything is committed in one
//! transaction, and only then are orders carried out and callers answered.
//!
//! One task owns the log. What arrives while it commits is taken together in the next turn, so a
//! thousand submissions cost a few disk writes and a few plans.
//!
//! Deliberately absent: policy (what is started or stopped is what the core decided), HTTP, and any
//! knowledge of where jobs run beyond the [`Site`] trait.

mod boot;
pub mod clock;
mod error;
mod event_loop;
mod first_events;
pub mod forecasts;
mod handle;
mod input;
mod job_state;
mod lease_start;
mod live;
mod memory;
mod news;
pub mod notices;
mod outcome;
pub mod played;
mod ports;
mod recent_requests;
mod retention;
mod rows;
mod site;
mod tallies;
mod team_tree;
pub mod testing;
mod turn;

#[cfg(test)]
mod handle_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;

pub use boot::{Running, Setup, begin};
pub use error::{BootError, Fatal};
pub use first_events::{DEFAULT_PROJECT, DEFAULT_TEAM, first_events};
pub use handle::{Handle, Inlet};
pub use input::{Act, Amend, Idempotent, Refused, Report, Write, Written};
pub use job_state::shown_state;
pub use lease_start::{LeaseStart, StartError};
pub use live::{Detail, LiveJob, LiveLease, MadeBy, Stopped};
pub use memory::{Core, Plans, Stalled, Unbilled};
pub use news::{Heard, Listener, News, Told};
pub use outcome::stop_message;
pub use site::{FollowUps, InitialSync, Site};
pub use tallies::{Durations, Tallies, TeamTallies};
pub use team_tree::TeamTree;
pub use turn::Turn;
