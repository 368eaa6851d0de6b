//! What the mirror has to know of a pod or a node, read once when it is seen.

use berth_kube::PodRef;
use berth_model::{Bytes, Cpu, GpuAsk, LabelAsk, Name, NodeSpec, Span, Time, TopologyAsk};
use std::sync::Arc;

/// A pod as it was last seen.
#[derive(Debug, Clone)]
pub struct PodSight {
    pub at: PodRef,
    /// Where it is bound.
    pub node: Option<Name>,
    pub phase: Phase,
    /// Somebody asked it to end.
    pub is_leaving: bool,
    /// Somebody has yet to allow that it is scheduled, and says so on it.
    pub is_gated: bool,
    /// A controller makes another one when this one goes.
    pub is_replaced: bool,
    pub asks: Asks,
    /// Nothing for pods of other schedulers.
    pub wish: Option<Result<Arc<Wish>, String>>,
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
}

impl Phase {
    pub const fn is_over(&self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed { .. })
    }
}

/// What a pod takes of its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Asks {
    pub cpu: Cpu,
    pub memory: Bytes,
    pub gpus: GpuAsk,
}

/// How a pod of ours wants to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub gang: GangKey,
    /// It belongs to no gang.
    pub alone: bool,
    /// So many pods make the gang whole; it is not begun with fewer.
    pub members: u32,
    /// So many have to run for the others to be of use.
    pub min: u32,
    /// The part of the gang it belongs to, and how many of that have to run.
    pub part: Option<(Name, Option<u32>)>,
    pub queue: Option<Name>,
    pub name: Name,
    pub priority: i32,
    pub preemptible: bool,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub time_limit: Option<Span>,
    pub grace: Span,
    pub created: Time,
    pub topology: Option<TopologyAsk>,
    /// The rules that say on which nodes it may and should run, by their names.
    pub labels: LabelAsk,
    pub rules: Vec<Rule>,
}

/// Pods with the same key are one gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangKey {
    pub namespace: Name,
    pub name: Name,
}

/// On which nodes a pod may run, under a name that says it in words. Nodes are told apart by it as
/// by a label.
#[derive(Clone)]
pub struct Rule {
    pub name: Name,
    pub allows: Arc<dyn Fn(&NodeSight) -> bool + Send + Sync>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.name.fmt(f)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

/// A node as it was last seen.
#[derive(Debug, Clone)]
pub struct NodeSight {
    /// Without what pods of other schedulers take, and without rules.
    pub spec: NodeSpec,
    pub object: Arc<berth_kube::object::Node>,
}
