//! Shapes of requests. Jobs that ask for the same are one shape: whether it fits, where, and why
//! not is worked out once for all of them.

use crate::amounts::Amounts;
use crate::cluster::{Class, Cluster, Level, WHOLE};
use crate::ix::{ClassIx, DomainIx, JobIx, ModelIx, NodeIx, QueueIx};
use crate::nodes::{Need, Node, Who};
use berth_model::{
    GpuAsk, GroupSpec, JobTarget, LabelAsk, Lifecycle, MigProfile, Name, NodeAsk, Policy, Strategy,
    Time, TopologyAsk,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What makes two requests the same; group names do not matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeKey {
    pub groups: Vec<GroupSpec>,
    pub lifecycle: Option<Lifecycle>,
}

impl ShapeKey {
    pub fn of(groups: &[GroupSpec], lifecycle: Option<Lifecycle>) -> ShapeKey {
        fn unnamed(group: &GroupSpec) -> GroupSpec {
            GroupSpec {
                name: Name::default(),
                groups: group.groups.iter().map(unnamed).collect(),
                ..group.clone()
            }
        }
        ShapeKey { groups: groups.iter().map(unnamed).collect(), lifecycle }
    }
}

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
}

/// The groups of a job as a tree over its leaves.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    Leaf(usize),
    Group { children: Vec<Tree>, min: u32, together: Together },
}

impl Tree {
    /// The leaves below, in order.
    pub fn leaves(&self) -> Vec<usize> {
        match self {
            Tree::Leaf(at) => vec![*at],
            Tree::Group { children, .. } => children.iter().flat_map(Tree::leaves).collect(),
        }
    }
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

