//! Tasks of a group that must lie on one node, or in one NVLink island.

use crate::cluster::domain::WHOLE;
use crate::cluster::node::Need;
use crate::ix::{ClassIx, DomainIx, NodeIx};
use crate::plan::fit::nearby::Nearby;
use crate::plan::fit::search::Search;
use crate::shape::leaf::Leaf;
use berth_model::{GpuAsk, Strategy};
use std::collections::BTreeSet;
use std::sync::Arc;

impl<'d, 's> Search<'d, 's> {
    pub(super) fn on_one_node(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        for tier in self.tiers(leaf) {
            if let Some(ix) = self.tightest(leaf, n, domain, tier) {
                return self.fill(leaf, ix, n);
            }
        }
        false
    }

    /// The node with the least room that holds `n` tasks.
    pub(super) fn tightest(
        &self,
        leaf: &Leaf,
        n: u32,
        domain: DomainIx,
        tier: &[ClassIx],
    ) -> Option<NodeIx> {
        let state = self.state();
        let cluster = &state.cluster;
        if domain == WHOLE
            && let Some(g) = leaf.whole()
            && leaf.near.is_empty()
        {
            let from = n.saturating_mul(g) as usize;
            let most = tier.iter().map(|c| cluster.classes[c.at()].gpus as usize).max()?;
            let holds = |ix: NodeIx| {
                let node = cluster.node(ix);
                leaf.suits(node) && node.capacity(&leaf.need, &self.requester, n) >= n
            };
            let in_tier = |ix: NodeIx| tier.contains(&cluster.node(ix).class);
            let contested = self.first_of(&cluster.contested, |ix| in_tier(ix) && holds(ix));
            if contested.is_some() {
                return contested;
            }
            let mut sizes: Vec<usize> = (from..=most).collect();
            if state.policy.strategy == Strategy::Spread {
                sizes.reverse();
            }
            for free in sizes {
                let of_class = |class: &ClassIx| {
                    self.first_of(cluster.classes[class.at()].buckets.get(free)?, holds)
                };
                let found = tier.iter().filter_map(of_class);
                if let Some(ix) = found.min_by_key(|ix| self.rank(*ix)) {
                    return Some(ix);
                }
            }
            return None;
        }
        let rooms = self.rooms(leaf, n, domain, tier);
        let fits = rooms.iter().filter(|room| room.tasks >= n);
        fits.min_by_key(|room| (room.tasks, room.free, self.rank(room.node))).map(|room| room.node)
    }

    pub(super) fn in_one_island(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        let Some(g) = leaf.whole() else { return self.shares_in_island(leaf, n, domain) };
        if n == 1 {
            return self.place(leaf, 1, domain);
        }
        // All tasks in one island are one request for all their GPUs there.
        let mut joint = leaf.need.clone();
        joint.ask = GpuAsk::Whole { count: g * n };
        joint.cpu *= i64::from(n);
        joint.memory *= i64::from(n);
        for amount in Arc::make_mut(&mut joint.counted).values_mut() {
            *amount *= i64::from(n);
        }
        let nodes = self.by_rank(domain);
        let near = Nearby::of(self.state(), leaf, self.job);
        for ix in nodes {
            let node = self.state().cluster.node(ix);
            let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
            if !suits || !near.admits(self.state(), ix) {
                continue;
            }
            let taken =
                node.capacity(&Need { ask: GpuAsk::None, ..leaf.need.clone() }, &self.requester, n);
            let Some(slices) = node.choose(&joint, &self.requester).filter(|_| taken >= n) else {
                continue;
            };
            let tasks = self.free_tasks(leaf, n);
            for (task, part) in tasks.iter().zip(slices.chunks(g as usize)) {
                self.open(leaf, *task, ix, part.to_vec());
            }
            return true;
        }
        false
    }

    /// Shares of GPUs that all lie in one NVLink island.
    fn shares_in_island(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if leaf.need.ask == GpuAsk::None {
            return self.on_one_node(leaf, n, domain);
        }
        let nodes = self.by_rank(domain);
        let near = Nearby::of(self.state(), leaf, self.job);
        let mut inside = leaf.clone();
        for ix in nodes {
            let node = self.state().cluster.node(ix);
            let suits = leaf.classes.contains(&node.class) && leaf.suits(node);
            if !suits || !near.admits(self.state(), ix) {
                continue;
            }
            let islands: BTreeSet<u8> = node.gpus.iter().map(|gpu| gpu.island).collect();
            for island in islands {
                inside.need.only = Some(island);
                let node = self.state().cluster.node(ix);
                if node.capacity(&inside.need, &self.requester, n) >= n {
                    return self.fill(&inside, ix, n);
                }
            }
        }
        false
    }
}
