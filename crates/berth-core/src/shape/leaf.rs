//! A leaf group of a request: like tasks, what each needs, and where they may lie.

use crate::cluster::Cluster;
use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::{Need, Node, Requester};
use crate::cluster::tenants::Apart;
use crate::ix::{ClassIx, DomainIx, JobIx, NodeIx, QueueIx};
use berth_model::{GpuAsk, GroupSpec, JobTarget, MigProfile, Name, NodeAsk, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where tasks must or should lie together, resolved against the topologies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Together {
    pub required: Option<Level>,
    pub preferred: Option<Level>,
    pub segment: Option<(u32, Level)>,
    pub topology: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct NearAsk {
    pub target: JobTarget,
    pub level: Level,
    pub away: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub spec: GroupSpec,
    /// The number of its first task.
    pub first: u32,
    pub count: u32,
    pub min: u32,
    pub need: Need,
    pub together: Together,
    pub spread: Option<(Level, u32)>,
    pub near: Vec<NearAsk>,
    /// Label needs that name topology keys differ between nodes of one class.
    pub node_labels: BTreeMap<Name, Name>,
    /// Nodes it may lie on, by name.
    pub nodes: Option<Arc<NodeAsk>>,
    /// Acceptable classes in order of preference, each step tried before the next.
    pub tiers: Vec<Vec<ClassIx>>,
    /// The same, the fastest models first: for a job whose deadline leaves no choice.
    pub fast: Vec<Vec<ClassIx>>,
    /// All of them.
    pub classes: Vec<ClassIx>,
}

impl Leaf {
    pub fn whole(&self) -> Option<u32> {
        match self.need.ask {
            GpuAsk::Whole { count } => Some(count),
            _ => None,
        }
    }

    /// Whether counting free GPUs by class tells exactly how many tasks fit clean nodes.
    pub fn countable(&self, cluster: &Cluster) -> bool {
        self.whole().is_some()
            && !self.need.island
            && !self.is_particular()
            && self.near.is_empty()
            && self.need.counted.is_empty()
            && self.classes.iter().all(|class| {
                let class = &cluster.classes[class.at()];
                class.model.is_some()
                    && (self.need.cpu == 0 || !class.key.cpu_bound)
                    && (self.need.memory == 0 || !class.key.memory_bound)
            })
    }

    /// Whether so many tasks could lie where they must with what is free now, promises left aside.
    /// A no is certain.
    pub fn has_room(&self, cluster: &Cluster, n: u32) -> bool {
        let Some(g) = self.whole() else { return true };
        if cluster.room(WHOLE, &self.classes, g) < n {
            return false;
        }
        match self.together.required {
            Some(Level::Label { topology, depth }) => cluster
                .domains_of(topology, depth)
                .any(|domain| cluster.room(domain, &self.classes, g) >= n),
            Some(Level::Node | Level::Nvlink) | None => true,
        }
    }

    /// Whether it suits some nodes of a class and not others.
    pub fn is_particular(&self) -> bool {
        !self.node_labels.is_empty() || self.nodes.is_some()
    }

    /// Whether of several nodes it may lie on one alone, as a pod of a DaemonSet.
    pub fn is_pinned(&self, cluster: &Cluster) -> bool {
        let only = self.nodes.as_ref().and_then(|nodes| nodes.only.as_ref());
        if only.is_some_and(|only| only.len() == 1) {
            return true;
        }
        let suits = |node: &&Node| self.classes.contains(&node.class) && self.suits(node);
        let some = |count: usize| cluster.live().map(|(_, node)| node).take(count).count();
        let suitable = cluster.live().map(|(_, node)| node).filter(suits).take(2).count();
        suitable == 1 && some(2) == 2
    }

    /// Whether a node has the labels that differ inside its class, and is none it must not lie on.
    pub fn suits(&self, node: &Node) -> bool {
        self.node_labels.iter().all(|(key, value)| node.spec.labels.get(key) == Some(value))
            && self.nodes.as_ref().is_none_or(|nodes| nodes.admits(&node.spec.name))
    }

    pub fn gpu_milli(&self, cluster: &Cluster) -> i64 {
        let count = i64::from(self.need.ask.count());
        match &self.need.ask {
            GpuAsk::None => 0,
            GpuAsk::Whole { .. } => count * 1_000,
            GpuAsk::Fraction { milli, .. } => milli.0 * count,
            GpuAsk::Mps { percent, .. } => i64::from(*percent) * 10 * count,
            GpuAsk::TimeSlice { of, .. } => 1_000 / i64::from((*of).max(1)) * count,
            GpuAsk::Mig { profile, .. } => {
                let milli = self.classes.iter().find_map(|class| {
                    let model = cluster.classes[class.at()].model?;
                    MigProfile::find(&cluster.models[model.at()], profile)
                });
                milli.map_or(1_000 / 7, MigProfile::milli) * count
            }
            GpuAsk::Memory { bytes, .. } => {
                let largest = self
                    .classes
                    .iter()
                    .flat_map(|class| &cluster.classes[class.at()].key.gpus)
                    .map(|(_, memory)| *memory)
                    .max();
                largest.map_or(1_000, |memory| {
                    (i128::from(bytes.0) * 1_000 / i128::from(memory.max(1))) as i64
                }) * count
            }
        }
    }

    /// How many of its tasks the best domain it may lie in could hold if nothing ran: exact for
    /// whole GPUs where CPU and memory do not bind.
    pub fn empty_fit(&self, cluster: &Cluster) -> u32 {
        match self.together.required {
            None => self.empty_fit_in(cluster, WHOLE),
            Some(Level::Label { topology, depth }) => cluster
                .domains_of(topology, depth)
                .map(|domain| self.empty_fit_in(cluster, domain))
                .max()
                .unwrap_or(0),
            Some(Level::Node | Level::Nvlink) => cluster
                .live()
                .filter(|(_, node)| self.classes.contains(&node.class))
                .map(|(ix, _)| self.empty_on(cluster, ix))
                .max()
                .unwrap_or(0),
        }
    }

    pub fn empty_fit_in(&self, cluster: &Cluster, domain: DomainIx) -> u32 {
        if let Some(g) = self.whole()
            && self.countable(cluster)
        {
            return cluster.empty_slots(domain, &self.classes, g);
        }
        let mut fit = 0;
        // Like nodes hold alike when empty, so one of each class and size is looked at.
        let mut known: BTreeMap<_, u32> = BTreeMap::new();
        for ix in &cluster.domains[domain.at()].nodes {
            let node = cluster.node(*ix);
            if !self.classes.contains(&node.class) || !self.suits(node) {
                continue;
            }
            let (cpu, memory) = (node.spec.cpu.map(|c| c.0), node.spec.memory.map(|m| m.0));
            let counts = (node.spec.tasks, self.sizes(node));
            fit += *known
                .entry((node.class, node.healthy(), cpu, memory, counts))
                .or_insert_with(|| self.empty_on(cluster, *ix));
            if fit >= self.count {
                break;
            }
        }
        fit
    }

    /// What a node has in all of each thing that is asked for.
    fn sizes(&self, node: &Node) -> Vec<i64> {
        let size = |resource: &Name| node.spec.counted.get(resource).copied().unwrap_or(0);
        self.need.counted.keys().map(size).collect()
    }

    fn empty_on(&self, cluster: &Cluster, ix: NodeIx) -> u32 {
        let requester = Requester {
            job: JobIx(u32::MAX),
            queue: QueueIx(u32::MAX),
            now: Time(0),
            until: Time(0),
            rush: false,
            apart: Apart::None,
            claims: false,
        };
        let node = cluster.emptied(ix);
        if !self.suits(&node) { 0 } else { node.capacity(&self.need, &requester, self.count) }
    }
}
