//! Everything a plan depends on, at one instant. A world file is its text form; a state loaded
//! from a snapshot plans exactly like the one the snapshot was taken of.

use crate::{
    Bytes, Cause, ClaimSpec, JobId, JobSpec, Micros, Milli, Name, NodeSpec, Outcome, Place, Policy,
    PoolSpec, PriorityClass, QueueSpec, Reservation, Slice, Span, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub now: Time,
    pub seq: u64,
    pub topologies: BTreeMap<Name, Vec<Name>>,
    pub policy: Policy,
    pub classes: BTreeMap<Name, PriorityClass>,
    pub prices: BTreeMap<Name, Micros>,
    pub speeds: BTreeMap<Name, Milli>,
    pub watts: BTreeMap<Name, i64>,
    /// In the order they joined: ties between nodes are broken by it.
    pub nodes: Vec<NodeSnapshot>,
    pub pools: Vec<PoolSpec>,
    pub claims: Vec<ClaimSpec>,
    /// Machines ever claimed; numbers the next one.
    pub claims_made: u64,
    pub queues: Vec<QueueSnapshot>,
    pub history: Vec<History>,
    pub jobs: Vec<JobSnapshot>,
    pub outcomes: Vec<(JobId, Name, Outcome)>,
    pub reservations: Vec<Reservation>,
    pub promises: Vec<Promise>,
    /// When jobs were moved to defragment, within the last hour.
    pub moves: Vec<Time>,
    /// Shapes of recent starts, oldest first.
    pub recent: Vec<RecentAsk>,
    /// How many tasks may be stopped now, by disruption budget.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disruptions: BTreeMap<Name, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSnapshot {
    pub spec: NodeSpec,
    /// Since when the node has had nothing to do.
    pub idle_since: Option<Time>,
    /// When the node joined: its bill runs from there.
    pub since: Time,
    /// Cost rows exist up to here.
    pub billed: Time,
    /// The versions of data that it keeps, with their sizes. Snapshots of before have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<Name, Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSnapshot {
    pub spec: QueueSpec,
    /// GPU-milliseconds (thousandths of GPU-seconds).
    pub credits: i64,
    /// Decayed past use, in the same unit.
    pub past_use: i64,
    pub spent: Micros,
    /// What it spent on each of the last days, by the start of the day. Snapshots of before have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daily: Vec<(Time, Micros)>,
}

/// How long jobs of a user and name ran, as thousandths of their time limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub user: Name,
    pub name: Name,
    pub runs: u32,
    pub ratio: Milli,
}

/// What a recent start asked of a GPU, for the request mix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecentAsk {
    /// GPUs of one node, or the share of one GPU below 1.
    pub gpus: Milli,
    pub cpu: crate::Cpu,
    pub memory: crate::Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// For an element of an array, the whole array's spec.
    pub spec: JobSpec,
    pub element: Option<u32>,
    pub leases: Vec<LeaseSnapshot>,
    /// Tasks that ended well.
    pub done: Vec<u32>,
    /// How often each task was started; tasks never started are left out.
    pub attempts: BTreeMap<u32, u32>,
    pub first_start: Option<Time>,
    /// Since when it has run without interruption.
    pub started: Option<Time>,
    pub last_checkpoint: Option<Time>,
    /// Run time safe in checkpoints of earlier attempts.
    pub saved: Span,
    /// How long it is expected to run in all, as estimated when it was submitted.
    pub estimate: Option<Span>,
    pub stale_since: Option<Time>,
    pub displaced: u32,
    pub moved: u32,
    /// When it was paused for shorter jobs, within the last day.
    pub pauses: Vec<Time>,
    pub paused: bool,
    /// What it was to come after has happened, whatever may still be known about that.
    pub released: bool,
    pub failed: bool,
    pub cancelled: bool,
    pub set_aside: Option<String>,
    /// It is not its turn to start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_turn: bool,
    /// The disruption budgets that its tasks count for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Name>,
}

impl JobSnapshot {
    pub fn new(spec: JobSpec) -> JobSnapshot {
        JobSnapshot {
            spec,
            element: None,
            leases: Vec::new(),
            done: Vec::new(),
            attempts: BTreeMap::new(),
            first_start: None,
            started: None,
            last_checkpoint: None,
            saved: Span::ZERO,
            estimate: None,
            stale_since: None,
            displaced: 0,
            moved: 0,
            pauses: Vec::new(),
            paused: false,
            released: false,
            failed: false,
            cancelled: false,
            set_aside: None,
            waits_turn: false,
            budgets: Vec::new(),
        }
    }

    pub fn id(&self) -> JobId {
        JobId { number: self.spec.id.number, element: self.element }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSnapshot {
    pub task: u32,
    pub attempt: u32,
    pub node: Name,
    pub slices: Vec<Slice>,
    pub price: Micros,
    /// When it was opened: money runs from there.
    pub since: Time,
    /// Cost rows exist up to here.
    pub billed: Time,
    /// Whether a driver has said that the task runs.
    pub bound: bool,
    pub stopping: Option<StopSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopSnapshot {
    pub cause: Cause,
    pub for_job: Option<JobId>,
    /// When the grace ends.
    pub until: Time,
}

/// Places kept for a waiting job from a time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    pub job: JobId,
    pub at: Time,
    pub places: Vec<Place>,
    /// Whether GPUs are being freed for it, rather than awaited.
    pub firm: bool,
}
