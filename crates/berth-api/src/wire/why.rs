//! Why a job waits.

use super::{At, Id, JobState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All that is known about a job's waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
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
}
