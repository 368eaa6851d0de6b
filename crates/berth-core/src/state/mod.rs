//! Everything a plan depends on, and the few operations that change it. `apply` and the draft of a
//! plan use the same ones, so what a plan tried is what applying its decisions does.

mod adopt;
pub(crate) mod disruptions;
mod gang;
mod held_gpus;
pub(crate) mod history;
mod leases;
pub(crate) mod models;
pub(crate) mod parking;
pub(crate) mod pending;
pub(crate) mod promises;
mod release_times;
mod shapes;
pub(crate) mod speed;
mod task_ends;
mod times;

use crate::cluster::Cluster;
use crate::ix::{JobIx, NodeIx, ShapeIx, TaskIx};
use crate::jobs::{Jobs, Promised};
use crate::queues::{Queues, TimedJob};
use crate::shape::{Shape, ShapeKey};
use crate::state::disruptions::Allowance;
use crate::state::history::History;
use crate::state::models::Models;
use berth_ledger::Ledger;
use berth_model::{
    Bytes, ClaimSpec, GroupSpec, JobId, Micros, Name, NodeSpec, Outcome, Policy, PoolSpec,
    PriorityClass, RecentAsk, Reservation, Span, Time,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a parked job may be woken by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    Job(u64),
    Name(Name),
    Same(Name, Name),
    Array(u64),
}

/// How far a job has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since when it has run without interruption.
    pub started: Option<Time>,
    pub last_checkpoint: Option<Time>,
    /// Run time that would be lost if it stopped now.
    pub unsaved: Span,
    /// When it is expected to have ended, while it runs.
    pub ends: Option<Time>,
    /// The same by its time limit.
    pub ends_at_most: Option<Time>,
    pub preemptible: bool,
}

/// The state of the cluster, its queues and its jobs at one instant.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) seq: u64,
    pub(crate) policy: Policy,
    pub(crate) classes: BTreeMap<Name, PriorityClass>,
    pub(crate) models: Models,
    pub(crate) cluster: Cluster,
    pub(crate) shapes: Vec<Arc<Shape>>,
    pub(crate) shape_by_key: BTreeMap<ShapeKey, ShapeIx>,
    pub(crate) free_shapes: Vec<ShapeIx>,
    pub(crate) queues: Queues,
    pub(crate) jobs: Jobs,
    /// Jobs that run, by the time they must have ended.
    pub(crate) ends: BTreeSet<TimedJob>,
    /// Leases being stopped.
    pub(crate) stopping: BTreeSet<TaskIx>,
    /// Those of them whose GPUs are not promised to any job yet.
    pub(crate) releasing: BTreeSet<TaskIx>,
    pub(crate) promises: BTreeMap<JobIx, Promised>,
    /// Jobs with a promise, by shape and by the time of the promise.
    pub(crate) promises_by_shape: BTreeMap<ShapeIx, BTreeSet<TimedJob>>,
    /// All jobs with a promise, by its time.
    pub(crate) promises_by_time: BTreeSet<TimedJob>,
    /// Parked jobs that begin at a time.
    pub(crate) begins: BTreeSet<TimedJob>,
    /// Parked jobs by what wakes them.
    pub(crate) wakes: BTreeMap<Wake, BTreeSet<JobIx>>,
    /// How many elements of each array run, where it bounds them.
    pub(crate) arrays: BTreeMap<u64, u32>,
    /// Jobs by name and user, for singletons, dependencies, near and away.
    pub(crate) named: BTreeMap<(Name, Name), BTreeSet<JobId>>,
    /// Jobs by label.
    pub(crate) labelled: BTreeMap<(Name, Name), BTreeSet<JobId>>,
    /// Jobs with a group that may grow.
    pub(crate) elastic: BTreeSet<JobId>,
    /// Running gangs below their minimum.
    pub(crate) stale: BTreeSet<JobId>,
    /// Jobs with leases to stop: cancelled, failed or held.
    pub(crate) must_stop: BTreeSet<JobId>,
    /// Nodes that drain or leave.
    pub(crate) closing: BTreeSet<NodeIx>,
    /// Jobs that were set aside because their decisions failed the check.
    pub(crate) set_aside: BTreeSet<JobId>,
    pub(crate) outcomes: BTreeMap<JobId, (Name, Outcome)>,
    pub(crate) outcome_order: VecDeque<JobId>,
    pub(crate) history: History,
    pub(crate) pools: BTreeMap<Name, PoolSpec>,
    pub(crate) claims: BTreeMap<Name, ClaimSpec>,
    pub(crate) claims_made: u64,
    pub(crate) reservations: BTreeMap<Name, Reservation>,
    /// When jobs were moved to defragment within the last hour.
    pub(crate) moves: VecDeque<Time>,
    /// What the last jobs to start asked for.
    pub(crate) recent: VecDeque<RecentAsk>,
    /// Disruption budgets.
    pub(crate) disruptions: BTreeMap<Name, Allowance>,
    pub(crate) ledger: Ledger,
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

