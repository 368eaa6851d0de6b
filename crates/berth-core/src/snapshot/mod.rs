//! Snapshots: the whole state as plain values, and back. A loaded state plans like the one it was
//! taken of.

pub(crate) mod load;
mod load_jobs;
mod save;
