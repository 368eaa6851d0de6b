//! The state as it would be after the transactions that passed so far, kept as differences: only
//! what decisions touch is ever looked at or stored. A transaction that fails is taken back.

use crate::amounts::Amounts;
use crate::check::usage::Usage;
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::jobs::{Job, Promised, Standing};
use crate::state::State;
use berth_model::{BackfillEnds, Place, Slice, Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a job stands, as far as a decision may depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    Parked,
    Waiting,
    Running,
    Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobNow {
    pub stand: Stand,
    pub started: Option<Time>,
    /// It starts in this plan.
    pub fresh: bool,
    /// An earlier transaction for it failed, so it will be put aside.
    pub aside: bool,
}

/// What a task holds.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub attempt: u32,
    pub node: NodeIx,
    pub slices: Vec<Slice>,
    pub amounts: Amounts,
    pub since: Time,
    /// When its grace ends, while it is being stopped.
    pub stopping: Option<Time>,
}

#[derive(Debug, Clone)]
struct TaskNow {
    attempts: u32,
    hold: Option<Arc<Hold>>,
}

/// Places kept for a job.
#[derive(Debug, Clone)]
pub(super) struct PromisedPlaces {
    pub at: Time,
    pub to: Time,
    pub firm: bool,
    pub places: Vec<(NodeIx, Place)>,
    pub amounts: Amounts,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NodeNow {
    pub tasks: Vec<TaskIx>,
    /// Jobs that places are kept for.
    pub kept: Vec<JobIx>,
}

enum Undo {
    Task(TaskIx, Option<TaskNow>),
    Job(JobIx, Option<JobNow>),
    PromisedPlaces(JobIx, Option<Option<Arc<PromisedPlaces>>>),
    Opened(NodeIx),
    NodeKept(NodeIx, Vec<JobIx>),
    Charged(JobIx, Amounts, i64),
}

pub(super) struct Overlay<'a> {
    pub state: &'a State,
    pub usage: Usage<'a>,
    tasks: BTreeMap<TaskIx, TaskNow>,
    jobs: BTreeMap<JobIx, JobNow>,
    kept: BTreeMap<JobIx, Option<Arc<PromisedPlaces>>>,
    nodes: BTreeMap<NodeIx, NodeNow>,
    undo: Vec<Undo>,
}

impl<'a> Overlay<'a> {
    pub fn new(state: &'a State) -> Overlay<'a> {
        Overlay {
            state,
            usage: Usage::new(state),
            tasks: BTreeMap::new(),
            jobs: BTreeMap::new(),
            kept: BTreeMap::new(),
            nodes: BTreeMap::new(),
            undo: Vec::new(),
        }
    }

    pub fn base(&self, ix: JobIx) -> &'a Job {
        self.state.jobs.get(ix)
    }

    pub fn job(&self, ix: JobIx) -> JobNow {
        self.jobs.get(&ix).copied().unwrap_or_else(|| {
            let job = self.base(ix);
            let stand = match job.standing {
                Standing::Parked(_) => Stand::Parked,
                Standing::Waiting => Stand::Waiting,
                Standing::Running => Stand::Running,
                Standing::Ending => Stand::Ending,
            };
            JobNow { stand, started: job.started, fresh: false, aside: false }
        })
    }

    pub fn set_job(&mut self, ix: JobIx, now: JobNow) {
        let before = self.jobs.insert(ix, now);
        self.undo.push(Undo::Job(ix, before));
    }

    pub fn attempts(&self, task: TaskIx) -> u32 {
        match self.tasks.get(&task) {
            Some(now) => now.attempts,
            None => self.base(task.job).tasks[task.task as usize].attempts,
        }
    }

    pub fn hold(&self, task: TaskIx) -> Option<Arc<Hold>> {
        if let Some(now) = self.tasks.get(&task) {
            return now.hold.clone();
        }
        let lease = self.base(task.job).tasks[task.task as usize].lease.as_deref()?;
        let mut amounts = Amounts::default();
        amounts.charge(&lease.charge, 1);
        Some(Arc::new(Hold {
            attempt: lease.attempt,
            node: lease.node,
            slices: lease.slices.clone(),
            amounts,
            since: lease.since,
            stopping: lease.stopping.as_ref().map(|stop| stop.until),
        }))
    }

