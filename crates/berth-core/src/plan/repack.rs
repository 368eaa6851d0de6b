//! Placing anew what this plan has placed: nothing of it has started yet, so jobs are moved about for
//! one more that would otherwise not fit. Each was placed without knowing of those behind it.

use crate::ix::{JobIx, TaskIx};
use crate::plan::fit::fit;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use berth_model::JobId;
use std::cmp::Reverse;

/// Jobs that are placed anew for another at the most: the last ones of the plan.
const MAX_REPACKED_JOBS: usize = 12;

impl Planner<'_> {
    /// Starts a job for which there is no place left, if there is one once the jobs this plan has
    /// placed before it lie elsewhere. All of them still start. It is done for what queues are entitled
    /// to: beyond its share a queue has what is left over, not what could be made of it. And not
    /// where a job that goes first waits for its reservation: the others would use up the share
    /// that it needs then.
    pub(super) fn repack(&mut self, job: JobIx) -> bool {
        let (state, queue) = (self.state(), self.state().jobs.get(job).queue);
        let more = &state.shape_of(job).amounts;
        let within = |ix| self.shares.within(state, ix, more);
        let reserved = !state.queues.get(queue).soft_promised.is_empty();
        if self.placed.is_empty() || reserved || !state.queues.path(queue).all(within) {
            return false;
        }
        let first = self.placed.len().saturating_sub(MAX_REPACKED_JOBS);
        let mut all: Vec<JobIx> = self.placed[first..].to_vec();
        all.push(job);
        // Wishes about other jobs hold for where those were when each was placed.
        if all.iter().any(|ix| self.state().shape_of(*ix).has_near()) {
            return false;
        }
        let mark = self.draft.mark();
        for ix in all.iter().filter(|ix| **ix != job) {
            for task in self.live_tasks(*ix) {
                self.draft.close(TaskIx { job: *ix, task });
            }
        }
        let requester = self.requester(job);
        if !self.could_fit(job, &requester) {
            self.draft.roll_back(mark);
            return false;
        }
        // Small tasks fit around large ones, not the reverse.
        all.sort_by_key(|ix| self.bulk(*ix));
        let mut found: Vec<(JobIx, Vec<Spot>)> = Vec::with_capacity(all.len());
        for ix in all {
            let requester = self.requester(ix);
            match fit(&mut self.draft, &self.mix, ix, requester) {
                Ok(spots) if !self.overdraws(ix) => found.push((ix, spots)),
                _ => {
                    self.draft.roll_back(mark);
                    return false;
                }
            }
        }
        for (ix, spots) in found {
            if ix == job {
                self.start(job, &spots);
                continue;
            }
            let id = self.state().jobs.get(ix).id;
            let decisions = self.starts(ix, &spots);
            let mut made = self.transactions.iter_mut().rev();
            let started = made.find(|transaction| transaction.job == Some(id));
            started.expect("it was placed in this plan").decisions = decisions;
        }
        true
    }

    /// The largest first, by their tasks and then in all.
    fn bulk(&self, job: JobIx) -> (Reverse<i64>, Reverse<i64>, JobId) {
        let state = self.state();
        let shape = state.shape_of(job);
        let task = shape.leaves.iter().map(|leaf| leaf.gpu_milli(&state.cluster)).max();
        (Reverse(task.unwrap_or(0)), Reverse(shape.amounts.gpu), state.jobs.get(job).id)
    }
}
