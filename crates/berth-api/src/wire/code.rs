//! Snapshots of code.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot that is kept for the jobs of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeSnapshot {
    /// `sha256:` and the digest of the packed files.
    pub id: String,
    pub team: String,
    /// Packed.
    pub bytes: u64,
}
