//! Defragmentation: running jobs with a checkpoint are moved when that lets a waiting gang start
//! and the work they lose is worth less than the wait the gang is spared.

use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::jobs::Standing;
use crate::plan::bounds::bound;
use crate::plan::displace::take_places::known_places;
use crate::plan::fit::fit;
use crate::plan::fit::spot::{Misfit, Spot};
use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_model::{Cause, Decision, JobId, Span, Time};
use std::collections::BTreeSet;

/// Jobs moved for one gang at the most.
const MAX_MOVED_JOBS: usize = 16;

impl Planner<'_> {
    pub(super) fn defragment(&mut self) {
        let state = self.state();
        if state.promises.is_empty() {
            return;
        }
        let left = (state.policy.moves_per_hour as usize).saturating_sub(state.moves.len());
        if left == 0 {
            if let Some(oldest) = state.moves.front().copied() {
                self.wake(oldest + Span::hours(1));
            }
            return;
        }
        let soft_promised =
            state.queues.leaves().flat_map(|leaf| &state.queues.get(leaf).soft_promised);
        let mut waiting: Vec<(Time, JobId, JobIx)> = soft_promised
            .filter(|ix| {
                state.promises[ix].at > state.now + state.policy.grace
                    && state.is_waiting(**ix)
                    && self.scattered(**ix)
            })
            .map(|ix| {
                let job = state.jobs.get(*ix);
                (job.spec.submitted, job.id, *ix)
            })
            .collect();
        waiting.sort();
        let mut left = left;
        for (_, _, job) in waiting {
            left -= self.move_for(job, left);
            if left == 0 {
                return;
            }
        }
    }

    /// Whether enough GPUs are free for the job, only not together. Nodes where it has a promise
    /// count too: no other job may use the promised GPUs there.
    fn scattered(&self, job: JobIx) -> bool {
        let state = self.state();
        let Some(leaf) = state.shape_of(job).single() else { return false };
        let Some(g) = leaf.whole() else { return false };
        let elsewhere = state.cluster.slots(crate::cluster::domain::WHOLE, &leaf.classes, 1);
        // Most have too little however often their nodes are counted.
        let places = state.promises.get(&job).into_iter().flat_map(|promised| &promised.places);
        let most: u32 = places.filter_map(|(node, _)| state.cluster.free_by_node[node.at()]).sum();
        elsewhere + most >= g * leaf.min && elsewhere + self.own_free(job, leaf, 1) >= g * leaf.min
    }

    /// Tries to free places for the job by moving others; returns how many were moved.
    fn move_for(&mut self, job: JobIx, most: usize) -> usize {
        if !bound(self.state(), job, false).is_empty() {
            return 0;
        }
        let state = self.state();
        let asks = state.shape_of(job).amounts.gpu;
        let promised = state.promises[&job].at;
        let wait = (promised - state.now - state.policy.grace).max(Span::ZERO);
        let gain = i128::from(asks) * i128::from(wait.0);
        let mark = self.draft.mark();
        self.draft.unpromise(job);
        let candidates = self.movable(job);
        let mut moved: Vec<JobIx> = Vec::new();
        let mut lost: i128 = 0;
        let mut spots: Option<Vec<Spot>> = None;
        for (loss, _, victim, _) in candidates {
            if moved.len() == most.min(MAX_MOVED_JOBS) || lost + loss >= gain {
                break;
            }
            for task in self.live_tasks(victim) {
                self.draft.close(TaskIx { job: victim, task });
            }
            moved.push(victim);
            lost += loss;
            let requester = self.requester(job);
            if let Ok(found) = fit(&mut self.draft, &self.mix, job, requester) {
                spots = Some(found);
                break;
            }
        }
        let Some(spots) = spots else {
            self.draft.roll_back(mark);
            return 0;
        };
        // Only those on the places it takes have to move, and each must have somewhere to go.
        let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
        self.draft.roll_back(mark);
        moved.retain(|victim| {
            self.state().jobs.get(*victim).leases().any(|(_, lease)| nodes.contains(&lease.node))
        });
        // None is moved that need not be, the dearest left out first.
        for at in (0..moved.len()).rev() {
            let others = moved.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, ix)| *ix);
            let others: Vec<JobIx> = others.collect();
            if !others.is_empty() && self.fits_without(job, &others) {
                moved = others;
            }
        }
        self.rehouse(job, &moved)
    }

    /// Whether the gang would fit if these were gone.
    fn fits_without(&mut self, job: JobIx, moved: &[JobIx]) -> bool {
        let mark = self.draft.mark();
        let fits = self.fit_without(job, moved).is_ok();
        self.draft.roll_back(mark);
        fits
    }

    /// Takes places for the gang on the draft with these gone.
    fn fit_without(&mut self, job: JobIx, moved: &[JobIx]) -> Result<Vec<Spot>, Misfit> {
        self.draft.unpromise(job);
        for victim in moved {
            for task in self.live_tasks(*victim) {
                self.draft.close(TaskIx { job: *victim, task });
            }
        }
        let requester = self.requester(job);
        fit(&mut self.draft, &self.mix, job, requester)
    }

    /// Checkpointed jobs on nodes the gang could use, cheapest first.
    fn movable(&self, job: JobIx) -> Vec<(i128, JobId, JobIx, i64)> {
        let state = self.state();
        let Some(leaf) = state.shape_of(job).single() else { return Vec::new() };
        let mut found: Vec<(i128, JobId, JobIx, i64)> = Vec::new();
        let fragments: Vec<NodeIx> = leaf
            .classes
            .iter()
            .flat_map(|class| state.cluster.classes[class.at()].buckets.iter().skip(1))
            .flat_map(|nodes| nodes.iter().copied())
            .filter(|ix| !state.cluster.node(*ix).tasks.is_empty())
            .collect();
        let mut seen: BTreeSet<JobIx> = BTreeSet::new();
        for node in fragments {
            for ix in self.jobs_on(node) {
                let known = state.jobs.get(ix);
                let may = known.standing == Standing::Running
                    && known.preemptible()
                    && known.last_checkpoint.is_some()
                    // One that has tasks behind it starts anew with all of them.
                    && known.done == 0
                    // What a gang can spare is taken before it is moved.
                    && self.surplus_of(ix).is_empty()
                    && !self.served.contains(ix)
                    && self.protected(ix) <= state.now
                    && seen.insert(ix);
                if may {
                    found.push((state.loss(ix), known.id, ix, known.held_gpu()));
                }
            }
        }
        found.sort();
        found
    }

    /// Moves the jobs if the gang then fits and each of them does too.
    fn rehouse(&mut self, job: JobIx, moved: &[JobIx]) -> usize {
        let mark = self.draft.mark();
        let Ok(spots) = self.fit_without(job, moved) else {
            self.draft.roll_back(mark);
            return 0;
        };
        let mut homes: Vec<(JobIx, Vec<Spot>)> = Vec::new();
        for victim in moved {
            let requester = self.requester(*victim);
            match fit(&mut self.draft, &self.mix, *victim, requester) {
                Ok(found) => homes.push((*victim, found)),
                Err(_) => {
                    self.draft.roll_back(mark);
                    return 0;
                }
            }
        }
        self.draft.roll_back(mark);
        let id = self.state().jobs.get(job).id;
        let mut decisions: Vec<Decision> = Vec::new();
        for victim in moved {
            debug_assert!(!known_places(self.state(), *victim).is_empty());
            let grace = self.state().jobs.get(*victim).grace(&self.state().policy);
            let tasks = self.live_tasks(*victim);
            decisions.extend(self.stop(*victim, &tasks, Cause::Defragment, Some(id), grace));
        }
        let at = self.free_at(&spots);
        let decision = self.reserve(job, at, &spots, true);
        decisions.push(decision);
        self.served.insert(job);
        for (victim, spots) in homes {
            let at = self.free_at(&spots).max(at);
            let decision = self.reserve(victim, at, &spots, false);
            decisions.push(decision);
            self.served.insert(victim);
        }
        self.transactions.push(Transaction { job: Some(id), decisions });
        moved.len()
    }
}
