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
    Opened(TaskIx, Vec<(u32, Gpu)>, Known),
    Closed(TaskIx, Box<Lease>, Vec<(u32, Gpu)>, Known),
    Marked(TaskIx, Option<Stop>, Known),
    SteppedOut(JobIx),
    Promised(JobIx),
    Unpromised(JobIx, Promised),
    Started(JobIx, Option<Time>),
    Stood(JobIx, Standing),
}

/// What was known of what the job's queue holds: true again once a change is taken back.
type Known = Option<Arc<HeldByPriority>>;

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

    fn known(&self, task: TaskIx) -> Known {
        let queue = self.state.jobs.get(task.job).queue;
        self.state.queues.get(queue).held_by_priority.clone()
    }

    fn know(&mut self, task: TaskIx, known: Known) {
        let queue = self.state.jobs.get(task.job).queue;
        self.state.queues.get_mut(queue).held_by_priority = known;
    }

    pub fn open(&mut self, task: TaskIx, lease: Lease) {
        let (before, known) = (self.remember(&lease), self.known(task));
        self.state.open_lease(task, lease);
        self.log.push(Undo::Opened(task, before, known));
    }

    pub fn close(&mut self, task: TaskIx) {
        let held = self.state.jobs.get(task.job).tasks[task.task as usize].lease.as_ref();
        let before = self.remember(held.expect("the lease is open"));
        let known = self.known(task);
        let lease = self.state.close_lease(task);
        self.log.push(Undo::Closed(task, Box::new(lease), before, known));
    }

    pub fn stop(&mut self, task: TaskIx, stop: Stop) {
        let known = self.known(task);
        let before = self.state.mark_stopping(task, Some(stop));
        self.log.push(Undo::Marked(task, before, known));
    }

    pub fn step_out(&mut self, job: JobIx) {
        if self.state.step_out(job) {
            self.log.push(Undo::SteppedOut(job));
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

    pub fn stand(&mut self, job: JobIx, standing: Standing) {
        let before = std::mem::replace(&mut self.state.jobs.get_mut(job).standing, standing);
        self.log.push(Undo::Stood(job, before));
    }

    /// Takes back everything since the mark, last first.
    pub fn roll_back(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            match self.log.pop().expect("the log is longer than the mark") {
                Undo::Opened(task, gpus, known) => {
                    let lease = self.state.close_lease(task);
                    self.restore(lease.node, gpus);
                    self.know(task, known);
                }
                Undo::Closed(task, lease, gpus, known) => {
                    let node = lease.node;
                    self.state.open_lease(task, *lease);
                    self.restore(node, gpus);
                    self.know(task, known);
                }
                Undo::Marked(task, before, known) => {
                    self.state.mark_stopping(task, before);
                    self.know(task, known);
                }
                Undo::SteppedOut(job) => self.state.line_up(job),
                Undo::Promised(job) => {
                    self.state.unpromise(job);
                }
                Undo::Unpromised(job, promised) => self.state.promise(job, promised),
                Undo::Started(job, before) => {
                    self.state.set_started(job, before);
                }
                Undo::Stood(job, before) => self.state.jobs.get_mut(job).standing = before,
            }
        }
    }

    /// Keeps what was done: it can no longer be taken back.
    pub fn commit(mut self) {
        self.log.clear();
    }
}