    /// Recomputes what depends on the classes of nodes.
    pub fn refresh(&mut self, cluster: &Cluster, policy: &Policy, known: &ModelFacts) {
        let lifecycle = self.key.lifecycle;
        for leaf in &mut self.leaves {
            tiers(leaf, lifecycle, cluster, policy, &known.efficiency, &known.speed);
        }
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

impl Leaf {
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
        let who = Who {
            job: JobIx(u32::MAX),
            queue: QueueIx(u32::MAX),
            now: Time(0),
            until: Time(0),
            rush: false,
        };
        let node = cluster.emptied(ix);
        if !self.suits(&node) { 0 } else { node.capacity(&self.need, &who, self.count) }
    }
}

fn together(ask: Option<&TopologyAsk>, cluster: &Cluster) -> Together {
    let Some(ask) = ask else { return Together::default() };
    let level = |name: &Option<Name>| {
        name.as_ref().and_then(|name| cluster.level(ask.within.as_ref(), name))
    };
    let wanted = ask.within.as_ref().map_or("default", Name::as_str);
    let at = cluster.topologies.iter().position(|(name, _)| name.as_str() == wanted);
    Together {
        required: level(&ask.required),
        preferred: level(&ask.preferred),
        segment: ask.segment.as_ref().and_then(|segment| {
            Some((segment.size, cluster.level(ask.within.as_ref(), &segment.within)?))
        }),
        topology: at.unwrap_or(0) as u32,
    }
}

fn tree(group: &GroupSpec, cluster: &mut Cluster, leaves: &mut Vec<Leaf>) -> Tree {
    if !group.is_leaf() {
        let children = group.groups.iter().map(|child| tree(child, cluster, leaves)).collect();
        let together = together(group.topology.as_ref(), cluster);
        return Tree::Group { children, min: group.min, together };
    }
    let first = leaves.last().map_or(0, |leaf: &Leaf| leaf.first + leaf.count);
    let models = group.models.iter().map(|ask| cluster.model(&ask.model)).collect();
    let topology_keys: Vec<Name> =
        cluster.topologies.iter().flat_map(|(_, keys)| keys.clone()).collect();
    let together = together(group.topology.as_ref(), cluster);
    let within = group.topology.as_ref().and_then(|ask| ask.within.clone());
    leaves.push(Leaf {
        first,
        count: group.count,
        min: group.min,
        need: Need {
            ask: group.gpus.clone(),
            cpu: group.cpu.0,
            memory: group.memory.0,
            counted: Arc::new(group.counted.clone()),
            is_task: true,
            min_gpu_memory: group.min_gpu_memory.map_or(0, |memory| memory.0),
            models,
            island: together.required == Some(Level::Nvlink),
            only: None,
        },
        together,
        spread: group.spread.as_ref().and_then(|spread| {
            Some((cluster.level(within.as_ref(), &spread.over)?, spread.at_most))
        }),
        near: group
            .near
            .iter()
            .filter_map(|near| {
                let level = cluster.level(within.as_ref(), &near.within)?;
                Some(NearAsk { target: near.target.clone(), level, away: near.away })
            })
            .collect(),
        node_labels: group
            .labels
            .need
            .iter()
            .filter(|(key, _)| topology_keys.contains(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        nodes: group.nodes.clone().map(Arc::new),
        spec: group.clone(),
        tiers: Vec::new(),
        fast: Vec::new(),
        classes: Vec::new(),
    });
    Tree::Leaf(leaves.len() - 1)
}

/// Why a class of nodes cannot serve a leaf, whatever is free there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsuitable {
    Labels,
    Model,
    GpuMemory,
    Gpus,
    Lifecycle,
    Taint,
}

pub(crate) fn unsuitable(
    leaf: &Leaf,
    lifecycle: Option<Lifecycle>,
    cluster: &Cluster,
    class: ClassIx,
) -> Option<Unsuitable> {
    let class = &cluster.classes[class.at()];
    let topology = |key: &Name| leaf.node_labels.contains_key(key);
    let labelled = leaf
        .spec
        .labels
        .need
        .iter()
        .all(|(key, value)| topology(key) || class.key.labels.get(key) == Some(value));
    if !labelled {
        return Some(Unsuitable::Labels);
    }
    if lifecycle.is_some_and(|asked| class.key.lifecycle != asked) {
        return Some(Unsuitable::Lifecycle);
    }
    let asks = leaf.need.ask.count();
    let model_fits = |model: &ModelIx| {
        let listed = leaf.need.models.is_empty() || leaf.need.models.contains(model);
        let profiled = match &leaf.need.ask {
            GpuAsk::Mig { profile, .. } => {
                MigProfile::find(&cluster.models[model.at()], profile).is_some()
            }
            _ => true,
        };
        listed && profiled
    };
    if asks > 0 {
        let of_model = class.key.gpus.iter().filter(|(model, _)| model_fits(model));
        let of_model: Vec<i64> = of_model.map(|(_, memory)| *memory).collect();
        if of_model.is_empty() {
            return Some(Unsuitable::Model);
        }
        let enough = of_model.iter().filter(|memory| **memory >= leaf.need.min_gpu_memory);
        let enough = enough.count() as u32;
        if enough == 0 {
            return Some(Unsuitable::GpuMemory);
        }
        let per_gpu = matches!(leaf.need.ask, GpuAsk::Mig { .. });
        if enough < asks && !per_gpu {
            return Some(Unsuitable::Gpus);
        }
    } else if !leaf.need.models.is_empty()
        && !class.key.gpus.iter().any(|(model, _)| model_fits(model))
    {
        return Some(Unsuitable::Model);
    }
    let tolerated = |taint: &berth_model::Taint| {
        leaf.spec.tolerations.iter().any(|toleration| {
            toleration.key == taint.key
                && toleration.value.as_ref().is_none_or(|value| *value == taint.value)
        })
    };
    if class.repels().any(|taint| !tolerated(taint)) {
        return Some(Unsuitable::Taint);
    }
    None
}

/// Orders the acceptable classes: preferred labels first, then models as asked for, or, where any
/// will do, the more efficient ones; last all together.
fn tiers(
    leaf: &mut Leaf,
    lifecycle: Option<Lifecycle>,
    cluster: &Cluster,
    policy: &Policy,
    efficiency: &[i64],
    speeds: &[i64],
) {
    let all: Vec<ClassIx> = (0..cluster.classes.len() as u32)
        .map(ClassIx)
        .filter(|class| cluster.classes[class.at()].nodes > 0)
        .filter(|class| unsuitable(leaf, lifecycle, cluster, *class).is_none())
        .collect();
    let rank = |class: &ClassIx| -> (i64, usize, i64) {
        let class = &cluster.classes[class.at()];
        let worth = -worth(&leaf.spec.labels, class, |key| topology_key(cluster, key));
        let listed = class
            .model
            .and_then(|model| leaf.need.models.iter().position(|asked| *asked == model))
            .unwrap_or(usize::MAX);
        // Efficiency in steps, so that a small difference does not outweigh a good fit. GPUs are
        // spared for those who need them where the task needs none.
        let energy = if leaf.need.ask.count() == 0 {
            i64::from(class.gpus)
        } else if policy.energy.0 > 0 && policy.strategy == Strategy::Pack {
            let model =
                class.model.map_or(0, |model| efficiency.get(model.at()).copied().unwrap_or(0));
            -(model / policy.energy.0.max(1))
        } else {
            0
        };
        (worth, listed, energy)
    };
    let mut ranked: Vec<((i64, usize, i64), ClassIx)> =
        all.iter().map(|class| (rank(class), *class)).collect();
    ranked.sort();
    let mut tiers: Vec<Vec<ClassIx>> = Vec::new();
    let mut last = None;
    for (rank, class) in ranked {
        if last != Some(rank) {
            tiers.push(Vec::new());
            last = Some(rank);
        }
        tiers.last_mut().expect("just pushed").push(class);
    }
    if tiers.len() > 1 {
        tiers.push(all.clone());
    }
    let mut fast: Vec<(i64, ClassIx)> = all
        .iter()
        .map(|class| {
            let model = cluster.classes[class.at()].model;
            (-model.map_or(0, |model| speeds.get(model.at()).copied().unwrap_or(0)), *class)
        })
        .collect();
    fast.sort();
    leaf.fast = fast
        .chunk_by(|a, b| a.0 == b.0)
        .map(|tier| tier.iter().map(|(_, class)| *class).collect())
        .collect();
    if leaf.fast.len() > 1 {
        leaf.fast.push(all.clone());
    }
    leaf.tiers = tiers;
    leaf.classes = all;
}

/// How much of what is preferred a class has: all or nothing where nothing is weighed. Labels that
/// differ inside a class are looked at elsewhere.
fn worth(labels: &LabelAsk, class: &Class, elsewhere: impl Fn(&Name) -> bool) -> i64 {
    let mut wishes = labels.prefer.iter().filter(|(key, _)| !elsewhere(key));
    let has = |(key, value): &(&Name, &Name)| class.key.labels.get(*key) == Some(*value);
    if labels.weights.is_empty() {
        return i64::from(wishes.all(|wish| has(&wish)));
    }
    let weight = |key: &Name| i64::from(labels.weights.get(key).copied().unwrap_or(1));
    wishes.filter(has).map(|(key, _)| weight(key)).sum()
}

/// Whether a label is a level of a topology, and so differs between nodes of a class.
fn topology_key(cluster: &Cluster, key: &Name) -> bool {
    cluster.topologies.iter().any(|(_, keys)| keys.contains(key))
}
