//! Stops: each has a cause that is true, and leaves no job with half a gang.

use crate::check::bounds;
use crate::check::checker::{Checker, TransactionEffects};
use crate::check::finding::FindingCode;
use crate::check::gang::{below_minimum, counting};
use crate::check::overlay::{JobNow, Stand};
use crate::check::place::{Fault, group_of};
use crate::ix::{JobIx, QueueIx, TaskIx};
use berth_model::{BudgetAction, Cause, JobId, LeaseId, NodeState, Span};
use std::collections::BTreeSet;

fn fault(code: FindingCode, text: String) -> Vec<Fault> {
    vec![(code, text)]
}

impl Checker<'_> {
    pub(super) fn stop(
        &mut self,
        work: &mut TransactionEffects,
        lease: LeaseId,
        cause: Cause,
        for_job: Option<JobId>,
        grace: Span,
    ) -> Vec<Fault> {
        let state = self.view.state;
        let Some(ix) = state.jobs.find(lease.job) else {
            return fault(FindingCode::Unknown, format!("there is no job {}", lease.job));
        };
        let task = TaskIx { job: ix, task: lease.task };
        let known = (lease.task as usize) < state.jobs.get(ix).tasks.len();
        let hold = known.then(|| self.view.hold(task)).flatten();
        let Some(hold) = hold.filter(|hold| hold.attempt == lease.attempt) else {
            return fault(FindingCode::Unknown, format!("there is no open lease {lease}"));
        };
        if hold.stopping.is_some() {
            return fault(FindingCode::Stopping, format!("{lease} is being stopped already"));
        }
        let mut found = Vec::new();
        let own = self.view.grace(ix);
        if grace > state.policy.grace || grace < Span::ZERO || (cause.displaces() && grace < own) {
            let text = format!("{lease} is given {grace}; its grace is {own}");
            found.push((FindingCode::Grace, text));
        }
        let claimant = for_job.and_then(|id| state.jobs.find(id));
        if for_job.is_some() != claimant.is_some() {
            found.push((FindingCode::Unknown, format!("{lease} is stopped for no known job")));
        }
        if cause.displaces() && for_job.is_none() {
            found.push((FindingCode::NoClaimant, format!("{lease} is preempted, but for no job")));
        }
        work.claimants.extend(claimant);
        // The tasks of a job that go together have one cause.
        if cause == Cause::Shrink || !work.stopped.contains(&(ix, cause)) {
            found.extend(self.false_cause(ix, cause));
            if let Some(claimant) = claimant.filter(|_| cause.displaces()) {
                found.extend(self.claim(work, ix, claimant, cause));
            }
        }
        work.stopped.insert((ix, cause));
        if cause == Cause::Shrink {
            work.shrunk.push(task);
        }
        self.view.stop(task, state.now + grace);
        found
    }

    /// Why the cause is not so, as far as the victim alone is concerned.
    fn false_cause(&self, ix: JobIx, cause: Cause) -> Vec<Fault> {
        let (state, job) = (self.view.state, self.view.base(ix));
        let now = self.view.job(ix);
        let mut found = Vec::new();
        let id = job.id;
        let is = match cause {
            Cause::TimeLimit => {
                now.started.is_some_and(|at| at + self.view.limit_left(ix) <= state.now)
            }
            Cause::Cancelled => job.cancelled,
            Cause::PeerFailed => job.failed,
            Cause::Held => job.hold,
            Cause::Stale => job.stale_since.is_some_and(|at| at + state.policy.stale <= state.now),
            Cause::Drain => job.spec.preemptible && self.must_leave(ix),
            Cause::Leaving => self.view.holds(ix).iter().any(|(_, hold)| {
                let node = &state.cluster.node(hold.node).spec;
                let soon = state.now + self.view.grace(ix);
                matches!(node.state, NodeState::Leaving { at } if at <= soon)
            }),
            Cause::Budget => {
                let path = self.view.usage.path(job.queue);
                let paused =
                    |up: &QueueIx| bounds::spent(&self.view, *up) == Some(BudgetAction::Pause);
                job.spec.preemptible && path.iter().any(paused)
            }
            Cause::Reclaim
            | Cause::Preempt
            | Cause::Across
            | Cause::Shrink
            | Cause::Defragment
            | Cause::TimeShare => true,
        };
        if !is {
            found.push((FindingCode::Cause, format!("{cause} is not true of job {id}")));
        }
        if !cause.displaces() {
            return found;
        }
        if now.fresh || now.stand != Stand::Running {
            let text = format!("job {id} starts in this plan, or does not run");
            found.push((FindingCode::Victim, text));
        }
        if cause != Cause::Shrink {
            if !job.spec.preemptible {
                found.push((FindingCode::Victim, format!("job {id} cannot be stopped")));
            }
            let queue = &state.queues.get(job.queue).spec;
            let least = job.spec.min_runtime.or(queue.min_runtime);
            let least = least.unwrap_or(state.policy.min_runtime);
            let least = if job.displaced > 0 { least.max(Span(1)) } else { least };
            if now.started.is_some_and(|at| at + least > state.now) {
                let text = format!("job {id} has not run for its {least}");
                found.push((FindingCode::MinRuntime, text));
            }
        }
        if matches!(cause, Cause::Defragment | Cause::TimeShare) && job.last_checkpoint.is_none() {
            found.push((FindingCode::Victim, format!("job {id} has no checkpoint")));
        }
        found
    }

    /// Whether one of the job's nodes drains, or an operator has it reserved from about now on.
    fn must_leave(&self, ix: JobIx) -> bool {
        let state = self.view.state;
        let job = self.view.base(ix);
        let ends = self.view.job(ix).started.map(|at| at + self.view.limit_left(ix));
        self.view.holds(ix).iter().any(|(_, hold)| {
            let node = state.cluster.node(hold.node);
            node.spec.state == NodeState::Draining
                || node.blocks.iter().any(|block| {
                    block.owner != Some(job.queue)
                        && block.from - self.view.grace(ix) <= state.now
                        && state.now < block.to
                        && ends.is_none_or(|ends| ends > block.from)
                })
        })
    }

    /// Jobs that lost tasks: what was stopped as surplus was surplus, and no job is left with half a
    /// gang.
    pub(super) fn remains(&mut self, work: &TransactionEffects) -> Vec<Fault> {
        let mut found = Vec::new();
        let mut seen: BTreeSet<(JobIx, u32)> = BTreeSet::new();
        for task in &work.shrunk {
            let job = self.view.base(task.job);
            let Some((group, first)) = group_of(&job.spec, task.task) else { continue };
            if !seen.insert((task.job, first)) {
                continue;
            }
            let live = |at: &u32| self.view.live(TaskIx { job: task.job, task: *at });
            let left = (first..first + group.count).filter(live).count() as u32;
            // A group that the gang can do without may go as a whole.
            let part = 0 < left && left < group.min;
            if part || below_minimum(&job.spec.groups, &counting(&self.view, task.job)).is_some() {
                let text = format!("task {} of job {} is no surplus", task.task, job.id);
                found.push((FindingCode::Surplus, text));
            }
        }
        let whole = work.stopped.iter().filter(|(_, cause)| *cause != Cause::Shrink);
        for (ix, cause) in whole {
            let job = self.view.base(*ix);
            let short = below_minimum(&job.spec.groups, &counting(&self.view, *ix)).is_some();
            let live = self.view.holds(*ix).iter().any(|(_, hold)| hold.stopping.is_none());
            if short && live {
                let text = format!("job {} would be left with a part of its gang", job.id);
                found.push((FindingCode::HalfStopped, text));
            }
            if short {
                let now = self.view.job(*ix);
                self.view.set_job(*ix, JobNow { stand: Stand::Ending, ..now });
            }
            let returns = matches!(cause, Cause::Defragment | Cause::TimeShare);
            if returns && !work.reserved.contains(ix) {
                let text = format!("job {} is moved, but nowhere", job.id);
                found.push((FindingCode::Victim, text));
            }
        }
        for claimant in &work.claimants {
            if !work.reserved.contains(claimant) && !work.started.contains_key(claimant) {
                let id = self.view.base(*claimant).id;
                let text = format!("others are preempted for job {id}, which gets nothing");
                found.push((FindingCode::NoClaimant, text));
            }
        }
        found
    }
}
