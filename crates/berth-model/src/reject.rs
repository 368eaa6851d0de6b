//! Why an event was not taken. The state is as it was before.

use crate::{JobId, LeaseId, Name, Time};
use thiserror::Error;

/// A refusal with a stable code and a next step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejected {
    #[error("event {seq} was applied already (the log is at {last}): drop it")]
    Duplicate { seq: u64, last: u64 },
    #[error("event {seq} came after {last}: send the events between them first")]
    Gap { seq: u64, last: u64 },
    #[error(
        "an event at {at} came after one at {now}: stamp events with a clock that never goes back"
    )]
    TimeWentBack { at: Time, now: Time },
    #[error("there is no job {job}: list the jobs to find its id")]
    UnknownJob { job: JobId },
    #[error("there is a job {job} already: take a new id")]
    JobExists { job: JobId },
    #[error("there is no open lease {lease}: it ended already, or its task was started anew")]
    UnknownLease { lease: LeaseId },
    #[error("there is no node {node}: add it first")]
    UnknownNode { node: Name },
    #[error("node {node} has no GPU {gpu}: it has {has}")]
    UnknownGpu { node: Name, gpu: u32, has: u32 },
    #[error("node {node} still holds leases: drain it first")]
    NodeInUse { node: Name },
    #[error("there is no queue {queue}: create it, or choose one of the existing queues")]
    UnknownQueue { queue: Name },
    #[error("queue {queue} has queues below it: jobs wait in leaves, so name one of those")]
    NotALeaf { queue: Name },
    #[error("queue {queue} cannot lie below {parent}: that would close a cycle")]
    QueueCycle { queue: Name, parent: Name },
    #[error("queue {queue} still has jobs or queues: move them first")]
    QueueInUse { queue: Name },
    #[error("queue {queue}: {field} is negative; use 0 for nothing, or leave it out for no bound")]
    NegativeAmount { queue: Name, field: &'static str },
    #[error(
        "queue {queue}: {field} is larger than anything can be; check its unit, or leave it out for no bound"
    )]
    AmountTooLarge { queue: Name, field: &'static str },
    #[error(
        "queue {queue} asks for a percentage of a parent without a quota: give {parent} one, or name an amount"
    )]
    PercentOfNothing { queue: Name, parent: Name },
    #[error("{what}: {why}")]
    BadJob { what: String, why: String },
    #[error("job {job} asks for MIG profile {profile}, which {model} does not have; it has {has}")]
    NoSuchProfile { job: JobId, profile: Name, model: Name, has: String },
    #[error("node {node}: {why}")]
    BadNode { node: Name, why: String },
    #[error("there is no pool {pool}")]
    UnknownPool { pool: Name },
    #[error("there is no claim {claim}: it was delivered or given up already")]
    UnknownClaim { claim: Name },
    #[error("pool {pool}: {why}")]
    BadPool { pool: Name, why: String },
    #[error("there is no reservation {name}")]
    UnknownReservation { name: Name },
    #[error("reservation {name}: {why}")]
    BadReservation { name: Name, why: String },
    #[error("policy: {why}")]
    BadPolicy { why: String },
    #[error("topology {name}: {why}")]
    BadTopology { name: Name, why: String },
    #[error("a decision does not fit the state: {why}")]
    BadDecision { why: String },
}

impl Rejected {
    /// A code that never changes its meaning.
    pub const fn code(&self) -> &'static str {
        match self {
            Rejected::Duplicate { .. } => "duplicate-event",
            Rejected::Gap { .. } => "missing-events",
            Rejected::TimeWentBack { .. } => "time-went-back",
            Rejected::UnknownJob { .. } => "unknown-job",
            Rejected::JobExists { .. } => "job-exists",
            Rejected::UnknownLease { .. } => "unknown-lease",
            Rejected::UnknownNode { .. } => "unknown-node",
            Rejected::UnknownGpu { .. } => "unknown-gpu",
            Rejected::NodeInUse { .. } => "node-in-use",
            Rejected::UnknownQueue { .. } => "unknown-queue",
            Rejected::NotALeaf { .. } => "not-a-leaf",
            Rejected::QueueCycle { .. } => "queue-cycle",
            Rejected::QueueInUse { .. } => "queue-in-use",
            Rejected::NegativeAmount { .. } => "negative-amount",
            Rejected::AmountTooLarge { .. } => "amount-too-large",
            Rejected::PercentOfNothing { .. } => "percent-of-nothing",
            Rejected::BadJob { .. } => "bad-job",
            Rejected::NoSuchProfile { .. } => "no-such-profile",
            Rejected::BadNode { .. } => "bad-node",
            Rejected::UnknownPool { .. } => "unknown-pool",
            Rejected::UnknownClaim { .. } => "unknown-claim",
            Rejected::BadPool { .. } => "bad-pool",
            Rejected::UnknownReservation { .. } => "unknown-reservation",
            Rejected::BadReservation { .. } => "bad-reservation",
            Rejected::BadPolicy { .. } => "bad-policy",
            Rejected::BadTopology { .. } => "bad-topology",
            Rejected::BadDecision { .. } => "bad-decision",
        }
    }
}
