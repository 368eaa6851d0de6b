//! What is attached to nodes: the volumes of the pods there, each counted once, and what is still
//! attached though no pod uses it. Only pods with claims cost anything here.

use super::volume_key::Key;
use berth_kube::object::{Attachable, CsiNode, Text};
use berth_model::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Why something is attached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A pod has this claim.
    Claim(Key),
    /// A VolumeAttachment or a node says that this volume is attached.
    Volume(Text),
}

/// Who uses something: a pod by its uid, or an attachment by its name.
pub type User = String;

#[derive(Default)]
pub struct Attached {
    users: BTreeMap<User, (Name, Vec<Use>)>,
    uses: BTreeMap<Use, Used>,
    nodes: BTreeMap<Name, Node>,
    /// How many nodes can attach so many more volumes, by driver: of those that have a limit.
    rooms: BTreeMap<Text, BTreeMap<i64, u32>>,
    /// Drivers some node has other room for than when that was last asked, with the least it had.
    changed: BTreeMap<Text, i64>,
}

/// What a use comes to, and by how many users on each node.
#[derive(Default)]
struct Used {
    what: Option<Attachable>,
    nodes: BTreeMap<Name, u32>,
}

#[derive(Default)]
struct Node {
    /// The drivers that are there, each with how many volumes it can attach, if that is limited.
    drivers: BTreeMap<Text, Option<i64>>,
    /// What is attached, by driver and handle, and for how many uses.
    taken: BTreeMap<Text, BTreeMap<Text, u32>>,
}

impl Node {
    fn room(&self, driver: &str) -> Option<i64> {
        let limit = (*self.drivers.get(driver)?)?;
        Some(limit - self.taken.get(driver).map_or(0, |taken| taken.len() as i64))
    }

    fn is_empty(&self) -> bool {
        self.drivers.is_empty() && self.taken.is_empty()
    }
}

impl Attached {
    /// How many more volumes of a driver a node can attach; nothing where there is no limit.
    pub fn room(&self, node: &str, driver: &str) -> Option<i64> {
        self.nodes.get(node)?.room(driver)
    }

    pub fn has(&self, node: &str, what: &Attachable) -> bool {
        let taken = self.nodes.get(node).and_then(|node| node.taken.get(&what.driver));
        taken.is_some_and(|taken| taken.contains_key(&what.handle))
    }

