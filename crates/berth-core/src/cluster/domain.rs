//! Topology domains and their levels, with counts of what is free in each.

use crate::cluster::class::ClassCount;
use crate::ix::{ClassIx, DomainIx, NodeIx};
use berth_model::Name;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub topology: u32,
    pub depth: u32,
    pub name: Name,
    pub nodes: BTreeSet<NodeIx>,
    pub counts: Vec<ClassCount>,
    /// Free GPUs that no job has a promise of.
    pub uncommitted: u32,
    /// How many of its nodes are contested.
    pub contested: u32,
}

/// A level of a topology, as a request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Nvlink,
    Node,
    Label { topology: u32, depth: u32 },
}

/// The domain that holds every node.
pub(crate) const WHOLE: DomainIx = DomainIx(0);

pub(crate) fn count_of(domain: &mut Domain, class: ClassIx, most: u32) -> &mut ClassCount {
    let at = match domain.counts.iter().position(|count| count.class == class) {
        Some(at) => at,
        None => {
            let zeros = vec![0; most as usize + 1];
            domain.counts.push(ClassCount {
                class,
                free: zeros.clone(),
                room: zeros.clone(),
                empty: zeros,
            });
            domain.counts.len() - 1
        }
    };
    &mut domain.counts[at]
}
