//! What became of a job over time, and who had which GPUs.

use super::{At, Exit, Id, JobState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What a job did in a part of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentState {
    /// For its first start, or for a next one that it has not lost to others.
    Waiting,
    /// It has GPUs, and not all of its tasks run.
    Starting,
    Running,
    /// It was told to save and give way. It goes on later.
    Saving,
    /// It was told to end.
    Stopping,
    /// It waits again because others got what it had.
    Preempted,
    /// It waits until somebody lets it go on, or there is money again.
    Paused,
    Ended,
}

impl SegmentState {
    pub const fn word(self) -> &'static str {
        match self {
            SegmentState::Waiting => "waiting",
            SegmentState::Starting => "starting",
            SegmentState::Running => "running",
            SegmentState::Saving => "saving",
            SegmentState::Stopping => "stopping",
            SegmentState::Preempted => "preempted",
            SegmentState::Paused => "paused",
            SegmentState::Ended => "ended",
        }
    }
}

/// A part of a job's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Segment {
    pub state: SegmentState,
    /// The attempt it belongs to, from 0; none while it waits.
    pub attempt: Option<u32>,
    pub from: At,
    /// None while it goes on.
    pub to: Option<At>,
    /// Code of the cause, as docs/concepts.md has them: `reclaim`, `preempt`, `drain` and so on; how
    /// it ended, of the last.
    pub cause: Option<String>,
    /// In words.
    pub text: Option<String>,
    /// The job that got what this one had.
    pub by: Option<JobRef>,
    /// All segments together cost what the job has cost.
    pub cost_micros: i64,
}

/// A job that another one met. Its name and user are for those who may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobRef {
    pub job: Id,
    pub name: Option<String>,
    pub user: Option<String>,
    pub team: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    pub job: Id,
    pub state: JobState,
    /// Without holes, the oldest first.
    pub segments: Vec<Segment>,
    pub cost_micros: i64,
    /// How long it waited, in all.
    pub waited_ms: i64,
    /// How long it ran, in all attempts.
    pub ran_ms: i64,
    pub exit: Option<Exit>,
    /// What is not kept any more, and the like.
    pub notes: Vec<String>,
}

/// Which leases. What is left out does not filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LeaseQuery {
    /// A day ago.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    /// Now, and with it what is promised and reserved.
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    pub node: Option<String>,
    pub job: Option<String>,
    pub team: Option<String>,
    /// At most 10,000; 2,000 where left out. The ones that run come first, then those that ended last.
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    Starting,
    Running,
    Stopping,
    Ended,
}

/// GPUs that a task has or had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldLease {
    /// Such as `17_3/0#1`: job, task and attempt.
    pub id: String,
    #[serde(flatten)]
    pub of: JobRef,
    pub task: u32,
    pub attempt: u32,
    pub node: String,
    /// Indices on the node.
    pub gpus: Vec<u32>,
    pub gpus_milli: i64,
    pub state: LeaseState,
    pub from: At,
    pub started: Option<At>,
    /// None while it is held.
    pub to: Option<At>,
    /// Until when it is expected to be held, while it is.
    pub expected_to: Option<At>,
    /// Until when it may be held.
    pub at_most_to: Option<At>,
    /// Why it was told to end, or how it ended: a cause, or `done`, `failed`, `stopped` or `lost`.
    pub end_reason: Option<String>,
    pub price_micros_per_hour: i64,
}

/// Places that are kept for a job that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromisedPlaces {
    #[serde(flatten)]
    pub of: JobRef,
    /// From when on.
    pub from: At,
    /// Until when it is expected to run then.
    pub to: Option<At>,
    /// Running jobs are being stopped for it; otherwise their end is waited for.
    pub firm: bool,
    pub places: Vec<PromisedPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromisedPlace {
    pub task: u32,
    pub node: String,
    pub gpus: Vec<u32>,
}

/// Machines that an operator has reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservedNodes {
    pub name: String,
    /// The queue that may use them, or whoever they are kept from all for.
    pub owner: String,
    pub nodes: Vec<String>,
    pub from: At,
    pub to: At,
}

/// Who had which GPUs in a time, has them, and will get them by the plan of now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseList {
    pub from: At,
    pub to: At,
    pub leases: Vec<HeldLease>,
    pub promised: Vec<PromisedPlaces>,
    pub reserved: Vec<ReservedNodes>,
    /// Older leases of this time were left out, because of the limit.
    pub more: bool,
}
