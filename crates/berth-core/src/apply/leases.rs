//! Leases that start, save and end, and jobs that end with their last lease.

use crate::apply::applied::Applied;
use crate::ix::{JobIx, TaskIx};
use crate::jobs::{Lease, Parked, Standing};
use crate::state::State;
use berth_model::{Cause, JobId, LeaseId, LeaseOutcome, Name, Outcome, Span};
use std::collections::BTreeSet;

impl State {
    pub(super) fn lease_started(&mut self, lease: LeaseId, applied: &mut Applied) {
        let ix = self.jobs.find(lease.job).expect("validated");
        let task = &mut self.jobs.get_mut(ix).tasks[lease.task as usize];
        task.lease.as_mut().expect("validated").bound = true;
        let rows = self.ledger.lease_bound(self.now, lease);
        self.book(rows, applied);
    }

    pub(super) fn lease_saved(&mut self, job: JobId) {
        let ix = self.jobs.find(job).expect("validated");
        self.jobs.get_mut(ix).last_checkpoint = Some(self.now);
    }

    pub(super) fn lease_ended(
        &mut self,
        lease: LeaseId,
        outcome: LeaseOutcome,
        applied: &mut Applied,
    ) {
        let ix = self.jobs.find(lease.job).expect("validated");
        let node = {
            let task = TaskIx { job: ix, task: lease.task };
            let closed = self.close_lease(task);
            let unsaved = self.jobs.get(ix).unsaved(self.now);
            let lost = matches!(outcome, LeaseOutcome::Lost | LeaseOutcome::Stopped)
                .then_some(unsaved.min(self.now - closed.since))
                .filter(|span| *span > Span::ZERO);
            let ended = self.ledger.lease_closed(self.now, lease, lost);
            self.book(ended.rows, applied);
            applied.losses.extend(ended.loss);
            self.end_task(ix, lease.task, &closed, outcome);
            closed.node
        };
        let node = &mut self.cluster.nodes[node.at()];
        if node.tasks.is_empty() {
            node.idle_since = Some(self.now);
        }
        self.after_end(ix, applied);
    }

    fn end_task(&mut self, ix: JobIx, task: u32, closed: &Lease, outcome: LeaseOutcome) {
        let job = self.jobs.get_mut(ix);
        match outcome {
            LeaseOutcome::Done => {
                job.tasks[task as usize].done = true;
                job.done += 1;
            }
            LeaseOutcome::Failed => {
                // A task that dies while we stop it for another job was stopped, however it says.
                match closed.stopping.as_ref().map(|stop| stop.cause) {
                    Some(cause) if cause.requeues() => {}
                    _ => job.failed = true,
                }
            }
            LeaseOutcome::Stopped | LeaseOutcome::Lost => {
                match closed.stopping.as_ref().map(|stop| stop.cause) {
                    Some(Cause::TimeLimit | Cause::PeerFailed) => job.failed = true,
                    Some(Cause::Cancelled) => job.cancelled = true,
                    _ => {}
                }
            }
        }
    }

    /// What follows for the job when one of its leases has ended.
    fn after_end(&mut self, ix: JobIx, applied: &mut Applied) {
        let job = self.jobs.get(ix);
        let (id, open, failed, cancelled) = (job.id, job.open, job.failed, job.cancelled);
        if open > 0 {
            if failed || cancelled {
                self.must_stop.insert(id);
            } else {
                self.find_missing_members(ix);
            }
            return;
        }
        let done = job.done > 0 && self.has_minimum(ix);
        if done {
            self.finish(ix, Outcome::Done, applied);
        } else if cancelled {
            self.finish(ix, Outcome::Cancelled, applied);
        } else if failed {
            self.finish(ix, Outcome::Failed, applied);
        } else {
            self.requeue(ix);
        }
    }

    /// A gang that has fallen below its minimum without being stopped is stale.
    pub(crate) fn find_missing_members(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        // One that failed or was cancelled is on its way out for that reason.
        if job.standing != Standing::Running || job.failed || job.cancelled {
            return;
        }
        let whole = self.has_minimum(ix);
        let now = self.now;
        let job = self.jobs.get_mut(ix);
        let id = job.id;
        if whole {
            job.stale_since = None;
            self.stale.remove(&id);
        } else {
            job.stale_since.get_or_insert(now);
            self.stale.insert(id);
        }
    }

    /// Back in line from its last checkpoint.
    fn requeue(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        let id = job.id;
        if let (Some(started), Some(saved)) = (job.started, job.last_checkpoint) {
            let kept = (saved - started).max(Span::ZERO);
            self.set_started(ix, None);
            self.jobs.get_mut(ix).saved += kept;
        } else {
            self.set_started(ix, None);
        }
        self.stale.remove(&id);
        self.must_stop.remove(&id);
        let job = self.jobs.get_mut(ix);
        job.stale_since = None;
        job.last_checkpoint = None;
        for task in &mut job.tasks {
            task.done = false;
        }
        job.done = 0;
        job.standing = Standing::Parked(Parked::Held);
        self.retime(ix);
        self.free_array_place(ix);
        self.reconsider(ix);
        self.enqueue_elements(id);
    }

    pub(super) fn finish(&mut self, ix: JobIx, outcome: Outcome, applied: &mut Applied) {
        self.unpromise(ix);
        if self.is_waiting(ix) {
            self.dequeue(ix);
        }
        let standing = self.jobs.get(ix).standing.clone();
        if !matches!(standing, Standing::Parked(_)) {
            self.free_array_place(ix);
        }
        self.record_run(ix, outcome);
        self.set_started(ix, None);
        let job = self.jobs.remove(ix);
        self.stop_waiting_for_events(ix, job.id, &job.spec);
        self.stale.remove(&job.id);
        self.must_stop.remove(&job.id);
        self.set_aside.remove(&job.id);
        self.elastic.remove(&job.id);
        let key = (job.spec.name.clone(), job.spec.user.clone());
        remove_from(&mut self.named, key, job.id);
        for (k, v) in &job.spec.labels {
            remove_from(&mut self.labelled, (k.clone(), v.clone()), job.id);
        }
        self.drop_shape(job.shape);
        self.outcomes.insert(job.id, (job.spec.name.clone(), outcome));
        self.outcome_order.push_back(job.id);
        while self.outcome_order.len() > self.policy.outcomes as usize {
            let oldest = self.outcome_order.pop_front().expect("not empty");
            self.outcomes.remove(&oldest);
        }
        applied.ended.push((job.id, outcome));
        self.wake_for(job.id, &job.spec);
    }
}

fn remove_from(
    index: &mut std::collections::BTreeMap<(Name, Name), BTreeSet<JobId>>,
    key: (Name, Name),
    id: JobId,
) {
    if let Some(ids) = index.get_mut(&key) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(&key);
        }
    }
}
