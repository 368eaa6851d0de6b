//! What a store has.

use crate::id::BlobId;
use std::time::SystemTime;

/// An object that the store has, whether or not anything names it.
#[derive(Debug, Clone)]
pub struct Listed {
    pub id: BlobId,
    pub bytes: u64,
    pub modified: SystemTime,
}
