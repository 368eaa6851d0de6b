//! Trying things: changes to the state with an undo log. A pass marks, tries, and rolls back to
//! the mark or goes on; nothing is copied.

use crate::cluster::gpu::{Gpu, Mode};
use crate::index::held_gpus::HeldByPriority;
use crate::ix::{JobIx, TaskIx};
use crate::jobs::{Lease, Promised, Standing, Stop};
use crate::state::State;
use berth_model::{Share, Time};
use std::sync::Arc;

enum Undo {
    Opened(TaskIx, Vec<(u32, Gpu)>, PreviousHeld),
    Closed(TaskIx, Box<Lease>, Vec<(u32, Gpu)>, PreviousHeld),
    Marked(TaskIx, Option<Stop>, PreviousHeld),
    Dequeued(JobIx),
    Promised(JobIx),
    Unpromised(JobIx, Promised),
    Started(JobIx, Option<Time>),
    StandingSet(JobIx, Standing),
}

/// What was known of what the job's queue holds: true again once a change is taken back.
type PreviousHeld = Option<Arc<HeldByPriority>>;

/// A place in the log to return to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(usize);

pub(crate) struct Draft<'a> {
    pub state: &'a mut State,
    log: Vec<Undo>,
}

impl<'a> Draft<'a> {
    pub fn new(state: &'a mut State) -> Draft<'a> {
        Draft { state, log: Vec::new() }
    }

    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// GPUs as they were, where taking and giving back would not restore them: MIG instances that
    /// a new one replaced.
    fn remember(&self, lease: &Lease) -> Vec<(u32, Gpu)> {
        let node = self.state.cluster.node(lease.node);
        let carved = |slice: &&berth_model::Slice| {
            matches!(slice.share, Share::Mig(_)) || node.gpus[slice.gpu as usize].mode == Mode::Mig
        };
        lease
            .slices
            .iter()
            .filter(carved)
            .map(|slice| (slice.gpu, node.gpus[slice.gpu as usize].clone()))
            .collect()
    }

    fn restore(&mut self, lease_node: crate::ix::NodeIx, gpus: Vec<(u32, Gpu)>) {
        if gpus.is_empty() {
            return;
        }
        // Slices of one lease may lie on one GPU: the first one remembered is the oldest.
        for (at, gpu) in gpus.into_iter().rev() {
            self.state.cluster.nodes[lease_node.at()].gpus[at as usize] = gpu;
        }
        self.state.cluster.reindex(lease_node);
    }

    fn previous_held(&self, task: TaskIx) -> PreviousHeld {
        let queue = self.state.jobs.get(task.job).queue;
        self.state.queues.get(queue).held_by_priority.clone()
    }

    fn restore_held(&mut self, task: TaskIx, previous_held: PreviousHeld) {
        let queue = self.state.jobs.get(task.job).queue;
        self.state.queues.get_mut(queue).held_by_priority = previous_held;
    }

    pub fn open(&mut self, task: TaskIx, lease: Lease) {
        let (before, previous_held) = (self.remember(&lease), self.previous_held(task));
        self.state.open_lease(task, lease);
        self.log.push(Undo::Opened(task, before, previous_held));
    }

    pub fn close(&mut self, task: TaskIx) {
        let held = self.state.jobs.get(task.job).tasks[task.task as usize].lease.as_ref();
        let before = self.remember(held.expect("the lease is open"));
        let previous_held = self.previous_held(task);
        let lease = self.state.close_lease(task);
        self.log.push(Undo::Closed(task, Box::new(lease), before, previous_held));
    }

    pub fn stop(&mut self, task: TaskIx, stop: Stop) {
        let previous_held = self.previous_held(task);
        let before = self.state.mark_stopping(task, Some(stop));
        self.log.push(Undo::Marked(task, before, previous_held));
    }

    pub fn dequeue(&mut self, job: JobIx) {
        if self.state.dequeue(job) {
            self.log.push(Undo::Dequeued(job));
        }
    }

    pub fn promise(&mut self, job: JobIx, promised: Promised) {
        self.state.promise(job, promised);
        self.log.push(Undo::Promised(job));
    }

    pub fn unpromise(&mut self, job: JobIx) -> bool {
        match self.state.unpromise(job) {
            Some(promised) => {
                self.log.push(Undo::Unpromised(job, promised));
                true
            }
            None => false,
        }
    }

    pub fn start(&mut self, job: JobIx, at: Option<Time>) {
        let before = self.state.set_started(job, at);
        self.log.push(Undo::Started(job, before));
    }

    pub fn set_standing(&mut self, job: JobIx, standing: Standing) {
        let before = std::mem::replace(&mut self.state.jobs.get_mut(job).standing, standing);
        self.log.push(Undo::StandingSet(job, before));
    }

    /// Takes back everything since the mark, last first.
    pub fn roll_back(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            match self.log.pop().expect("the log is longer than the mark") {
                Undo::Opened(task, gpus, previous_held) => {
                    let lease = self.state.close_lease(task);
                    self.restore(lease.node, gpus);
                    self.restore_held(task, previous_held);
                }
                Undo::Closed(task, lease, gpus, previous_held) => {
                    let node = lease.node;
                    self.state.open_lease(task, *lease);
                    self.restore(node, gpus);
                    self.restore_held(task, previous_held);
                }
                Undo::Marked(task, before, previous_held) => {
                    self.state.mark_stopping(task, before);
                    self.restore_held(task, previous_held);
                }
                Undo::Dequeued(job) => self.state.enqueue(job),
                Undo::Promised(job) => {
                    self.state.unpromise(job);
                }
                Undo::Unpromised(job, promised) => self.state.promise(job, promised),
                Undo::Started(job, before) => {
                    self.state.set_started(job, before);
                }
                Undo::StandingSet(job, before) => self.state.jobs.get_mut(job).standing = before,
            }
        }
    }

    /// Keeps what was done: it can no longer be taken back.
    pub fn commit(mut self) {
        self.log.clear();
    }
}
