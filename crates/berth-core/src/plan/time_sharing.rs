//! Time sharing: a long job that has had its quantum is paused for short ones of its queue.

use crate::cluster::node::{PromisedSlot, Requester};
use crate::ix::{JobIx, QueueIx, TaskIx};
use crate::jobs::Standing;
use crate::plan::displace::take_places::known_places;
use crate::plan::fit::spot::Spot;
use crate::plan::order::{Candidate, before};
use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_model::{Cause, Span};
use std::cmp::Reverse;

/// Jobs that are tried in the place of one that might be paused.
const MAX_CANDIDATES: usize = 64;

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
                    && !queue.pending.oldest.is_empty()
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
            // Tasks that are through would have to be done again.
            || known.done > 0
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
        let waiting = self.much_shorter(leaf, priority, held, work);
        if waiting.is_empty() {
            return;
        }
        let mark = self.draft.mark();
        let places: Vec<Spot> = known_places(state, victim);
        for task in self.live_tasks(victim) {
            self.draft.close(TaskIx { job: victim, task });
        }
        let mut chosen: Vec<(JobIx, Vec<Spot>)> = Vec::new();
        let mut filled = 0;
        for job in waiting {
            // Only its own reservation moves: one that is not chosen keeps its place.
            let before = self.draft.mark();
            self.draft.unpromise(job);
            let requester = Requester { claims: false, ..self.claimant(job) };
            match self.fits_claim(job, requester) {
                Some(spots) => {
                    filled += self.state().shape_of(job).amounts.gpu;
                    chosen.push((job, spots));
                }
                None => self.draft.roll_back(before),
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

    /// Waiting jobs of a class that ask for no more GPUs than are held and have less than a quarter of
    /// this work, in their queue's order. Those with the least work come into question first: the
    /// oldest would be the longest ones, for which pausing saves least.
    fn much_shorter(&self, leaf: QueueIx, class: i32, held: i64, work: i128) -> Vec<JobIx> {
        let state = self.state();
        let priority = Reverse(class);
        let mut found: Vec<Candidate> = Vec::new();
        for (shape, of_shape) in &state.queues.get(leaf).pending.shapes {
            let asks = state.shapes[shape.at()].amounts.gpu;
            if asks <= 0 || asks > held {
                continue;
            }
            let shorter = |ix: JobIx| {
                let own = i128::from(asks) * i128::from(state.jobs.get(ix).estimate_left().0);
                own * 4 < work
            };
            let mut room = MAX_CANDIDATES;
            for ((_, of), jobs) in of_shape.lists.range((priority, 0)..=(priority, u32::MAX)) {
                // Those of a class of work differ by no more than √2, and stand there by age.
                let mut any = false;
                for job in jobs.iter().filter(|(_, _, ix)| shorter(*ix)) {
                    any = true;
                    if room > 0 && self.may_pass(job.2) {
                        found.push((class, *of, *job));
                        room -= 1;
                    }
                }
                if !any || room == 0 {
                    break;
                }
            }
        }
        found.sort_by_key(|(_, of, (since, id, _))| (*of, *since, *id));
        found.truncate(MAX_CANDIDATES);
        let order = self.order_of(leaf);
        found.sort_by(|a, b| before(order, self.now(), *a, *b));
        found.into_iter().map(|(_, _, (_, _, ix))| ix).collect()
    }

    fn may_pass(&self, job: JobIx) -> bool {
        !self.served.contains(job)
            && !self.state().promises.get(&job).is_some_and(|promised| promised.firm)
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
        let mut requester = self.requester(victim);
        (requester.now, requester.until) = (back, back + self.holding(victim));
        let passes = |job: JobIx| chosen.iter().any(|(other, _)| *other == job);
        places.iter().all(|spot| {
            let node = state.cluster.node(spot.node);
            let need = &state.leaf_of(victim, spot.task).need;
            let mut kept = node.conflicts(&requester).filter(|kept| !passes(kept.job));
            let bare = node.spec.cpu.is_none() && node.spec.memory.is_none();
            let touches = |kept: &PromisedSlot, gpu: u32| {
                spot.slices.iter().any(|slice| node.reaches(kept, gpu, slice.gpu, requester.queue))
            };
            node.admits(&requester)
                && !kept.any(|kept| {
                    kept.slices.iter().any(|slice| touches(kept, slice.gpu))
                        || node.is_tight()
                        || kept.counted.keys().any(|kept| need.counted.contains_key(kept))
                        || !bare
                            && (kept.cpu > 0 && need.cpu > 0 || kept.memory > 0 && need.memory > 0)
                })
        })
    }
}
