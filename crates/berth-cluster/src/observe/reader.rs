//! Reads objects of the API server into views.

use super::names::{self, Class, Names};
use crate::compat::{Compat, Peer};
use crate::constraints::native::{self, Native, Rules};
use crate::constraints::need;
use crate::constraints::vgpu;
use crate::view::GATE;
use crate::view::ManagedPodView;
use crate::view::PodConstraints;
use crate::view::{
    Asks, DeviceClaimRef, GangKey, LateMember, NodePredicate, NodeView, Phase, PodResources,
    PodView, ResourceUsage, SchedulingRequest, Unschedulable,
};
use berth_kube::gang::{self, GangAnnotations, GangKind, GroupKey, ParentGroup, PodContext};
use berth_kube::hypernode;
use berth_kube::node;
use berth_kube::object::{Condition, Node, Owner, OwnerSpec, Pod, PodSpec};
use berth_kube::pod::gpu_sharing::{self, GpuReservation};
use berth_kube::pod::interpod::InterPodConstraints;
use berth_kube::pod::node_constraint::NodeConstraint;
use berth_kube::pod::requests::{
    self, DevicePluginResources, GpuRequest, ResourceRequests, ResourcesInUse,
};
use berth_model::PodRef;
use berth_model::{Bytes, Cpu, Lifecycle, Name, NodeSpec, NodeState, Span, Time, TopologyAsk};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a pod has to end where it does not say.
const DEFAULT_GRACE: Span = Span::secs(30);

/// The preemption delay of a pod that must not preempt: longer than any cluster lives, and the
/// longest that the core takes.
const NO_PREEMPTION: Span = Span::days(36_500);

/// A Job takes this off a pod when it has counted how it ended.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Reads with a memory: pods that ask for the same share what was read.
pub struct Reader {
    ours: BTreeSet<String>,
    replaces_kueue: bool,
    /// Where pods of ours hold GPUs for fractions.
    reservations: String,
    /// Gates of others that are ours to lift.
    gates: Vec<&'static str>,
    /// Topology labels of nodes beside the well-known ones.
    levels: Mutex<BTreeSet<Name>>,
    native: Native,
}

/// What is around a pod when it is read.
pub struct ReadContext<'a> {
    pub around: PodContext<'a>,
    /// Why that is not all of it, where it is not.
    pub missing: Option<Missing>,
    pub names: &'a Names,
}

/// Something that a pod depends on is missing.
#[derive(Debug)]
pub enum Missing {
    /// It is likely to come.
    Expected,
    /// It should have come by now.
    Overdue(Unschedulable),
}

impl Reader {
    pub fn new(scheduler_names: &[String], compat: &Compat, reservations: &str) -> Reader {
        Reader {
            ours: compat.scheduler_names(scheduler_names),
            replaces_kueue: compat.is_for(Peer::Kueue),
            reservations: reservations.to_owned(),
            gates: compat.gates(),
            levels: Mutex::default(),
            native: Native::default(),
        }
    }

    /// Whether a pod is ours, or would be if something around it said so.
    pub fn may_be_ours(&self, pod: &Pod) -> bool {
        self.replaces_kueue || self.ours.contains(&*pod.spec.scheduler_name)
    }

    /// Whether a gate is ours to lift: one that we have put there, or one of those whose place we
    /// take.
    fn may_open(&self, gate: &str) -> bool {
        gate == GATE || self.gates.contains(&gate)
    }

    /// Whether pods that name this scheduler wait for us to give them a node.
    pub fn is_our_scheduler(&self, name: &str) -> bool {
        self.ours.contains(name)
    }

    fn is_ours(&self, pod: &Pod, context: &ReadContext) -> bool {
        self.ours.contains(&*pod.spec.scheduler_name)
            || self.replaces_kueue && names::queue_of_kueue(pod, context.around.owners).is_some()
    }

