//! A search in progress: places that are taken on the draft, one after the other.

use crate::cluster::node::Requester;
use crate::draft::Draft;
use crate::fragmentation::Mix;
use crate::ix::{ClassIx, DomainIx, JobIx, NodeIx, TaskIx};
use crate::jobs::Lease;
use crate::plan::fit::nearby::Nearby;
use crate::plan::fit::spot::Spot;
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::state::State;
use berth_model::Slice;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) struct Search<'d, 's> {
    pub(crate) draft: &'d mut Draft<'s>,
    pub(crate) mix: &'d Mix,
    pub(crate) job: JobIx,
    pub(crate) requester: Requester,
    pub(crate) shape: Arc<Shape>,
    pub(crate) spots: Vec<Spot>,
    pub(crate) steps: u32,
    pub(crate) cut_off: bool,
    /// How many bytes of the job's data each node keeps.
    kept: BTreeMap<NodeIx, i64>,
}

/// The order of nodes that are equal otherwise: those that keep most of the job's data first, then the
/// oldest.
pub(crate) type Rank = (Reverse<i64>, NodeIx);

/// A node and how many tasks it could take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) node: NodeIx,
    pub(crate) tasks: u32,
    pub(crate) free: u32,
}

impl<'d, 's> Search<'d, 's> {
    pub(super) fn new(
        draft: &'d mut Draft<'s>,
        mix: &'d Mix,
        job: JobIx,
        requester: Requester,
        shape: &Arc<Shape>,
    ) -> Search<'d, 's> {
        let kept = draft.state.cluster.kept_of(&draft.state.jobs.get(job).spec.data);
        Search {
            kept,
            draft,
            mix,
            job,
            requester,
            shape: shape.clone(),
            spots: Vec::new(),
            steps: 0,
            cut_off: false,
        }
    }

    pub(crate) fn state(&self) -> &State {
        self.draft.state
    }

    /// The place of a node among equal ones.
    pub(crate) fn rank(&self, ix: NodeIx) -> Rank {
        (Reverse(self.kept.get(&ix).copied().unwrap_or(0)), ix)
    }

    /// The first by rank of some nodes, given in the order of their age, that will do.
    pub(crate) fn first_of(
        &self,
        nodes: &BTreeSet<NodeIx>,
        will_do: impl Fn(NodeIx) -> bool,
    ) -> Option<NodeIx> {
        let keepers = self.kept.iter().filter(|(_, bytes)| **bytes > 0).map(|(ix, _)| *ix);
        let keepers = keepers.filter(|ix| nodes.contains(ix) && will_do(*ix));
        let first = keepers.min_by_key(|ix| self.rank(*ix));
        first.or_else(|| nodes.iter().copied().find(|ix| will_do(*ix)))
    }

    /// The nodes of a domain by rank.
    pub(crate) fn by_rank(&self, domain: DomainIx) -> Vec<NodeIx> {
        let nodes = &self.state().cluster.domains[domain.at()].nodes;
        let mut nodes: Vec<NodeIx> = nodes.iter().copied().collect();
        if !self.kept.is_empty() {
            nodes.sort_by_key(|ix| self.rank(*ix));
        }
        nodes
    }

    /// How many bytes of the job's data the nodes of a domain keep together.
    pub(crate) fn kept_in(&self, domain: DomainIx) -> i64 {
        let nodes = &self.state().cluster.domains[domain.at()].nodes;
        let kept = self.kept.iter().filter(|(ix, _)| nodes.contains(ix));
        kept.fold(0_i64, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// The order in which classes of nodes are tried.
    pub(crate) fn tiers<'l>(&self, leaf: &'l Leaf) -> &'l [Vec<ClassIx>] {
        // A list of models is an order of its own.
        if self.requester.rush && leaf.need.models.is_empty() { &leaf.fast } else { &leaf.tiers }
    }

    /// Undoes what a failed branch has tried.
    pub(crate) fn undo_to(&mut self, mark: crate::draft::Mark, spots: usize) {
        self.draft.roll_back(mark);
        self.spots.truncate(spots);
    }

    pub(crate) fn free_in(&self, domain: DomainIx) -> usize {
        let counts = &self.state().cluster.domains[domain.at()].counts;
        counts.iter().map(|count| count.free.get(1).copied().unwrap_or(0) as usize).sum()
    }

    /// Nodes of the domain with room for the group.
    pub(crate) fn rooms(
        &self,
        leaf: &Leaf,
        n: u32,
        domain: DomainIx,
        tier: &[ClassIx],
    ) -> Vec<Room> {
        let state = self.state();
        let near = Nearby::of(state, leaf, self.job);
        let cluster = &state.cluster;
        let mut found = Vec::new();
        let g = leaf.whole().unwrap_or(0);
        for ix in &cluster.domains[domain.at()].nodes {
            if !cluster.has_free(*ix, g) {
                continue;
            }
            let node = cluster.node(*ix);
            if !tier.contains(&node.class) || !leaf.suits(node) || !near.admits(state, *ix) {
                continue;
            }
            let tasks = node.capacity(&leaf.need, &self.requester, n);
            if tasks > 0 {
                found.push(Room { node: *ix, tasks, free: node.free_whole() });
            }
        }
        found
    }

    /// Takes `n` tasks' places on one node.
    pub(crate) fn fill(&mut self, leaf: &Leaf, ix: NodeIx, n: u32) -> bool {
        for task in self.free_tasks(leaf, n) {
            let Some(slices) = self.choose(leaf, ix) else { return false };
            self.open(leaf, task, ix, slices);
        }
        true
    }

    pub(super) fn choose(&self, leaf: &Leaf, ix: NodeIx) -> Option<Vec<Slice>> {
        self.state().cluster.node(ix).choose(&leaf.need, &self.requester)
    }

    /// How many tasks of the group run on such nodes.
    pub(crate) fn running_in(&self, leaf: &Leaf, inside: impl Fn(NodeIx) -> bool) -> u32 {
        let range = leaf.first..leaf.first + leaf.count;
        let leases = self.state().jobs.get(self.job).leases();
        let here = leases.filter(|(task, lease)| range.contains(task) && inside(lease.node));
        here.count() as u32
    }

    /// The next tasks of the group that could be started.
    pub(crate) fn free_tasks(&self, leaf: &Leaf, n: u32) -> Vec<u32> {
        let job = self.state().jobs.get(self.job);
        (leaf.first..leaf.first + leaf.count)
            .filter(|task| {
                let task = &job.tasks[*task as usize];
                task.lease.is_none() && !task.done
            })
            .take(n as usize)
            .collect()
    }

    pub(crate) fn open(&mut self, leaf: &Leaf, task: u32, node: NodeIx, slices: Vec<Slice>) {
        let state = &self.draft.state;
        let lease = Lease {
            attempt: state.jobs.get(self.job).tasks[task as usize].attempts,
            node,
            charge: state.charge_of(leaf, node, &slices),
            // Told when the decision is made; a try has no price.
            price: berth_model::Micros::ZERO,
            since: state.now,
            bound: false,
            stopping: None,
            slices: slices.clone(),
        };
        self.draft.open(TaskIx { job: self.job, task }, lease);
        self.spots.push(Spot { task, node, slices });
    }
}
