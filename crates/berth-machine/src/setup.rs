//! What the server tells its core of this machine when it starts.

use berth_core::State;
use berth_engine::first_events;
use berth_model::{Event, LeaseId, Micros, Name, NodeSnapshot, NodeSpec, NodeState, Snapshot};
use berth_node::Inventory;
use std::collections::BTreeMap;

/// Leases whose GPUs this machine does not have any more.
pub fn on_missing_gpus(state: &State, inventory: &Inventory) -> Vec<LeaseId> {
    let snapshot = state.outline();
    let node = described(known(&snapshot, inventory), inventory);
    state.unfit_leases(&node)
}

fn known<'a>(snapshot: &'a Snapshot, inventory: &Inventory) -> Option<&'a NodeSnapshot> {
    snapshot.nodes.iter().find(|node| node.spec.name == inventory.node.name)
}

/// This machine, with what an operator said about it.
fn described(known: Option<&NodeSnapshot>, inventory: &Inventory) -> NodeSpec {
    let mut node = inventory.node.clone();
    if let Some(known) = known {
        node.state = match known.spec.state {
            // What was wrong is found again if it still is.
            NodeState::Failed | NodeState::Troubled => NodeState::Ready,
            state => state,
        };
        node.labels = known.spec.labels.clone();
        node.taints = known.spec.taints.clone();
        node.price = known.spec.price;
    }
    node
}

/// The events that make the state say what is true of this machine.
pub fn events(
    state: &mut State,
    inventory: &Inventory,
    prices: &BTreeMap<Name, Micros>,
) -> Vec<Event> {
    let snapshot = state.outline();
    let mut events = first_events(&snapshot, prices);
    let name = &inventory.node.name;
    let known = known(&snapshot, inventory);
    let node = described(known, inventory);
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