    pub fn pod(&self, pod: &Pod, context: &ReadContext) -> PodView {
        let meta = &pod.metadata;
        let need = ResourceRequests::of(pod);
        let asks = need.as_ref().map(|need| asks(need, pod)).unwrap_or_default();
        let node = (!pod.spec.node_name.is_empty()).then(|| Name::new(&pod.spec.node_name));
        let is_bound = node.is_some();
        let in_use = if is_bound { ResourcesInUse::by(pod, &need) } else { None };
        let is_open = |missing: &&Missing| !is_bound && matches!(missing, Missing::Expected);
        let ours = self.is_ours(pod, context) && context.missing.as_ref().filter(is_open).is_none();
        let managed = if ours { ManagedPodView::read(pod).map(Arc::new) } else { None };
        PodView {
            at: PodRef {
                namespace: meta.namespace.to_string(),
                name: meta.name.to_string(),
                uid: meta.uid.to_string(),
            },
            version: meta.resource_version.to_string(),
            node,
            phase: phase(pod),
            is_leaving: meta.deletion_timestamp.is_some(),
            // One that is gone makes no other.
            is_replaced: meta.controller().is_some() && context.missing.is_none(),
            owner: {
                let nearest = || meta.controller().map(|owner| owner.uid.clone());
                context.around.owners.last().map(|top| top.metadata.uid.clone()).or_else(nearest)
            },
            is_tracked: meta.finalizers.iter().any(|name| **name == *JOB_TRACKING),
            is_gated: pod.spec.scheduling_gates.iter().any(|gate| !self.may_open(&gate.name)),
            is_ours_to_open: !pod.spec.scheduling_gates.is_empty(),
            asks,
            takes: in_use.map(|in_use| Box::new(takes(in_use, pod))),
            claims: claims(pod),
            holds: GpuReservation::of(pod).filter(|_| *meta.namespace == *self.reservations),
            shares: meta.annotation(gpu_sharing::GPUS).map(str::to_owned),
            labels: Arc::new(meta.labels.clone()),
            // `request` reports constraints that are not understood.
            constraints: PodConstraints::of(pod).ok().flatten().map(Arc::new),
            request: (ours && managed.is_none()).then(|| {
                let request = self.checked_request(pod, need, context);
                request.map(Arc::new).map_err(Box::new)
            }),
            managed,
        }
    }

    /// The request of a pod whose resources are understood. A pod that waits has to have all that
    /// it depends on; one that is bound goes on without.
    fn checked_request(
        &self,
        pod: &Pod,
        need: Result<ResourceRequests, requests::Error>,
        context: &ReadContext,
    ) -> Result<SchedulingRequest, Unschedulable> {
        check_gpu_variable(pod, &need?)?;
        match &context.missing {
            Some(Missing::Overdue(why)) if pod.spec.node_name.is_empty() => Err(why.clone()),
            _ => self.request(pod, context),
        }
    }

    pub fn request(
        &self,
        pod: &Pod,
        context: &ReadContext,
    ) -> Result<SchedulingRequest, Unschedulable> {
        let (meta, spec) = (&pod.metadata, &pod.spec);
        if let Some(field) = spec.unknown.first() {
            return Err(Unschedulable::UnknownField { field: field.clone() });
        }
        let dynamic = InterPodConstraints::of(pod)?;
        let mark = gang::read(pod, context.around).map_err(Unschedulable::Annotations)?;
        let GroupKey { namespace, kind, name, uid } = &mark.key;
        let members = match members(&mark) {
            Some(members) => members,
            // It has begun, however many there are.
            None if !spec.node_name.is_empty() => 1,
            None => return Err(Unschedulable::UnknownGangSize { gang: name.clone() }),
        };
        let queue = mark.queue.as_ref();
        let queue = queue.map(|queue| context.names.queue(pod, context.around.owners, queue));
        let queue = named(spec, queue.transpose())?;
        let constraint = NodeConstraint::of(spec)?;
        let tolerates_cordon = constraint.tolerance.tolerates_cordon();
        let Rules { mut rules, mut labels } = self.native.rules(constraint);
        let others = mark.node_pool.as_ref().map(node_pool).into_iter().chain(vgpu::rules(spec));
        for other in others {
            labels.need.extend(need(std::slice::from_ref(&other)));
            rules.push(other);
        }
        let class = named(spec, class(pod, &mark, context.names))?;
        let part = mark.subgroup.as_ref();
        let place =
            |ask: Option<TopologyAsk>| named(spec, context.names.place(ask.unwrap_or_default()));
        let topology = place(part.and_then(|part| part.topology.clone()))?;
        let mut above = Vec::new();
        for one in part.iter().flat_map(|part| &part.above) {
            let found = place(Some(one.topology.clone()))?;
            above.extend(found.map(|topology| ParentGroup { topology, name: one.name.clone() }));
        }
        let together = place(mark.topology.clone())?;
        let limit = spec.active_deadline_seconds.map(Span::secs);
        Ok(SchedulingRequest {
            name: if members > 1 { name.clone() } else { Name::new(&meta.name) },
            gang: GangKey {
                namespace: namespace.clone(),
                name: Name::new(&format!("{kind:?}/{name}/{}", uid.as_deref().unwrap_or_default())),
            },
            alone: *kind == GangKind::Pod,
            members,
            min: mark.min.unwrap_or(members).min(members),
            part: part.map(|part| (part.name.clone(), part.min)),
            needed: mark.needed.clone().into(),
            later: later(&mark, context.around.owners),
            queue,
            priority: class.value.saturating_add(mark.boost),
            preemptible: mark.preemptible.unwrap_or(true),
            min_runtime: mark.min_runtime,
            preempt_after: if class.waits { Some(NO_PREEMPTION) } else { mark.preempt_after },
            time_limit: mark.time_limit.or(limit),
            is_service: matches!(&*spec.restart_policy, "" | "Always"),
            tolerates_cordon,
            grace: spec.termination_grace_period_seconds.map_or(DEFAULT_GRACE, Span::secs),
            created: meta.creation_timestamp.unwrap_or(Time(0)),
            topology,
            above,
            together,
            labels,
            rules,
            ports: native::ports(&dynamic, spec),
            ignored: mark.ignored.iter().map(ToString::to_string).collect(),
        })
    }