    pub fn has_driver(&self, node: &str, driver: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.drivers.contains_key(driver))
    }

    /// Whether some node limits how many volumes of a driver it attaches.
    pub fn is_limited(&self, driver: &str) -> bool {
        self.rooms.contains_key(driver)
    }

    /// Whether some node can attach more volumes of a driver, but not so many.
    pub fn is_tight(&self, driver: &str, many: i64) -> bool {
        let rooms = self.rooms.get(driver);
        rooms.is_some_and(|rooms| many > 1 && rooms.range(1..many).next().is_some())
    }

    /// Drivers that some node has other room for since this was last asked, with the least room it
    /// had or has: for a job that wants no more than that nothing has changed.
    pub fn take_changed(&mut self) -> BTreeMap<Text, i64> {
        std::mem::take(&mut self.changed)
    }

    /// A user is on a node, or on none any more. `find` says what a use comes to.
    pub fn put(
        &mut self,
        user: &str,
        now: Option<(&Name, Vec<Use>)>,
        find: impl Fn(&Use) -> Option<Attachable>,
    ) {
        let now = now.map(|(node, uses)| (node.clone(), uses));
        if self.users.get(user) == now.as_ref() {
            return;
        }
        if let Some((node, uses)) = self.users.remove(user) {
            uses.iter().for_each(|one| self.leave(one, &node));
        }
        let Some((node, uses)) = now else { return };
        for one in &uses {
            let used = self
                .uses
                .entry(one.clone())
                .or_insert_with(|| Used { what: find(one), nodes: BTreeMap::new() });
            let count = used.nodes.entry(node.clone()).or_default();
            *count += 1;
            if *count == 1
                && let Some(what) = used.what.clone()
            {
                self.attach(&node, &what);
            }
        }
        self.users.insert(user.to_owned(), (node, uses));
    }

    fn leave(&mut self, one: &Use, node: &Name) {
        let Some(used) = self.uses.get_mut(one) else { return };
        let Some(count) = used.nodes.get_mut(node) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        used.nodes.remove(node);
        let what = used.what.clone();
        if used.nodes.is_empty() {
            self.uses.remove(one);
        }
        if let Some(what) = what {
            self.detach(node, &what);
        }
    }

    /// A use may come to something else by now.
    pub fn refresh(&mut self, one: &Use, find: impl Fn(&Use) -> Option<Attachable>) {
        let Some(used) = self.uses.get_mut(one) else { return };
        let now = find(one);
        if used.what == now {
            return;
        }
        let before = std::mem::replace(&mut used.what, now.clone());
        let nodes: Vec<Name> = used.nodes.keys().cloned().collect();
        for node in nodes {
            if let Some(before) = &before {
                self.detach(&node, before);
            }
            if let Some(now) = &now {
                self.attach(&node, now);
            }
        }
    }

    pub fn refresh_all(&mut self, find: impl Fn(&Use) -> Option<Attachable>) {
        let all: Vec<Use> = self.uses.keys().cloned().collect();
        all.iter().for_each(|one| self.refresh(one, &find));
    }

    /// Those that are attachments, by name.
    pub fn attachments(&self) -> Vec<User> {
        let is_one = |uses: &[Use]| matches!(uses, [Use::Volume(_)]);
        let users = self.users.iter().filter(|(_, (_, uses))| is_one(uses));
        users.map(|(user, _)| user.clone()).collect()
    }

    /// These drivers are on a node.
    pub fn apply_node(&mut self, seen: &CsiNode) {
        let drivers = seen.spec.drivers.iter().map(|driver| {
            let limit = driver.allocatable.as_ref().and_then(|there| there.count);
            (driver.name.clone(), limit)
        });
        self.set_drivers(&Name::new(&seen.metadata.name), drivers.collect());
    }

    /// The CSINode of a node is gone.
    pub fn forget_node(&mut self, name: &str) {
        self.set_drivers(&Name::new(name), BTreeMap::new());
    }

    /// Those whose drivers are known.
    pub fn known(&self) -> Vec<Name> {
        let known = self.nodes.iter().filter(|(_, node)| !node.drivers.is_empty());
        known.map(|(name, _)| name.clone()).collect()
    }

    fn set_drivers(&mut self, name: &Name, drivers: BTreeMap<Text, Option<i64>>) {
        let known = self.nodes.get(name).into_iter().flat_map(|node| node.drivers.keys());
        let both: BTreeSet<Text> = known.chain(drivers.keys()).cloned().collect();
        for driver in both {
            self.change(name, &driver, |node| match drivers.get(&driver) {
                Some(limit) => drop(node.drivers.insert(driver.clone(), *limit)),
                None => drop(node.drivers.remove(&driver)),
            });
        }
    }

    fn attach(&mut self, node: &Name, what: &Attachable) {
        self.change(node, &what.driver, |node| {
            let taken = node.taken.entry(what.driver.clone()).or_default();
            *taken.entry(what.handle.clone()).or_default() += 1;
        });
    }

    fn detach(&mut self, node: &Name, what: &Attachable) {
        self.change(node, &what.driver, |node| {
            let Some(taken) = node.taken.get_mut(&what.driver) else { return };
            if let Some(count) = taken.get_mut(&what.handle) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(&what.handle);
                }
            }
            if taken.is_empty() {
                node.taken.remove(&what.driver);
            }
        });
    }

    /// Changes what is known of a driver on a node, and keeps count of the room there is.
    fn change(&mut self, name: &Name, driver: &Text, change: impl FnOnce(&mut Node)) {
        let node = self.nodes.entry(name.clone()).or_default();
        let knew = node.drivers.contains_key(driver);
        let before = node.room(driver);
        change(node);
        let (after, knows) = (node.room(driver), node.drivers.contains_key(driver));
        if node.is_empty() {
            self.nodes.remove(name);
        }
        if (before, knew) == (after, knows) {
            return;
        }
        let rooms = self.rooms.entry(driver.clone()).or_default();
        if let Some(before) = before
            && let Some(count) = rooms.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                rooms.remove(&before);
            }
        }
        if let Some(after) = after {
            *rooms.entry(after).or_default() += 1;
        }
        if rooms.is_empty() {
            self.rooms.remove(driver);
        }
        // A driver that comes or goes may change something for everybody.
        let least = if knew == knows { before.into_iter().chain(after).min() } else { None };
        let known = self.changed.entry(driver.clone()).or_insert(i64::MAX);
        *known = (*known).min(least.unwrap_or(0));
    }
}

#[cfg(test)]
#[path = "attached/tests.rs"]
mod tests;
