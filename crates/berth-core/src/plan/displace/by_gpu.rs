//! Victims for shares of GPUs, GPU by GPU. Where queues are kept apart a share needs a GPU without
//! those of others, and victims in their order may leave a little of each GPU to its queue.

use crate::cluster::node::Requester;
use crate::ix::{JobIx, NodeIx, QueueIx};
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;
use crate::shape::leaf::Leaf;
use berth_model::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// GPUs that are cleared for one claim, at the most. Where those that cost the least work do not
/// help, waiting is better than searching on.
const MAX_CLEARED_GPUS: usize = 16;

/// What may be taken of one GPU, with what each holds and would lose.
type OnGpu = Vec<(i64, i128, JobId, Unit)>;

/// Shares of other queues: of which job, task and GPU.
type Shares = BTreeSet<(JobId, u32, u32)>;

impl Planner<'_> {
    /// Clears the GPUs that cost the least work, one after the other, until the job fits.
    pub(super) fn by_gpu(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let leaf = shape.single()?;
        let is_one = leaf.min == 1 && leaf.need.ask.count() == 1;
        let mut freed: Vec<Unit> = Vec::new();
        for mut here in self.gpus_by_cost(leaf, queues, &requester) {
            // The smallest first brings its queue down the least; one large one may do alone.
            here.sort();
            let (mark, before) = (self.draft.mark(), freed.len());
            for order in [here.iter().collect::<Vec<_>>(), here.iter().rev().collect()] {
                for (.., unit) in order {
                    if freed.contains(unit) || !self.may_still_be_taken(job, unit, right) {
                        continue;
                    }
                    self.free(unit);
                    freed.push(unit.clone());
                    if let Some(spots) = self.fits_claim(job, requester) {
                        return Some((freed, spots));
                    }
                }
                if is_one {
                    self.draft.roll_back(mark);
                    freed.truncate(before);
                }
            }
        }
        None
    }

    fn may_still_be_taken(&self, job: JobIx, unit: &Unit, right: Right) -> bool {
        self.state().jobs.get(unit.job).live() > 0
            && (!unit.surplus || self.is_live(unit.job, unit.tasks[0]))
            && self.eligible(job, unit, right)
    }

    /// What may be taken of each GPU that the group could use if all of it went, the GPUs first
    /// that cost the least.
    fn gpus_by_cost(
        &mut self,
        leaf: &Leaf,
        queues: &[QueueIx],
        requester: &Requester,
    ) -> Vec<OnGpu> {
        let mut gpus: BTreeMap<(NodeIx, usize), (i128, Shares, OnGpu)> = BTreeMap::new();
        for queue in queues {
            self.victims_of(*queue);
            let state = self.state();
            let victims = &self.victims[queue];
            let units = victims.surplus.iter().chain(&victims.whole);
            for unit in units.filter(|unit| self.is_open(unit)) {
                let loss = if unit.surplus { 0 } else { state.loss(unit.job) };
                let known = state.jobs.get(unit.job);
                for (task, lease) in known.leases().filter(|(task, _)| unit.takes(*task)) {
                    let node = state.cluster.node(lease.node);
                    let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
                    if lease.stopping.is_some() || !suits {
                        continue;
                    }
                    for slice in &lease.slices {
                        let at = (lease.node, node.pool_of(slice.gpu as usize));
                        let (cost, strangers, here) = gpus.entry(at).or_default();
                        *cost += loss;
                        if *queue != requester.queue {
                            strangers.insert((known.id, task, slice.gpu));
                        }
                        here.push((lease.charge.gpu, loss, known.id, unit.clone()));
                    }
                }
            }
        }
        let state = self.state();
        gpus.retain(|(node, at), (_, strangers, _)| {
            let node = state.cluster.node(*node);
            strangers.len() >= node.strangers(*at, requester.queue, requester.apart)
        });
        let costs = gpus.iter().map(|(at, (cost, _, here))| (*cost, here.len(), *at));
        let mut costs: Vec<(i128, usize, (NodeIx, usize))> = costs.collect();
        costs.sort_unstable();
        let cheapest = costs.into_iter().take(MAX_CLEARED_GPUS);
        cheapest.filter_map(|(_, _, at)| Some(gpus.remove(&at)?.2)).collect()
    }
}
