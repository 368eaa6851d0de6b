//! The only way in: whatever can change the cluster is an event.

use crate::{
    Bytes, Decision, Health, JobId, JobSpec, LeaseId, Micros, Milli, Name, NodeSpec, NodeState,
    Policy, PoolSpec, PriorityClass, QueueSpec, Reservation, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the holding of GPUs by one task ended, as observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseOutcome {
    Done,
    Failed,
    /// It ended because we asked it to.
    Stopped,
    /// The node was lost under it, or it never started.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    Priority(i32),
    Hold(bool),
    Queue(Name),
    Deadline(Option<Time>),
    TimeLimit(crate::Span),
    /// On which nodes each of its groups of tasks may lie, in their order, from now on.
    Nodes(Vec<Option<crate::NodeAsk>>),
    /// Whether it is its turn to start. While it is not, places that are promised to it stay
    /// promised.
    Turn(bool),
    /// The disruption budgets that its tasks count for.
    Budgets(Vec<Name>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    JobSubmitted {
        spec: Box<JobSpec>,
    },
    JobCancelled {
        job: JobId,
    },
    JobChanged {
        job: JobId,
        change: JobChange,
    },
    LeaseStarted {
        lease: LeaseId,
    },
    /// A durable checkpoint of the whole job exists as of now.
    LeaseSaved {
        job: JobId,
    },
    LeaseEnded {
        lease: LeaseId,
        outcome: LeaseOutcome,
    },
    /// A new node, or the new description of a known one.
    NodeAdded {
        node: Box<NodeSpec>,
    },
    NodeChanged {
        node: Name,
        state: NodeState,
    },
    NodeRemoved {
        node: Name,
    },
    GpuChanged {
        node: Name,
        gpu: u32,
        health: Health,
    },
    /// The versions of data that a node keeps now, with their sizes. Jobs with such data prefer it where
    /// places are otherwise equal.
    DataKept {
        node: Name,
        data: BTreeMap<Name, Bytes>,
    },
    QueueSet {
        queue: Box<QueueSpec>,
    },
    QueueRemoved {
        queue: Name,
    },
    PolicySet {
        policy: Box<Policy>,
    },
    ClassesSet {
        classes: BTreeMap<Name, PriorityClass>,
    },
    /// Dollars per GPU-hour, speed in thousandths of an H100 and watts, by model.
    ModelsSet {
        prices: BTreeMap<Name, Micros>,
        speeds: BTreeMap<Name, Milli>,
        watts: BTreeMap<Name, i64>,
    },
    /// Named topologies: label keys, largest domain first. One is called `default`.
    TopologySet {
        topologies: BTreeMap<Name, Vec<Name>>,
    },
    PoolSet {
        pool: Box<PoolSpec>,
    },
    PoolRemoved {
        pool: Name,
    },
    ClaimReady {
        claim: Name,
        node: Box<NodeSpec>,
    },
    /// The machine could not be had; the offering is left alone until then.
    ClaimFailed {
        claim: Name,
        retry_at: Time,
    },
    ReservationSet {
        reservation: Reservation,
    },
    ReservationRemoved {
        name: Name,
    },
    /// How many tasks of the jobs under a disruption budget may be stopped for others now; `None`:
    /// the budget is gone.
    DisruptionsSet {
        budget: Name,
        allowed: Option<u32>,
    },
    /// A gang's decisions, all of them in one record.
    Decided {
        job: Option<JobId>,
        decisions: Vec<Decision>,
    },
    /// Time has passed: all that is held is billed up to now.
    Tick,
    /// Time has passed: only what is due is billed. That is whole hours, machines whose idle part
    /// has changed, and what a budget has to know.
    BillDue,
}

/// An event with its place in the log and its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// Counts up by one through the log.
    pub seq: u64,
    pub at: Time,
    pub event: Event,
}
