//! Keeps the tracked run of each job: creates it at the first start, updates status, cost and inputs, and
//! ends it with the job, even after crashes of the server.
//!
//! The event log is the work queue. The follower stores its position, so it misses nothing after a crash.
//! All its updates are idempotent. While the tracking store is unavailable, the follower waits and
//! scheduling continues.

mod book;
mod bring;
mod checkpoint;
mod code;
mod due;
mod facts;
mod files;
mod follow;
mod measure;
mod packages;
mod place;
mod position;
mod queue;
mod restored;
mod told;

pub use berth_service::tracked_run::run_id;
pub use book::Runs;
pub use facts::Facts;
pub use follow::begin;
