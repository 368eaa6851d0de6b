//! Objects of other schedulers: queues, priority classes, topologies.

mod topology;

use super::kinds::{Kind, api_version};
use super::names::{Class, Names};
use crate::constraints::hypernodes::Tiers;
use crate::view::{ExternalKind, ExternalQueue, ExternalQueues, ObjectEvent};
use berth_kube::event::ObjectReference;
use berth_kube::hypernode::HyperNode;
use berth_kube::object::{Meta, PriorityClass};
use berth_kube::queue::{self, ImportedQueue, kueue};
use berth_kube::{Change, WatchUpdate};
use berth_model::{Name, QueueSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use topology::Topology;

enum ExternalObject {
    KaiQueue(Box<queue::kai::Queue>),
    VolcanoQueue(queue::volcano::Queue),
    ClusterQueue(kueue::ClusterQueue),
    LocalQueue(kueue::LocalQueue),
    Cohort(kueue::Cohort),
    ResourceFlavor(kueue::ResourceFlavor),
    Class(PriorityClass),
    Topology(Topology),
    HyperNode(HyperNode),
}

type Key = (ExternalKind, String, String);

/// All of them, as they were last seen.
#[derive(Default)]
pub struct ExternalObjects {
    /// The kinds that were listed: what is not among theirs is not there.
    listed: BTreeSet<ExternalKind>,
    objects: BTreeMap<Key, (ObjectReference, ExternalObject)>,
    /// The tiers of HyperNodes.
    tiers: Tiers,
    /// They are others than when this was last asked.
    has_other_hypernodes: bool,
    /// Events to write on objects that cannot be used as they are.
    events: Vec<ObjectEvent>,
}

impl ExternalObjects {
    /// Takes in what was seen of a kind.
    pub fn apply(
        &mut self,
        kind: &Kind,
        path: &str,
        what: ExternalKind,
        seen: WatchUpdate<Box<RawValue>>,
    ) {
        let changes = match seen {
            WatchUpdate::Snapshot(all) => {
                self.objects.retain(|key, _| key.0 != what);
                self.has_other_hypernodes |= what == ExternalKind::HyperNode;
                self.listed.insert(what);
                all.into_iter().map(Change::Applied).collect()
            }
            WatchUpdate::Changes(changes) => changes,
        };
        for change in changes {
            match change {
                Change::Applied(raw) => self.put(kind, path, what, &raw),
                Change::Deleted(raw) => {
                    if let Some(meta) = meta(&raw) {
                        self.objects.remove(&key(what, &meta));
                        self.has_other_hypernodes |= what == ExternalKind::HyperNode;
                    }
                }
            }
        }
    }

    fn put(&mut self, kind: &Kind, path: &str, what: ExternalKind, raw: &RawValue) {
        let Some(meta) = meta(raw) else { return };
        let key = key(what, &meta);
        let about = ObjectReference {
            api_version: api_version(path).to_owned(),
            kind: kind.name.to_owned(),
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
        };
        match read(what, raw.get()) {
            Ok(object) => {
                let before = self.objects.get(&key).map(|(_, object)| object);
                // Their status is written whenever a node changes.
                self.has_other_hypernodes |= match (before, &object) {
                    (Some(ExternalObject::HyperNode(before)), ExternalObject::HyperNode(now)) => {
                        before != now
                    }
                    (_, object) => matches!(object, ExternalObject::HyperNode(_)),
                };
                self.objects.insert(key, (about, object));
            }
            Err(error) => {
                self.objects.remove(&key);
                self.has_other_hypernodes |= what == ExternalKind::HyperNode;
                let note = format!("it cannot be read, so it is left out: {error}");
                self.events.push(ObjectEvent {
                    about,
                    reason: "Unreadable",
                    note,
                    dedup_key: None,
                });
            }
        }
    }

    /// The events since this was last called.
    pub fn take_events(&mut self) -> Vec<ObjectEvent> {
        std::mem::take(&mut self.events)
    }

    fn of(&self, what: ExternalKind) -> impl Iterator<Item = (&Key, &ExternalObject)> {
        let from = (what, String::new(), String::new());
        let objects = self.objects.range(from..).take_while(move |(key, _)| key.0 == what);
        objects.map(|(key, (_, object))| (key, object))
    }

    /// Writes down what names stand for. Returns whether that is something else than before.
    pub fn update_names(&self, names: &mut Names) -> bool {
        let (mut classes, mut usual) = (BTreeMap::new(), Class::default());
        // Where both have a class of that name, Kueue's is meant by a mark.
        for what in [ExternalKind::PriorityClass, ExternalKind::WorkloadPriorityClass] {
            for ((_, _, name), object) in self.of(what) {
                if let ExternalObject::Class(class) = object {
                    let waits = class.preemption_policy.as_deref() == Some("Never");
                    let read = Class { value: class.value, waits };
                    usual = if class.global_default { read } else { usual };
                    classes.insert(Name::new(name), read);
                }
            }
        }
        let local = names.local.as_ref().map(|_| {
            let queues = self.of(ExternalKind::LocalQueue).filter_map(|(_, object)| match object {
                ExternalObject::LocalQueue(local) => Some(kueue::alias(local)),
                _ => None,
            });
            queues.map(|alias| ((alias.namespace, alias.name), alias.queue)).collect()
        });
        let topologies = self.topologies();
        let is_new = (&classes, usual, &local, &topologies, &self.tiers)
            != (&names.classes, names.usual, &names.local, &names.topologies, &names.tiers);
        names.tiers = self.tiers.clone();
        (names.classes, names.usual, names.local, names.topologies) =
            (classes, usual, local, topologies);
        is_new
    }

    /// The queues they describe. Those that are mapped are left out: what they would have is that
    /// of ours.
    pub fn queues(&mut self, names: &Names) -> ExternalQueues {
        let flavors: Vec<kueue::ResourceFlavor> = self
            .of(ExternalKind::ResourceFlavor)
            .filter_map(|(_, object)| match object {
                ExternalObject::ResourceFlavor(flavor) => Some(flavor.clone()),
                _ => None,
            })
            .collect();
        let readings = self.objects.iter().filter_map(|(key, (about, object))| {
            let reading = match object {
                ExternalObject::KaiQueue(queue) => queue::kai::read(queue),
                ExternalObject::VolcanoQueue(queue) => queue::volcano::read(queue),
                ExternalObject::ClusterQueue(queue) => kueue::cluster_queue(queue, &flavors),
                ExternalObject::Cohort(cohort) => kueue::cohort(cohort),
                _ => return None,
            };
            Some((key.0, about.clone(), reading))
        });
        let mut found = BTreeMap::new();
        let mut events = Vec::new();
        for (what, about, ImportedQueue { spec, unmapped }) in readings {
            events.extend(unmapped.iter().map(|field| {
                let note = format!("left out: {field}");
                ObjectEvent { about: about.clone(), reason: "LeftOut", note, dedup_key: None }
            }));
            if !names.mapped.contains_key(spec.name.as_str()) {
                let described = ExternalQueue { spec, what, about: Some(about) };
                found.insert(described.spec.name.clone(), described);
            }
        }
        self.events.extend(events);
        // A cohort exists by being named.
        let parents = found.values().filter_map(|described| described.spec.parent.clone());
        let cohorts: Vec<Name> = parents.collect();
        if self.of(ExternalKind::ClusterQueue).next().is_some() {
            for cohort in cohorts {
                let (spec, what) = (QueueSpec::new(&cohort), ExternalKind::ClusterQueue);
                found.entry(cohort).or_insert(ExternalQueue { spec, what, about: None });
            }
        }
        ExternalQueues { all: parents_first(found), listed: self.listed.clone() }
    }
}

/// Those in a circle come last; the core says what is wrong with them.
fn parents_first(mut queues: BTreeMap<Name, ExternalQueue>) -> Vec<ExternalQueue> {
    let mut sorted = Vec::with_capacity(queues.len());
    loop {
        let waits = |spec: &QueueSpec, queues: &BTreeMap<Name, ExternalQueue>| {
            spec.parent.as_ref().is_some_and(|parent| queues.contains_key(parent))
        };
        let next: Vec<Name> = queues
            .iter()
            .filter(|(_, described)| !waits(&described.spec, &queues))
            .map(|(name, _)| name.clone())
            .collect();
        if next.is_empty() {
            sorted.extend(queues.into_values());
            return sorted;
        }
        sorted.extend(next.into_iter().filter_map(|name| queues.remove(&name)));
    }
}

fn key(what: ExternalKind, meta: &Meta) -> Key {
    (what, meta.namespace.to_string(), meta.name.to_string())
}

fn meta(raw: &RawValue) -> Option<Meta> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        metadata: Meta,
    }
    Some(serde_json::from_str::<Head>(raw.get()).ok()?.metadata)
}