    /// Which nodes take pods that Berth makes with these tolerations.
    pub fn predicates_for(&self, tolerations: serde_json::Value) -> Vec<NodePredicate> {
        let spec = serde_json::from_value(serde_json::json!({ "tolerations": tolerations }));
        let spec: PodSpec = spec.expect("we wrote it");
        let constraint = NodeConstraint::of(&spec).expect("we understand ourselves");
        self.native.rules(constraint).rules
    }

    /// From now on these labels say where a node is, too.
    pub fn add_topology_labels(&self, topologies: &BTreeMap<Name, Vec<Name>>) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = topologies.iter().filter(|(name, _)| name.as_str() != hypernode::TOPOLOGY);
        levels.extend(labels.flat_map(|(_, levels)| levels).cloned());
    }

    /// A node that cannot be read takes nothing new; the others can be used.
    pub fn node(&self, node: &Node) -> NodeView {
        let object = Arc::new(node.clone());
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let known = node::TOPOLOGY_KEYS.iter().copied();
        let keys: Vec<&str> = known.chain(levels.iter().map(Name::as_str)).collect();
        let reading = match node::read(node, &keys) {
            Ok(reading) => reading,
            Err(error) => {
                let name = &*node.metadata.name;
                tracing::warn!(%error, node = name, "a node takes nothing new");
                let spec = nothing(name);
                return NodeView {
                    spec,
                    devices: DevicePluginResources::default(),
                    claimable: Arc::default(),
                    object,
                    is_unreadable: true,
                };
            }
        };
        // Taints are part of the rules, which know all that a toleration can say.
        let mut spec = NodeSpec { taints: Vec::new(), ..reading.spec };
        self.native.note_taints(node);
        (spec.tasks, spec.counted) = native::counted(reading.other);
        for gpu in &mut spec.gpus {
            // A GPU of unknown size is too small for every request by memory.
            gpu.memory = gpu.memory.max(Bytes(1));
        }
        let devices = reading.devices;
        NodeView { spec, devices, claimable: Arc::default(), object, is_unreadable: false }
    }
}

/// A node of which only the name is known.
fn nothing(name: &str) -> NodeSpec {
    NodeSpec {
        name: Name::new(name),
        gpus: Vec::new(),
        cpu: Some(Cpu(0)),
        memory: Some(Bytes(0)),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Cordoned,
        price: None,
        pool: None,
        lifecycle: Lifecycle::OnDemand,
        tasks: Some(0),
        counted: BTreeMap::new(),
    }
}

/// So many pods have to be there before the gang is begun.
fn members(mark: &GangAnnotations) -> Option<u32> {
    match mark.key.kind {
        // The others are made only when the leader is ready.
        GangKind::LeaderWorkerSet if mark.min == Some(1) => Some(1),
        _ => mark.members.or(mark.min),
    }
}

fn later(mark: &GangAnnotations, owners: &[&Owner]) -> LateMember {
    let has_more_to_do = |owner: &&Owner| {
        let OwnerSpec { parallelism, completions, .. } = &owner.spec;
        completions.is_some_and(|completions| completions > parallelism.unwrap_or(1))
    };
    match mark.key.kind {
        GangKind::Job if owners.first().is_some_and(has_more_to_do) => LateMember::ApartForGood,
        GangKind::KaiPodGroup
        | GangKind::VolcanoPodGroup
        | GangKind::PodGroup
        | GangKind::Owner => LateMember::Apart,
        GangKind::LeaderWorkerSet | GangKind::Ray if mark.min < mark.members => LateMember::Apart,
        _ => LateMember::Waits,
    }
}

