//! A pod as it was last observed, and how it wants to be scheduled.

use super::managed::ManagedPodView;
use super::node::NodePredicate;
use super::pod_constraints::PodConstraints;
use super::unschedulable::Unschedulable;
use berth_kube::gang::ParentGroup;
use berth_kube::object::{Labels, Text};
use berth_kube::pod::gpu_sharing::GpuReservation;
use berth_kube::pod::requests::GpuRequest;
use berth_model::PodRef;
use berth_model::{Bytes, Cpu, LabelAsk, Name, Span, Time, TopologyAsk};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod as it was last seen.
#[derive(Debug, Clone)]
pub struct PodView {
    pub at: PodRef,
    /// Of what was seen: writes about something older are refused.
    pub version: String,
    /// Where it is bound.
    pub node: Option<Name>,
    pub phase: Phase,
    /// It is being deleted.
    pub is_leaving: bool,
    /// It has a scheduling gate that another controller has to remove.
    pub is_gated: bool,
    /// It has scheduling gates that Berth removes when it binds the pod.
    pub is_ours_to_open: bool,
    /// Who made it, or had it made.
    pub owner: Option<Text>,
    /// A controller makes another one when this one goes.
    pub is_replaced: bool,
    /// Its Job has not counted yet how it ended.
    pub is_tracked: bool,
    pub asks: PodResources,
    /// What it takes of its node, where that is something else than it asks for.
    pub takes: Option<Box<ResourceUsage>>,
    /// The devices it claims.
    pub claims: Vec<DeviceClaimRef>,
    /// The shared GPUs that its annotation names.
    pub shares: Option<String>,
    /// It is one of ours that holds a GPU for those that share it.
    pub holds: Option<GpuReservation>,
    pub labels: Arc<Labels>,
    /// What it makes of other pods and of volumes, where it makes anything of them.
    pub constraints: Option<Arc<PodConstraints>>,
    /// What is known of it where Berth has made it.
    pub managed: Option<Arc<ManagedPodView>>,
    /// Nothing for pods of other schedulers, and for those that Berth has made. The error is boxed
    /// because every pod of the cluster would pay for its size.
    pub request: Option<Result<Arc<SchedulingRequest>, Box<Unschedulable>>>,
}

impl PodView {
    /// It succeeded, and its controller makes no other pod for its work. A Job that has not counted
    /// a pod before the pod is deleted does make another.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Succeeded && (!self.is_leaving || self.is_tracked)
    }

    /// Which of its Job's pods it is, where those are numbered.
    pub fn rank(&self) -> Option<Rank> {
        let label = |key: &str| self.labels.get(key).cloned();
        let job = label("batch.kubernetes.io/controller-uid")?;
        Some(Rank { job, index: label("batch.kubernetes.io/job-completion-index")? })
    }

    /// It has its node, and will run there or does.
    pub fn is_placed(&self) -> bool {
        self.node.is_some() && !self.phase.is_over() && !self.is_leaving
    }
}

/// Pods with the same one do the same work, and once is enough.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    job: Text,
    index: Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It waits, or its containers are being started.
    Pending,
    Running,
    Succeeded,
    Failed {
        code: Option<i32>,
        out_of_memory: bool,
    },
    /// The cluster took its node or its place away; that was no fault of its own.
    Evicted,
}

impl Phase {
    pub const fn is_over(&self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed { .. } | Phase::Evicted)
    }
}

/// What a pod asks of its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PodResources {
    pub cpu: Cpu,
    pub memory: Bytes,
    /// What that is of GPUs depends on the nodes.
    pub gpus: GpuRequest,
    /// Every other resource, and ports and disks of the node.
    pub counted: BTreeMap<Name, i64>,
}

/// What a pod takes of its node, whatever it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUsage {
    pub cpu: Cpu,
    pub memory: Bytes,
    pub gpus: Vec<GpuRequest>,
    pub counted: BTreeMap<Name, i64>,
}

/// A claim of a pod on devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceClaimRef {
    /// The claim, or the template that it is made from: alike for pods that are alike.
    pub source: Text,
    /// The claim; nothing until it is made.
    pub name: Option<Text>,
}

/// How a pod of ours wants to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulingRequest {
    pub gang: GangKey,
    /// It belongs to no gang.
    pub alone: bool,
    /// So many pods make the gang whole; it is not begun with fewer.
    pub members: u32,
    /// So many have to run for the others to be of use.
    pub min: u32,
    /// The part of the gang it belongs to, and how many of that have to run.
    pub part: Option<(Name, Option<u32>)>,
    /// How many pods of each part there have to be before the gang is begun.
    pub needed: Arc<[(Name, u32)]>,
    /// What becomes of pods that come when the gang has begun.
    pub later: LateMember,
    pub queue: Option<Name>,
    pub name: Name,
    pub priority: i32,
    pub preemptible: bool,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub time_limit: Option<Span>,
    /// It is to run for ever: its containers are started again whenever they end.
    pub is_service: bool,
    /// It may run on nodes that are cordoned.
    pub tolerates_cordon: bool,
    pub grace: Span,
    pub created: Time,
    /// Where the pods of its part must or should be, beside what holds for the gang.
    pub topology: Option<TopologyAsk>,
    /// Where the parts of the gang must or should be that its part is together with, the outermost
    /// of such groups first.
    pub above: Vec<ParentGroup>,
    /// Where all pods of the gang must or should be.
    pub together: Option<TopologyAsk>,
    /// The rules that say on which nodes it may and should run, by their names.
    pub labels: LabelAsk,
    pub rules: Vec<NodePredicate>,
    /// Ports and disks of the node it takes: a node has so much of each.
    pub ports: BTreeMap<Name, i64>,
    /// Annotations and fields that have no effect here, in words.
    pub ignored: Vec<String>,
}

/// What becomes of a pod that comes when its gang has all of its pods and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateMember {
    /// It waits for a place in the gang.
    Waits,
    /// More may come than are needed: it is a job of its own for as long as the gang runs.
    Apart,
    /// And so it is when the gang has ended: it does the rest of the work.
    ApartForGood,
}

/// Pods with the same key are one gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangKey {
    pub namespace: Name,
    pub name: Name,
}

impl SchedulingRequest {
    /// The same pod as a job of its own.
    pub fn apart(&self, pod: &PodRef) -> SchedulingRequest {
        let gang = GangKey {
            namespace: self.gang.namespace.clone(),
            name: Name::new(&format!("{}/{}", self.gang.name, pod.uid)),
        };
        let later = LateMember::Waits;
        let name = Name::new(&pod.name);
        let (part, needed, above) = (None, Arc::default(), Vec::new());
        let alone = SchedulingRequest {
            gang,
            alone: true,
            members: 1,
            min: 1,
            later,
            name,
            ..self.clone()
        };
        SchedulingRequest { part, needed, above, ..alone }
    }

    /// Whether its gang has to be in one place, which a pod that comes later cannot join.
    pub fn has_to_be_together(&self) -> bool {
        let asks = self.topology.iter().chain(&self.together);
        let mut asks = asks.chain(self.above.iter().map(|above| &above.topology));
        asks.any(|ask| ask.required.is_some() || ask.segment.is_some())
    }
}
