//! Turns the pods of a gang into a job of the core.

mod placement;

use super::device_claims::{ClaimedDevices, Claims, DeviceClaimError};
use super::nodes::Nodes;
use crate::constraints::{is_there, need};
use crate::view::PodConstraints;
use crate::view::{PodView, SchedulingRequest};
use berth_kube::gang::ParentGroup;
use berth_kube::pod::requests::GpuRequest;
use berth_model::PodRef;
use berth_model::{
    Bytes, Cpu, GpuAsk, GroupSpec, JobKind, JobRequest, LabelAsk, Name, PodWorkload, Policy, Span,
    TopologyAsk, Workload,
};
use placement::placed;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pods that ask for the same are one group of tasks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    /// First, so that groups that have to be together follow one another. Of groups that are
    /// equally large the core places the first one first, so groups that may be anywhere come last.
    above: Reverse<Vec<ParentGroup>>,
    may_be_anywhere: bool,
    part: Option<(Name, Option<u32>)>,
    cpu: Cpu,
    memory: Bytes,
    gpus: GpuAsk,
    counted: BTreeMap<Name, i64>,
    labels: LabelAsk,
    topology: Option<TopologyAsk>,
    constraints: Option<Arc<PodConstraints>>,
}

/// Why pods cannot be made a job for now.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    #[error("one of them is not ours")]
    External,
    #[error("no node hands out nvidia.com/gpu.shared; the pod is looked at again when one does")]
    NotShared,
    #[error(transparent)]
    Claim(#[from] DeviceClaimError),
    #[error("it claims devices and asks for GPUs as resources; do one of the two")]
    ClaimedAndRequested,
}

/// A job whose tasks are these pods, in the order of the pods it names. They are all of one gang.
pub fn request(
    pods: &[&PodView],
    queue: &Name,
    nodes: &Nodes,
    claims: &Claims,
    policy: &Policy,
) -> Result<JobRequest, Unready> {
    let mut alike: BTreeMap<Alike, Vec<&PodView>> = BTreeMap::new();
    let mut first: Option<&SchedulingRequest> = None;
    for pod in pods {
        let request = pod.request.as_ref().and_then(|request| request.as_ref().ok());
        let request = request.ok_or(Unready::External)?;
        // The oldest pod decides what holds for the gang as a whole.
        let known = first.get_or_insert(request);
        if request.created < known.created {
            *known = request;
        }
        let mut labels = request.labels.clone();
        let gpus = match claims.wanted(pod)? {
            Some(wanted) => claimed(pod, wanted, &mut labels)?,
            None => {
                let given = nodes.given(&pod.asks.gpus, &request.rules);
                let (gpus, label) = given.ok_or(Unready::NotShared)?;
                labels.need.extend(label.map(is_there));
                gpus
            }
        };
        let key = Alike {
            above: Reverse(request.above.clone()),
            may_be_anywhere: request.topology.is_none(),
            part: request.part.clone(),
            cpu: pod.asks.cpu,
            memory: pod.asks.memory,
            gpus,
            counted: pod.asks.counted.clone(),
            labels,
            topology: request.topology.clone(),
            constraints: pod.constraints.clone(),
        };
        alike.entry(key).or_default().push(pod);
    }
    let request = first.ok_or(Unready::External)?;
    let mut refs = Vec::with_capacity(pods.len());
    let mut groups = Vec::with_capacity(alike.len());
    let count = pods.len() as u32;
    let several = alike.len() > 1;
    for (at, (key, mut members)) in alike.into_iter().enumerate() {
        // Ranks are numbered by names, and w-10 comes after w-9.
        members.sort_by(|a, b| {
            let key = |pod: &PodView| (pod.at.name.len(), pod.at.name.clone());
            key(a).cmp(&key(b))
        });
        let all = members.len() as u32;
        // Of several kinds of pods no field says which can be spared.
        let part = key.part.as_ref().and_then(|(_, min)| *min);
        let min = part.unwrap_or(if several { all } else { request.min }).min(all);
        refs.extend(members.iter().map(|pod| pod.at.clone()));
        let above = key.above.0.clone();
        groups.push((above, group(&format!("g{at}"), all, min, key)));
    }
    let groups = placed(groups, request.together.as_ref());
    let asks = asks(count, &groups);
    let workload = Workload::Pods(PodWorkload { pods: refs, grace: request.grace });
    let time_limit = Some(time_limit(request, policy));
    Ok(JobRequest { asks, time_limit, ..request_for(request, queue, groups, workload) })
}

