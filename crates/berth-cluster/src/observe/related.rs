//! Objects that own or group pods. A pod that has such is read together with them, and again when
//! one of them appears or changes. Other pods cost nothing here.

mod owners;

use super::external::ExternalObjects;
use super::follow::KindUpdate;
use super::kinds::{self, Kind, Role};
use super::names::Names;
use super::reader::{Missing, ReadContext, Reader};
use crate::view::PodView;
use crate::view::{ExternalKind, ExternalQueues};
use crate::view::{ObjectEvent, QueuedJob, Unreadable, Unschedulable};
use berth_kube::gang::{self, GroupKey, PodGroup};
use berth_kube::hypernode::HyperNodeTree;
use berth_kube::object::{Owner, OwnerReference, Pod};
use berth_kube::{Change, WatchUpdate};
use berth_model::Name;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pod may exist before the objects that it names, without Berth reporting them as
/// missing.
const MISSING_GRACE: Duration = Duration::from_secs(2);
/// Owners above one another: a job of a set of something.
const MAX_OWNER_DEPTH: usize = 4;

type Uid = String;

#[derive(Default)]
pub struct RelatedObjects {
    names: Names,
    external: ExternalObjects,
    owners: BTreeMap<Uid, Entry>,
    /// LeaderWorkerSets by their names.
    sets: BTreeMap<GroupKey, Uid>,
    /// The JobSets by which TrainJobs make their pods, by those.
    sets_of_jobs: BTreeMap<Uid, Uid>,
    groups: BTreeMap<GroupKey, Result<PodGroup, Unreadable>>,
    /// Pods that may have to be read again: those that have something around them, or that wait
    /// for something to be there, until they are bound.
    pods: BTreeMap<Uid, PendingPod>,
    by: BTreeMap<Dependency, BTreeSet<Uid>>,
}

struct Entry {
    kind: &'static Kind,
    read: Result<Arc<Owner>, Unreadable>,
}

struct PendingPod {
    pod: Pod,
    on: Vec<Dependency>,
    /// Since when it misses something.
    missing_since: Option<Instant>,
}

/// What a pod depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    Owner(Uid),
    Group(GroupKey),
}

/// What has changed in a kind of objects.
#[derive(Default)]
pub struct RelatedUpdates {
    /// Pods as they are read now.
    pub pods: Vec<PodView>,
    /// Suspended jobs of other controllers that are new or have changed.
    pub queued: Vec<QueuedJob>,
    /// Owners that are gone or over: they make no more pods.
    pub gone: Vec<Uid>,
    /// The queues that others describe, where they may be different.
    pub queues: Option<ExternalQueues>,
    /// Events to write on objects.
    pub events: Vec<ObjectEvent>,
    /// The topologies that others describe, where they are different.
    pub topologies: Option<BTreeMap<Name, Vec<Name>>>,
    /// HyperNodes, where they are different.
    pub hypernodes: Option<HyperNodeTree>,
}

impl RelatedObjects {
    pub fn new(names: Names) -> RelatedObjects {
        RelatedObjects { names, ..RelatedObjects::default() }
    }

    pub const fn topologies(&self) -> &BTreeMap<Name, Vec<Name>> {
        &self.names.topologies
    }

    /// The queues that others describe.
    pub fn queues(&mut self) -> ExternalQueues {
        self.external.queues(&self.names)
    }

    /// Reads pods with what is around them.
    pub fn read_pods(&mut self, reader: &Reader, seen: WatchUpdate<Pod>) -> WatchUpdate<PodView> {
        match seen {
            WatchUpdate::Snapshot(pods) => {
                self.pods.clear();
                self.by.clear();
                WatchUpdate::Snapshot(pods.into_iter().map(|pod| self.pod(reader, pod)).collect())
            }
            WatchUpdate::Changes(changes) => {
                let changes = changes.into_iter().map(|change| match change {
                    Change::Applied(pod) => Change::Applied(self.pod(reader, pod)),
                    Change::Deleted(pod) => {
                        let view = self.pod(reader, pod);
                        self.forget(&view.at.uid);
                        Change::Deleted(view)
                    }
                });
                WatchUpdate::Changes(changes.collect())
            }
        }
    }

