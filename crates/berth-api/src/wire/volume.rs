//! Named volumes, which the server keeps for teams.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A named volume of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    pub team: String,
    pub name: String,
    /// What it takes on the disk.
    pub bytes: u64,
    /// All that is in it and is no folder. Links count, and are not followed.
    pub files: u64,
    /// Not all of it was counted: it takes at least as much.
    pub partial: bool,
    /// Nothing where the file system does not know.
    pub created: Option<At>,
    /// Jobs that use it and have not ended, an array as one; the first hundred.
    pub jobs: Vec<Id>,
    /// How many of them there are.
    pub job_count: u64,
}

/// Which volumes. What is left out does not filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct VolumeQuery {
    pub team: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct VolumeDelete {
    /// Also while jobs use it that do not run now. They start with an empty one.
    pub force: Option<bool>,
}