/// GPUs that a pod claims are whole ones of nodes that have such.
fn claimed(
    pod: &PodView,
    wanted: ClaimedDevices,
    labels: &mut LabelAsk,
) -> Result<GpuAsk, Unready> {
    if pod.asks.gpus != GpuRequest::None {
        return Err(Unready::ClaimedAndRequested);
    }
    labels.need.extend(need(&wanted.rules));
    Ok(match wanted.count {
        0 => GpuAsk::None,
        count => GpuAsk::Whole { count },
    })
}

fn group(name: &str, count: u32, min: u32, key: Alike) -> GroupSpec {
    let Alike { cpu, memory, gpus, counted, labels, topology, .. } = key;
    GroupSpec {
        name: Name::new(name),
        count,
        min,
        groups: Vec::new(),
        gpus,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu,
        memory,
        topology,
        spread: None,
        labels,
        tolerations: Vec::new(),
        near: Vec::new(),
        counted,
        nodes: None,
    }
}

fn request_for(
    request: &SchedulingRequest,
    queue: &Name,
    groups: Vec<GroupSpec>,
    workload: Workload,
) -> JobRequest {
    JobRequest {
        name: request.name.clone(),
        kind: JobKind::Job,
        queue: queue.clone(),
        user: request.gang.namespace.clone(),
        project: request.gang.namespace.clone(),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: request.priority,
        preemptible: request.preemptible,
        lifecycle: None,
        time_limit: None,
        deadline: None,
        restart_cost: None,
        grace: Some(request.grace),
        min_runtime: request.min_runtime,
        preempt_after: request.preempt_after,
        array: None,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups,
        workload,
        file: String::new(),
        asks: String::new(),
        resume_from: None,
    }
}

/// Pods end when they say so, or when the policy says so for their class of work. Others have no
/// limit: the default of Berth's own jobs would end what a controller keeps running.
pub fn time_limit(request: &SchedulingRequest, policy: &Policy) -> Span {
    let of_class =
        if request.is_service { policy.service_pod_time_limit } else { policy.pod_time_limit };
    let of_class = Some(of_class).filter(|limit| *limit > Span::ZERO);
    request.time_limit.or(of_class).unwrap_or(Span::UNLIMITED).min(Span::UNLIMITED)
}

/// A short text of what the pods ask for.
fn asks(count: u32, groups: &[GroupSpec]) -> String {
    let groups: Vec<&GroupSpec> = groups.iter().flat_map(GroupSpec::leaves).collect();
    let gpus: u32 = groups.iter().map(|group| group.gpus.count() * group.count).sum();
    let pods = if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") };
    match groups.iter().map(|group| &group.gpus).find(|ask| !matches!(ask, GpuAsk::None)) {
        None => pods,
        Some(GpuAsk::Whole { .. }) if gpus == 1 => format!("{pods}, 1 GPU"),
        Some(GpuAsk::Whole { .. }) => format!("{pods}, {gpus} GPUs"),
        Some(_) => format!("{pods}, parts of {gpus} GPUs"),
    }
}

/// The pods of a job by task, as its row keeps them.
pub fn refs(pods: &[PodRef]) -> impl Iterator<Item = (u32, &PodRef)> {
    pods.iter().enumerate().map(|(task, pod)| (task as u32, pod))
}
