//! Why a job would not even fit the empty cluster.

use crate::cluster::Cluster;
use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::{Node, Requester};
use crate::cluster::tenants::Apart;
use crate::ix::{ClassIx, DomainIx, JobIx, QueueIx};
use crate::reasons::scattered;
use crate::shape::leaf::Leaf;
use crate::shape::suitable::{Unsuitable, unsuitable};
use crate::shape::{Shape, ShapeKey};
use crate::state::State;
use berth_model::{
    Bytes, Cpu, Event, GpuAsk, GroupSpec, Health, JobSpec, Lifecycle, MigProfile, Milli, Name,
    NodeState, Reason, Stamped, Time,
};
use std::collections::BTreeSet;

impl State {
    /// Why a job that has not been submitted yet would wait for ever: even all machines that are
    /// there, empty, have no room for it. Nothing where it would fit, also on machines that take
    /// no work at the moment; nothing either where machines can be bought. Its id must be free.
    ///
    /// The state is left as it was found: a shape that was only asked about would take the place
    /// of another one, which a replay does not know of.
    pub fn never(&mut self, spec: &JobSpec) -> Vec<Reason> {
        if !self.pools.is_empty() {
            return Vec::new();
        }
        self.refresh();
        let key = ShapeKey::of(&spec.groups, spec.lifecycle, self.queues.find(&spec.queue));
        let possible = match self.shape_by_key.get(&key) {
            Some(ix) => self.shapes[ix.at()].possible,
            None => {
                let known = self.model_facts();
                Shape::new(key, &mut self.cluster.clone(), &self.policy, &known).possible
            }
        };
        let spreads =
            spec.groups.iter().flat_map(GroupSpec::leaves).any(|leaf| leaf.spread.is_some());
        match possible {
            false => self.clone().impossible(spec),
            true if spreads => self.clone().scattered(spec),
            true => Vec::new(),
        }
    }

    /// Of a copy, whose GPUs are all well.
    fn scattered(mut self, spec: &JobSpec) -> Vec<Reason> {
        self.repair_all();
        let key = ShapeKey::of(&spec.groups, spec.lifecycle, self.queues.find(&spec.queue));
        let known = self.model_facts();
        let shape = Shape::new(key, &mut self.cluster, &self.policy, &known);
        let cluster = &self.cluster;
        shape.leaves.iter().filter_map(|leaf| scattered::reason(cluster, leaf)).collect()
    }

    /// Of a copy, which may take the job in.
    fn impossible(mut self, spec: &JobSpec) -> Vec<Reason> {
        self.repair_all();
        let (seq, at) = (self.seq() + 1, self.now().max(spec.submitted));
        let event = Event::JobSubmitted { spec: Box::new(spec.clone()) };
        // What makes no sense at all is refused by whoever applies it.
        if self.apply(&Stamped { seq, at, event }).is_err() {
            return Vec::new();
        }
        let element = spec.array.as_ref().and_then(|array| array.elements.first());
        let id = element.map_or(spec.id, |element| spec.id.element(*element));
        let Some(ix) = self.jobs.find(id) else { return Vec::new() };
        let found = reasons(&self, ix);
        let opens = |reason: &Reason| matches!(reason, Reason::Closed { .. });
        if found.iter().any(opens) { Vec::new() } else { found }
    }
}

impl State {
    /// A GPU that failed is repaired some day, so a job that needs it waits.
    fn repair_all(&mut self) {
        let failed: Vec<(Name, u32)> = self
            .cluster
            .live()
            .flat_map(|(_, node)| {
                let broken = node.gpus.iter().enumerate().filter(|(_, gpu)| !gpu.healthy);
                broken.map(|(at, _)| (node.spec.name.clone(), at as u32))
            })
            .collect();
        for (node, gpu) in failed {
            let (seq, at) = (self.seq() + 1, self.now());
            let event = Event::GpuChanged { node, gpu, health: Health::Ok };
            let repaired = self.apply(&Stamped { seq, at, event });
            debug_assert!(repaired.is_ok(), "a GPU that is there can be repaired");
        }
    }
}

/// What is missing, group by group; nothing for a job that would fit.
pub(super) fn reasons(state: &State, job: JobIx) -> Vec<Reason> {
    let shape = state.shape_of(job);
    if shape.possible {
        return Vec::new();
    }
    let lifecycle = shape.key.lifecycle;
    let cluster = &state.cluster;
    let mut found = Vec::new();
    for leaf in shape.leaves.iter().filter(|leaf| leaf.empty_fit(cluster) < leaf.min) {
        found.extend(group(state, leaf, lifecycle));
    }
    found
}

