//! Growing elastic gangs on GPUs that no waiting minimum could use now. It is the last pass, and
//! what it gives is taken back first.

use super::{Planner, Transaction};
use crate::amounts::Amounts;
use crate::ix::JobIx;
use crate::jobs::Standing;
use berth_model::{Decision, JobId};
use std::cmp::Reverse;

impl Planner<'_> {
    pub(super) fn grow(&mut self) {
        let state = self.state();
        let mut elastic: Vec<(Reverse<i32>, berth_model::Time, JobId, JobIx)> = state
            .elastic
            .iter()
            .filter_map(|id| {
                let ix = state.jobs.find(*id)?;
                let job = state.jobs.get(ix);
                let fits = job.standing == Standing::Running
                    && job.stale_since.is_none()
                    && job.done == 0
                    && !job.failed
                    && !job.cancelled
                    && !self.shrinking(ix);
                fits.then_some((Reverse(job.priority), job.spec.submitted, *id, ix))
            })
            .collect();
        elastic.sort();
        for (_, _, id, ix) in elastic {
            let mut spots = Vec::new();
            let leaves = self.state().shape_of(ix).leaves.len();
            for leaf in 0..leaves {
                while let Some(spot) = self.one_more(ix, leaf) {
                    spots.push(spot);
                }
            }
            if spots.is_empty() {
                continue;
            }
            let state = self.state();
            let job = state.jobs.get(ix);
            let decisions = spots
                .iter()
                .map(|spot| {
                    let cpu = state.leaf_of(ix, spot.task).need.cpu;
                    Decision::Start {
                        lease: job.lease_id(spot.task, job.tasks[spot.task as usize].attempts),
                        node: state.cluster.node(spot.node).spec.name.clone(),
                        slices: spot.slices.clone(),
                        price: state.price_of(spot.node, &spot.slices, cpu),
                        resume: false,
                    }
                })
                .collect();
            // A gang that starts in this plan grows in the same transaction.
            let own = self.transactions.iter_mut().find(|transaction| {
                transaction.job == Some(id)
                    && matches!(transaction.decisions.first(), Some(Decision::Start { .. }))
            });
            match own {
                Some(transaction) => transaction.decisions.extend::<Vec<Decision>>(decisions),
                None => self.transactions.push(Transaction { job: Some(id), decisions }),
            }
        }
    }

    /// A gang that gives members up now does not take others at once.
    fn shrinking(&self, job: JobIx) -> bool {
        self.state().jobs.get(job).stopping > 0
    }

    fn one_more(&mut self, ix: JobIx, leaf: usize) -> Option<super::fit::Spot> {
        let state = self.state();
        let job = state.jobs.get(ix);
        let group = &state.shape_of(ix).leaves[leaf];
        if group.count == group.min {
            return None;
        }
        let gpu = group.gpu_milli(&state.cluster);
        let more =
            Amounts { gpu, cpu: group.need.cpu, memory: group.need.memory, ..Amounts::default() };
        let mut exceeded = Vec::new();
        super::bounds::exceeded(state, job.queue, &job.spec.user, &more, &mut exceeded);
        let quota_free = job.preemptible() || crate::share::within_quota(state, job.queue, &more);
        if !exceeded.is_empty() || !quota_free {
            return None;
        }
        let mut who = self.who(ix);
        // It is in the middle of its run.
        if let Some(started) = self.state().jobs.get(ix).started {
            who.until = who.until - (self.now() - started);
        }
        super::fit::fit_one_more(&mut self.draft, &self.mix, ix, who, leaf)
    }
}
