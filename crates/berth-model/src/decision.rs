//! What Berth does. A decision leaves a driver nothing to choose.

use crate::{JobId, LeaseId, Lifecycle, Micros, Name, Slice, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Another queue takes back its share.
    Reclaim,
    /// A higher class of the same queue.
    Preempt,
    /// A class that reaches across queues.
    Across,
    /// A surplus member of an elastic gang.
    Shrink,
    /// The gang stayed below its minimum too long.
    Stale,
    /// The node takes no more work.
    Drain,
    /// The node is about to leave.
    Leaving,
    /// Moved so that a gang fits.
    Defragment,
    /// Paused for shorter jobs of its queue.
    TimeShare,
    /// The budget is spent.
    Budget,
    /// Its user or an operator asked.
    Cancelled,
    /// A user or operator put it on hold.
    Held,
    /// Another task of the job failed.
    PeerFailed,
    /// It ran as long as it may.
    TimeLimit,
}

impl Cause {
    pub const ALL: [Cause; 14] = [
        Cause::Reclaim,
        Cause::Preempt,
        Cause::Across,
        Cause::Shrink,
        Cause::Stale,
        Cause::Drain,
        Cause::Leaving,
        Cause::Defragment,
        Cause::TimeShare,
        Cause::Budget,
        Cause::Cancelled,
        Cause::Held,
        Cause::PeerFailed,
        Cause::TimeLimit,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Cause::Reclaim => "reclaim",
            Cause::Preempt => "preempt",
            Cause::Across => "across",
            Cause::Shrink => "shrink",
            Cause::Stale => "stale",
            Cause::Drain => "drain",
            Cause::Leaving => "leaving",
            Cause::Defragment => "defragment",
            Cause::TimeShare => "time-share",
            Cause::Budget => "budget",
            Cause::Cancelled => "cancelled",
            Cause::Held => "held",
            Cause::PeerFailed => "peer-failed",
            Cause::TimeLimit => "time-limit",
        }
    }

    /// Whether the job goes back to waiting when its tasks have stopped.
    pub const fn requeues(self) -> bool {
        !matches!(self, Cause::Cancelled | Cause::PeerFailed | Cause::TimeLimit)
    }

    /// Whether the job gave way to another one, rather than to an operator or its own end.
    pub const fn displaces(self) -> bool {
        matches!(
            self,
            Cause::Reclaim
                | Cause::Preempt
                | Cause::Across
                | Cause::Shrink
                | Cause::Defragment
                | Cause::TimeShare
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Where one task goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub task: u32,
    pub node: Name,
    pub slices: Vec<Slice>,
}

/// One thing for a driver to do, or for the state to remember.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Open a lease and start the task on exactly these slices.
    Start {
        lease: LeaseId,
        node: Name,
        slices: Vec<Slice>,
        /// Dollars an hour while it is held.
        price: Micros,
        /// Whether the task goes on from a checkpoint.
        resume: bool,
    },
    /// Ask the task to save and end; kill it after the grace.
    Stop { lease: LeaseId, cause: Cause, for_job: Option<JobId>, grace: Span },
    /// Keep these places for the job from that time on; `firm` when running jobs are being
    /// stopped for it.
    Reserve { job: JobId, at: Time, places: Vec<Place>, firm: bool },
    /// Give up the job's reservation.
    Unreserve { job: JobId },
    /// Buy a machine.
    Claim {
        claim: Name,
        pool: Name,
        instance: Name,
        zone: Name,
        lifecycle: Lifecycle,
        for_job: Option<JobId>,
    },
    /// Give a bought machine back.
    Return { node: Name },
    /// The job's decisions failed the check: it waits until something about it changes.
    SetAside { job: JobId, finding: String },
}
