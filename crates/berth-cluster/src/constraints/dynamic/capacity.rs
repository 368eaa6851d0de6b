//! How much storage there is where, for volumes that have to be made.

use super::volume_key::Key;
use berth_kube::object::{CsiCapacity, CsiDriver, Labels, StorageClass, Text};
use berth_kube::selector::LabelMatcher;
use berth_kube::{Change, WatchUpdate};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Capacities {
    /// Drivers that publish how much storage there is.
    telling: BTreeSet<Text>,
    /// Drivers whose volumes are for nodes alone that have the driver.
    needed: BTreeSet<Text>,
    /// By class.
    rooms: BTreeMap<Text, BTreeMap<Key, Room>>,
}

/// The largest volume that can be made for some nodes.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    largest: i64,
    nodes: LabelMatcher,
}

impl Capacities {
    pub fn apply_drivers(&mut self, seen: WatchUpdate<CsiDriver>) {
        let changes = match seen {
            WatchUpdate::Snapshot(all) => {
                (self.telling, self.needed) = (BTreeSet::new(), BTreeSet::new());
                all.into_iter().map(Change::Applied).collect()
            }
            WatchUpdate::Changes(changes) => changes,
        };
        for change in changes {
            let (Change::Applied(driver) | Change::Deleted(driver)) = &change;
            let is_there = matches!(change, Change::Applied(_));
            let name = &driver.metadata.name;
            let says = |field: Option<bool>| is_there && field == Some(true);
            set_member(&mut self.telling, name, says(driver.spec.storage_capacity));
            set_member(&mut self.needed, name, says(driver.spec.prevent_pod_scheduling_if_missing));
        }
    }

    /// Takes in how much there is. Returns whether that is news.
    pub fn apply(&mut self, seen: WatchUpdate<CsiCapacity>) -> bool {
        let (changes, mut is_news) = match seen {
            WatchUpdate::Snapshot(all) => {
                self.rooms.clear();
                (all.into_iter().map(Change::Applied).collect(), true)
            }
            WatchUpdate::Changes(changes) => (changes, false),
        };
        for change in changes {
            let (Change::Applied(written) | Change::Deleted(written)) = &change;
            let now = if matches!(change, Change::Applied(_)) { room(written) } else { None };
            let key = (written.metadata.namespace.clone(), written.metadata.name.clone());
            let rooms = self.rooms.entry(written.storage_class_name.clone()).or_default();
            is_news |= rooms.get(&key) != now.as_ref();
            match now {
                Some(now) => drop(rooms.insert(key, now)),
                None => drop(rooms.remove(&key)),
            }
        }
        is_news
    }

    /// Whether a volume of that size can be made for a node with these labels, as far as its driver
    /// tells. Where nothing is asked for there is enough.
    pub fn suffice(&self, class: &StorageClass, asks: Option<i64>, labels: &Labels) -> bool {
        let Some(asks) = asks.filter(|_| self.telling.contains(&class.provisioner)) else {
            return true;
        };
        let rooms = self.rooms.get(&class.metadata.name).into_iter().flat_map(BTreeMap::values);
        let mut large = rooms.filter(|room| room.largest >= asks);
        large.any(|room| room.nodes.matches(labels))
    }

    /// Whether the volumes of a driver are for nodes alone that have it.
    pub fn is_needed(&self, driver: &str) -> bool {
        self.needed.contains(driver)
    }
}

fn set_member(names: &mut BTreeSet<Text>, name: &Text, is_in: bool) {
    match is_in {
        true => drop(names.insert(name.clone())),
        false => drop(names.remove(name)),
    }
}

/// Nothing where nothing can be had of it, or it is not understood for which nodes it is.
fn room(written: &CsiCapacity) -> Option<Room> {
    let nodes = LabelMatcher::of("nodeTopology", Some(written.node_topology.as_ref()?)).ok()?;
    Some(Room { largest: written.largest()?, nodes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn driver(tells: bool) -> CsiDriver {
        let spec = json!({ "storageCapacity": tells });
        serde_json::from_value(json!({ "metadata": { "name": "d" }, "spec": spec })).unwrap()
    }

    fn capacity(name: &str, rack: &str, size: &str) -> CsiCapacity {
        let nodes = json!({ "matchLabels": { "rack": rack } });
        let meta = json!({ "name": name, "namespace": "csi" });
        serde_json::from_value(json!({
            "metadata": meta, "storageClassName": "c", "nodeTopology": nodes, "capacity": size,
        }))
        .unwrap()
    }

    fn suffice(there: &Capacities, asks: Option<i64>, rack: &str) -> bool {
        let class = json!({ "metadata": { "name": "c" }, "provisioner": "d" });
        let labels: Labels = [("rack", rack.into())].into_iter().collect();
        there.suffice(&serde_json::from_value(class).unwrap(), asks, &labels)
    }

    #[test]
    fn storage_counts_where_it_can_be_had_and_only_if_the_driver_tells() {
        let mut there = Capacities::default();
        assert!(suffice(&there, Some(10), "r1"), "its driver is not known");
        there.apply_drivers(WatchUpdate::Snapshot(vec![driver(true)]));
        assert!(!suffice(&there, Some(10), "r1"), "no CSIStorageCapacity says that there is any");
        assert!(suffice(&there, None, "r1"));
        assert!(there.apply(WatchUpdate::Snapshot(vec![
            capacity("a", "r1", "10"),
            capacity("b", "r2", "9")
        ])));
        assert!(suffice(&there, Some(10), "r1"));
        assert!(!suffice(&there, Some(10), "r2"), "there is too little");
        assert!(!suffice(&there, Some(10), "r3"), "nothing can be had from there");
        assert!(
            !there.apply(WatchUpdate::Changes(vec![Change::Applied(capacity("b", "r2", "9"))]))
        );
        assert!(
            there.apply(WatchUpdate::Changes(vec![Change::Applied(capacity("b", "r2", "1Ki"))]))
        );
        assert!(suffice(&there, Some(10), "r2"));
        there.apply(WatchUpdate::Changes(vec![Change::Deleted(capacity("a", "r1", "10"))]));
        assert!(!suffice(&there, Some(10), "r1"));
        there.apply_drivers(WatchUpdate::Changes(vec![Change::Applied(driver(false))]));
        assert!(suffice(&there, Some(10), "r1"));
    }

    #[test]
    fn storage_that_no_node_is_named_for_can_be_had_by_none() {
        let mut there = Capacities::default();
        there.apply_drivers(WatchUpdate::Snapshot(vec![driver(true)]));
        let nowhere = CsiCapacity { node_topology: None, ..capacity("a", "r1", "10") };
        there.apply(WatchUpdate::Snapshot(vec![nowhere]));
        assert!(!suffice(&there, Some(1), "r1"));
        let all =
            CsiCapacity { node_topology: Some(Default::default()), ..capacity("a", "r1", "10") };
        there.apply(WatchUpdate::Snapshot(vec![all]));
        assert!(suffice(&there, Some(1), "r1"), "an empty selector means every node");
    }
}
