//! What the cluster has, who uses it, and who is entitled to it.

pub mod drain_preview;
pub mod gpus;
pub mod leases;
pub mod nodes;
pub mod queues;
pub mod shares;
pub mod state;

pub use queues::{percentile, waits};
pub use state::knobs;
