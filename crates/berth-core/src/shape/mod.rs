//! Shapes of requests. Jobs that ask for the same are one shape: whether it fits, where, and why
//! not is worked out once for all of them.

pub(crate) mod leaf;
pub(crate) mod suitable;
pub(crate) mod tree;

use crate::amounts::Amounts;
use crate::cluster::Cluster;
use crate::ix::{ModelIx, QueueIx};
use crate::shape::leaf::{Leaf, Together};
use crate::shape::suitable::tiers;
use crate::shape::tree::{Tree, tree};
use berth_model::{GpuAsk, GroupSpec, Lifecycle, Name, Policy};

/// What makes two requests the same; group names do not matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeKey {
    pub groups: Vec<GroupSpec>,
    pub lifecycle: Option<Lifecycle>,
    /// Whose they are, where they ask for shares: there may be room for one queue where there is
    /// none for another.
    pub queue: Option<QueueIx>,
}

impl ShapeKey {
    pub fn of(
        groups: &[GroupSpec],
        lifecycle: Option<Lifecycle>,
        queue: Option<QueueIx>,
    ) -> ShapeKey {
        fn unnamed(group: &GroupSpec) -> GroupSpec {
            GroupSpec {
                name: Name::default(),
                groups: group.groups.iter().map(unnamed).collect(),
                ..group.clone()
            }
        }
        let queue = queue.filter(|_| has_shares(groups));
        ShapeKey { groups: groups.iter().map(unnamed).collect(), lifecycle, queue }
    }
}

/// Whether any task asks for a share of a GPU that others may have a share of.
fn has_shares(groups: &[GroupSpec]) -> bool {
    groups.iter().flat_map(GroupSpec::leaves).any(|leaf| match leaf.gpus {
        GpuAsk::None | GpuAsk::Whole { .. } | GpuAsk::Mig { .. } => false,
        GpuAsk::Fraction { .. }
        | GpuAsk::Memory { .. }
        | GpuAsk::Mps { .. }
        | GpuAsk::TimeSlice { .. } => true,
    })
}

/// Work per watt and speed by model, in thousandths of an H100's.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelFacts {
    pub efficiency: Vec<i64>,
    pub speed: Vec<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub key: ShapeKey,
    pub leaves: Vec<Leaf>,
    pub tree: Tree,
    pub tasks: u32,
    /// What the minimum asks for. Model amounts count every acceptable model.
    pub amounts: Amounts,
    /// Whether the minimum fits the empty cluster.
    pub possible: bool,
    pub uses: u32,
    /// The cluster version the caches above were made for.
    pub version: u64,
}

impl Shape {
    pub fn new(key: ShapeKey, cluster: &mut Cluster, policy: &Policy, known: &ModelFacts) -> Shape {
        let mut leaves = Vec::new();
        let children: Vec<Tree> =
            key.groups.iter().map(|group| tree(group, cluster, &mut leaves)).collect();
        let min = children.len() as u32;
        let tree = match children.len() {
            1 => children.into_iter().next().expect("one child"),
            _ => Tree::Group { children, min, together: Together::default() },
        };
        let tasks = leaves.iter().map(|leaf: &Leaf| leaf.count).sum();
        let mut shape = Shape {
            key,
            leaves,
            tree,
            tasks,
            amounts: Amounts::default(),
            possible: false,
            uses: 0,
            version: 0,
        };
        shape.refresh(cluster, policy, known);
        shape
    }

    /// The one leaf of a job of like tasks.
    pub fn single(&self) -> Option<&Leaf> {
        (self.leaves.len() == 1).then(|| &self.leaves[0])
    }

    pub fn leaf_of(&self, task: u32) -> usize {
        let after = self.leaves.partition_point(|leaf| leaf.first <= task);
        after - 1
    }

    /// Whether a gang of this shape can hold more than its minimum.
    pub fn elastic(&self) -> bool {
        fn optional(tree: &Tree) -> bool {
            match tree {
                Tree::Leaf(_) => false,
                Tree::Group { children, min, .. } => {
                    (*min as usize) < children.len() || children.iter().any(optional)
                }
            }
        }
        self.leaves.iter().any(|leaf| leaf.count > leaf.min) || optional(&self.tree)
    }

    pub fn has_near(&self) -> bool {
        self.leaves.iter().any(|leaf| !leaf.near.is_empty())
    }

    /// Jobs without GPUs leave to free GPUs what these will need, unless they would then fit no
    /// node, or may lie on one alone.
    fn leave_to_gpus(&mut self, cluster: &Cluster, policy: &Policy) {
        let asks = self.leaves.iter().any(|leaf| leaf.need.ask != GpuAsk::None);
        for leaf in &mut self.leaves {
            leaf.need.left_to_gpus = 0;
            if !asks && policy.gpu_reserve.0 > 0 && !leaf.is_pinned(cluster) {
                leaf.need.left_to_gpus = policy.gpu_reserve.0;
                if leaf.empty_fit(cluster) < leaf.min {
                    leaf.need.left_to_gpus = 0;
                }
            }
        }
    }

    /// Recomputes what depends on the classes of nodes.
    pub fn refresh(&mut self, cluster: &Cluster, policy: &Policy, known: &ModelFacts) {
        let lifecycle = self.key.lifecycle;
        for leaf in &mut self.leaves {
            tiers(leaf, lifecycle, cluster, policy, &known.efficiency, &known.speed);
        }
        self.leave_to_gpus(cluster, policy);
        self.amounts = Amounts::default();
        for leaf in &self.leaves {
            let min = i64::from(leaf.min);
            let gpu = leaf.gpu_milli(cluster) * min;
            self.amounts.gpu += gpu;
            self.amounts.cpu = self.amounts.cpu.saturating_add(leaf.need.cpu.saturating_mul(min));
            self.amounts.memory =
                self.amounts.memory.saturating_add(leaf.need.memory.saturating_mul(min));
            let mut models: Vec<ModelIx> =
                leaf.classes.iter().filter_map(|c| cluster.classes[c.at()].model).collect();
            models.sort();
            models.dedup();
            for model in models {
                self.amounts.models.resize(self.amounts.models.len().max(model.at() + 1), 0);
                self.amounts.models[model.at()] += gpu;
            }
        }
        self.possible = self.leaves.iter().all(|leaf| leaf.empty_fit(cluster) >= leaf.min);
        self.version = cluster.version;
    }
}
