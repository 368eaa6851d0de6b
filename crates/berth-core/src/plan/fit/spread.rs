//! Spreading tasks: at most so many per domain.

use crate::cluster::domain::Level;
use crate::ix::{DomainIx, NodeIx};
use crate::plan::fit::search::{Room, Search};
use crate::shape::leaf::Leaf;
use std::cmp::Reverse;

impl<'d, 's> Search<'d, 's> {
    /// At most so many tasks per domain: the roomiest domains first.
    pub(super) fn spread(&mut self, leaf: &Leaf, n: u32, within: DomainIx) -> bool {
        let Some((level, at_most)) = leaf.spread else { return false };
        let mut plain = leaf.clone();
        plain.spread = None;
        plain.together.required = None;
        let Level::Label { topology, depth } = level else {
            let mut rooms: Vec<Room> = Vec::new();
            for tier in self.tiers(leaf) {
                rooms = self.rooms(&plain, at_most, within, tier);
                // Tasks of the group that run already count too.
                for room in &mut rooms {
                    let on_node = self.running_in(leaf, |ix| ix == room.node);
                    room.tasks = room.tasks.min(at_most.saturating_sub(on_node));
                }
                if rooms.iter().map(|room| room.tasks).sum::<u32>() >= n {
                    break;
                }
            }
            rooms.sort_by_key(|room| (Reverse(room.free), self.rank(room.node)));
            let mut left = n;
            for room in rooms {
                let take = left.min(room.tasks);
                if take > 0 && !self.fill(&plain, room.node, take) {
                    return false;
                }
                left -= take;
            }
            return left == 0;
        };
        let cluster = &self.state().cluster;
        // Where the group must lie in less than one domain of the level, that is what there is of it.
        let part = |domain: DomainIx| match cluster.lies_in(domain, within) {
            true => Some(domain),
            false => cluster.lies_in(within, domain).then_some(within),
        };
        let domains = cluster.domains_of(topology, depth);
        let mut domains: Vec<_> = domains
            .filter_map(|domain| Some((domain, part(domain)?)))
            .map(|(domain, part)| {
                let order = (Reverse(self.free_in(part)), Reverse(self.kept_in(part)));
                (order, cluster.first_of(part), domain, part)
            })
            .collect();
        domains.sort();
        let mut left = n;
        for (_, _, domain, part) in domains {
            let cluster = &self.state().cluster;
            let inside = |ix: NodeIx| cluster.domain_of(ix, topology, depth) == Some(domain);
            let mut here = self.running_in(leaf, inside);
            while left > 0 && here < at_most && self.place(&plain, 1, part) {
                here += 1;
                left -= 1;
            }
        }
        left == 0
    }
}
