//! Listings of a store.

use crate::id::BlobId;
use std::time::SystemTime;

/// An object in the store, named or not.
#[derive(Debug, Clone)]
pub struct Listed {
    pub id: BlobId,
    pub bytes: u64,
    pub modified: SystemTime,
}