    /// What the task holds of GPUs.
    pub fn slices(&self, task: TaskIx) -> &[Slice] {
        match self.tasks.get(&task) {
            Some(now) => now.hold.as_deref().map_or(&[], |hold| &hold.slices),
            None => {
                let lease = self.base(task.job).tasks[task.task as usize].lease.as_deref();
                lease.map_or(&[], |lease| &lease.slices)
            }
        }
    }

    /// Whether the task holds something and is not on its way out.
    pub fn live(&self, task: TaskIx) -> bool {
        match self.tasks.get(&task) {
            Some(now) => now.hold.as_ref().is_some_and(|hold| hold.stopping.is_none()),
            None => {
                let lease = self.base(task.job).tasks[task.task as usize].lease.as_ref();
                lease.is_some_and(|lease| lease.stopping.is_none())
            }
        }
    }

    /// The job's open leases.
    pub fn holds(&self, ix: JobIx) -> Vec<(u32, Arc<Hold>)> {
        let tasks = self.base(ix).tasks.len() as u32;
        let hold = |task| Some((task, self.hold(TaskIx { job: ix, task })?));
        (0..tasks).filter_map(hold).collect()
    }

    pub fn has_leases(&self, ix: JobIx) -> bool {
        let own = TaskIx { job: ix, task: 0 }..=TaskIx { job: ix, task: u32::MAX };
        // Leases are opened in a plan, never closed.
        self.base(ix).open > 0 || self.tasks.range(own).any(|(_, now)| now.hold.is_some())
    }

    pub fn node(&mut self, ix: NodeIx) -> &NodeNow {
        let state = self.state;
        self.nodes.entry(ix).or_insert_with(|| {
            let node = state.cluster.node(ix);
            let mut kept: Vec<JobIx> = node.promised_slots.iter().map(|slot| slot.job).collect();
            kept.sort();
            kept.dedup();
            NodeNow { tasks: node.tasks.clone(), kept }
        })
    }

    fn node_mut(&mut self, ix: NodeIx) -> &mut NodeNow {
        self.node(ix);
        self.nodes.get_mut(&ix).expect("just loaded")
    }

    pub fn open(&mut self, task: TaskIx, hold: Hold) {
        let attempts = self.attempts(task) + 1;
        let (node, amounts) = (hold.node, hold.amounts.clone());
        let now = TaskNow { attempts, hold: Some(Arc::new(hold)) };
        let before = self.tasks.insert(task, now);
        self.undo.push(Undo::Task(task, before));
        self.node_mut(node).tasks.push(task);
        self.undo.push(Undo::Opened(node));
        self.charge(task.job, amounts, 1);
    }

    pub fn stop(&mut self, task: TaskIx, until: Time) {
        let Some(hold) = self.hold(task) else { return };
        let amounts = hold.amounts.clone();
        let stopping = Hold { stopping: Some(until), ..(*hold).clone() };
        let now = TaskNow { attempts: self.attempts(task), hold: Some(Arc::new(stopping)) };
        let before = self.tasks.insert(task, now);
        self.undo.push(Undo::Task(task, before));
        self.charge(task.job, amounts, -1);
    }

    pub fn promised_places(&self, ix: JobIx) -> Option<Arc<PromisedPlaces>> {
        if let Some(kept) = self.kept.get(&ix) {
            return kept.clone();
        }
        let promised: &Promised = self.state.promises.get(&ix)?;
        let mut amounts = Amounts::default();
        for (node, place) in &promised.places {
            amounts
                .add(&super::place::amounts(self.state, ix, place.task, *node, &place.slices), 1);
        }
        Some(Arc::new(PromisedPlaces {
            at: promised.at,
            to: promised.to,
            firm: promised.firm,
            places: promised.places.clone(),
            amounts,
        }))
    }

