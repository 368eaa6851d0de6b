//! What a job has written into its folder.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct JobFileQuery {
    /// Below the folder of the job; that folder where left out.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Dir,
    /// It is not followed.
    Link,
    /// A pipe, a socket or the like. It is not read.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobFile {
    pub name: String,
    pub kind: FileKind,
    pub bytes: u64,
    pub modified_at: Option<At>,
}

/// What is in a folder of a job, in the order of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobFileList {
    pub job: Id,
    pub path: String,
    pub entries: Vec<JobFile>,
    /// There are more than one answer has.
    pub more: bool,
    /// The working folder of the command, if it is not the job's folder. Files with relative paths are there.
    /// An absolute path is outside of the job's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}
