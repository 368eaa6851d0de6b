//! The kinds that affect pods without being pods: owners, pod groups, and objects of other
//! schedulers. Most are installed only in some clusters.

use crate::compat::{Compat, Peer};
use crate::view::{ExternalKind, Unreadable};
use berth_kube::GroupResource;
use berth_kube::gang::{self, GroupKey, PodGroup};
use berth_kube::object::{Meta, Owner};
use berth_model::Name;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A kind that is followed where it is served.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub wanted: GroupResource,
    /// As owner references have it.
    pub name: &'static str,
    pub role: Role,
}

/// What objects of a kind are to pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Owner,
    Group(gang::GangKind),
    External(ExternalKind),
}

const fn owner(group: &'static str, plural: &'static str, name: &'static str) -> Kind {
    Kind { wanted: GroupResource { group, plural }, name, role: Role::Owner }
}

const fn group(group: &'static str, kind: gang::GangKind) -> Kind {
    let wanted = GroupResource { group, plural: "podgroups" };
    Kind { wanted, name: "PodGroup", role: Role::Group(kind) }
}

const fn external(
    group: &'static str,
    plural: &'static str,
    name: &'static str,
    role: ExternalKind,
) -> Kind {
    Kind { wanted: GroupResource { group, plural }, name, role: Role::External(role) }
}

const KUEUE: &str = "kueue.x-k8s.io";
const HYPERNODES: &str = "topology.volcano.sh";
const APPS: &str = "apps";
const SET: &str = "LeaderWorkerSet";

pub static KINDS: [Kind; 30] = [
    owner("batch", "jobs", "Job"),
    owner(APPS, "deployments", "Deployment"),
    owner(APPS, "replicasets", "ReplicaSet"),
    owner(APPS, "statefulsets", "StatefulSet"),
    owner("jobset.x-k8s.io", "jobsets", "JobSet"),
    owner("leaderworkerset.x-k8s.io", "leaderworkersets", SET),
    owner("kubeflow.org", "pytorchjobs", "PyTorchJob"),
    owner("kubeflow.org", "tfjobs", "TFJob"),
    owner("kubeflow.org", "mpijobs", "MPIJob"),
    owner("kubeflow.org", "xgboostjobs", "XGBoostJob"),
    owner("kubeflow.org", "paddlejobs", "PaddleJob"),
    owner("kubeflow.org", "jaxjobs", "JAXJob"),
    owner("trainer.kubeflow.org", "trainjobs", "TrainJob"),
    owner("ray.io", "rayclusters", "RayCluster"),
    owner("ray.io", "rayjobs", "RayJob"),
    owner("ray.io", "rayservices", "RayService"),
    group("scheduling.run.ai", gang::GangKind::KaiPodGroup),
    group("scheduling.volcano.sh", gang::GangKind::VolcanoPodGroup),
    group("scheduling.k8s.io", gang::GangKind::PodGroup),
    external("scheduling.k8s.io", "priorityclasses", "PriorityClass", ExternalKind::PriorityClass),
    external("scheduling.run.ai", "queues", "Queue", ExternalKind::KaiQueue),
    external("kai.scheduler", "topologies", "Topology", ExternalKind::Topology),
    external("scheduling.volcano.sh", "queues", "Queue", ExternalKind::VolcanoQueue),
    external(HYPERNODES, "hypernodes", "HyperNode", ExternalKind::HyperNode),
    external(KUEUE, "clusterqueues", "ClusterQueue", ExternalKind::ClusterQueue),
    external(KUEUE, "localqueues", "LocalQueue", ExternalKind::LocalQueue),
    external(KUEUE, "cohorts", "Cohort", ExternalKind::Cohort),
    external(KUEUE, "resourceflavors", "ResourceFlavor", ExternalKind::ResourceFlavor),
    external(
        KUEUE,
        "workloadpriorityclasses",
        "WorkloadPriorityClass",
        ExternalKind::WorkloadPriorityClass,
    ),
    external(KUEUE, "topologies", "Topology", ExternalKind::Topology),
];

