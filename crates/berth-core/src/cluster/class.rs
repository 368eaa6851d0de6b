//! Classes: nodes that are interchangeable for every request.

use crate::ix::{ClassIx, ModelIx, NodeIx};
use berth_model::{Effect, Lifecycle, Name, Taint};
use std::collections::{BTreeMap, BTreeSet};

/// What makes nodes interchangeable for every request, as far as it does not change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassKey {
    pub gpus: Vec<(ModelIx, i64)>,
    pub labels: BTreeMap<Name, Name>,
    pub taints: Vec<Taint>,
    pub lifecycle: Lifecycle,
    pub cpu_bound: bool,
    pub memory_bound: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub key: ClassKey,
    pub gpus: u32,
    /// How many nodes are of it now; a class outlives its nodes.
    pub nodes: u32,
    /// The model of all its GPUs; `None` where they differ or there are none.
    pub model: Option<ModelIx>,
    /// Uncontested open nodes by the number of their free GPUs.
    pub buckets: Vec<BTreeSet<NodeIx>>,
}

impl Class {
    pub fn repelling_taints(&self) -> impl Iterator<Item = &Taint> {
        self.key.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule)
    }
}

/// Counts over the nodes of one class in one domain. `free[g]`: how many tasks of `g` GPUs fit the
/// uncontested nodes; `room[g]`: how many would fit all open nodes if nothing were promised; `empty[g]`:
/// how many would fit if nothing ran.
#[derive(Debug, Clone)]
pub(crate) struct ClassCount {
    pub class: ClassIx,
    pub free: Vec<u32>,
    pub room: Vec<u32>,
    pub empty: Vec<u32>,
}