/// What a name stands for. Of a pod that has its node the name may be gone by now: that ends nothing.
fn named<T: Default>(spec: &PodSpec, found: Result<T, Unschedulable>) -> Result<T, Unschedulable> {
    match found {
        Err(_) if !spec.node_name.is_empty() => Ok(T::default()),
        found => found,
    }
}

/// How urgent a pod is, and whether it waits rather than displaces others.
fn class(pod: &Pod, mark: &GangAnnotations, names: &Names) -> Result<Class, Unschedulable> {
    let spec = &pod.spec;
    let own = Some(&*spec.priority_class_name).filter(|name| !name.is_empty());
    let class = match (own, spec.priority, mark.priority, &mark.priority_class) {
        // A class that Kubernetes knows has been looked up by the API server, but in templates.
        (Some(_), Some(value), ..) => Class { value, waits: false },
        (Some(name), None, ..) => names.class(&Name::new(name))?,
        (None, _, Some(value), class) => {
            let known = class.as_ref().and_then(|class| names.classes.get(class));
            Class { value, waits: known.is_some_and(|known| known.waits) }
        }
        (None, _, None, Some(class)) => names.class(class)?,
        (None, Some(value), None, None) => Class { value, waits: false },
        (None, None, None, None) => names.usual,
    };
    let waits = class.waits || spec.preemption_policy.as_deref() == Some("Never");
    Ok(Class { waits, ..class })
}

/// KAI divides nodes into pools by a label.
fn node_pool(pool: &Name) -> NodePredicate {
    const KEY: &str = "kai.scheduler/node-pool";
    let wanted = pool.clone();
    let allows = move |node: &NodeView| node.object.metadata.label(KEY) == Some(wanted.as_str());
    let name = Name::new(&format!("the label {KEY}={pool}"));
    NodePredicate { name, allows: Arc::new(allows), asks: Asks::Named }
}

/// Containers that share a GPU have to learn from a variable which one it is.
fn check_gpu_variable(pod: &Pod, need: &ResourceRequests) -> Result<(), Unschedulable> {
    match need.gpus {
        GpuRequest::Fraction { .. } | GpuRequest::Memory { .. }
            if !gpu_sharing::has_gpu_variable(pod) =>
        {
            Err(Unschedulable::MissingGpuVariable)
        }
        _ => Ok(()),
    }
}

fn asks(need: &ResourceRequests, pod: &Pod) -> PodResources {
    let counted = native::asks(&need.other, &pod.spec);
    PodResources { cpu: need.cpu, memory: need.memory, gpus: need.gpus.clone(), counted }
}

fn takes(in_use: ResourcesInUse, pod: &Pod) -> ResourceUsage {
    let ResourcesInUse { cpu, memory, gpus, other } = in_use;
    ResourceUsage { cpu, memory, gpus, counted: native::asks(&other, &pod.spec) }
}

fn claims(pod: &Pod) -> Vec<DeviceClaimRef> {
    let made = &pod.status.resource_claim_statuses;
    let uses = pod.spec.resource_claims.iter().map(|claim| match &claim.resource_claim_name {
        Some(name) => DeviceClaimRef { source: name.clone(), name: Some(name.clone()) },
        None => DeviceClaimRef {
            source: claim.resource_claim_template_name.clone().unwrap_or_default(),
            name: made
                .iter()
                .find(|made| made.name == claim.name)
                .and_then(|made| made.resource_claim_name.clone()),
        },
    });
    uses.collect()
}

fn phase(pod: &Pod) -> Phase {
    match &*pod.status.phase {
        "Succeeded" => Phase::Succeeded,
        "Failed" => {
            let ends = pod.status.container_statuses.iter();
            let ends = ends.filter_map(|status| status.state.terminated.as_ref());
            let failed = ends.max_by_key(|end| end.exit_code != 0);
            let is_disrupted = |condition: &Condition| {
                &*condition.kind == "DisruptionTarget" && &*condition.status == "True"
            };
            if pod.status.conditions.iter().any(is_disrupted) {
                return Phase::Evicted;
            }
            Phase::Failed {
                code: failed.map(|end| end.exit_code).filter(|code| *code != 0),
                out_of_memory: failed.is_some_and(|end| &*end.reason == "OOMKilled"),
            }
        }
        "Running" => Phase::Running,
        _ => Phase::Pending,
    }
}

#[cfg(test)]
mod tests;
