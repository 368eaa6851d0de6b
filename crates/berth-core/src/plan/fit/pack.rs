//! Packing like tasks onto the nodes of a domain.

use crate::cluster::domain::WHOLE;
use crate::cluster::node::{Node, Requester};
use crate::ix::{ClassIx, DomainIx, NodeIx};
use crate::plan::fit::search::{Room, Search};
use crate::shape::leaf::Leaf;
use berth_model::{GpuAsk, NodeAsk, Strategy};
use std::sync::Arc;

/// Nodes among which whole tasks too are placed by what they strand.
const MAX_MEASURED_NODES: usize = 2_048;

impl<'d, 's> Search<'d, 's> {
    /// Places `n` tasks anywhere in the domain, tier by tier.
    pub(crate) fn place(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if leaf.spread.is_some() {
            return self.spread(leaf, n, domain);
        }
        for tier in self.tiers(leaf) {
            if self.count(leaf, domain, tier, n) < n {
                continue;
            }
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            if self.place_in(leaf, n, domain, tier) {
                return true;
            }
            self.undo_to(mark, spots);
        }
        false
    }

    fn place_in(&mut self, leaf: &Leaf, n: u32, domain: DomainIx, tier: &[ClassIx]) -> bool {
        let is_share = leaf.whole().is_none() && leaf.need.ask != GpuAsk::None;
        // Every node is measured for that, which large clusters have not the time for.
        let few = self.state().cluster.domains[domain.at()].nodes.len() <= MAX_MEASURED_NODES;
        let alone = n == 1 && !leaf.need.island && few && self.measures();
        if is_share || (alone && self.state().policy.strategy == Strategy::Pack) {
            return self.shares(leaf, n, domain, tier);
        }
        if n == 1 {
            return match self.tightest(leaf, 1, domain, tier) {
                Some(ix) => self.fill(leaf, ix, 1),
                None => false,
            };
        }
        if domain == WHOLE && leaf.countable(&self.state().cluster) {
            return self.by_bucket(leaf, n, tier);
        }
        let mut rooms = self.rooms(leaf, n, domain, tier);
        let total: u64 = rooms.iter().map(|room| u64::from(room.tasks)).sum();
        if total < u64::from(n) {
            return false;
        }
        if self.state().policy.strategy == Strategy::Spread {
            return self.one_each(leaf, n, rooms);
        }
        let mut left = n;
        rooms.sort_by_key(|room| (std::cmp::Reverse(room.tasks), room.free, self.rank(room.node)));
        let mut next = 0;
        while left > 0 {
            // The last node is the tightest that takes all the rest.
            let rest = &rooms[next..];
            let fits = rest.iter().filter(|room| room.tasks >= left);
            let last = fits.min_by_key(|room| (room.tasks, room.free, self.rank(room.node)));
            let (node, take) = match last {
                Some(room) => (room.node, left),
                None => {
                    next += 1;
                    (rest[0].node, rest[0].tasks)
                }
            };
            if !self.fill(leaf, node, take) {
                return false;
            }
            left -= take;
        }
        true
    }

    /// Spreads tasks one by one over the emptiest nodes.
    fn one_each(&mut self, leaf: &Leaf, n: u32, mut rooms: Vec<Room>) -> bool {
        rooms.sort_by_key(|room| (std::cmp::Reverse(room.free), self.rank(room.node)));
        let mut left = n;
        while left > 0 {
            let mut moved = false;
            for room in &mut rooms {
                if left > 0 && room.tasks > 0 && self.fill(leaf, room.node, 1) {
                    room.tasks -= 1;
                    left -= 1;
                    moved = true;
                }
            }
            if !moved {
                return false;
            }
        }
        true
    }

    /// Fills uncontested nodes by their number of free GPUs; contested ones where those do not suffice.
    fn by_bucket(&mut self, leaf: &Leaf, n: u32, tier: &[ClassIx]) -> bool {
        let g = leaf.whole().expect("countable");
        let spread = self.state().policy.strategy == Strategy::Spread;
        let most = {
            let classes = &self.state().cluster.classes;
            tier.iter().map(|class| classes[class.at()].gpus).max().unwrap_or(0)
        };
        let mut left = n;
        while left > 0 {
            let first = |search: &Search<'_, '_>, free: u32| {
                let cluster = &search.draft.state.cluster;
                tier.iter()
                    .filter_map(|class| cluster.classes[class.at()].buckets.get(free as usize))
                    .filter_map(|nodes| search.first_of(nodes, |_| true))
                    .min_by_key(|ix| search.rank(*ix))
            };
            let found = if spread {
                (g..=most).rev().find_map(|free| Some((first(self, free)?, 1)))
            } else {
                let all = left.saturating_mul(g);
                let exact = (all..=most).find_map(|free| Some((first(self, free)?, left)));
                exact.or_else(|| {
                    let below = (g..all.min(most + 1)).rev();
                    below.into_iter().find_map(|free| Some((first(self, free)?, free / g)))
                })
            };
            match found {
                Some((node, take)) => {
                    if !self.fill(leaf, node, take) {
                        return false;
                    }
                    left -= take;
                }
                None => break,
            }
        }
        if left == 0 {
            return true;
        }
        let mut contested: Vec<NodeIx> = self.state().cluster.contested.iter().copied().collect();
        contested.sort_by_key(|ix| self.rank(*ix));
        for ix in contested {
            let node = self.state().cluster.node(ix);
            if !tier.contains(&node.class) {
                continue;
            }
            let take = node.capacity(&leaf.need, &self.requester, left);
            if take > 0 && self.fill(leaf, ix, take) {
                left -= take;
                if left == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Whether placements are compared by what they strand of what is free for the mix.
    pub(super) fn measures(&self) -> bool {
        self.state().policy.fragmentation && !self.mix.typical.is_empty()
    }
}

/// The same group on the nodes it would rather lie on, if there are any.
pub(crate) fn preferring(leaf: &Leaf) -> Option<Leaf> {
    let nodes = leaf.nodes.as_deref().filter(|nodes| !nodes.prefer.is_empty())?;
    let only = nodes.prefer.iter().filter(|node| nodes.admits(node)).cloned().collect();
    let nodes = NodeAsk { only: Some(only), ..NodeAsk::default() };
    Some(Leaf { nodes: Some(Arc::new(nodes)), ..leaf.clone() })
}

/// Free shares by GPU, with the way each GPU is shared and whether others share it, to tell nodes
/// that look the same.
pub(crate) fn gpu_states(node: &Node, requester: &Requester) -> Vec<i64> {
    let each = node.gpus.iter().map(|gpu| {
        let free = if gpu.healthy { 1_000 - gpu.used } else { 0 };
        let own = gpu.tenants.are(requester.queue);
        (free * 8 + gpu.mode as i64) * 2 + i64::from(own)
    });
    each.collect()
}