fn read(what: ExternalKind, text: &str) -> serde_json::Result<ExternalObject> {
    let read = match what {
        ExternalKind::KaiQueue => ExternalObject::KaiQueue(Box::new(serde_json::from_str(text)?)),
        ExternalKind::VolcanoQueue => ExternalObject::VolcanoQueue(serde_json::from_str(text)?),
        ExternalKind::ClusterQueue => ExternalObject::ClusterQueue(serde_json::from_str(text)?),
        ExternalKind::LocalQueue => ExternalObject::LocalQueue(serde_json::from_str(text)?),
        ExternalKind::Cohort => ExternalObject::Cohort(serde_json::from_str(text)?),
        ExternalKind::ResourceFlavor => ExternalObject::ResourceFlavor(serde_json::from_str(text)?),
        ExternalKind::WorkloadPriorityClass | ExternalKind::PriorityClass => {
            ExternalObject::Class(serde_json::from_str(text)?)
        }
        ExternalKind::Topology => ExternalObject::Topology(serde_json::from_str(text)?),
        ExternalKind::HyperNode => ExternalObject::HyperNode(topology::hypernode(text)?),
    };
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_come_after_those_above_them_and_circles_last() {
        let of = |name: &str, parent: &str| {
            let mut spec = QueueSpec::new(name);
            spec.parent = (!parent.is_empty()).then(|| Name::new(parent));
            let what = ExternalKind::KaiQueue;
            (Name::new(name), ExternalQueue { spec, what, about: None })
        };
        let queues = [of("a", "z"), of("b", "c"), of("c", "b"), of("y", ""), of("z", "y")];
        let sorted = parents_first(queues.into());
        let names: Vec<String> = sorted.iter().map(|one| one.spec.name.to_string()).collect();
        assert_eq!(names, ["y", "z", "a", "b", "c"]);
    }
}
