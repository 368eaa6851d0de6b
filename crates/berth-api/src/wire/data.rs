//! Versions of data, and what teams keep in the store of objects.

use super::At;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A version of data. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataVersion {
    pub team: String,
    pub name: String,
    pub version: u64,
    /// What DVC knows it by: an MD5 sum, with `.dir` after that of a folder.
    pub hash: String,
    pub bytes: u64,
    pub files: u64,
    /// The version that it was made from.
    pub parent: Option<u64>,
    pub created: At,
    pub by: String,
    pub note: String,
}

/// Which versions. What is left out does not filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct DataQuery {
    pub team: Option<String>,
    pub name: Option<String>,
}

/// A name for what was pushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataMake {
    /// Such as `c4@v3`; without a version the next one.
    pub version: String,
    pub hash: String,
    /// The version that it was made from; the one before it where left out.
    #[serde(default)]
    pub parent: Option<u64>,
    #[serde(default)]
    pub note: Option<String>,
}

/// Objects that may be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataAsk {
    pub hashes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataMissing {
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct DataFilesQuery {
    /// Those after this path.
    pub after: Option<String>,
    /// So many at the most; 1000 where left out.
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataFile {
    pub path: String,
    pub md5: String,
    pub bytes: u64,
}

/// Files in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataFiles {
    pub files: Vec<DataFile>,
    /// There are others after these.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct DataDiffQuery {
    /// The version to compare with, such as `c4@v3`.
    pub to: String,
}

/// Files of one kind of change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DataChanges {
    pub files: u64,
    pub bytes: u64,
    /// The first thousand.
    pub paths: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataDiff {
    pub from: DataVersion,
    pub to: DataVersion,
    pub added: DataChanges,
    pub removed: DataChanges,
    pub changed: DataChanges,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DataClean {
    /// Only what was pushed so long ago, such as `7d`; 30 days where left out.
    pub older_than: Option<String>,
    /// Counts what Berth would remove, and removes nothing.
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataCleaned {
    pub objects: u64,
    pub bytes: u64,
    pub dry_run: bool,
}

/// What a team keeps in the store of objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Storage {
    pub team: String,
    /// Artifacts, and objects of data.
    pub objects: u64,
    pub bytes: u64,
    /// What it may keep.
    pub quota: u64,
    /// It is not the one of every team.
    pub has_own_quota: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct StorageSet {
    /// In bytes; that of every team where left out.
    #[serde(default)]
    pub quota: Option<u64>,
}
