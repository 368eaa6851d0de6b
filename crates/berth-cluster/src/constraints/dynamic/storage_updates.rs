//! Updates of storage objects and namespaces.

use super::attached::Use;
use super::volume_key::Key;
use super::volumes::Volumes;
use crate::view::PodConstraints;
use berth_kube::object::{
    Attachable, CsiCapacity, CsiDriver, CsiNode, Labels, Namespace, PersistentVolume,
    PersistentVolumeClaim, StorageClass, Text, VolumeAttachment,
};
use berth_kube::{Change, WatchUpdate};
use berth_model::Name;
use std::collections::{BTreeMap, BTreeSet};

/// What was seen, all of one kind.
pub enum StorageUpdate {
    Namespaces(WatchUpdate<Namespace>),
    Claims(WatchUpdate<PersistentVolumeClaim>),
    Volumes(WatchUpdate<PersistentVolume>),
    Classes(WatchUpdate<StorageClass>),
    Drivers(WatchUpdate<CsiDriver>),
    Nodes(WatchUpdate<CsiNode>),
    Capacities(WatchUpdate<CsiCapacity>),
    Attachments(WatchUpdate<VolumeAttachment>),
}

impl Volumes {
    /// Takes in what was seen. Returns the labels of namespaces where these have changed.
    pub fn apply(&mut self, news: StorageUpdate) -> Option<BTreeMap<Text, Labels>> {
        match news {
            // What these come to is counted beside: it concerns few of those that wait.
            StorageUpdate::Nodes(seen) => self.observe_nodes(seen),
            StorageUpdate::Attachments(seen) => self.apply_attachments(seen),
            StorageUpdate::Capacities(seen) => {
                let is_news = self.capacities.apply(seen);
                self.version += u64::from(is_news);
            }
            StorageUpdate::Drivers(seen) => {
                self.version += 1;
                self.capacities.apply_drivers(seen);
            }
            StorageUpdate::Claims(seen) => {
                self.version += 1;
                let uses = uses(&seen, |claim| vec![Use::Claim(key_of(claim))]);
                take(&mut self.claims, seen, key_of);
                self.refresh(uses);
            }
            StorageUpdate::Volumes(seen) => {
                self.version += 1;
                let uses = uses(&seen, |volume| {
                    let of = volume.spec.claim_ref.iter();
                    let of = of.map(|of| Use::Claim((of.namespace.clone(), of.name.clone())));
                    of.chain([Use::Volume(volume.metadata.name.clone())]).collect()
                });
                take(&mut self.volumes, seen, |volume| volume.metadata.name.clone());
                let volumes = &self.volumes;
                let free = |name: &Text| {
                    volumes.get(name).is_some_and(|volume| volume.spec.claim_ref.is_none())
                };
                self.given.retain(|volume, _| free(volume));
                self.refresh(uses);
            }
            StorageUpdate::Classes(seen) => {
                self.version += 1;
                take(&mut self.classes, seen, |class| class.metadata.name.clone());
                self.refresh(None);
            }
            StorageUpdate::Namespaces(seen) => {
                self.version += 1;
                return Some(self.apply_namespaces(seen));
            }
        }
        None
    }

    fn apply_namespaces(&mut self, seen: WatchUpdate<Namespace>) -> BTreeMap<Text, Labels> {
        let mut known: BTreeMap<Text, Namespace> = BTreeMap::new();
        for (name, labels) in &self.namespaces {
            let mut namespace = Namespace::default();
            namespace.metadata.labels = labels.clone();
            known.insert(name.clone(), namespace);
        }
        take(&mut known, seen, |space| space.metadata.name.clone());
        let labels = known.into_iter().map(|(name, space)| (name, space.metadata.labels));
        self.namespaces = labels.collect();
        self.namespaces.clone()
    }

    fn observe_nodes(&mut self, seen: WatchUpdate<CsiNode>) {
        let changes = match seen {
            WatchUpdate::Snapshot(all) => {
                let there: BTreeSet<&str> = all.iter().map(|node| &*node.metadata.name).collect();
                let gone = self.attached.known().into_iter();
                let gone: Vec<Name> = gone.filter(|name| !there.contains(&**name)).collect();
                gone.iter().for_each(|name| self.attached.forget_node(name));
                all.into_iter().map(Change::Applied).collect()
            }
            WatchUpdate::Changes(changes) => changes,
        };
        for change in changes {
            match change {
                Change::Applied(node) => self.attached.apply_node(&node),
                Change::Deleted(node) => self.attached.forget_node(&node.metadata.name),
            }
        }
    }

