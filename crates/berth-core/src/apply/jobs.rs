//! Jobs that are submitted, changed or cancelled.

use crate::apply::applied::Applied;
use crate::ix::{JobIx, TaskIx};
use crate::jobs::{Job, Parked, Standing, Task};
use crate::state::State;
use berth_model::{GroupSpec, JobChange, JobId, JobSpec, Name, NodeAsk, Outcome, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    pub(super) fn job_submitted(&mut self, spec: &JobSpec) {
        let spec = Arc::new(spec.clone());
        match &spec.array {
            None => {
                self.admit(spec.clone(), spec.id);
            }
            Some(array) => {
                for element in &array.elements {
                    self.admit(spec.clone(), spec.id.element(*element));
                }
            }
        }
    }

    /// Makes a job of a spec and puts it in line, or where it must wait first.
    pub(crate) fn admit(&mut self, spec: Arc<JobSpec>, id: JobId) -> JobIx {
        let job = self.build_job(spec, id);
        let name = job.spec.name.clone();
        let ix = self.insert_job(job);
        self.reconsider(ix);
        self.wake_dependents(id, &name);
        ix
    }

    /// A new job, with its estimate from the history of its user and name.
    pub(crate) fn build_job(&mut self, spec: Arc<JobSpec>, id: JobId) -> Job {
        let queue = self.queues.find(&spec.queue).expect("validated");
        let shape = self.intern_shape(&spec.groups, spec.lifecycle, queue);
        let time_limit = spec.time_limit.unwrap_or(self.policy.default_time_limit);
        let past = self.history.get(&(spec.user.clone(), spec.name.clone()));
        let estimate = match past {
            // Work without an end is in line like work that names no limit.
            _ if time_limit.is_unlimited() => self.policy.default_time_limit,
            Some(past) => {
                Span((i128::from(time_limit.0) * i128::from(past.ratio.0) / 1_000) as i64)
            }
            None => time_limit,
        };
        let tasks = self.shapes[shape.at()].tasks as usize;
        Job {
            id,
            queue,
            shape,
            priority: spec.priority,
            time_limit,
            deadline: spec.deadline,
            hold: spec.hold,
            tasks: vec![Task::default(); tasks],
            standing: Standing::Parked(Parked::Held),
            open: 0,
            stopping: 0,
            done: 0,
            first_start: None,
            started: None,
            last_checkpoint: None,
            saved: Span::ZERO,
            estimate: estimate.max(Span::secs(1)),
            stale_since: None,
            displaced: 0,
            moved: 0,
            pauses: Vec::new(),
            paused: false,
            failed: false,
            released: false,
            cancelled: false,
            set_aside: None,
            enqueued: false,
            speed: 1_000,
            waits_turn: false,
            budgets: Vec::new(),
            exceeds: BTreeSet::new(),
            spec,
        }
    }

    /// Puts a job into the tables, parked; [`State::reconsider`] sets its standing.
    pub(crate) fn insert_job(&mut self, job: Job) -> JobIx {
        let key = (job.spec.name.clone(), job.spec.user.clone());
        let labels: Vec<(Name, Name)> =
            job.spec.labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let id = job.id;
        if self.shapes[job.shape.at()].elastic() {
            self.elastic.insert(id);
        }
        let ix = self.jobs.insert(job);
        self.named.entry(key).or_default().insert(id);
        for label in labels {
            self.labelled.entry(label).or_default().insert(id);
        }
        ix
    }

    pub(super) fn job_cancelled(&mut self, job: JobId, applied: &mut Applied) {
        let mut jobs: Vec<JobIx> = self.jobs.find(job).into_iter().collect();
        if job.element.is_none() {
            let elements = self.jobs.by_id.range(job.element(0)..=job.element(u32::MAX));
            jobs.extend(elements.map(|(_, ix)| *ix));
        }
        for ix in jobs {
            let job = self.jobs.get_mut(ix);
            job.cancelled = true;
            let id = job.id;
            if job.open == 0 {
                self.finish(ix, Outcome::Cancelled, applied);
            } else {
                self.must_stop.insert(id);
            }
        }
    }

    pub(super) fn job_changed(&mut self, job: JobId, change: &JobChange) {
        let ix = self.jobs.find(job).expect("validated");
        match change {
            JobChange::Turn(is_its) => {
                self.jobs.get_mut(ix).waits_turn = !is_its;
                return;
            }
            JobChange::Budgets(budgets) => {
                self.jobs.get_mut(ix).budgets = budgets.clone();
                return;
            }
            _ => {}
        }
        let waiting = self.is_waiting(ix);
        // What it was promised by the right of another queue, or elsewhere, is not its own any more.
        let promised = self.unpromise(ix);
        let promised =
            promised.filter(|_| !matches!(change, JobChange::Queue(_) | JobChange::Nodes(_)));
        if waiting {
            self.dequeue(ix);
        }
        if let Some(ends) = self.jobs.get(ix).ends() {
            self.ends.remove(&(ends, job, ix));
        }
        let queue = match change {
            JobChange::Queue(name) => self.queues.find(name),
            _ => None,
        };
        self.count_all_held_gpus(ix, -1);
        let job_mut = self.jobs.get_mut(ix);
        job_mut.set_aside = None;
        match change {
            JobChange::Priority(priority) => {
                let before = std::mem::replace(&mut job_mut.priority, *priority);
                if job_mut.open > 0 {
                    let running = &mut self.queues.get_mut(job_mut.queue).running_priorities;
                    crate::state::pending::decrement(running, before);
                    *running.entry(*priority).or_default() += 1;
                }
            }
            JobChange::Hold(hold) => job_mut.hold = *hold,
            JobChange::Deadline(deadline) => job_mut.deadline = *deadline,
            JobChange::TimeLimit(limit) => {
                job_mut.time_limit = *limit;
                job_mut.estimate = job_mut.estimate.min(*limit);
            }
            JobChange::Queue(_) => {
                job_mut.queue = queue.expect("validated");
                self.reshape(ix);
            }
            JobChange::Nodes(nodes) => {
                let spec = Arc::make_mut(&mut job_mut.spec);
                let mut nodes = nodes.iter();
                spec.groups.iter_mut().for_each(|group| put_nodes(group, &mut nodes));
                self.reshape(ix);
            }
            JobChange::Turn(_) | JobChange::Budgets(_) => {}
        }
        let job_mut = self.jobs.get_mut(ix);
        if job_mut.hold && job_mut.open > 0 {
            self.must_stop.insert(job);
        }
        self.count_all_held_gpus(ix, 1);
        self.set_aside.remove(&job);
        if let Some(ends) = self.jobs.get(ix).ends() {
            self.ends.insert((ends, job, ix));
        }
        self.mark_nodes_dirty(ix);
        if waiting {
            self.enqueue(ix);
        }
        if let Some(promised) = promised {
            self.promise(ix, promised);
            self.retime(ix);
        }
        self.reconsider(ix);
    }

    /// Counts all GPUs of a job's live leases among those it may have to give up.
    fn count_all_held_gpus(&mut self, ix: JobIx, times: i32) {
        for task in 0..self.jobs.get(ix).tasks.len() as u32 {
            let lease = self.jobs.get(ix).tasks[task as usize].lease.as_deref();
            if lease.is_some_and(|lease| lease.stopping.is_none()) {
                self.count_held_gpus(TaskIx { job: ix, task }, times);
            }
        }
    }
}

/// Gives the leaves of a group their nodes, in order.
fn put_nodes<'a>(group: &mut GroupSpec, nodes: &mut impl Iterator<Item = &'a Option<NodeAsk>>) {
    if group.is_leaf() {
        group.nodes = nodes.next().cloned().flatten();
        return;
    }
    group.groups.iter_mut().for_each(|child| put_nodes(child, nodes));
}
