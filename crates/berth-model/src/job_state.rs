//! What kind of job something is, what state it is in, and how its processes ended.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    #[default]
    Job,
    Notebook,
    Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits; `why` says for what.
    Pending,
    /// GPUs are its own; its processes are being started.
    Starting,
    Running,
    /// It was asked to end or to make room, and has its grace.
    Stopping,
    /// Held or paused until someone resumes it.
    Paused,
    Done,
    Failed,
    Cancelled,
}

impl JobState {
    pub const ALL: [JobState; 8] = [
        JobState::Pending,
        JobState::Starting,
        JobState::Running,
        JobState::Stopping,
        JobState::Paused,
        JobState::Done,
        JobState::Failed,
        JobState::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            JobState::Pending => "pending",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Paused => "paused",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Nothing more happens to it.
    pub const fn is_final(self) -> bool {
        matches!(self, JobState::Done | JobState::Failed | JobState::Cancelled)
    }
}

/// A word that stands for no variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{0}`")]
pub struct UnknownWord(pub String);

impl JobKind {
    pub const ALL: [JobKind; 3] = [JobKind::Job, JobKind::Notebook, JobKind::Service];

    pub const fn as_str(self) -> &'static str {
        match self {
            JobKind::Job => "job",
            JobKind::Notebook => "notebook",
            JobKind::Service => "service",
        }
    }
}

impl FromStr for JobKind {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<JobKind, UnknownWord> {
        let known = JobKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<JobState, UnknownWord> {
        let known = JobState::ALL.into_iter().find(|state| state.as_str() == word);
        known.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

/// How a process came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exit {
    pub kind: ExitKind,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The rank that failed first, within its task, where a failure is one of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// In words, with what to do about it.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    Done,
    Failed,
    Signalled,
    OutOfMemory,
    GpuError,
    /// A service that did not serve in time.
    NotReady,
    Timeout,
    /// We asked for it, whatever the code.
    Stopped,
    /// It asked to be run again.
    Requeue,
    /// Nobody saw its end.
    Lost,
    NotStarted,
}
