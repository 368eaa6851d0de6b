//! How many tasks of a group there would be room for if GPUs were given up, by counting.

use crate::cluster::domain::{Level, WHOLE};
use crate::ix::{DomainIx, NodeIx};
use crate::shape::leaf::Leaf;
use crate::state::State;
use std::collections::BTreeMap;

/// Like tasks that need several GPUs in the right places.
pub(crate) fn in_blocks(leaf: &Leaf) -> bool {
    leaf.whole().is_some_and(|g| g > 1 || leaf.min > 1) && leaf.near.is_empty()
}

/// Tasks of a group for which there would be room if GPUs were given up, by the domain it must lie
/// in.
pub(crate) struct Gains<'a> {
    pub(super) state: &'a State,
    pub(super) leaf: &'a Leaf,
    pub(super) g: u32,
    pub(super) by_domain: BTreeMap<DomainIx, u32>,
}

impl Gains<'_> {
    /// Whether what is free would do, but for promises.
    pub(super) fn suffice_without(&self) -> bool {
        let cluster = &self.state.cluster;
        match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => {
                let mut free = cluster.free_by_node.iter().flatten();
                free.any(|free| free / self.g >= self.leaf.min)
            }
            Some(Level::Label { .. }) | None => self.leaf.has_room(cluster, self.leaf.min),
        }
    }

    /// Adds what would be given up on a node; whether that is enough now.
    pub(super) fn add(&mut self, ix: NodeIx, gpu: i64) -> bool {
        let cluster = &self.state.cluster;
        let Some(free) = cluster.free_by_node[ix.at()] else { return false };
        let slots = (i64::from(free) * 1_000 + gpu) / (i64::from(self.g) * 1_000);
        let more = (slots as u32).saturating_sub(free / self.g);
        if more == 0 || !self.leaf.classes.contains(&cluster.node(ix).class) {
            return false;
        }
        let domain = match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => return slots >= i64::from(self.leaf.min),
            Some(Level::Label { topology, depth }) => cluster.domain_of(ix, topology, depth),
            None => Some(WHOLE),
        };
        let Some(domain) = domain else { return false };
        let gained = self.by_domain.entry(domain).or_default();
        *gained += more;
        cluster.room(domain, &self.leaf.classes, self.g) + *gained >= self.leaf.min
    }
}