    fn apply_attachments(&mut self, seen: WatchUpdate<VolumeAttachment>) {
        let Volumes { claims, volumes, classes, attached, .. } = self;
        let find = |one: &Use| comes_to(claims, volumes, classes, one);
        let user = |one: &VolumeAttachment| format!("attachment {}", one.metadata.name);
        let changes = match seen {
            WatchUpdate::Snapshot(all) => {
                let there: BTreeSet<String> = all.iter().map(user).collect();
                let gone = attached.attachments().into_iter();
                let gone: Vec<String> = gone.filter(|name| !there.contains(name)).collect();
                gone.iter().for_each(|gone| attached.put(gone, None, find));
                all.into_iter().map(Change::Applied).collect()
            }
            WatchUpdate::Changes(changes) => changes,
        };
        for change in changes {
            let (Change::Applied(one) | Change::Deleted(one)) = &change;
            let volume = one.spec.source.persistent_volume_name.clone();
            let node = Name::new(&one.spec.node_name);
            let uses = volume.filter(|_| matches!(change, Change::Applied(_)));
            let now = uses.map(|volume| (&node, vec![Use::Volume(volume)]));
            attached.put(&user(one), now, find);
        }
    }

    /// A pod is on a node, or on none any more.
    pub fn place_pod(&mut self, uid: &str, constraints: &PodConstraints, node: Option<&Name>) {
        let names = &constraints.dynamic.claims;
        if names.is_empty() {
            return;
        }
        let Volumes { claims, volumes, classes, attached, .. } = self;
        let uses =
            || names.iter().map(|name| Use::Claim((constraints.namespace.clone(), name.clone())));
        let now = node.map(|node| (node, uses().collect()));
        attached.put(uid, now, |one| comes_to(claims, volumes, classes, one));
    }

    /// What a node has to attach for a pod, as far as that is known.
    pub fn attachables(&self, constraints: &PodConstraints) -> impl Iterator<Item = Attachable> {
        let claims = constraints.dynamic.claims.iter();
        claims.filter_map(|name| {
            let one = Use::Claim((constraints.namespace.clone(), name.clone()));
            comes_to(&self.claims, &self.volumes, &self.classes, &one)
        })
    }

    /// These may come to something else; nothing: all of them.
    fn refresh(&mut self, uses: Option<Vec<Use>>) {
        let Volumes { claims, volumes, classes, attached, .. } = self;
        let find = |one: &Use| comes_to(claims, volumes, classes, one);
        match uses {
            Some(uses) => uses.iter().for_each(|one| attached.refresh(one, find)),
            None => attached.refresh_all(find),
        }
    }
}

/// The volume that is attached for a use. A claim that has none yet will get a new one of its
/// class.
fn comes_to(
    claims: &BTreeMap<Key, PersistentVolumeClaim>,
    volumes: &BTreeMap<Text, PersistentVolume>,
    classes: &BTreeMap<Text, StorageClass>,
    one: &Use,
) -> Option<Attachable> {
    let key = match one {
        Use::Volume(name) => return volumes.get(name)?.attachable(),
        Use::Claim(key) => key,
    };
    let spec = &claims.get(key)?.spec;
    if let Some(volume) = volumes.get(&spec.volume_name) {
        return volume.attachable();
    }
    let class = classes.get(spec.storage_class_name.as_ref()?)?;
    let handle = format!("claim {}/{}", key.0, key.1).into();
    Some(Attachable { driver: class.driver().into(), handle })
}

fn key_of(claim: &PersistentVolumeClaim) -> Key {
    (claim.metadata.namespace.clone(), claim.metadata.name.clone())
}

/// The uses that objects have to do with; nothing where all do.
fn uses<T>(seen: &WatchUpdate<T>, of: impl Fn(&T) -> Vec<Use>) -> Option<Vec<Use>> {
    match seen {
        WatchUpdate::Snapshot(_) => None,
        WatchUpdate::Changes(changes) => {
            let of = |change: &Change<T>| match change {
                Change::Applied(object) | Change::Deleted(object) => of(object),
            };
            Some(changes.iter().flat_map(of).collect())
        }
    }
}

fn take<K: Ord, T>(known: &mut BTreeMap<K, T>, seen: WatchUpdate<T>, key: impl Fn(&T) -> K) {
    match seen {
        WatchUpdate::Snapshot(all) => {
            *known = all.into_iter().map(|object| (key(&object), object)).collect();
        }
        WatchUpdate::Changes(changes) => {
            for change in changes {
                match change {
                    Change::Applied(object) => drop(known.insert(key(&object), object)),
                    Change::Deleted(object) => drop(known.remove(&key(&object))),
                }
            }
        }
    }
}
