//! Which gang a pod belongs to, and how it is to be treated.
//!
//! Marks of five families are read, and a field comes from the first that says it: Berth's own,
//! KAI's, Kueue's, Volcano's, and the upstream scheduling group. Where no mark names a gang, the
//! owner does: a JobSet, a LeaderWorkerSet group, a Kubeflow job and a Ray cluster start together
//! or not at all. **A plain batch Job is not a gang**: its pods are independent unless a mark says
//! otherwise, and the same holds for Deployments, StatefulSets and pods without an owner.
//!
//! A mark on an owner counts for its pods; one on the pod itself wins.

mod berth;
mod draft;
mod kai;
mod kubernetes;
mod kueue;
mod owner;
mod pod_count;
pub mod pod_group;
mod source;
mod template;
mod volcano;

pub use pod_group::PodGroup;
pub use template::{is_read_from_pods_alone, template_paths, templates};

use crate::InvalidField;
use crate::object::{Owner, Pod};
use berth_model::{Name, Span, TopologyAsk};
use draft::Draft;
use source::AnnotationSource;

/// What names a gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    pub namespace: Name,
    pub kind: GangKind,
    pub name: Name,
    /// For what may be made anew under the same name while its old pods are still there.
    pub uid: Option<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GangKind {
    /// A pod by itself.
    Pod,
    /// By `berth.dev/gang`.
    Berth,
    /// `scheduling.run.ai` PodGroup.
    KaiPodGroup,
    /// Plain pods that Kueue would admit together.
    KueuePodGroup,
    /// `scheduling.volcano.sh` PodGroup.
    VolcanoPodGroup,
    /// `scheduling.k8s.io` PodGroup.
    PodGroup,
    /// A group within a `scheduling.k8s.io` Workload, as Kubernetes 1.35 has it.
    Workload,
    Job,
    JobSet,
    LeaderWorkerSet,
    Kubeflow,
    Ray,
    /// Any other controller whose pods a mark makes a gang.
    Owner,
}

/// What the manifests of a pod, its owners and its PodGroup say about its gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GangAnnotations {
    pub key: GroupKey,
    /// How many pods make the gang whole, where that is known.
    pub members: Option<u32>,
    /// How many it needs to start; `None` where an object that would say was not given.
    pub min: Option<u32>,
    pub queue: Option<Name>,
    pub priority_class: Option<Name>,
    /// A number for what has no priority class, or for a class that the cluster does not have.
    pub priority: Option<i32>,
    /// Added to the priority.
    pub boost: i32,
    pub preemptible: Option<bool>,
    /// Not to be displaced before it has run so long.
    pub min_runtime: Option<Span>,
    /// Displaces others only after it has waited so long.
    pub preempt_after: Option<Span>,
    pub time_limit: Option<Span>,
    pub topology: Option<TopologyAsk>,
    /// Only nodes whose label `kai.scheduler/node-pool` has this value.
    pub node_pool: Option<Name>,
    pub subgroup: Option<Subgroup>,
    /// How many pods of each part have to be there before the gang is begun.
    pub needed: Vec<(Name, u32)>,
    /// What is understood and cannot be had here, and is no reason to wait.
    pub ignored: Vec<InvalidField>,
}

/// The part of its gang that a pod belongs to, and how many of it are needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subgroup {
    pub name: Name,
    pub min: Option<u32>,
    /// Where the pods of this part must or should be together, beside what holds for the gang.
    pub topology: Option<TopologyAsk>,
    /// The groups of parts it is in that have to be somewhere, the outermost first.
    pub above: Vec<ParentGroup>,
}

/// Parts of a gang that must or should be together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentGroup {
    pub name: Name,
    pub topology: TopologyAsk,
}

impl Subgroup {
    fn new(name: &str, min: Option<u32>) -> Subgroup {
        Subgroup { name: Name::new(name), min, topology: None, above: Vec::new() }
    }
}

/// The objects that belong to a pod, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodContext<'a> {
    /// The nearest first.
    pub owners: &'a [&'a Owner],
    /// The object that [`pod_group_of`] names.
    pub group: Option<&'a PodGroup>,
}

/// Whether a label or an annotation of an owner may be one of those that count for its pods.
pub fn is_gang_annotation(key: &str) -> bool {
    const OF: [&str; 5] = [
        "berth.dev/",
        "kai.scheduler/",
        "kueue.x-k8s.io/",
        "scheduling.volcano.sh/",
        "volcano.sh/",
    ];
    key == kai::CLASS || OF.iter().any(|of| key.starts_with(of))
}

/// Reads everything; with several things wrong, all of them are told.
pub fn read(pod: &Pod, context: PodContext) -> Result<GangAnnotations, Vec<InvalidField>> {
    let source = AnnotationSource { pod, context };
    let mut draft = Draft::default();
    berth::read(&source, &mut draft);
    kai::read(&source, &mut draft);
    kueue::read(&source, &mut draft);
    volcano::read(&source, &mut draft);
    kubernetes::read(&source, &mut draft);
    owner::read(&source, &mut draft);
    draft.finish(pod)
}

/// The PodGroup object a pod names, which the caller should look up and hand to [`read`].
pub fn pod_group_of(pod: &Pod) -> Option<GroupKey> {
    let source = AnnotationSource { pod, context: PodContext::default() };
    kai::group(&source).or_else(|| volcano::group(&source)).or_else(|| kubernetes::group(&source))
}

/// The LeaderWorkerSet that a pod says it is of. Its workers are owned by their leader, which is a
/// pod, so that nothing but the name leads from them to the set.
pub fn leader_worker_set_of(pod: &Pod) -> Option<GroupKey> {
    let name = pod.metadata.label(owner::LWS).filter(|name| !name.is_empty())?;
    let source = AnnotationSource { pod, context: PodContext::default() };
    Some(source.key(GangKind::LeaderWorkerSet, name))
}

#[cfg(test)]
mod tests;