impl State {
    pub fn new() -> State {
        let class = |value, across| PriorityClass { value, across };
        State {
            now: Time(0),
            seq: 0,
            policy: Policy::default(),
            classes: BTreeMap::from([
                (Name::new("critical"), class(1_000, true)),
                (Name::new("high"), class(100, false)),
                (Name::new("normal"), class(50, false)),
                (Name::new("low"), class(10, false)),
            ]),
            models: Models::default(),
            cluster: Cluster::new(),
            shapes: Vec::new(),
            shape_by_key: BTreeMap::new(),
            free_shapes: Vec::new(),
            queues: Queues::default(),
            jobs: Jobs::default(),
            ends: BTreeSet::new(),
            stopping: BTreeSet::new(),
            releasing: BTreeSet::new(),
            promises: BTreeMap::new(),
            promises_by_shape: BTreeMap::new(),
            promises_by_time: BTreeSet::new(),
            begins: BTreeSet::new(),
            wakes: BTreeMap::new(),
            arrays: BTreeMap::new(),
            named: BTreeMap::new(),
            labelled: BTreeMap::new(),
            closing: BTreeSet::new(),
            set_aside: BTreeSet::new(),
            elastic: BTreeSet::new(),
            stale: BTreeSet::new(),
            must_stop: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            outcome_order: VecDeque::new(),
            history: BTreeMap::new(),
            pools: BTreeMap::new(),
            claims: BTreeMap::new(),
            claims_made: 0,
            reservations: BTreeMap::new(),
            moves: VecDeque::new(),
            recent: VecDeque::new(),
            disruptions: BTreeMap::new(),
            ledger: Ledger::default(),
        }
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The place of the last event in the log.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn classes(&self) -> &BTreeMap<Name, PriorityClass> {
        &self.classes
    }

    /// Dollars per GPU-hour by model, where one is set.
    pub fn prices(&self) -> &BTreeMap<Name, Micros> {
        &self.models.prices
    }

    /// The GPU models there are, with their memory.
    pub fn gpu_models(&self) -> BTreeMap<Name, Bytes> {
        let gpus = self.cluster.nodes.iter().flat_map(|node| &node.spec.gpus);
        gpus.map(|gpu| (gpu.model.clone(), gpu.memory)).collect()
    }

    /// What a node is, as it was last told.
    pub fn node_spec(&self, node: &str) -> Option<&NodeSpec> {
        Some(&self.cluster.node(self.cluster.find(node)?).spec)
    }

    /// The nodes that keep some of the data of a job that has not ended, the one with most of it first.
    pub fn data_places(&self, job: JobId) -> Vec<(Name, Bytes)> {
        let Some(ix) = self.jobs.find(job) else { return Vec::new() };
        let kept = self.cluster.kept_of(&self.jobs.get(ix).spec.data);
        let mut kept: Vec<(i64, NodeIx)> =
            kept.into_iter().map(|(ix, bytes)| (bytes, ix)).collect();
        kept.sort_by_key(|(bytes, ix)| (std::cmp::Reverse(*bytes), *ix));
        let named =
            |(bytes, ix): (i64, NodeIx)| (self.cluster.node(ix).spec.name.clone(), Bytes(bytes));
        kept.into_iter().map(named).collect()
    }

    /// The data that a node keeps, as it was last told.
    pub fn data_of_node(&self, node: &str) -> Option<&BTreeMap<Name, Bytes>> {
        Some(&self.cluster.node(self.cluster.find(node)?).data)
    }

    /// The model of one GPU of a node.
    pub fn gpu_model(&self, node: &str, gpu: u32) -> Option<&Name> {
        self.node_spec(node)?.gpus.get(gpu as usize).map(|gpu| &gpu.model)
    }

    /// The levels of all topologies, besides `node` and `nvlink`.
    pub fn levels(&self) -> BTreeSet<Name> {
        self.cluster.topologies.iter().flat_map(|(_, keys)| keys.iter().cloned()).collect()
    }

    /// What a job that has not ended asks for.
    pub fn asks_of(&self, job: JobId) -> Option<&[GroupSpec]> {
        Some(&self.jobs.get(self.jobs.find(job)?).spec.groups)
    }

    /// The machines that operators have reserved.
    pub fn reservations(&self) -> impl Iterator<Item = &Reservation> {
        self.reservations.values()
    }

    /// How far a job has got.
    pub fn progress(&self, job: JobId) -> Option<Progress> {
        let job = self.jobs.get(self.jobs.find(job)?);
        Some(Progress {
            started: job.started,
            last_checkpoint: job.last_checkpoint,
            unsaved: job.unsaved(self.now),
            ends: job.started.map(|started| started + job.estimate_left()),
            ends_at_most: job.ends(),
            preemptible: job.preemptible(),
        })
    }

    /// How long a job that has not ended is expected to run in all.
    pub fn estimate(&self, job: JobId) -> Option<Span> {
        self.jobs.find(job).map(|ix| self.jobs.get(ix).estimate)
    }

    /// The groups of tasks of a job: how many each has, and how many of them at the most may share
    /// a domain.
    pub fn groups_of(&self, job: JobId) -> Vec<(u32, Option<u32>)> {
        let Some(ix) = self.jobs.find(job) else { return Vec::new() };
        let leaves = self.shape_of(ix).leaves.iter();
        leaves.map(|leaf| (leaf.count, leaf.spread.map(|(_, at_most)| at_most))).collect()
    }

    /// How many GPUs of a node are wholly free. Zero where the node takes no work.
    pub fn free_gpus(&self, node: &str) -> u32 {
        let node = self.cluster.find(node).map(|ix| self.cluster.node(ix));
        node.filter(|node| node.open()).map_or(0, |node| node.free_whole())
    }

    /// Whether places are kept for a job, now or from some time on.
    pub fn is_promised(&self, job: JobId) -> bool {
        self.jobs.find(job).is_some_and(|ix| self.promises.contains_key(&ix))
    }

    /// When places are promised to a job, and whether they are being cleared for it.
    pub fn promise_of(&self, job: JobId) -> Option<(Time, bool)> {
        let promised = self.promises.get(&self.jobs.find(job)?)?;
        Some((promised.at, promised.firm))
    }

    /// Whether a job is not to start because it is the turn of others.
    pub fn waits_turn(&self, job: JobId) -> bool {
        self.jobs.find(job).is_some_and(|ix| self.jobs.get(ix).waits_turn)
    }

    /// The disruption budgets there are.
    pub fn disruption_budgets(&self) -> Vec<Name> {
        self.disruptions.keys().cloned().collect()
    }

    /// How many tasks under a budget may be stopped now; nothing where there is no such budget.
    pub fn disruptions_allowed(&self, budget: &Name) -> Option<u32> {
        self.disruptions_left(budget)
    }

    /// The disruption budgets that a job's tasks count for.
    pub fn budgets_of(&self, job: JobId) -> &[Name] {
        self.jobs.find(job).map_or(&[], |ix| &self.jobs.get(ix).budgets)
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether jobs of this priority reach across queues: those of the class it falls into do.
    pub(crate) fn across(&self, priority: i32) -> bool {
        let reached = self.classes.values().filter(|class| class.value <= priority);
        reached.max_by_key(|class| (class.value, class.across)).is_some_and(|class| class.across)
    }
}
