//! Following the objects of the cluster, and reading them.

mod budgets;
pub mod dra;
mod external;
mod follow;
mod kinds;
mod listing;
pub mod names;
mod pump;
mod queued;
pub mod reader;
mod related;
mod slim;
mod storage;
mod tasks;

pub use listing::Listing;
pub use pump::PodFeed;
pub use tasks::{Tasks, WATCH_BUFFER, pump};
