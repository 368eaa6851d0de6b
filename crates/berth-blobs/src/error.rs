//! Errors of the object store.

use crate::id::BlobId;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// A response of the bucket.
pub type BucketError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot {action} in the bucket {bucket}")]
    Bucket {
        action: &'static str,
        bucket: String,
        #[source]
        source: BucketError,
    },
    #[error("the object {0} is not in the store")]
    Missing(BlobId),
    #[error(
        "the disk of the server has {free} bytes free, {needed} more are to be written, and {reserve} \
         are to stay free"
    )]
    Full { free: u64, needed: u64, reserve: u64 },
    #[error("it has more than {most} bytes")]
    TooLarge { most: u64 },
    #[error("{said} bytes were announced, and {came} came")]
    CutOff { said: u64, came: u64 },
    #[error("`{address}` is not the address of a bucket: {why}")]
    Address { address: String, why: String },
    #[error("{}: {why}", path.display())]
    Keys { path: PathBuf, why: String },
    /// A blocking thread has panicked.
    #[error("the disk was not asked")]
    NotAsked,
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { action, path: path.to_owned(), source }
    }

    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full { .. } => true,
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}

/// Runs blocking file operations outside of the async threads.
pub(crate) async fn on_disk<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(ask).await.unwrap_or(Err(Error::NotAsked))
}
