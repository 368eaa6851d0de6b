//! Machines with GPUs, as they are observed.

use crate::gpu::Division;
use crate::mig::MigSlot;
use crate::{Bytes, Cpu, Micros, Name, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    #[default]
    Ok,
    Failed,
}

/// One GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuSpec {
    pub model: Name,
    pub memory: Bytes,
    #[serde(default)]
    pub health: Health,
    /// The MIG instances that exist; `None` while MIG is off.
    #[serde(default)]
    pub mig: Option<Vec<MigSlot>>,
    /// Where somebody else says how it is handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    pub key: Name,
    #[serde(default)]
    pub value: Name,
    pub effect: Effect,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Lifecycle {
    Spot,
    #[default]
    OnDemand,
    Reserved,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    #[default]
    Ready,
    /// Takes no new work; what runs goes on.
    Cordoned,
    /// Takes no new work; what runs is asked to move.
    Draining,
    /// Takes no new work until it can start processes again: its disk is full, or the like. What
    /// runs goes on.
    Troubled,
    /// Nothing runs there any more.
    Failed,
    /// Will be gone at that time (a spot notice): a deadline for whatever is on it.
    Leaving { at: Time },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub name: Name,
    pub gpus: Vec<GpuSpec>,
    /// `None`: CPU does not bind on this node. The same for memory.
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    pub labels: BTreeMap<Name, Name>,
    pub taints: Vec<Taint>,
    /// GPU indices that share an NVLink island; GPUs in no list are an island each, and a node
    /// without lists is one island.
    pub nvlink: Vec<Vec<u32>>,
    pub state: NodeState,
    /// Dollars an hour for the whole node; without one the prices of its GPU models count.
    pub price: Option<Micros>,
    pub pool: Option<Name>,
    pub lifecycle: Lifecycle,
    /// So many tasks at the most, whatever they ask for; `None`: their number does not bind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// Whatever else it has that is counted in pieces or bytes, such as `rdma/hca`. Of what is not
    /// named here it has nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<Name, i64>,
}
