//! The values of a job file's keys, as they were written: nothing is resolved here.

use berth_model::run::Times;
use berth_model::{Bytes, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spot {
    Never,
    Auto,
    Only,
}

/// A moment, or a time from the submission on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Time),
    In(Span),
}

impl When {
    pub fn from(self, now: Time) -> Time {
        match self {
            When::At(time) => time,
            When::In(span) => now + span,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Priority {
    Class(Name),
    Number(i32),
}

/// Which GPUs one node is asked for. Several of them are alternatives, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuChoice {
    pub which: Which,
    pub amount: GpuAmount,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Any,
    /// `H100` stands for every H100; `H100-80GB` for that one.
    Model(Name),
    /// Any with that much memory.
    AtLeast(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuAmount {
    Whole(u32),
    /// Less than one GPU.
    Part(Milli),
    /// A part of a GPU as large as that much of its memory.
    Memory(Bytes),
    /// Instances of a MIG profile.
    Mig {
        profile: Name,
        count: u32,
    },
    /// Shares of GPUs that the cluster hands out several times over.
    Shared(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retry {
    /// A lost node, a GPU error, a machine that could not start it.
    pub infra: Option<Times>,
    /// The job's own failure.
    pub error: Option<Times>,
    /// It ran out of memory.
    pub oom: Option<Times>,
    /// How long to wait before the first retry; the wait doubles each time.
    pub wait: Option<Span>,
}

/// When jobs are made from the file, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub cron: crate::cron::Cron,
    /// East of UTC.
    pub offset: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Of a GPU's time.
    pub below: Milli,
    pub after: Span,
    pub then: WhenIdle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenIdle {
    Notify,
    Suspend,
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub min: u32,
    pub max: u32,
    /// Waiting requests of one replica before another is added.
    pub pending: Option<u32>,
    pub predict: Option<Span>,
}
