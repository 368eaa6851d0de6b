//! What is around pods: the objects that own or group them. A pod that has such is read together
//! with them, and again when one of them comes or changes. Other pods cost nothing here.

mod owners;

use super::external::Table;
use super::follow::Told;
use super::kinds::{self, Kind, What};
use super::names::Names;
use super::reader::{Not, Reader, View};
use crate::view::PodSight;
use crate::view::{Foreign, Queues};
use crate::view::{Note, Queued};
use berth_kube::hypernode::Tree;
use berth_kube::mark::{self, Group, GroupKey};
use berth_kube::object::{Owner, OwnerReference, Pod};
use berth_kube::{Change, Seen};
use berth_model::Name;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pod may be there before what it names, without anybody being told.
const PATIENCE: Duration = Duration::from_secs(2);
/// Owners above one another: a job of a set of something.
const DEEPEST: usize = 4;

type Uid = String;

#[derive(Default)]
pub struct Around {
    names: Names,
    foreign: Table,
    owners: BTreeMap<Uid, Entry>,
    /// LeaderWorkerSets by their names.
    sets: BTreeMap<GroupKey, Uid>,
    /// The JobSets by which TrainJobs make their pods, by those.
    sets_of_jobs: BTreeMap<Uid, Uid>,
    groups: BTreeMap<GroupKey, Result<Group, String>>,
    /// Pods that may have to be read again: those that have something around them, or that wait
    /// for something to be there, until they are bound.
    pods: BTreeMap<Uid, Kept>,
    by: BTreeMap<On, BTreeSet<Uid>>,
}

struct Entry {
    kind: &'static Kind,
    read: Result<Arc<Owner>, String>,
}

struct Kept {
    pod: Pod,
    on: Vec<On>,
    /// Since when it misses something.
    misses: Option<Instant>,
}

/// What a pod depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum On {
    Owner(Uid),
    Group(GroupKey),
}

/// What has changed in a kind of objects.
#[derive(Default)]
pub struct News {
    /// Pods as they are read now.
    pub pods: Vec<PodSight>,
    /// Jobs of others that wait for us to let them begin, and are new or different.
    pub queued: Vec<Queued>,
    /// Owners that are gone or over: they make no more pods.
    pub gone: Vec<Uid>,
    /// The queues that others describe, where they may be different.
    pub queues: Option<Queues>,
    /// What there is to say about objects.
    pub notes: Vec<Note>,
    /// The topologies that others describe, where they are different.
    pub topologies: Option<BTreeMap<Name, Vec<Name>>>,
    /// HyperNodes, where they are different.
    pub hypernodes: Option<Tree>,
}

impl Around {
    pub fn new(names: Names) -> Around {
        Around { names, ..Around::default() }
    }

    pub const fn topologies(&self) -> &BTreeMap<Name, Vec<Name>> {
        &self.names.topologies
    }

    /// The queues that others describe.
    pub fn queues(&mut self) -> Queues {
        self.foreign.queues(&self.names)
    }

    /// Reads pods with what is around them.
    pub fn see(&mut self, reader: &Reader, seen: Seen<Pod>) -> Seen<PodSight> {
        match seen {
            Seen::All(pods) => {
                self.pods.clear();
                self.by.clear();
                Seen::All(pods.into_iter().map(|pod| self.pod(reader, pod)).collect())
            }
            Seen::Changes(changes) => {
                let changes = changes.into_iter().map(|change| match change {
                    Change::Put(pod) => Change::Put(self.pod(reader, pod)),
                    Change::Gone(pod) => {
                        let sight = self.pod(reader, pod);
                        self.forget(&sight.at.uid);
                        Change::Gone(sight)
                    }
                });
                Seen::Changes(changes.collect())
            }
        }
    }

    fn pod(&mut self, reader: &Reader, pod: Pod) -> PodSight {
        let (on, unmet) = self.on(reader, &pod);
        let misses = unmet.is_some();
        let sight = self.sight(reader, &pod, &on, unmet.map(|_| Not::Yet));
        let since = self.forget(&sight.at.uid).and_then(|known| known.misses);
        let waits = sight.node.is_none() && !sight.phase.is_over() && !sight.is_leaving;
        let is_read = sight.wish.as_ref().is_some_and(Result::is_ok);
        let is_nobodys = on.is_empty() && sight.wish.is_none();
        if waits && !is_nobodys && !(is_read && on.is_empty()) {
            self.keep(pod, on, misses.then(|| since.unwrap_or_else(Instant::now)));
        }
        sight
    }

