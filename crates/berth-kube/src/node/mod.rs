//! A Kubernetes node becomes a node of the model, with its GPUs as the device plugin and GPU
//! feature discovery tell of them.

mod gpus;
mod mig;
mod product;
mod state;

pub use product::model;

use crate::object::{Labels, Map, Node, Raw, Text};
use crate::pod::requests::DevicePluginResources;
use crate::quantity::{self, Quantity};
use berth_model::{Bytes, Cpu, Effect, Lifecycle, Name, NodeSpec, Taint};
use std::collections::BTreeMap;

/// Labels that say where a node is. Other labels stay out of the model: constraints look at them
/// here, and a node has dozens.
pub const TOPOLOGY_KEYS: [&str; 12] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/block",
    "topology.kubernetes.io/rack",
    "cloud.provider.com/topology-block",
    "cloud.provider.com/topology-rack",
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    "nvidia.com/gpu.clique",
];

/// A node as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReading {
    pub spec: NodeSpec,
    /// What `nvidia.com/gpu` and `nvidia.com/gpu.shared` mean here.
    pub devices: DevicePluginResources,
    /// Every other resource it has, such as `pods`, `ephemeral-storage` or `rdma/hca`.
    pub other: BTreeMap<Name, i64>,
    /// Why the node is not ready, in words, where it is not.
    pub not_ready_reason: Option<&'static str>,
}

/// Why a node cannot be used. The others can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("allocatable {resource}: {source}")]
    Quantity { resource: String, source: quantity::Error },
    #[error("label {key} is `{value}`; GPU feature discovery writes {expected} there")]
    Label { key: &'static str, value: String, expected: &'static str },
    #[error(
        "there are {count} of {resource} and {replicas} replicas for each GPU: the label \
         nvidia.com/gpu.replicas does not fit the device plugin"
    )]
    Replicas { resource: &'static str, count: u32, replicas: u32 },
    #[error("{product} is a shared MIG instance; share whole GPUs or use MIG without sharing")]
    SharedInstance { product: String },
    #[error("{model} has no MIG profile {profile} that we know")]
    Profile { model: Name, profile: Name },
    #[error(
        "{instances} MIG instances do not fit on {gpus} of {model}; see that the label \
         nvidia.com/gpu.count is right"
    )]
    Layout { model: Name, instances: usize, gpus: usize },
    #[error("the node has GPUs of two makers; nodes with one kind can be used")]
    TwoMakers,
}

/// Reads a node; of its labels those in `topology_keys` go into the model.
pub fn read<K: AsRef<str>>(node: &Node, topology_keys: &[K]) -> Result<NodeReading, Error> {
    let labels = &node.metadata.labels;
    let mut amounts = amounts(&node.status.allocatable)?;
    let cpu = amounts.remove("cpu").map(|cpu| whole("cpu", cpu, Quantity::milli)).transpose()?;
    let memory = amounts
        .remove("memory")
        .map(|memory| whole("memory", memory, Quantity::whole))
        .transpose()?;
    let (gpus, devices) = gpus::of(labels, &mut amounts)?;
    let mut other = BTreeMap::new();
    for (resource, amount) in amounts {
        other.insert(Name::new(&resource), whole(&resource, amount, Quantity::whole)?);
    }
    let (state, not_ready_reason) = state::of(node);
    let spec = NodeSpec {
        name: Name::new(&node.metadata.name),
        gpus,
        cpu: cpu.map(Cpu),
        memory: memory.map(Bytes),
        labels: places(labels, topology_keys),
        taints: node.spec.taints.iter().filter_map(taint).collect(),
        nvlink: Vec::new(),
        state,
        price: None,
        pool: None,
        lifecycle: lifecycle(labels),
        tasks: None,
        counted: BTreeMap::new(),
    };
    Ok(NodeReading { spec, devices, other, not_ready_reason })
}

fn amounts(allocatable: &Map<Raw>) -> Result<BTreeMap<Text, Quantity>, Error> {
    let parsed = allocatable.iter().map(|(resource, raw)| match raw.as_str().parse() {
        Ok(amount) => Ok((resource.into(), amount)),
        Err(source) => Err(Error::Quantity { resource: resource.to_owned(), source }),
    });
    parsed.collect()
}

fn whole(
    resource: &str,
    amount: Quantity,
    unit: fn(Quantity) -> Result<i64, quantity::Error>,
) -> Result<i64, Error> {
    unit(amount).map_err(|source| Error::Quantity { resource: resource.to_owned(), source })
}

fn places<K: AsRef<str>>(labels: &Labels, keys: &[K]) -> BTreeMap<Name, Name> {
    let found = keys.iter().filter_map(|key| {
        let value = labels.get(key.as_ref())?;
        Some((Name::new(key.as_ref()), Name::new(value)))
    });
    found.collect()
}

/// An effect of which the model knows nothing stays with the constraints, which heed it.
fn taint(written: &crate::object::Taint) -> Option<Taint> {
    let effect = match &*written.effect {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => return None,
    };
    Some(Taint { key: Name::new(&written.key), value: Name::new(&written.value), effect })
}

/// How the machine was bought, by whatever bought it. Without a word it is on demand.
fn lifecycle(labels: &Labels) -> Lifecycle {
    const SPOT: [(&str, &str); 5] = [
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    ];
    const RESERVED: [(&str, &str); 2] = [
        ("karpenter.sh/capacity-type", "reserved"),
        ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"),
    ];
    let says = |known: &[(&str, &str)]| {
        known.iter().any(|(key, value)| labels.get(key).is_some_and(|found| **found == **value))
    };
    if says(&SPOT) {
        Lifecycle::Spot
    } else if says(&RESERVED) {
        Lifecycle::Reserved
    } else {
        Lifecycle::OnDemand
    }
}

#[cfg(test)]
mod tests;
