//! Why there is no view of the file system for a job.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("cannot make a view of the file system: {step}: {error}")]
    Step { step: &'static str, error: io::Error },
    #[error("cannot show {} to the job: {error}", path.display())]
    Open { path: PathBuf, error: io::Error },
    #[error("cannot put anything at {}: {error}", at.display())]
    Place { at: PathBuf, error: io::Error },
    #[error("the folders around {} change while the job starts; start it again when they rest", at.display())]
    Moved { at: PathBuf },
}

impl TreeError {
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            TreeError::Step { error, .. }
            | TreeError::Open { error, .. }
            | TreeError::Place { error, .. } => error.raw_os_error(),
            TreeError::Moved { .. } => None,
        }
    }
}