    fn keep(&mut self, pod: Pod, on: Vec<On>, misses: Option<Instant>) {
        let uid: Uid = pod.metadata.uid.to_string();
        for on in &on {
            self.by.entry(on.clone()).or_default().insert(uid.clone());
        }
        self.pods.insert(uid, Kept { pod, on, misses });
    }

    fn forget(&mut self, uid: &Uid) -> Option<Kept> {
        let kept = self.pods.remove(uid)?;
        for on in &kept.on {
            if let Some(pods) = self.by.get_mut(on) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.by.remove(on);
                }
            }
        }
        Some(kept)
    }

    /// What a pod depends on, nearest owner first, and what of it is not there.
    fn on(&self, reader: &Reader, pod: &Pod) -> (Vec<On>, Option<String>) {
        let (mut on, mut unmet) = (Vec::new(), None);
        if !reader.may_be_ours(pod) {
            return (on, unmet);
        }
        let mut next = pod.metadata.controller();
        while let Some(named) = next.filter(|named| is_followed(named) && on.len() < DEEPEST) {
            on.push(On::Owner(named.uid.to_string()));
            next = match self.owners.get(&*named.uid) {
                Some(Entry { read: Ok(owner), .. }) => owner.metadata.controller(),
                Some(Entry { read: Err(why), .. }) => {
                    unmet = Some(format!("{} {} cannot be read: {why}", named.kind, named.name));
                    None
                }
                None => {
                    let (kind, name) = (&named.kind, &named.name);
                    unmet = Some(format!("it belongs to {kind} {name}, which is not there"));
                    None
                }
            };
        }
        let is_set = |on: &On| self.owner(on).is_some_and(|owner| owner.kind.is_named_by_pods());
        if let Some(set) = mark::set_of(pod).filter(|_| !on.iter().any(is_set)) {
            on.push(On::Group(set));
        }
        if let Some(key) = mark::group_of(pod).filter(|key| Kind::of_group(key.kind).is_some()) {
            match self.groups.get(&key) {
                Some(Ok(_)) => {}
                Some(Err(why)) => {
                    unmet = Some(format!("PodGroup {} cannot be read: {why}", key.name));
                }
                None => {
                    unmet = Some(format!(
                        "it names PodGroup {}, which is not there; make it, or take the mark away",
                        key.name
                    ));
                }
            }
            on.push(On::Group(key));
        }
        (on, unmet)
    }

    fn sight(&self, reader: &Reader, pod: &Pod, on: &[On], not: Option<Not>) -> PodSight {
        let owners = on.iter().filter_map(|on| self.owner(on)?.read.as_deref().ok());
        let owners: Vec<&Owner> = owners.collect();
        let group = on.iter().find_map(|on| match on {
            On::Group(key) => self.groups.get(key)?.as_ref().ok(),
            On::Owner(_) => None,
        });
        reader.pod(
            pod,
            &View { around: mark::Around { owners: &owners, group }, not, names: &self.names },
        )
    }

    /// Takes in what was seen of a kind, and reads again the pods that depend on it.
    pub fn take(&mut self, reader: &Reader, Told { kind, path, seen }: Told) -> News {
        let mut touched = BTreeSet::new();
        let mut news = News::default();
        match kind.what {
            What::Owner => self.take_owners(kind, &path, seen, &mut touched, &mut news),
            What::Group(of) => self.take_groups(of, seen, &mut touched),
            What::Foreign(what) => {
                self.foreign.take(kind, &path, what, seen);
                self.rename(reader, what, &mut news);
                return news;
            }
        }
        let again: BTreeSet<Uid> =
            touched.iter().filter_map(|on| self.by.get(on)).flatten().cloned().collect();
        news.pods = self.again(reader, again);
        let owners = touched.iter().filter_map(|on| match on {
            On::Owner(uid) => self.owners.get(self.sets_of_jobs.get(uid).unwrap_or(uid)),
            On::Group(_) => None,
        });
        news.queued = owners.filter_map(|entry| self.queued(reader, entry)).collect();
        news
    }

    /// A job that waits for us to let it begin, if it is one.
    fn queued(&self, reader: &Reader, entry: &Entry) -> Option<Queued> {
        let owner = entry.read.as_ref().ok()?;
        let above = self.owners_of(&owner.metadata);
        Queued::of(reader, &self.names, owner, &above, entry.kind.wanted.plural)
    }

    /// All jobs that wait for us to let them begin.
    pub fn all_queued(&self, reader: &Reader) -> Vec<Queued> {
        self.owners.values().filter_map(|entry| self.queued(reader, entry)).collect()
    }

    /// Something of another scheduler's may stand for something else by now.
    fn rename(&mut self, reader: &Reader, what: Foreign, news: &mut News) {
        if what.is_queue() {
            news.queues = Some(self.foreign.queues(&self.names));
        }
        news.hypernodes = self.foreign.hypernodes();
        news.notes = self.foreign.notes();
        if self.foreign.rename(&mut self.names) {
            if matches!(what, Foreign::Topology | Foreign::HyperNode) {
                news.topologies = Some(self.names.topologies.clone());
            }
            news.pods = self.again(reader, self.pods.keys().cloned().collect());
            news.queued = self.all_queued(reader);
        }
    }

    fn take_groups(
        &mut self,
        of: mark::Kind,
        seen: Seen<Box<RawValue>>,
        touched: &mut BTreeSet<On>,
    ) {
        let read = |raw: &RawValue| {
            let object = kinds::read_group(of, raw)?;
            Some((kinds::key(of, &object.meta), object.read))
        };
        let changes: Vec<(GroupKey, Option<Result<Group, String>>)> = match seen {
            Seen::All(all) => {
                let put: BTreeMap<_, _> = all.iter().filter_map(|raw| read(raw)).collect();
                let known = self.groups.keys().filter(|key| key.kind == of);
                let gone = known.filter(|key| !put.contains_key(key)).cloned();
                let gone: Vec<_> = gone.map(|key| (key, None)).collect();
                gone.into_iter()
                    .chain(put.into_iter().map(|(key, read)| (key, Some(read))))
                    .collect()
            }
            Seen::Changes(changes) => {
                let changes = changes.iter().filter_map(|change| match change {
                    Change::Put(raw) => read(raw).map(|(key, read)| (key, Some(read))),
                    Change::Gone(raw) => read(raw).map(|(key, _)| (key, None)),
                });
                changes.collect()
            }
        };
        for (key, now) in changes {
            if self.groups.get(&key) == now.as_ref() {
                continue;
            }
            match now {
                Some(read) => drop(self.groups.insert(key.clone(), read)),
                None => drop(self.groups.remove(&key)),
            }
            touched.insert(On::Group(key));
        }
    }

    /// Reads pods again. One that still misses something says so only after a while.
    fn again(&mut self, reader: &Reader, pods: BTreeSet<Uid>) -> Vec<PodSight> {
        let mut sights = Vec::with_capacity(pods.len());
        for uid in pods {
            let Some(Kept { pod, misses, .. }) = self.forget(&uid) else { continue };
            let (on, unmet) = self.on(reader, &pod);
            let misses = unmet.is_some().then(|| misses.unwrap_or_else(Instant::now));
            let is_late = misses.is_some_and(|since| since.elapsed() >= PATIENCE);
            let not = unmet.map(|why| if is_late { Not::There(why) } else { Not::Yet });
            sights.push(self.sight(reader, &pod, &on, not));
            self.keep(pod, on, misses);
        }
        sights.retain(|sight| sight.wish.is_some());
        sights
    }

    /// Pods that have missed something for a while, and are to say so.
    pub fn overdue(&mut self, reader: &Reader) -> Vec<PodSight> {
        let is_due = |kept: &Kept| kept.misses.is_some_and(|since| since.elapsed() >= PATIENCE);
        let due = self.pods.iter().filter(|(_, kept)| is_due(kept));
        self.again(reader, due.map(|(uid, _)| uid.clone()).collect())
    }
}

fn is_followed(named: &OwnerReference) -> bool {
    Kind::of_owner(named.group(), &named.kind).is_some()
}