fn group(state: &State, leaf: &Leaf, lifecycle: Option<Lifecycle>) -> Vec<Reason> {
    let cluster = &state.cluster;
    let alive: BTreeSet<ClassIx> = cluster.live().map(|(_, node)| node.class).collect();
    if !leaf.classes.iter().any(|class| alive.contains(class)) {
        return vec![no_class(cluster, leaf, lifecycle, &alive)];
    }
    let suited: Vec<&Node> = cluster
        .live()
        .map(|(_, node)| node)
        .filter(|node| leaf.classes.contains(&node.class) && leaf.suits(node))
        .collect();
    if suited.is_empty() {
        let by_labels = Leaf { nodes: None, ..leaf.clone() };
        let labelled = cluster
            .live()
            .any(|(_, node)| leaf.classes.contains(&node.class) && by_labels.suits(node));
        return vec![if labelled { Reason::NoNode } else { no_label(leaf) }];
    }
    let fit = leaf.empty_fit(cluster);
    let (nodes, room) = match leaf.together.required {
        Some(Level::Label { topology, depth }) => cluster
            .domains_of(topology, depth)
            .map(|domain| (closed(state, leaf, domain), leaf.empty_fit_in(cluster, domain)))
            .map(|((nodes, room), open)| (nodes, room + open))
            .max_by_key(|(_, room)| *room)
            .unwrap_or((0, 0)),
        Some(Level::Node | Level::Nvlink) | None => {
            let (nodes, room) = closed(state, leaf, WHOLE);
            (nodes, room + fit)
        }
    };
    if nodes > 0 && room >= leaf.min {
        return vec![Reason::Closed { nodes }];
    }
    let cpu = suited.iter().map(|node| node.spec.cpu.map_or(i64::MAX, |cpu| cpu.0)).max();
    let memory = suited.iter().map(|node| node.spec.memory.map_or(i64::MAX, |m| m.0)).max();
    let mut found = Vec::new();
    if let Some(largest) = cpu.filter(|cpu| *cpu < leaf.need.cpu) {
        found.push(Reason::TooLargeCpu { asks: Cpu(leaf.need.cpu), largest: Cpu(largest) });
    }
    if let Some(largest) = memory.filter(|memory| *memory < leaf.need.memory) {
        let asks = Bytes(leaf.need.memory);
        found.push(Reason::TooLargeMemory { asks, largest: Bytes(largest) });
    }
    for (resource, asks) in leaf.need.counted.iter() {
        let sizes = suited.iter().map(|node| node.spec.counted.get(resource).copied());
        let largest = sizes.map(|size| size.unwrap_or(0)).max().unwrap_or(0);
        if largest < *asks {
            let (resource, asks) = (resource.clone(), *asks);
            found.push(Reason::TooLargeCounted { resource, asks, largest });
        }
    }
    if found.is_empty() {
        found.push(too_large(cluster, leaf, &suited, fit));
    }
    found
}

/// More than all that is there, or than the largest domain it must lie in.
fn too_large(cluster: &Cluster, leaf: &Leaf, suited: &[&Node], fit: u32) -> Reason {
    let each = leaf.gpu_milli(cluster);
    let tasks = leaf.min;
    let asks = Milli(each * i64::from(tasks));
    let has = Milli(each * i64::from(fit));
    let Some(level) = leaf.together.required else {
        return Reason::TooLarge { asks, has, tasks, fit };
    };
    let largest = match level {
        Level::Nvlink => {
            Milli::whole(suited.iter().map(|node| largest_island(node)).max().unwrap_or(0))
        }
        Level::Node | Level::Label { .. } => has,
    };
    let level = cluster.level_name(level);
    Reason::TooLargeForDomain { level, asks, largest, tasks, fit }
}

fn largest_island(node: &Node) -> i64 {
    let count = |island: u8| node.gpus.iter().filter(|g| g.healthy && g.island == island).count();
    node.gpus.iter().map(|gpu| count(gpu.island)).max().unwrap_or(0) as i64
}

/// Nodes that take no work now but could run the group, and how many of its tasks they would hold.
pub(super) fn closed(state: &State, leaf: &Leaf, domain: DomainIx) -> (u32, u32) {
    let cluster = &state.cluster;
    let (job, queue) = (JobIx(u32::MAX), QueueIx(u32::MAX));
    let (now, until, apart) = (Time(0), Time(0), Apart::None);
    let requester = Requester { job, queue, now, until, rush: false, apart, claims: false };
    let mut nodes = 0;
    let mut room: u32 = 0;
    for ix in &cluster.domains[domain.at()].nodes {
        let node = cluster.node(*ix);
        if node.open() || !leaf.classes.contains(&node.class) || !leaf.suits(node) {
            continue;
        }
        let mut empty = cluster.emptied(*ix);
        empty.spec.state = NodeState::Ready;
        let fit = empty.capacity(&leaf.need, &requester, leaf.min);
        if fit > 0 {
            nodes += 1;
            room = room.saturating_add(fit);
        }
    }
    (nodes, room)
}

