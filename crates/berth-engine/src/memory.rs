//! What the loop keeps in memory: the scheduling state and the jobs that have not ended.

use crate::live::LiveJob;
use crate::tallies::{Durations, PLAN_BOUNDS, Tallies};
use berth_core::{Forecast, State};
use berth_model::{JobId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the loop keeps in memory, for anybody to look at. It may be a commit ahead of the store.
pub struct Core {
    pub state: State,
    /// Jobs that have not ended.
    pub jobs: BTreeMap<JobId, LiveJob>,
    /// Those of them that may cost so much and no more.
    pub budgeted: BTreeSet<JobId>,
    /// Jobs that failed and are tried again, the next one first.
    pub retries: BTreeSet<(Time, JobId)>,
    /// When waiting jobs are likely to start, by the last forecast.
    pub forecast: Option<Arc<Forecast>>,
    /// How long the last plans took, and how often one was made.
    pub plans: Plans,
    /// What has happened since the server was started.
    pub tallies: Tallies,
    /// Since when nothing could be committed, and why.
    pub stalled: Option<Stalled>,
}

/// The log cannot be written for the time being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    pub since: Time,
    pub why: String,
    /// It is the disk that has no room.
    pub full: bool,
}

/// How planning went.
#[derive(Debug, Clone)]
pub struct Plans {
    pub last_us: u64,
    pub times: Durations,
    pub put_aside: u64,
}

impl Default for Plans {
    fn default() -> Plans {
        Plans { last_us: 0, times: Durations::new(PLAN_BOUNDS), put_aside: 0 }
    }
}
