//! Places for the like tasks of one group, as close together as is asked for.

use crate::cluster::domain::{Level, WHOLE};
use crate::ix::{ClassIx, DomainIx, NodeIx};
use crate::plan::fit::pack::preferring;
use crate::plan::fit::search::Search;
use crate::shape::leaf::{Leaf, Together};
use berth_model::Strategy;
use std::cmp::Reverse;

impl<'d, 's> Search<'d, 's> {
    /// Places `n` tasks of a group inside the domain, as close together as is asked for, and
    /// otherwise in the lowest domain that holds them all.
    pub(super) fn leaf(&mut self, leaf: &Leaf, n: u32, domain: DomainIx) -> bool {
        if let Some((size, level)) = leaf.together.segment {
            return self.segments(leaf, n, size, level, domain);
        }
        for preferred in self.preferred(leaf, domain) {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let mut plain = leaf.clone();
            plain.spec.labels.prefer.clear();
            if self.leaf(&plain, n, preferred) {
                return true;
            }
            self.undo_to(mark, spots);
        }
        if let Some(preferring) = preferring(leaf) {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            if self.leaf(&preferring, n, domain) {
                return true;
            }
            self.undo_to(mark, spots);
        }
        let one = matches!(leaf.together.required, Some(Level::Node | Level::Nvlink));
        if one && !self.spread_allows(leaf, n) {
            return false;
        }
        match leaf.together.required {
            Some(Level::Node) => return self.on_one_node(leaf, n, domain),
            Some(Level::Nvlink) => return self.in_one_island(leaf, n, domain),
            _ => {}
        }
        if n > 1 && leaf.spread.is_none() {
            let preferred_low =
                matches!(leaf.together.preferred, None | Some(Level::Node | Level::Nvlink));
            if preferred_low
                && self.state().policy.strategy == Strategy::Pack
                && self.on_one_node(leaf, n, domain)
            {
                return true;
            }
            return self.lowest(leaf, n, domain);
        }
        if leaf.together.required.is_some() {
            return self.lowest(leaf, n, domain);
        }
        self.place(leaf, n, domain)
    }

    /// Domains that the group's preferred labels name.
    fn preferred(&self, leaf: &Leaf, within: DomainIx) -> Vec<DomainIx> {
        if leaf.spec.labels.prefer.is_empty() {
            return Vec::new();
        }
        let cluster = &self.state().cluster;
        let mut found = Vec::new();
        for (at, (_, keys)) in cluster.topologies.iter().enumerate() {
            for (depth, key) in keys.iter().enumerate().rev() {
                let Some(value) = leaf.spec.labels.prefer.get(key) else { continue };
                found.extend(cluster.domains_of(at as u32, depth as u32).filter(|domain| {
                    let named = cluster.domains[domain.at()].name == *value;
                    named && cluster.lies_in(*domain, within)
                }));
            }
        }
        found
    }

    /// Tries domains from the preferred level (or the lowest) up to the required one.
    fn lowest(&mut self, leaf: &Leaf, n: u32, within: DomainIx) -> bool {
        let cluster = &self.state().cluster;
        let asked = leaf.together.required.or(leaf.together.preferred);
        let topology = match asked {
            Some(Level::Label { topology, .. }) => topology,
            _ => leaf.together.topology,
        };
        let Some((_, keys)) = cluster.topologies.get(topology as usize) else {
            return self.place(leaf, n, within);
        };
        let highest = match leaf.together.required {
            Some(Level::Label { depth, .. }) => Some(depth),
            _ => None,
        };
        let start = match leaf.together.preferred {
            Some(Level::Label { depth, .. }) => depth,
            _ => keys.len() as u32 - u32::from(!keys.is_empty()),
        };
        if keys.is_empty() {
            return self.place(leaf, n, within);
        }
        // Without a wish the whole gang is tried in each level's tightest domain only.
        let tries = if asked.is_some() { usize::MAX } else { 2 };
        for depth in (highest.unwrap_or(0)..=start).rev() {
            for domain in self.holding(leaf, n, topology, depth, within).into_iter().take(tries) {
                let (mark, spots) = (self.draft.mark(), self.spots.len());
                if self.place(leaf, n, domain) {
                    return true;
                }
                self.undo_to(mark, spots);
            }
        }
        highest.is_none() && self.place(leaf, n, within)
    }

