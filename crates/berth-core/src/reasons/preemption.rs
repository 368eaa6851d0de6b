//! Why a job takes nothing from others: what it might take is tried on the draft.

use crate::ix::{JobIx, QueueIx, TaskIx};
use crate::jobs::Standing;
use crate::plan::displace::right::Right;
use crate::plan::fit::fit;
use crate::plan::planner::Planner;
use berth_model::{JobId, Pass, Reason, Time};

/// Running jobs that are looked at, at the most.
const MAX_VICTIMS: usize = 4_096;

impl Planner<'_> {
    /// From when on the job could have GPUs of others, or why it never can.
    pub(super) fn preemption_reasons(&mut self, job: JobIx) -> Vec<Reason> {
        let state = self.state();
        let now = state.now;
        let mut victims: Vec<(Time, JobId, JobIx)> = Vec::new();
        for leaf in state.queues.leaves() {
            if !self.may_take_in(job, leaf) {
                continue;
            }
            for (id, ix) in &state.queues.get(leaf).running {
                if self.may_take(job, *ix) {
                    victims.push((self.protected(*ix).max(now), *id, *ix));
                }
            }
        }
        victims.sort();
        victims.truncate(MAX_VICTIMS);
        let mark = self.draft.mark();
        let found = self.wait_for(job, &victims);
        self.draft.roll_back(mark);
        found.unwrap_or_else(|| self.over_share(job).into_iter().collect())
    }

    /// Whether the job may have a right to anything in that queue: most have none, and what runs
    /// there need not be looked at.
    fn may_take_in(&self, job: JobIx, queue: QueueIx) -> bool {
        let lowest = self.state().queues.get(queue).running_priorities.keys().next();
        lowest.is_some_and(|lowest| self.by_class(job, queue, *lowest)) || self.by_share(job, queue)
    }

    /// Whether the job has a right to what another holds, once that is no longer protected.
    fn may_take(&self, job: JobIx, victim: JobIx) -> bool {
        let theirs = self.state().jobs.get(victim);
        theirs.standing == Standing::Running
            && theirs.preemptible()
            && (self.by_class(job, theirs.queue, theirs.priority)
                || self.by_share(job, theirs.queue))
    }

    fn by_class(&self, job: JobIx, queue: QueueIx, priority: i32) -> bool {
        let (state, mine) = (self.state(), self.state().jobs.get(job));
        state.policy.runs(Pass::Preempt)
            && priority < mine.priority
            && (queue == mine.queue || state.across(mine.priority))
    }

    fn by_share(&self, job: JobIx, queue: QueueIx) -> bool {
        let state = self.state();
        state.policy.runs(Pass::Reclaim)
            && queue != state.jobs.get(job).queue
            && self.gives(job, queue, Right::Share)
    }

    /// Frees victims, the soonest first, until the job fits.
    fn wait_for(&mut self, job: JobIx, victims: &[(Time, JobId, JobIx)]) -> Option<Vec<Reason>> {
        let now = self.now();
        let mut requester = self.requester(job);
        requester.until = requester.until + self.state().policy.grace;
        let mut jobs = 0;
        let mut until = now;
        for (free, _, victim) in victims {
            // Taking one may have brought its queue down to its share.
            if !self.may_take(job, *victim) {
                continue;
            }
            for task in self.live_tasks(*victim) {
                self.draft.close(TaskIx { job: *victim, task });
            }
            jobs += u32::from(*free > now);
            until = until.max(*free);
            if fit(&mut self.draft, &self.mix, job, requester).is_ok() {
                let from = self.displaces_from(job);
                let mut found = Vec::new();
                if jobs > 0 {
                    found.push(Reason::VictimsProtected { jobs, until });
                }
                if from > now {
                    found.push(Reason::PreemptAfter { at: from });
                }
                return Some(found);
            }
        }
        None
    }
}