/// No class of nodes will do: what the nearest ones lack.
fn no_class(
    cluster: &Cluster,
    leaf: &Leaf,
    lifecycle: Option<Lifecycle>,
    alive: &BTreeSet<ClassIx>,
) -> Reason {
    let lacks: Vec<(ClassIx, Unsuitable)> = alive
        .iter()
        .filter_map(|class| Some((*class, unsuitable(leaf, lifecycle, cluster, *class)?)))
        .collect();
    // What is looked at last is all that a class lacks.
    let rank = |lack: &Unsuitable| match lack {
        Unsuitable::Labels => 0,
        Unsuitable::Lifecycle => 1,
        Unsuitable::Model => 2,
        Unsuitable::GpuMemory => 3,
        Unsuitable::Gpus => 4,
        Unsuitable::Taint => 5,
    };
    let nearest = lacks.iter().map(|(_, lack)| *lack).max_by_key(rank);
    let of = |lack: Unsuitable| {
        lacks.iter().filter(move |(_, other)| *other == lack).map(|(class, _)| *class)
    };
    let gpus = |class: ClassIx| {
        let key = &cluster.classes[class.at()].key;
        let listed = |model| leaf.need.models.is_empty() || leaf.need.models.contains(model);
        key.gpus.iter().filter(move |(model, _)| listed(model))
    };
    match nearest {
        Some(Unsuitable::Labels) => no_label(leaf),
        Some(Unsuitable::Lifecycle) => {
            let asks = match lifecycle.unwrap_or_default() {
                Lifecycle::Spot => "spot",
                Lifecycle::OnDemand => "on-demand",
                Lifecycle::Reserved => "reserved",
            };
            Reason::NoLifecycle { asks: asks.to_owned() }
        }
        Some(Unsuitable::Model) => no_model(cluster, leaf),
        Some(Unsuitable::GpuMemory) => {
            let sizes = of(Unsuitable::GpuMemory).flat_map(gpus).map(|(_, memory)| *memory);
            Reason::GpuMemory {
                needs: Bytes(leaf.need.min_gpu_memory),
                largest: Bytes(sizes.max().unwrap_or(0)),
            }
        }
        Some(Unsuitable::Gpus) => {
            let counts = of(Unsuitable::Gpus).map(|class| {
                gpus(class).filter(|(_, memory)| *memory >= leaf.need.min_gpu_memory).count()
            });
            Reason::TooLargeForDomain {
                level: cluster.level_name(Level::Node),
                asks: Milli(leaf.gpu_milli(cluster)),
                largest: Milli::whole(counts.max().unwrap_or(0) as i64),
                tasks: 1,
                fit: 0,
            }
        }
        Some(Unsuitable::Taint) => {
            let classes: BTreeSet<ClassIx> = of(Unsuitable::Taint).collect();
            let taints: BTreeSet<String> = classes
                .iter()
                .flat_map(|class| cluster.classes[class.at()].repelling_taints())
                .map(|taint| match taint.value.is_empty() {
                    true => taint.key.to_string(),
                    false => format!("{}={}", taint.key, taint.value),
                })
                .collect();
            let nodes = cluster.live().filter(|(_, node)| classes.contains(&node.class)).count();
            Reason::Tainted { taints: taints.into_iter().collect(), nodes: nodes as u32 }
        }
        // There is no node at all.
        None if leaf.need.ask == GpuAsk::None => {
            Reason::TooLarge { asks: Milli::ZERO, has: Milli::ZERO, tasks: leaf.min, fit: 0 }
        }
        None => no_model(cluster, leaf),
    }
}

fn no_model(cluster: &Cluster, leaf: &Leaf) -> Reason {
    if let GpuAsk::Mig { profile, .. } = &leaf.need.ask {
        let live: BTreeSet<&Name> =
            cluster.live().flat_map(|(_, n)| &n.spec.gpus).map(|gpu| &gpu.model).collect();
        let cut = |model: &&Name| MigProfile::find(model, profile).is_some();
        if !live.is_empty() && !live.iter().any(cut) {
            return Reason::NoProfile { profile: profile.clone() };
        }
    }
    let models = leaf.need.models.iter().map(|model| cluster.models[model.at()].clone());
    Reason::NoModel { models: models.collect() }
}

fn no_label(leaf: &Leaf) -> Reason {
    let need = leaf.spec.labels.need.iter();
    Reason::NoLabel { labels: need.map(|(key, value)| format!("{key}={value}")).collect() }
}