    fn pod(&mut self, reader: &Reader, pod: Pod) -> PodView {
        let (on, unmet) = self.dependencies(reader, &pod);
        let missing_since = unmet.is_some();
        let view = self.view(reader, &pod, &on, unmet.map(|_| Missing::Expected));
        let since = self.forget(&view.at.uid).and_then(|known| known.missing_since);
        let waits = view.node.is_none() && !view.phase.is_over() && !view.is_leaving;
        let is_read = view.request.as_ref().is_some_and(Result::is_ok);
        let is_foreign = on.is_empty() && view.request.is_none();
        if waits && !is_foreign && !(is_read && on.is_empty()) {
            self.track(pod, on, missing_since.then(|| since.unwrap_or_else(Instant::now)));
        }
        view
    }

    fn track(&mut self, pod: Pod, on: Vec<Dependency>, missing_since: Option<Instant>) {
        let uid: Uid = pod.metadata.uid.to_string();
        for on in &on {
            self.by.entry(on.clone()).or_default().insert(uid.clone());
        }
        self.pods.insert(uid, PendingPod { pod, on, missing_since });
    }

    fn forget(&mut self, uid: &Uid) -> Option<PendingPod> {
        let pending = self.pods.remove(uid)?;
        for on in &pending.on {
            if let Some(pods) = self.by.get_mut(on) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.by.remove(on);
                }
            }
        }
        Some(pending)
    }

    /// What a pod depends on, nearest owner first, and what of it is not there.
    fn dependencies(&self, reader: &Reader, pod: &Pod) -> (Vec<Dependency>, Option<Unschedulable>) {
        let (mut on, mut unmet) = (Vec::new(), None);
        if !reader.may_be_ours(pod) {
            return (on, unmet);
        }
        let mut next = pod.metadata.controller();
        while let Some(named) =
            next.filter(|named| is_followed(named) && on.len() < MAX_OWNER_DEPTH)
        {
            on.push(Dependency::Owner(named.uid.to_string()));
            next = match self.owners.get(&*named.uid) {
                Some(Entry { read: Ok(owner), .. }) => owner.metadata.controller(),
                Some(Entry { read: Err(why), .. }) => {
                    let (kind, name) = (named.kind.clone(), named.name.clone());
                    unmet = Some(Unschedulable::UnreadableOwner { kind, name, why: why.clone() });
                    None
                }
                None => {
                    let (kind, name) = (named.kind.clone(), named.name.clone());
                    unmet = Some(Unschedulable::MissingOwner { kind, name });
                    None
                }
            };
        }
        let is_set =
            |on: &Dependency| self.owner(on).is_some_and(|owner| owner.kind.is_named_by_pods());
        if let Some(set) = gang::leader_worker_set_of(pod).filter(|_| !on.iter().any(is_set)) {
            on.push(Dependency::Group(set));
        }
        if let Some(key) = gang::pod_group_of(pod).filter(|key| Kind::of_group(key.kind).is_some())
        {
            match self.groups.get(&key) {
                Some(Ok(_)) => {}
                Some(Err(why)) => {
                    let (name, why) = (key.name.clone(), why.clone());
                    unmet = Some(Unschedulable::UnreadablePodGroup { name, why });
                }
                None => unmet = Some(Unschedulable::MissingPodGroup { name: key.name.clone() }),
            }
            on.push(Dependency::Group(key));
        }
        (on, unmet)
    }

    fn view(
        &self,
        reader: &Reader,
        pod: &Pod,
        on: &[Dependency],
        missing: Option<Missing>,
    ) -> PodView {
        let owners = on.iter().filter_map(|on| self.owner(on)?.read.as_deref().ok());
        let owners: Vec<&Owner> = owners.collect();
        let group = on.iter().find_map(|on| match on {
            Dependency::Group(key) => self.groups.get(key)?.as_ref().ok(),
            Dependency::Owner(_) => None,
        });
        reader.pod(
            pod,
            &ReadContext {
                around: gang::PodContext { owners: &owners, group },
                missing,
                names: &self.names,
            },
        )
    }

    /// Takes in what was seen of a kind, and reads again the pods that depend on it.
    pub fn apply(
        &mut self,
        reader: &Reader,
        KindUpdate { kind, path, seen }: KindUpdate,
    ) -> RelatedUpdates {
        let mut touched = BTreeSet::new();
        let mut news = RelatedUpdates::default();
        match kind.role {
            Role::Owner => self.apply_owners(kind, &path, seen, &mut touched, &mut news),
            Role::Group(of) => self.apply_groups(of, seen, &mut touched),
            Role::External(what) => {
                self.external.apply(kind, &path, what, seen);
                self.apply_names(reader, what, &mut news);
                return news;
            }
        }
        let again: BTreeSet<Uid> =
            touched.iter().filter_map(|on| self.by.get(on)).flatten().cloned().collect();
        news.pods = self.again(reader, again);
        let owners = touched.iter().filter_map(|on| match on {
            Dependency::Owner(uid) => self.owners.get(self.sets_of_jobs.get(uid).unwrap_or(uid)),
            Dependency::Group(_) => None,
        });
        news.queued = owners.filter_map(|entry| self.queued(reader, entry)).collect();
        news
    }

    /// The object as a job that Berth resumes, if it is one.
    fn queued(&self, reader: &Reader, entry: &Entry) -> Option<QueuedJob> {
        let owner = entry.read.as_ref().ok()?;
        let above = self.owners_of(&owner.metadata);
        QueuedJob::of(reader, &self.names, owner, &above, entry.kind.wanted.plural)
    }

    /// All jobs that Berth resumes.
    pub fn all_queued(&self, reader: &Reader) -> Vec<QueuedJob> {
        self.owners.values().filter_map(|entry| self.queued(reader, entry)).collect()
    }

    /// Something of another scheduler's may stand for something else by now.
    fn apply_names(&mut self, reader: &Reader, what: ExternalKind, news: &mut RelatedUpdates) {
        if what.is_queue() {
            news.queues = Some(self.external.queues(&self.names));
        }
        news.hypernodes = self.external.hypernodes();
        news.events = self.external.take_events();
        if self.external.update_names(&mut self.names) {
            if matches!(what, ExternalKind::Topology | ExternalKind::HyperNode) {
                news.topologies = Some(self.names.topologies.clone());
            }
            news.pods = self.again(reader, self.pods.keys().cloned().collect());
            news.queued = self.all_queued(reader);
        }
    }

    fn apply_groups(
        &mut self,
        of: gang::GangKind,
        seen: WatchUpdate<Box<RawValue>>,
        touched: &mut BTreeSet<Dependency>,
    ) {
        let read = |raw: &RawValue| {
            let object = kinds::read_group(of, raw)?;
            Some((kinds::key(of, &object.meta), object.read))
        };
        let changes: Vec<(GroupKey, Option<Result<PodGroup, Unreadable>>)> = match seen {
            WatchUpdate::Snapshot(all) => {
                let put: BTreeMap<_, _> = all.iter().filter_map(|raw| read(raw)).collect();
                let known = self.groups.keys().filter(|key| key.kind == of);
                let gone = known.filter(|key| !put.contains_key(key)).cloned();
                let gone: Vec<_> = gone.map(|key| (key, None)).collect();
                gone.into_iter()
                    .chain(put.into_iter().map(|(key, read)| (key, Some(read))))
                    .collect()
            }
            WatchUpdate::Changes(changes) => {
                let changes = changes.iter().filter_map(|change| match change {
                    Change::Applied(raw) => read(raw).map(|(key, read)| (key, Some(read))),
                    Change::Deleted(raw) => read(raw).map(|(key, _)| (key, None)),
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
            touched.insert(Dependency::Group(key));
        }
    }

    /// Reads pods again. One that still misses something says so only after a while.
    fn again(&mut self, reader: &Reader, pods: BTreeSet<Uid>) -> Vec<PodView> {
        let mut views = Vec::with_capacity(pods.len());
        for uid in pods {
            let Some(PendingPod { pod, missing_since, .. }) = self.forget(&uid) else { continue };
            let (on, unmet) = self.dependencies(reader, &pod);
            let missing_since = unmet.is_some().then(|| missing_since.unwrap_or_else(Instant::now));
            let is_late = missing_since.is_some_and(|since| since.elapsed() >= MISSING_GRACE);
            let missing =
                unmet.map(|why| if is_late { Missing::Overdue(why) } else { Missing::Expected });
            views.push(self.view(reader, &pod, &on, missing));
            self.track(pod, on, missing_since);
        }
        views.retain(|view| view.request.is_some());
        views
    }

    /// Pods that have missed something for a while, and are to say so.
    pub fn overdue(&mut self, reader: &Reader) -> Vec<PodView> {
        let is_due = |pending: &PendingPod| {
            pending.missing_since.is_some_and(|since| since.elapsed() >= MISSING_GRACE)
        };
        let due = self.pods.iter().filter(|(_, pending)| is_due(pending));
        self.again(reader, due.map(|(uid, _)| uid.clone()).collect())
    }
}

fn is_followed(named: &OwnerReference) -> bool {
    Kind::of_owner(named.group(), &named.kind).is_some()
}
