//! Why a job takes nothing from others: what it might take is tried on the draft.

use crate::ix::{JobIx, TaskIx};
use crate::jobs::Standing;
use crate::plan::Planner;
use crate::plan::displace::Right;
use crate::plan::fit::fit;
use berth_model::{JobId, Pass, Reason, Time};

/// Running jobs that are looked at, at the most.
const LOOKED_AT: usize = 4_096;

impl Planner<'_> {
    /// From when on the job could have GPUs of others, or why it never can.
    pub(super) fn taking(&mut self, job: JobIx) -> Vec<Reason> {
        let state = self.state();
        let now = state.now;
        let mut victims: Vec<(Time, JobId, JobIx)> = Vec::new();
        for leaf in state.queues.leaves() {
            for (id, ix) in &state.queues.get(leaf).running {
                if self.may_take(job, *ix) {
                    victims.push((self.protected(*ix).max(now), *id, *ix));
                }
            }
        }
        victims.sort();
        victims.truncate(LOOKED_AT);
        let mark = self.draft.mark();
        let found = self.wait_for(job, &victims);
        self.draft.roll_back(mark);
        found.unwrap_or_else(|| self.over_share(job).into_iter().collect())
    }

    /// Whether the job has a right to what another holds, once that is no longer protected.
    fn may_take(&self, job: JobIx, victim: JobIx) -> bool {
        let state = self.state();
        let (mine, theirs) = (state.jobs.get(job), state.jobs.get(victim));
        if theirs.standing != Standing::Running || !theirs.preemptible() {
            return false;
        }
        let runs = |pass| state.policy.runs(pass);
        let lower = theirs.priority < mine.priority;
        let by_class = lower && (theirs.queue == mine.queue || state.across(mine.priority));
        (runs(Pass::Preempt) && by_class)
            || (runs(Pass::Reclaim)
                && theirs.queue != mine.queue
                && self.gives(job, theirs.queue, Right::Share))
    }

    /// Frees victims, the soonest first, until the job fits.
    fn wait_for(&mut self, job: JobIx, victims: &[(Time, JobId, JobIx)]) -> Option<Vec<Reason>> {
        let now = self.now();
        let mut who = self.who(job);
        who.until = who.until + self.state().policy.grace;
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
            if fit(&mut self.draft, &self.mix, job, who).is_ok() {
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
