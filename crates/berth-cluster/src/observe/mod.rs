//! Following the objects of the cluster, and reading them.

pub mod dra;
mod external;
mod follow;
mod kinds;
pub mod names;
mod pump;
mod queued;
pub mod reader;
mod related;
mod slim;
mod storage;
mod tasks;

pub use follow::{Following, KindUpdate, listed as listed_kinds};
pub use pump::PodFeed;
pub use related::RelatedObjects;
pub use storage::Storage;
pub use tasks::{Tasks, WATCH_BUFFER, listed, pump};
