//! Jobs, their tasks and the leases these hold.

use crate::amounts::Charge;
use crate::ix::{JobIx, NodeIx, QueueIx, ShapeIx};
use berth_model::{Cause, JobId, JobSpec, LeaseId, Micros, Name, Place, Policy, Slice, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    pub cause: Cause,
    pub for_job: Option<JobId>,
    pub until: Time,
}

/// One holding of GPUs by a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub attempt: u32,
    pub node: NodeIx,
    pub slices: Vec<Slice>,
    pub charge: Charge,
    pub price: Micros,
    pub since: Time,
    pub bound: bool,
    pub stopping: Option<Stop>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Task {
    pub attempts: u32,
    pub done: bool,
    pub lease: Option<Box<Lease>>,
}

/// Why a job is not even considered for a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parked {
    Held,
    Begin(Time),
    Dependency,
    Never(Name),
    Singleton(JobId),
    Array,
    SetAside,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Parked(Parked),
    /// In the waiting index of its queue.
    Waiting,
    /// Its minimum runs (or is being started).
    Running,
    /// Not all of it runs and nothing new of it may start: some leases have yet to end.
    Ending,
}

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub id: JobId,
    pub spec: Arc<JobSpec>,
    pub queue: QueueIx,
    pub shape: ShapeIx,
    pub priority: i32,
    pub time_limit: Span,
    pub deadline: Option<Time>,
    pub hold: bool,
    pub tasks: Vec<Task>,
    pub standing: Standing,
    /// It stands in its queue's line: it waits, and no places are being cleared for it.
    pub enqueued: bool,
    /// Leases that are open, and those of them being stopped.
    pub open: u32,
    pub stopping: u32,
    pub done: u32,
    pub first_start: Option<Time>,
    pub started: Option<Time>,
    pub last_checkpoint: Option<Time>,
    pub saved: Span,
    pub estimate: Span,
    pub stale_since: Option<Time>,
    pub displaced: u32,
    pub moved: u32,
    pub pauses: Vec<Time>,
    pub paused: bool,
    /// What it was to come after has happened.
    pub released: bool,
    pub failed: bool,
    pub cancelled: bool,
    pub set_aside: Option<String>,
    /// Relative speed of the GPUs it runs on, in thousandths.
    pub speed: i64,
    /// It is not its turn to start; what is promised to it stays so.
    pub waits_turn: bool,
    /// The disruption budgets that its tasks count for.
    pub budgets: Vec<Name>,
    /// The budgets that were exceeded to make room for it.
    pub exceeds: BTreeSet<Name>,
}

impl Job {
    pub fn lease_id(&self, task: u32, attempt: u32) -> LeaseId {
        LeaseId { job: self.id, task, attempt }
    }

    /// Leases that hold GPUs and are not on their way out.
    pub fn live(&self) -> u32 {
        self.open - self.stopping
    }

    pub fn preemptible(&self) -> bool {
        self.spec.preemptible
    }

    pub fn grace(&self, policy: &Policy) -> Span {
        self.spec.grace.unwrap_or(policy.grace).min(policy.grace).max(Span::ZERO)
    }

    pub fn restart_cost(&self, policy: &Policy) -> Span {
        self.spec.restart_cost.unwrap_or(policy.restart_cost)
    }

    /// Run time still allowed when it starts (again).
    pub fn limit_left(&self) -> Span {
        (self.time_limit - self.saved).max(Span::secs(1))
    }

    /// Run time still expected when it starts (again).
    pub fn estimate_left(&self) -> Span {
        (self.estimate - self.saved).max(Span::secs(1))
    }

    /// When it will have ended at the latest, while it runs.
    pub fn ends(&self) -> Option<Time> {
        self.started.map(|started| started + self.limit_left())
    }

    /// Run time that would be lost if it stopped now.
    pub fn unsaved(&self, now: Time) -> Span {
        let Some(started) = self.started else { return Span::ZERO };
        let since = self.last_checkpoint.map_or(started, |saved| saved.max(started));
        (now - since).max(Span::ZERO)
    }

    pub fn leases(&self) -> impl Iterator<Item = (u32, &Lease)> {
        self.tasks
            .iter()
            .enumerate()
            .filter_map(|(at, task)| Some((at as u32, task.lease.as_deref()?)))
    }

    /// GPU thousandths that live leases hold.
    pub fn held_gpu(&self) -> i64 {
        self.leases()
            .filter(|(_, lease)| lease.stopping.is_none())
            .map(|(_, lease)| lease.charge.gpu)
            .sum()
    }
}

/// Places promised to a waiting job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promised {
    pub at: Time,
    /// When the job would be off them again.
    pub to: Time,
    pub places: Vec<(NodeIx, Place)>,
    pub firm: bool,
}

impl Promised {
    /// A fingerprint of the promise.
    pub fn fingerprint(&self, job: JobIx) -> u64 {
        let seed = hash_with(u64::from(job.0) + 1, self.at.0 as u64);
        self.places.iter().fold(seed, |seed, (node, place)| {
            let slices = place.slices.iter();
            slices.fold(hash_with(seed, u64::from(node.0)), |seed, slice| {
                hash_with(seed, u64::from(slice.gpu))
            })
        })
    }
}

/// Stirs a number into another, to tell apart what they were made of.
pub(crate) fn hash_with(seed: u64, with: u64) -> u64 {
    (seed ^ with).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// Jobs by ordinal and by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<JobIx>,
    pub by_id: BTreeMap<JobId, JobIx>,
    /// How many have a minimum run time of their own.
    pub guarded: u32,
    /// No job that had given way before has started again after that.
    pub last_return: Time,
}

impl Jobs {
    pub fn insert(&mut self, job: Job) -> JobIx {
        let id = job.id;
        self.guarded += u32::from(job.spec.min_runtime.is_some());
        let ix = match self.free.pop() {
            Some(ix) => {
                self.slots[ix.at()] = Some(job);
                ix
            }
            None => {
                self.slots.push(Some(job));
                JobIx(self.slots.len() as u32 - 1)
            }
        };
        self.by_id.insert(id, ix);
        ix
    }

    pub fn remove(&mut self, ix: JobIx) -> Job {
        let job = self.slots[ix.at()].take().expect("the job exists");
        self.by_id.remove(&job.id);
        self.guarded -= u32::from(job.spec.min_runtime.is_some());
        self.free.push(ix);
        job
    }

    pub fn find(&self, id: JobId) -> Option<JobIx> {
        self.by_id.get(&id).copied()
    }

    pub fn get(&self, ix: JobIx) -> &Job {
        self.slots[ix.at()].as_ref().expect("the job exists")
    }

    pub fn get_mut(&mut self, ix: JobIx) -> &mut Job {
        self.slots[ix.at()].as_mut().expect("the job exists")
    }

    /// Jobs that wait for their turn have it.
    pub fn give_turns(&mut self) {
        self.slots.iter_mut().flatten().for_each(|job| job.waits_turn = false);
    }

    /// Those that stand in line, by id.
    pub fn enqueued(&self) -> Vec<JobIx> {
        self.iter().filter(|(_, job)| job.enqueued).map(|(ix, _)| ix).collect()
    }

    /// All jobs, by id.
    pub fn iter(&self) -> impl Iterator<Item = (JobIx, &Job)> {
        self.by_id.values().map(|ix| (*ix, self.get(*ix)))
    }
}