impl Kind {
    /// Whether Berth watches it when it replaces these schedulers. It ignores the queues and
    /// topologies of schedulers that run themselves.
    pub fn matters(&self, compat: &Compat) -> bool {
        match (self.role, self.wanted.group) {
            (Role::External(ExternalKind::PriorityClass), _) => true,
            (Role::External(_), KUEUE) => compat.is_for(Peer::Kueue),
            (Role::External(_), "scheduling.volcano.sh" | HYPERNODES) => {
                compat.is_for(Peer::Volcano)
            }
            (Role::External(_), _) => compat.is_for(Peer::Kai),
            (Role::Owner | Role::Group(_), _) => true,
        }
    }

    /// Whether there are so many of it that only the least of each is kept.
    pub fn is_slim(&self) -> bool {
        self.wanted.group == APPS
    }

    /// Whether pods may have to be led to it by its name.
    pub fn is_named_by_pods(&self) -> bool {
        self.name == SET
    }

    /// The kind of an owner, if it is one that is followed.
    pub fn of_owner(group: &str, name: &str) -> Option<&'static Kind> {
        let is_it = |kind: &&Kind| kind.wanted.group == group && kind.name == name;
        KINDS.iter().filter(|kind| kind.role == Role::Owner).find(is_it)
    }

    /// The kind of the object that names a gang.
    pub fn of_group(kind: gang::GangKind) -> Option<&'static Kind> {
        KINDS.iter().find(|known| known.role == Role::Group(kind))
    }
}

/// An object, or why it cannot be read. One that cannot be does not stand in the way of the others.
pub struct Object<T> {
    pub meta: Meta,
    pub read: Result<T, Unreadable>,
}

/// Nothing for what is no object at all.
pub fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<Object<T>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        metadata: Meta,
    }
    let mut meta = serde_json::from_str::<Head>(raw.get()).ok()?.metadata;
    // It differs after every write, also of the status, which Berth does not use.
    meta.resource_version = "".into();
    let read = serde_json::from_str(raw.get()).map_err(Unreadable::from);
    Some(Object { meta, read })
}

pub fn read_owner(kind: &Kind, path: &str, raw: &RawValue) -> Option<Object<Owner>> {
    let Object { meta, read } = read::<Owner>(raw)?;
    // Items of a list say neither.
    let read = read.map(|owner| Owner {
        api_version: api_version(path).into(),
        kind: kind.name.into(),
        metadata: meta.clone(),
        ..owner
    });
    Some(Object { meta, read })
}

/// `batch/v1` of `/apis/batch/v1/jobs`.
pub fn api_version(path: &str) -> &str {
    let path = path.trim_start_matches("/apis/");
    path.rsplit_once('/').map_or(path, |(version, _)| version)
}

pub fn read_group(kind: gang::GangKind, raw: &RawValue) -> Option<Object<PodGroup>> {
    fn of<T: DeserializeOwned>(
        raw: &RawValue,
        group: fn(T) -> PodGroup,
    ) -> Option<Object<PodGroup>> {
        let Object { meta, read } = read::<T>(raw)?;
        Some(Object { meta, read: read.map(group) })
    }
    let mut object = match kind {
        gang::GangKind::KaiPodGroup => of(raw, PodGroup::Kai),
        gang::GangKind::VolcanoPodGroup => of(raw, PodGroup::Volcano),
        _ => of(raw, PodGroup::Upstream),
    }?;
    if let Ok(group) = &mut object.read {
        let meta = match group {
            PodGroup::Kai(group) => &mut group.metadata,
            PodGroup::Volcano(group) => &mut group.metadata,
            PodGroup::Upstream(group) => &mut group.metadata,
        };
        *meta = object.meta.clone();
    }
    Some(object)
}

/// By what pods know a group.
pub fn key(kind: gang::GangKind, meta: &Meta) -> GroupKey {
    let (namespace, name) = (Name::new(&meta.namespace), Name::new(&meta.name));
    GroupKey { namespace, kind, name, uid: None }
}
