//! Whether a job fits on what has been freed on the draft.

use crate::cluster::domain::WHOLE;
use crate::cluster::node::{Need, Requester};
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::plan::bounds::bound;
use crate::plan::fit::fit;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;
use std::collections::{BTreeMap, BTreeSet};

impl Planner<'_> {
    /// The claimant holds what it takes from the end of the grace on.
    pub(crate) fn claimant(&self, job: JobIx) -> Requester {
        let mut requester = self.requester(job);
        requester.until = requester.until + self.state().policy.grace;
        requester.claims = true;
        requester
    }

    /// Notes on each node what is short of what a job without GPUs leaves to free GPUs: it takes the
    /// places of others without making that more.
    pub(super) fn note_gpu_debts(&mut self, job: JobIx, requester: &Requester) {
        let Some(need) = self.reserve_of(job) else { return };
        for node in &mut self.draft.state.cluster.nodes {
            if !node.gpus.is_empty() {
                node.gpu_debt = node.gpu_debt(&need, requester);
            }
        }
    }

    /// From now on this claim leaves nothing to free GPUs. Returns whether it would have.
    pub(super) fn forget_gpu_reserve(&mut self, job: JobIx) -> bool {
        if self.reserve_of(job).is_none() {
            return false;
        }
        let nodes = self.draft.state.cluster.nodes.iter_mut();
        nodes.for_each(|node| node.gpu_debt = (i64::MAX, i64::MAX));
        true
    }

    /// What a task of the job needs, if it leaves something to free GPUs.
    fn reserve_of(&self, job: JobIx) -> Option<Need> {
        let leaves = self.state().shape_of(job).leaves.iter();
        leaves.map(|leaf| &leaf.need).find(|need| need.left_to_gpus > 0).cloned()
    }

    /// Finds places on GPUs that are being released and that no job has a promise of. A single task
    /// needs one node only: where many leases end at once, not all of them are tried for it.
    pub(super) fn fits_releasing(&mut self, job: JobIx, requester: Requester) -> Option<Vec<Spot>> {
        let state = self.state();
        let shape = state.shapes[state.jobs.get(job).shape.at()].clone();
        let one = shape.single().filter(|leaf| leaf.min == 1 && leaf.whole().is_some());
        let Some(leaf) = one.filter(|leaf| leaf.countable(&state.cluster)) else {
            self.free_releasing();
            return self.fits_claim(job, requester);
        };
        let mut by_node: BTreeMap<NodeIx, Vec<TaskIx>> = BTreeMap::new();
        for task in &state.releasing {
            let lease = state.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
            let node = lease.expect("it is being stopped").node;
            by_node.entry(node).or_default().push(*task);
        }
        let mark = self.draft.mark();
        for (node, tasks) in by_node {
            tasks.into_iter().for_each(|task| self.draft.close(task));
            let target = self.state().cluster.node(node);
            let room = leaf.classes.contains(&target.class)
                && target.capacity(&leaf.need, &requester, 1) > 0;
            if room && let Some(spots) = self.fits_claim(job, requester) {
                return Some(spots);
            }
            self.draft.roll_back(mark);
        }
        None
    }

    /// Frees, on the draft, the GPUs that are being released and that no job has a promise of.
    pub(crate) fn free_releasing(&mut self) {
        let releasing: Vec<TaskIx> = self.state().releasing.iter().copied().collect();
        for task in releasing {
            self.draft.close(task);
        }
    }

    /// Frees a unit on the draft.
    pub(super) fn free(&mut self, unit: &Unit) {
        let tasks = if unit.surplus { unit.tasks.clone() } else { self.live_tasks(unit.job) };
        for task in tasks {
            self.draft.close(TaskIx { job: unit.job, task });
        }
    }

    /// Whether the job fits with what has been freed, and its queues allow it.
    pub(crate) fn fits_claim(&mut self, job: JobIx, requester: Requester) -> Option<Vec<Spot>> {
        if !bound(self.state(), job, false).is_empty() || !self.could_fit(job, &requester) {
            return None;
        }
        let mark = self.draft.mark();
        let spots = fit(&mut self.draft, &self.mix, job, requester).ok()?;
        if self.overdraws(job) {
            self.draft.roll_back(mark);
            return None;
        }
        Some(spots)
    }

    /// A quick count that rules most misfits out.
    pub(crate) fn could_fit(&self, job: JobIx, requester: &Requester) -> bool {
        let state = self.state();
        let shape = state.shape_of(job);
        let Some(leaf) = shape.single() else { return true };
        let Some(g) = leaf.whole().filter(|_| leaf.countable(&state.cluster)) else {
            return true;
        };
        let cluster = &state.cluster;
        if !leaf.has_room(cluster, leaf.min) {
            return false;
        }
        if cluster.slots(WHOLE, &leaf.classes, g) >= leaf.min {
            return true;
        }
        let contested: u32 = cluster
            .contested
            .iter()
            .filter(|ix| leaf.classes.contains(&cluster.node(**ix).class))
            .map(|ix| cluster.node(*ix).capacity(&leaf.need, requester, leaf.min))
            .sum();
        cluster.slots(WHOLE, &leaf.classes, g) + contested >= leaf.min
    }

    /// Leaves out whoever is not needed, last taken first.
    pub(super) fn prune(
        &mut self,
        job: JobIx,
        requester: Requester,
        units: Vec<Unit>,
        spots: Vec<Spot>,
    ) -> (Vec<Unit>, Vec<Spot>) {
        let touches = |planner: &Self, unit: &Unit, spots: &[Spot]| {
            let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
            let mut leases = planner.state().jobs.get(unit.job).leases();
            leases.any(|(task, lease)| nodes.contains(&lease.node) && unit.takes(task))
        };
        if let [unit] = units.as_slice()
            && touches(self, unit, &spots)
        {
            return (units, spots);
        }
        let base = self.draft.mark();
        let is_near = |unit: &&Unit| touches(self, unit, &spots);
        let near: Vec<Unit> = units.iter().filter(is_near).cloned().collect();
        let (mut needed, mut spots) = match self.fits_without_unit(job, requester, &near, None) {
            Some(found) => (near, found),
            None => (units, spots),
        };
        self.draft.roll_back(base);
        // Beyond some number the ones on the chosen nodes are as good as needed.
        const MAX_PRUNED: usize = 256;
        let mut at = needed.len();
        while at > 0 && needed.len() <= MAX_PRUNED {
            at -= 1;
            // Without the others it may fit elsewhere, and then the last one is not needed either.
            if needed.len() == 1 && touches(self, &needed[0], &spots) {
                break;
            }
            if let Some(found) = self.fits_without_unit(job, requester, &needed, Some(at)) {
                needed.remove(at);
                spots = found;
            }
            self.draft.roll_back(base);
        }
        (needed, spots)
    }

    fn fits_without_unit(
        &mut self,
        job: JobIx,
        requester: Requester,
        units: &[Unit],
        without: Option<usize>,
    ) -> Option<Vec<Spot>> {
        for (at, unit) in units.iter().enumerate() {
            if Some(at) != without {
                self.free(unit);
            }
        }
        self.fits_claim(job, requester)
    }
}
