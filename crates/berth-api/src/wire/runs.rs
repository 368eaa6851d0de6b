//! The removal of deleted runs and experiments.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunsClean {
    /// The minimum time since the deletion, such as `7d`; the default is 30 days.
    pub older_than: Option<String>,
    /// Counts what Berth would remove, and removes nothing.
    pub dry_run: bool,
}

/// What Berth removes. It works in the background.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunsCleaned {
    /// Excludes runs that a version of a registered model names.
    pub runs: u64,
    /// Berth removes each experiment after its last run.
    pub experiments: u64,
    pub dry_run: bool,
}
