//! Time sharing: a long job that has had its quantum is paused for short ones of its queue.

use super::displace::known_places;
use super::fit::Spot;
use super::{Planner, Transaction};
use crate::ix::{JobIx, QueueIx, TaskIx};
use crate::jobs::Standing;
use berth_model::{Cause, Span};

impl Planner<'_> {
    /// Time sharing: pauses a long job that has had its quantum for short ones of its queue.
    pub(super) fn share_time(&mut self) {
        let policy = self.state().policy.clone();
        let leaves: Vec<QueueIx> = self
            .state()
            .queues
            .leaves()
            .filter(|leaf| {
                let queue = self.state().queues.get(*leaf);
                queue.spec.time_sharing.unwrap_or(policy.time_sharing)
                    && !queue.line.oldest.is_empty()
                    && !queue.running.is_empty()
            })
            .collect();
        for leaf in leaves {
            let running: Vec<JobIx> =
                self.state().queues.get(leaf).running.values().copied().collect();
            for victim in running {
                self.pause_for_shorter(leaf, victim, &policy);
            }
        }
    }

    fn pause_for_shorter(&mut self, leaf: QueueIx, victim: JobIx, policy: &berth_model::Policy) {
        let state = self.state();
        let known = state.jobs.get(victim);
        let day = state.now - Span::days(1);
        let had = known.started.map_or(Span::ZERO, |started| state.now - started);
        let pauses = known.pauses.iter().filter(|at| **at > day).count() as u32;
        if known.standing != Standing::Running
            || self.served.contains(victim)
            || !known.preemptible()
            || known.last_checkpoint.is_none()
        {
            return;
        }
        // It is looked at again when it has had its time, and the earliest pause is a day past.
        let mut from =
            (known.started.unwrap_or(state.now) + policy.quantum).max(self.protected(victim));
        if pauses >= policy.pauses_per_day {
            let first = known.pauses.iter().filter(|at| **at > day).min();
            let Some(first) = first else { return };
            from = from.max(*first + Span::days(1));
        }
        if from > state.now {
            self.wake(from);
            return;
        }
        let held = known.held_gpu();
        let left = (known.estimate_left() - had).max(Span::mins(1));
        let work = i128::from(held) * i128::from(left.0);
        let (priority, cost) = (known.priority, known.restart_cost(policy));
        let waiting: Vec<JobIx> = state
            .queues
            .get(leaf)
            .line
            .oldest
            .iter()
            .map(|(_, _, ix)| *ix)
            .filter(|ix| {
                let job = state.jobs.get(*ix);
                let asks = state.shape_of(*ix).amounts.gpu;
                let own = i128::from(asks) * i128::from(job.estimate_left().0);
                job.priority == priority
                    && asks > 0
                    && asks <= held
                    && own * 4 < work
                    && !self.served.contains(*ix)
                    && !state.promises.get(ix).is_some_and(|promised| promised.firm)
            })
            .take(64)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let mark = self.draft.mark();
        let places: Vec<Spot> = known_places(state, victim);
        for task in self.live_tasks(victim) {
            self.draft.close(TaskIx { job: victim, task });
        }
        for job in &waiting {
            self.draft.unpromise(*job);
        }
        let mut chosen: Vec<(JobIx, Vec<Spot>)> = Vec::new();
        let mut filled = 0;
        for job in waiting {
            let who = self.claimant(job);
            if let Some(spots) = self.fits_claim(job, who) {
                filled += self.state().shape_of(job).amounts.gpu;
                chosen.push((job, spots));
            }
        }
        let saved = i128::from(filled) * i128::from(left.0);
        let pays = saved > i128::from(held) * i128::from(cost.0);
        self.draft.roll_back(mark);
        if filled * 2 < held || !pays {
            return;
        }
        let grace = self.state().jobs.get(victim).grace(policy);
        if !self.comes_back(victim, &places, &chosen, grace) {
            return;
        }
        let first = self.state().jobs.get(chosen[0].0).id;
        let tasks = self.live_tasks(victim);
        let mut decisions = self.stop(victim, &tasks, Cause::TimeShare, Some(first), grace);
        let mut back = self.now();
        for (job, spots) in &chosen {
            let at = self.free_at(spots);
            let decision = self.reserve(*job, at, spots, true);
            decisions.push(decision);
            self.served.insert(*job);
            back = back.max(at + self.holding(*job));
        }
        // The paused job goes on in its old place when they are through.
        let decision = self.reserve(victim, back, &places, false);
        decisions.push(decision);
        self.served.insert(victim);
        self.transactions.push(Transaction { job: Some(first), decisions });
    }

    /// Whether the job would have its places back for the rest of its run once these are through:
    /// others may have been promised them, or the node may close.
    fn comes_back(
        &mut self,
        victim: JobIx,
        places: &[Spot],
        chosen: &[(JobIx, Vec<Spot>)],
        grace: Span,
    ) -> bool {
        let state = self.state();
        let stops = state.now + grace;
        // A stopping lease elsewhere on its node may hold one of them up for longer.
        let begins = chosen.iter().map(|(_, spots)| self.free_at(spots).max(stops));
        let ends = begins.zip(chosen).map(|(at, (job, _))| at + self.holding(*job));
        let back = ends.max().unwrap_or(stops);
        let mut who = self.who(victim);
        (who.now, who.until) = (back, back + self.holding(victim));
        let passes = |job: JobIx| chosen.iter().any(|(other, _)| *other == job);
        places.iter().all(|spot| {
            let node = state.cluster.node(spot.node);
            let need = &state.leaf_of(victim, spot.task).need;
            let mut kept = node.conflicts(&who).filter(|kept| !passes(kept.job));
            let bare = node.spec.cpu.is_none() && node.spec.memory.is_none();
            let touches = |gpu: u32| spot.slices.iter().any(|slice| slice.gpu == gpu);
            node.admits(&who)
                && !kept.any(|kept| {
                    kept.slices.iter().any(|slice| touches(slice.gpu))
                        || !bare
                            && (kept.cpu > 0 && need.cpu > 0 || kept.memory > 0 && need.memory > 0)
                })
        })
    }
}
