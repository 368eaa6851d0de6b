//! The tracked run of each job, kept true: made when the job first starts, with its status, what it
//! costs and what it ran with, and ended when the job ends, whatever becomes of the server meanwhile.
//!
//! The log of events is the queue of what there is to do: the follower reads on from where it last
//! was, so nothing is missed after a crash, and what is done again changes nothing. While the tracking
//! database is away the follower waits, and scheduling does not notice.

mod book;
mod bring;
mod checkpoint;
mod code;
mod facts;
mod files;
mod follow;
mod measure;
mod packages;
mod place;
mod position;
mod told;

pub use berth_service::tracked_run::run_id;
pub use book::Runs;
pub use facts::Facts;
pub use follow::begin;
