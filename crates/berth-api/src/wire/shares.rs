//! Shares of experiments.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The teams that may read an experiment of another team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentShares {
    /// `*` means every team.
    pub teams: Vec<String>,
}
