//! Deleted runs and experiments.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunsClean {
    /// Only what was deleted so long ago, such as `7d`; 30 days where left out.
    pub older_than: Option<String>,
    /// Says what would go, and removes nothing.
    pub dry_run: bool,
}

/// What goes for good. The server removes it in the background.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunsCleaned {
    /// Without those that a version of a registered model names.
    pub runs: u64,
    /// Each goes after its last run.
    pub experiments: u64,
    pub dry_run: bool,
}