    pub fn promise(&mut self, ix: JobIx, kept: PromisedPlaces) {
        let mut nodes: Vec<NodeIx> = kept.places.iter().map(|(node, _)| *node).collect();
        nodes.sort();
        nodes.dedup();
        for node in nodes {
            let now = self.node_mut(node);
            let before = now.kept.clone();
            now.kept.push(ix);
            self.undo.push(Undo::NodeKept(node, before));
        }
        if kept.firm {
            self.charge(ix, kept.amounts.clone(), 1);
        }
        let before = self.kept.insert(ix, Some(Arc::new(kept)));
        self.undo.push(Undo::PromisedPlaces(ix, before));
    }

    /// Gives up what is kept for the job, and hands it out.
    pub fn unpromise(&mut self, ix: JobIx) -> Option<Arc<PromisedPlaces>> {
        let kept = self.promised_places(ix)?;
        for (node, _) in &kept.places {
            let now = self.node_mut(*node);
            if now.kept.contains(&ix) {
                let before = now.kept.clone();
                now.kept.retain(|job| *job != ix);
                self.undo.push(Undo::NodeKept(*node, before));
            }
        }
        if kept.firm {
            self.charge(ix, kept.amounts.clone(), -1);
        }
        let before = self.kept.insert(ix, None);
        self.undo.push(Undo::PromisedPlaces(ix, before));
        Some(kept)
    }

    fn charge(&mut self, ix: JobIx, amounts: Amounts, times: i64) {
        let job = self.state.jobs.get(ix);
        self.usage.charge(job.queue, &job.spec.user, &amounts, times);
        self.undo.push(Undo::Charged(ix, amounts, times));
    }

    /// Keeps what the transaction did.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.usage.begin();
    }

    /// Takes the transaction back, last first.
    pub fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Task(task, before) => restore(&mut self.tasks, task, before),
                Undo::Job(ix, before) => restore(&mut self.jobs, ix, before),
                Undo::PromisedPlaces(ix, before) => restore(&mut self.kept, ix, before),
                Undo::Opened(node) => {
                    self.node_mut(node).tasks.pop();
                }
                Undo::NodeKept(node, before) => self.node_mut(node).kept = before,
                Undo::Charged(ix, amounts, times) => {
                    let job = self.state.jobs.get(ix);
                    self.usage.charge(job.queue, &job.spec.user, &amounts, -times);
                }
            }
        }
        self.usage.begin();
    }

    pub fn grace(&self, ix: JobIx) -> Span {
        let most = self.state.policy.grace;
        self.base(ix).spec.grace.unwrap_or(most).min(most).max(Span::ZERO)
    }

    /// Run time the job is still allowed; it is given at least a second.
    pub fn limit_left(&self, ix: JobIx) -> Span {
        let job = self.base(ix);
        (job.time_limit - job.saved).max(Span::secs(1))
    }

    /// How long the job would be in the way of others, from its start on.
    pub fn stay(&self, ix: JobIx) -> Span {
        let job = self.base(ix);
        match self.state.policy.backfill {
            BackfillEnds::Limits => self.limit_left(ix) + self.grace(ix),
            BackfillEnds::Estimates if job.time_limit.is_unlimited() => self.limit_left(ix),
            BackfillEnds::Estimates => (job.estimate - job.saved).max(Span::secs(1)),
        }
    }

    /// When what the task holds is free again, if it ends when it must.
    pub fn ends(&self, task: TaskIx, hold: &Hold) -> Time {
        if let Some(until) = hold.stopping {
            return until;
        }
        let started = self.job(task.job).started.unwrap_or(hold.since);
        match self.state.policy.backfill {
            BackfillEnds::Limits => {
                let last = (started + self.limit_left(task.job)).max(self.state.now);
                last + self.grace(task.job)
            }
            BackfillEnds::Estimates => started + self.stay(task.job),
        }
    }
}

fn restore<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
