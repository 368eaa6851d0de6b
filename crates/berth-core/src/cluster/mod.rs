//! The cluster: nodes, the classes of like nodes, topology domains, and counts of what is free,
//! kept up to date by every change so that a question about thousands of nodes is one about a few
//! numbers.

mod apart;
mod capacity;
pub(crate) mod choose;
pub(crate) mod class;
mod counts;
mod data;
mod dirty;
pub(crate) mod domain;
pub(crate) mod gpu;
mod gpus_by_queue;
mod membership;
pub(crate) mod node;
pub(crate) mod release_times;
pub(crate) mod tenants;
mod topology;

use crate::amounts::Amounts;
use crate::cluster::class::{Class, ClassKey};
use crate::cluster::domain::Domain;
use crate::cluster::gpus_by_queue::GpusByQueue;
use crate::cluster::node::Node;
use crate::cluster::release_times::GpuReleaseTimes;
use crate::ix::{ClassIx, DomainIx, JobIx, ModelIx, NodeIx};
use berth_model::Name;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    pub nodes: Vec<Node>,
    pub by_name: BTreeMap<Name, NodeIx>,
    pub classes: Vec<Class>,
    class_by_key: BTreeMap<ClassKey, ClassIx>,
    pub models: Vec<Name>,
    model_by_name: BTreeMap<Name, ModelIx>,
    /// Named topologies, each with its label keys, largest domain first.
    pub topologies: Vec<(Name, Vec<Name>)>,
    pub domains: Vec<Domain>,
    domain_by_path: BTreeMap<(u32, Vec<Name>), DomainIx>,
    /// Open nodes that the free counts leave out, and that are examined one by one: some of their
    /// free GPUs are promised, or they are open only to some queues or for some time.
    pub contested: BTreeSet<NodeIx>,
    /// Free GPUs of each node that are promised to no job, by ordinal.
    pub uncommitted: Vec<u32>,
    /// A fingerprint of each node by ordinal: equal ones offer the same to claims.
    fingerprints: Vec<u64>,
    /// Nodes touched since claims were last screened, with their fingerprint at that time.
    touched: BTreeMap<NodeIx, u64>,
    /// How many of its promised places each job still waits for.
    awaited: BTreeMap<JobIx, u32>,
    /// Jobs whose promised places are all free.
    pub ready: BTreeSet<JobIx>,
    /// What all open nodes have together.
    pub capacity: Amounts,
    /// Nodes that were removed; their ordinals are not reused.
    pub removed: u32,
    /// The free GPUs of each open node by ordinal, whatever is promised there.
    pub free_by_node: Vec<Option<u32>>,
    /// GPUs that live leases of preemptible jobs hold on each node, by ordinal and queue.
    pub held_by_queue: Vec<GpusByQueue>,
    /// When the GPUs of each node come free, by ordinal, but for those of `outdated`.
    pub release_times: Vec<GpuReleaseTimes>,
    /// Nodes whose release times have to be worked out anew.
    pub outdated: Vec<NodeIx>,
    /// Which nodes keep a version of data, and how large it is.
    keepers: BTreeMap<Name, BTreeMap<NodeIx, i64>>,
    /// Nodes that have changed since [`Cluster::take_dirty`] was last called.
    dirty: Vec<NodeIx>,
    /// Changes whenever a class, or what the empty cluster could hold, does.
    pub version: u64,
    /// Changes whenever a class gets its first node or loses its last.
    pub class_version: u64,
}

impl Cluster {
    pub fn new() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.domains.push(Domain {
            topology: u32::MAX,
            depth: 0,
            name: Name::new("cluster"),
            nodes: BTreeSet::new(),
            counts: Vec::new(),
            uncommitted: 0,
            contested: 0,
        });
        cluster
    }

    pub fn model(&mut self, name: &Name) -> ModelIx {
        if let Some(ix) = self.model_by_name.get(name) {
            return *ix;
        }
        let ix = ModelIx(self.models.len() as u32);
        self.models.push(name.clone());
        self.model_by_name.insert(name.clone(), ix);
        ix
    }

    pub fn find_model(&self, name: &str) -> Option<ModelIx> {
        self.model_by_name.get(name).copied()
    }

    pub fn find(&self, name: &str) -> Option<NodeIx> {
        self.by_name.get(name).copied()
    }

    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.at()]
    }

    pub fn live(&self) -> impl Iterator<Item = (NodeIx, &Node)> {
        let all = self.nodes.iter().enumerate().map(|(at, node)| (NodeIx(at as u32), node));
        all.filter(|(_, node)| !node.removed)
    }
}
