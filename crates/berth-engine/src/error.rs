//! Why the loop could not start, or had to end.

use berth_model::JobId;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Store(#[from] berth_store::Error),
    /// The site could not be compared with the log.
    #[error(transparent)]
    Site(Box<dyn std::error::Error + Send + Sync>),
    #[error("the snapshot in the database cannot be loaded: {0}. Restore a backup")]
    Snapshot(berth_core::LoadError),
    #[error("event {seq} of the log was refused: {why}. Run the version of Berth that wrote it")]
    Event { seq: u64, why: berth_model::Rejected },
    #[error("job {job} in the database cannot be read: {why}. Restore a backup")]
    Job { job: JobId, why: serde_json::Error },
    #[error("this machine was refused: {0}")]
    Machine(berth_model::Rejected),
    #[error(transparent)]
    Log(Fatal),
}

/// Why the loop had to end. Jobs go on; another server takes them over.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    #[error("the log cannot be written any more: {0}")]
    Store(#[source] berth_store::Error),
}
