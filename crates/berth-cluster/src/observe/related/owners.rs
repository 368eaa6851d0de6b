//! Owners of pods, as they are created, changed and deleted.

use super::{Dependency, Entry, MAX_OWNER_DEPTH, RelatedObjects, RelatedUpdates, Uid};
use crate::observe::kinds::{self, Kind};
use crate::observe::queued::TRAINER;
use berth_kube::object::{Meta, Owner, OwnerReference};
use berth_kube::{Change, WatchUpdate, gang};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

impl RelatedObjects {
    /// What a pod depends on, if that is an owner and known.
    pub(super) fn owner(&self, on: &Dependency) -> Option<&Entry> {
        match on {
            Dependency::Owner(uid) => self.owners.get(uid),
            Dependency::Group(key) => self.owners.get(self.sets.get(key)?),
        }
    }

    pub(super) fn apply_owners(
        &mut self,
        kind: &'static Kind,
        path: &str,
        seen: WatchUpdate<Box<RawValue>>,
        touched: &mut BTreeSet<Dependency>,
        news: &mut RelatedUpdates,
    ) {
        let read = |raw: &RawValue| kinds::read_owner(kind, path, raw);
        let (put, gone) = match seen {
            WatchUpdate::Snapshot(all) => {
                let put: Vec<_> = all.iter().filter_map(|raw| read(raw)).collect();
                let there: BTreeSet<&str> = put.iter().map(|object| &*object.meta.uid).collect();
                let known = self.owners.iter().filter(|(_, entry)| entry.kind == kind);
                let gone = known.filter(|(uid, _)| !there.contains(uid.as_str()));
                let gone: Vec<Uid> = gone.map(|(uid, _)| uid.clone()).collect();
                drop(there);
                (put, gone)
            }
            WatchUpdate::Changes(changes) => {
                let (mut put, mut gone) = (Vec::new(), Vec::new());
                for change in changes {
                    match change {
                        Change::Applied(raw) => put.extend(read(&raw)),
                        Change::Deleted(raw) => {
                            gone.extend(read(&raw).map(|object| object.meta.uid.to_string()));
                        }
                    }
                }
                // What came and went in one breath is gone.
                (put, gone)
            }
        };
        for object in put {
            let uid = object.meta.uid.to_string();
            let read = object.read.map(Arc::new);
            if self.owners.get(&uid).is_some_and(|known| known.read == read) {
                continue;
            }
            if read.as_ref().is_ok_and(|owner| owner.is_over()) {
                // It makes no more pods.
                news.gone.push(uid.clone());
            }
            if kind.is_named_by_pods() {
                let set = kinds::key(gang::GangKind::LeaderWorkerSet, &object.meta);
                self.sets.insert(set.clone(), uid.clone());
                touched.insert(Dependency::Group(set));
            }
            if let Some(job) = object.meta.controller().filter(|by| by.group() == TRAINER) {
                self.sets_of_jobs.insert(job.uid.to_string(), uid.clone());
            }
            self.owners.insert(uid.clone(), Entry { kind, read });
            touched.insert(Dependency::Owner(uid));
        }
        for uid in gone {
            let Some(entry) = self.owners.remove(&uid) else { continue };
            if entry.kind.is_named_by_pods() {
                self.sets.retain(|_, set| *set != uid);
            }
            let meta = entry.read.as_ref().ok().map(|owner| &owner.metadata);
            if let Some(job) = meta.and_then(Meta::controller)
                && self.sets_of_jobs.get(&*job.uid) == Some(&uid)
            {
                self.sets_of_jobs.remove(&*job.uid);
            }
            touched.insert(Dependency::Owner(uid.clone()));
            news.gone.push(uid);
        }
    }

    /// All owners of another one, the nearest first.
    pub(super) fn owners_of(&self, meta: &Meta) -> Vec<&Owner> {
        let mut found: Vec<&Owner> = Vec::new();
        let mut next = meta.controller();
        let owner = |named: &OwnerReference| self.owners.get(&*named.uid)?.read.as_ref().ok();
        while let Some(owner) = next.and_then(owner) {
            if found.len() >= MAX_OWNER_DEPTH {
                break;
            }
            next = owner.metadata.controller();
            found.push(owner);
        }
        found
    }
}