    /// Domains of a level that could hold the tasks by count, tightest first.
    fn holding(
        &self,
        leaf: &Leaf,
        n: u32,
        topology: u32,
        depth: u32,
        within: DomainIx,
    ) -> Vec<DomainIx> {
        let state = self.state();
        let cluster = &state.cluster;
        let mut found: Vec<(u32, Reverse<i64>, Option<NodeIx>, DomainIx)> = Vec::new();
        for domain in cluster.domains_of(topology, depth) {
            if !cluster.lies_in(domain, within) {
                continue;
            }
            let room = self.count(leaf, domain, &leaf.classes, n);
            if room >= n {
                let kept = Reverse(self.kept_in(domain));
                found.push((room, kept, cluster.first_of(domain), domain));
            }
        }
        found.sort();
        found.into_iter().map(|(_, _, _, domain)| domain).collect()
    }

    /// How many tasks of the group fit the domain: exact, but an upper bound on uncontested nodes
    /// where CPU or memory may bind; it stops counting some way beyond what is needed.
    pub(super) fn count(&self, leaf: &Leaf, domain: DomainIx, classes: &[ClassIx], n: u32) -> u32 {
        let cluster = &self.state().cluster;
        let Some(g) = leaf.whole().filter(|_| !leaf.is_particular() && leaf.near.is_empty()) else {
            return u32::MAX;
        };
        let most = cluster.room(domain, classes, g);
        if most < n {
            return most;
        }
        let nodes = &cluster.domains[domain.at()].nodes;
        let clean = cluster.slots(domain, classes, g);
        let room = |ix: &NodeIx| {
            if !cluster.has_free(*ix, g) {
                return 0;
            }
            let node = cluster.node(*ix);
            let counts = node.indexed.is_none() && classes.contains(&node.class);
            if counts { node.capacity(&leaf.need, &self.requester, n) } else { 0 }
        };
        let contested: u32 = if domain == WHOLE {
            cluster.contested.iter().map(room).sum()
        } else if cluster.domains[domain.at()].contested == 0 {
            0
        } else {
            nodes.iter().map(room).sum()
        };
        clean + contested
    }

    fn segments(&mut self, leaf: &Leaf, n: u32, size: u32, level: Level, within: DomainIx) -> bool {
        let outer = match leaf.together.required {
            Some(Level::Label { topology, depth }) => {
                self.holding(leaf, n, topology, depth, within)
            }
            _ => vec![within],
        };
        let segment = |together: &Together| Together {
            required: Some(level),
            segment: None,
            preferred: None,
            ..together.clone()
        };
        let mut one = leaf.clone();
        one.together = segment(&leaf.together);
        one.need.island |= level == Level::Nvlink;
        for domain in outer {
            let (mark, spots) = (self.draft.mark(), self.spots.len());
            let mut left = n;
            while left > 0 && self.leaf(&one, size, domain) {
                left -= size;
            }
            if left == 0 {
                return true;
            }
            self.undo_to(mark, spots);
        }
        false
    }

    /// Adds to a running gang, where the rest of the group lies if it has to lie together.
    pub(super) fn more(&mut self, leaf: &Leaf, outer: DomainIx) -> Option<bool> {
        let n = leaf.together.segment.map_or(1, |(size, _)| size);
        if self.free_tasks(leaf, n).len() < n as usize {
            return Some(false);
        }
        let own = leaf.first..leaf.first + leaf.count;
        let job = self.state().jobs.get(self.job);
        let first = job.leases().find(|(task, _)| own.contains(task)).map(|(_, lease)| lease);
        let domain = match leaf.together.required {
            None => outer,
            Some(Level::Label { topology, depth }) => {
                self.state().cluster.domain_of(first?.node, topology, depth)?
            }
            Some(level @ (Level::Node | Level::Nvlink)) => {
                let (lease, mut there) = (first?, leaf.clone());
                let node = self.state().cluster.node(lease.node);
                if level == Level::Nvlink {
                    there.need.only =
                        lease.slices.first().map(|slice| node.gpus[slice.gpu as usize].island);
                }
                let (ix, room) = (lease.node, node.capacity(&there.need, &self.requester, n));
                let allowed = room >= n && self.spread_allows(leaf, n);
                return Some(allowed && self.fill(&there, ix, n));
            }
        };
        Some(match leaf.together.segment {
            Some((size, level)) => self.segments(leaf, n, size, level, domain),
            None => self.place(leaf, n, domain),
        })
    }
}
