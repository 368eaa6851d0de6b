//! What a server tells its core when it starts: prices on the first start, and the machine.

use berth_core::State;
use berth_model::{Event, Micros, Name, NodeState, QueueSpec, Snapshot, catalog_models};
use berth_node::Inventory;
use std::collections::BTreeMap;

/// The queue and team of whoever names none.
pub const DEFAULT_TEAM: &str = "default";

/// The events that make the state say what is true of this machine.
pub fn events(
    state: &mut State,
    inventory: &Inventory,
    prices: &BTreeMap<Name, Micros>,
) -> Vec<Event> {
    let snapshot = state.outline();
    let mut events = rules(&snapshot, prices);
    let name = &inventory.node.name;
    let known = snapshot.nodes.iter().find(|node| node.spec.name == *name);
    let mut node = inventory.node.clone();
    if let Some(known) = known {
        // What an operator said about it stays.
        node.state = match known.spec.state {
            NodeState::Failed => NodeState::Ready,
            state => state,
        };
        node.labels = known.spec.labels.clone();
        node.taints = known.spec.taints.clone();
        node.price = known.spec.price;
    }
    if known.is_none_or(|known| known.spec != node) {
        events.push(Event::NodeAdded { node: Box::new(node) });
    }
    for other in snapshot.nodes.iter().filter(|other| other.spec.name != *name) {
        // A machine that was renamed: what ran on it is looked for under the new name.
        if other.spec.state != NodeState::Failed {
            let state = NodeState::Failed;
            events.push(Event::NodeChanged { node: other.spec.name.clone(), state });
        }
    }
    events
}

/// Prices, and on the first start a queue to begin with.
pub fn rules(snapshot: &Snapshot, prices: &BTreeMap<Name, Micros>) -> Vec<Event> {
    let mut events = Vec::new();
    if snapshot.seq == 0 || !prices.is_empty() {
        let mut all: BTreeMap<Name, Micros> = if snapshot.prices.is_empty() {
            catalog_models().map(|info| (Name::new(info.model), info.price)).collect()
        } else {
            snapshot.prices.clone()
        };
        all.extend(prices.iter().map(|(model, price)| (model.clone(), *price)));
        if all != snapshot.prices {
            let (speeds, watts) = (snapshot.speeds.clone(), snapshot.watts.clone());
            events.push(Event::ModelsSet { prices: all, speeds, watts });
        }
    }
    if snapshot.queues.is_empty() {
        let queue = Box::new(QueueSpec::new(DEFAULT_TEAM));
        events.push(Event::QueueSet { queue });
    }
    events
}
