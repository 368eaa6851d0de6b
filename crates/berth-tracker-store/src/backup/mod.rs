//! The part of a backup that holds experiments, runs and models: a line that names the tables and
//! their columns, a line for each row, and a last line with a checksum over all before it. Either
//! database can be made from it.

mod format;
mod restore;
mod write;

pub use restore::{Filled, Restored, restore};

/// Why this part of a backup could not be written or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("cannot {action} the tracking tables in {database}: {source}")]
    Sql { action: &'static str, database: String, source: sqlx::Error },

    #[error("cannot {action} the experiments and runs of the backup: {source}")]
    Io { action: &'static str, source: std::io::Error },

    #[error("the experiments and runs of the backup cannot be restored: {why}")]
    Bad { why: String },

    #[error(transparent)]
    Open(crate::error::OpenError),
}

impl BackupError {
    fn bad(why: impl Into<String>) -> BackupError {
        BackupError::Bad { why: why.into() }
    }
}
