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
use std::collections::BTreeMap;

/// GPUs that are cleared for one claim, at the most. Where those that cost the least work do not
/// help, waiting is better than searching on.
const MAX_CLEARED_GPUS: usize = 16;

/// What may be taken of one GPU, with what each holds and would lose.
type OnGpu = Vec<(i64, i128, JobId, Unit)>;

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
        for mut here in self.gpus_by_cost(leaf, queues) {
            // The smallest first: it brings its queue down the least.
            here.sort();
            let (mark, before) = (self.draft.mark(), freed.len());
            for (.., unit) in here {
                let is_there = self.state().jobs.get(unit.job).live() > 0
                    && (!unit.surplus || self.is_live(unit.job, unit.tasks[0]));
                if freed.contains(&unit) || !is_there || !self.eligible(job, &unit, right) {
                    continue;
                }
                self.free(&unit);
                freed.push(unit);
                if let Some(spots) = self.fits_claim(job, requester) {
                    return Some((freed, spots));
                }
            }
            if is_one {
                self.draft.roll_back(mark);
                freed.truncate(before);
            }
        }
        None
    }

    /// What may be taken of each GPU that the group could use, the GPUs first that cost the least.
    fn gpus_by_cost(&mut self, leaf: &Leaf, queues: &[QueueIx]) -> Vec<OnGpu> {
        let mut gpus: BTreeMap<(NodeIx, u32), (i128, OnGpu)> = BTreeMap::new();
        for queue in queues {
            self.victims_of(*queue);
            let state = self.state();
            let victims = &self.victims[queue];
            for unit in victims.surplus.iter().chain(&victims.whole) {
                let loss = if unit.surplus { 0 } else { state.loss(unit.job) };
                let known = state.jobs.get(unit.job);
                for (_, lease) in known.leases().filter(|(task, _)| unit.takes(*task)) {
                    let node = state.cluster.node(lease.node);
                    let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
                    if lease.stopping.is_some() || !suits {
                        continue;
                    }
                    for slice in &lease.slices {
                        let (cost, here) = gpus.entry((lease.node, slice.gpu)).or_default();
                        *cost += loss;
                        here.push((lease.charge.gpu, loss, known.id, unit.clone()));
                    }
                }
            }
        }
        let mut costs: Vec<(i128, usize, NodeIx, u32)> = gpus
            .iter()
            .map(|((node, gpu), (cost, here))| (*cost, here.len(), *node, *gpu))
            .collect();
        costs.sort_unstable();
        let cheapest = costs.into_iter().take(MAX_CLEARED_GPUS);
        cheapest.filter_map(|(_, _, node, gpu)| Some(gpus.remove(&(node, gpu))?.1)).collect()
    }
}
