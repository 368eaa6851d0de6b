//! Topologies that the core knows, from node labels and from objects of other schedulers.

use crate::view::NodeView;
use berth_engine::Turn;
use berth_kube::hypernode;
use berth_model::{Event, Name};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The one that is meant where none is named.
const DEFAULT: &str = "default";

type Topologies = BTreeMap<Name, Vec<Name>>;

/// The event that reports the topologies to the core, where they have changed. The levels of the
/// default topology stay as they were at first: the core counts by them.
pub fn event<'a>(
    known: &Topologies,
    nodes: impl IntoIterator<Item = &'a NodeView>,
    described: &Topologies,
) -> Option<Event> {
    let mut topologies = described.clone();
    // A tier that no HyperNode is of any more is still a level: jobs may ask for it.
    if let Some(tiers) = known.get(hypernode::TOPOLOGY) {
        let now = topologies.entry(hypernode::TOPOLOGY.into()).or_default();
        now.extend(tiers.iter().cloned());
        now.sort_by_key(|level| Reverse(hypernode::tier(level)));
        now.dedup();
    }
    let usual = known.get(DEFAULT).filter(|levels| !levels.is_empty()).cloned();
    topologies.insert(DEFAULT.into(), usual.unwrap_or_else(|| levels(nodes)));
    (topologies != *known).then_some(Event::TopologySet { topologies })
}

/// Reports topologies to the core. The core refuses to remove one that a job relies on; then the
/// new ones are added beside it.
pub fn report(turn: &mut Turn<'_>, known: &Topologies, event: Option<Event>) {
    let Some(event) = event else { return };
    let Err(refused) = turn.all(vec![event.clone()]) else { return };
    tracing::warn!(%refused, "topologies that are gone stay while jobs ask for them");
    let Event::TopologySet { topologies } = event else { return };
    let mut all = known.clone();
    all.extend(topologies);
    if let Err(refused) = turn.all(vec![Event::TopologySet { topologies: all }]) {
        tracing::warn!(%refused, "topologies stay as they were");
    }
}

/// The labels that say where nodes are, largest place first. A level that no node has a label for is
/// left out: what lies below it would lie nowhere.
fn levels<'a>(nodes: impl IntoIterator<Item = &'a NodeView>) -> Vec<Name> {
    let nodes: Vec<&NodeView> = nodes.into_iter().collect();
    let is_used = |key: &&str| nodes.iter().any(|node| node.spec.labels.contains_key(*key));
    let levels = berth_kube::node::TOPOLOGY_KEYS.iter().copied().filter(is_used);
    levels.map(Name::new).collect()
}
