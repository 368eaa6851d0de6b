//! Whether tasks that must lie apart would find enough places, even if nothing ran.

use crate::cluster::Cluster;
use crate::cluster::domain::Level;
use crate::cluster::node::Requester;
use crate::cluster::tenants::Apart;
use crate::ix::{DomainIx, JobIx, NodeIx, QueueIx};
use crate::shape::leaf::Leaf;
use berth_model::{NodeState, Reason, Time};
use std::collections::BTreeMap;

/// Where tasks of a group may lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Node(NodeIx),
    Domain(DomainIx),
}

/// Why a group that spreads its tasks would not fit the empty cluster. Nodes that are closed count:
/// they may be opened again.
pub(super) fn reason(cluster: &Cluster, leaf: &Leaf) -> Option<Reason> {
    let (level, at_most) = leaf.spread?;
    let requester = Requester {
        job: JobIx(u32::MAX),
        queue: QueueIx(u32::MAX),
        now: Time(0),
        until: Time(0),
        rush: false,
        apart: Apart::None,
        claims: false,
    };
    let mut rooms: BTreeMap<Place, u32> = BTreeMap::new();
    for (ix, node) in cluster.live() {
        if !leaf.classes.contains(&node.class) || !leaf.suits(node) {
            continue;
        }
        let place = match level {
            Level::Node | Level::Nvlink => Place::Node(ix),
            Level::Label { topology, depth } => match cluster.domain_of(ix, topology, depth) {
                Some(domain) => Place::Domain(domain),
                None => continue,
            },
        };
        let mut empty = cluster.emptied(ix);
        empty.spec.state = NodeState::Ready;
        let fit = empty.capacity(&leaf.need, &requester, at_most);
        let room = rooms.entry(place).or_default();
        *room = room.saturating_add(fit).min(at_most);
    }
    let fit = rooms.values().fold(0, |sum: u32, room| sum.saturating_add(*room));
    let domains = rooms.values().filter(|room| **room > 0).count() as u32;
    let (level, tasks) = (cluster.level_name(level), leaf.min);
    (fit < tasks).then_some(Reason::Spread { level, at_most, tasks, domains })
}
