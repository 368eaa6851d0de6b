//! Shares of experiments and models.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The teams that may read an experiment of another team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentShares {
    /// `*` means every team.
    pub teams: Vec<String>,
}

/// The teams that may read a registered model of another team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelShares {
    /// `*` means every team.
    pub teams: Vec<String>,
}
