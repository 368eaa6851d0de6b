//! A backup is one file that either database can restore: a line with the tables, a line for each row, and a
//! last line with a checksum over all before it. The rows of another store may follow, in their own format.

mod format;
mod restore;
mod write;

pub use restore::{attached, restore, signing_keys};
pub use write::Attachment;

use crate::read::AuditCheck;

/// What a backup holds, or what was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub rows: u64,
    /// The checksum of the file, hexadecimal.
    pub sha256: String,
    pub audit: AuditCheck,
}
