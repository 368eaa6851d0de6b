//! Why a job waits.

use super::{At, Id, JobChange, JobClone, JobRef, JobState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All that is known about a job's waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// 0 for a gang of pods that is no job yet, because pods of it do not exist.
    pub id: Id,
    pub name: String,
    pub state: JobState,
    /// How long it has been in this state.
    pub since_ms: i64,
    pub queue: String,
    /// Its place among those who wait in its queue, from 1.
    pub position: Option<u32>,
    /// How many wait there.
    pub waiting: u32,
    pub eta: Option<Eta>,
    /// What it asks for, in words: `4 nodes x 8 H100 in one rack`.
    pub needs: String,
    /// Everything that keeps it from starting, the binding one first.
    pub blockers: Vec<Blocker>,
    /// What has to happen, in words.
    pub clears: Option<String>,
    /// What else is good to know: share, budget, credit; of one that has ended, how it did.
    pub also: Vec<String>,
    /// Single changes that would each start it sooner.
    pub sooner: Vec<Sooner>,
}

/// When it is likely to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Eta {
    /// It has started by then in half of all cases; none: beyond what can be seen.
    pub p50: Option<At>,
    /// In nine of ten.
    pub p90: Option<At>,
    /// How old the forecast is.
    pub age_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    /// A code that never changes its meaning; docs/reasons.md has them all.
    pub code: String,
    pub text: String,
    /// The job would start if this one went away, the others being as they are.
    pub binding: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sooner {
    /// In words: `place: any`.
    pub change: String,
    /// When it would start then; none: at once.
    pub starts: Option<At>,
    /// Running jobs that would be stopped for it.
    pub stops: u32,
    /// The command that makes the change, where there is one.
    pub command: Option<String>,
    /// The body of `PATCH /v1/jobs/{job}` that makes the change, where that route can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<JobChange>,
    /// The body of `POST /v1/jobs/{job}/clone` that submits it so, where only that can. The old job
    /// stays, and has to be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<JobClone>,
    /// What an hour of it would cost then, and what it would come to in all; the cheapest GPUs that
    /// it could have, where they have a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_micros_per_hour: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_micros: Option<i64>,
}

/// What a job would lose if it was stopped now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AtRisk {
    #[serde(flatten)]
    pub of: JobRef,
    /// What it holds.
    pub gpus_milli: i64,
    pub nodes: Vec<String>,
    /// Run time that would be lost: since its last checkpoint, or since it began.
    pub lost_ms: i64,
    pub lost_micros: i64,
    pub last_checkpoint: Option<At>,
    /// It saves when it gets the signal to stop. If it finishes within its grace, it loses less.
    pub may_save: bool,
    /// It goes on by itself later.
    pub restarts: bool,
    /// When, in half of all cases and in nine of ten.
    pub restarts_at: Option<At>,
    pub restarts_at_p90: Option<At>,
    /// It runs to its end: it cannot be stopped for others.
    pub runs_on: bool,
}

/// What draining a machine would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainPreview {
    pub node: String,
    /// Jobs that have tasks there.
    pub stops: Vec<AtRisk>,
    pub lost_micros: i64,
    /// GPUs there that nobody has, and that nobody could get any more.
    pub gpus_milli: i64,
    /// When the last of those jobs that run on is expected to have ended.
    pub empty_at: Option<At>,
    /// Jobs that have places promised there, and would wait anew.
    pub promised: Vec<JobRef>,
}

/// What ending a job would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopPreview {
    #[serde(flatten)]
    pub job: AtRisk,
    /// What it has cost so far.
    pub cost_micros: i64,
    /// What it is expected to cost yet, if it is left alone.
    pub saves_micros: Option<i64>,
    /// Jobs that would start at once on what becomes free.
    pub starts: Vec<JobRef>,
}
