//! The cluster: nodes, the classes of like nodes, topology domains, and counts of what is free,
//! kept up to date by every change so that a question about thousands of nodes is one about a few
//! numbers.

use crate::amounts::{Amounts, UNBOUNDED};
use crate::held::Held;
use crate::ix::{ClassIx, DomainIx, JobIx, ModelIx, NodeIx, TaskIx};
use crate::nodes::{Block, Counted, Gpu, Kept, Mode, Node, Takes};
use crate::openings::Openings;
use berth_model::{Effect, Health, Lifecycle, Name, NodeSpec, NodeState, Slice, Taint, Time};
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
    pub fn repels(&self) -> impl Iterator<Item = &Taint> {
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

#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub topology: u32,
    pub depth: u32,
    pub name: Name,
    pub nodes: BTreeSet<NodeIx>,
    pub counts: Vec<ClassCount>,
    /// Free GPUs that are promised to nobody.
    pub sure: u32,
    /// How many of its nodes are contested.
    pub contested: u32,
}

/// A level of a topology, as a request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Nvlink,
    Node,
    Label { topology: u32, depth: u32 },
}

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
    /// Open nodes with free GPUs that are promised, or that are there only for some or for a time:
    /// looked at one by one.
    pub contested: BTreeSet<NodeIx>,
    /// Free GPUs of each node by ordinal that are promised to nobody.
    pub sure: Vec<u32>,
    /// How each node looks by ordinal, as far as claims are concerned, and how those looked that
    /// were touched since claims were last looked at.
    looks: Vec<u64>,
    touched: BTreeMap<NodeIx, u64>,
    /// Places each job is promised that are not free for it yet, and the jobs without any.
    awaited: BTreeMap<JobIx, u32>,
    pub ready: BTreeSet<JobIx>,
    /// What schedulable nodes hold in all.
    pub capacity: Amounts,
    pub removed: u32,
    /// The free GPUs of each open node by ordinal, whatever is promised there.
    pub counted: Vec<Option<u32>>,
    /// GPUs that live leases of preemptible jobs hold on each node, by ordinal.
    pub held: Vec<Held>,
    /// When the GPUs of each node come free, by ordinal, but for those of `outdated`.
    pub openings: Vec<Openings>,
    pub outdated: Vec<NodeIx>,
    /// Nodes on which something has happened since somebody last asked.
    pub stirred: Vec<NodeIx>,
    /// Changes whenever a class, or what the empty cluster could hold, does.
    pub version: u64,
    /// Changes with the classes there are nodes of.
    pub kinds: u64,
}

/// The domain that holds every node.
pub(crate) const WHOLE: DomainIx = DomainIx(0);

impl Cluster {
    pub fn new() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.domains.push(Domain {
            topology: u32::MAX,
            depth: 0,
            name: Name::new("cluster"),
            nodes: BTreeSet::new(),
            counts: Vec::new(),
            sure: 0,
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

    /// The level a request names: `node`, `nvlink` or a label key of the topology.
    pub fn level(&self, topology: Option<&Name>, name: &str) -> Option<Level> {
        match name {
            "node" => return Some(Level::Node),
            "nvlink" => return Some(Level::Nvlink),
            _ => {}
        }
        let wanted = topology.map_or("default", Name::as_str);
        let (at, (_, keys)) =
            self.topologies.iter().enumerate().find(|(_, (name, _))| name.as_str() == wanted)?;
        let depth = keys.iter().position(|key| key.as_str() == name)?;
        Some(Level::Label { topology: at as u32, depth: depth as u32 })
    }

    pub fn level_name(&self, level: Level) -> Name {
        match level {
            Level::Nvlink => Name::new("nvlink"),
            Level::Node => Name::new("node"),
            Level::Label { topology, depth } => {
                self.topologies[topology as usize].1[depth as usize].clone()
            }
        }
    }

    /// The domains of a label level, in the order they appeared.
    pub fn domains_of(&self, topology: u32, depth: u32) -> impl Iterator<Item = DomainIx> + '_ {
        self.domains.iter().enumerate().filter_map(move |(at, domain)| {
            (domain.topology == topology && domain.depth == depth && !domain.nodes.is_empty())
                .then_some(DomainIx(at as u32))
        })
    }

    /// The node of a domain that joined first: domains are told apart by it, not by the order they
    /// were first heard of.
    pub fn first_of(&self, domain: DomainIx) -> Option<NodeIx> {
        self.domains[domain.at()].nodes.first().copied()
    }

    /// Whether a domain lies in another one, whole.
    pub fn lies_in(&self, inner: DomainIx, outer: DomainIx) -> bool {
        if outer == WHOLE || inner == outer {
            return true;
        }
        let (inner, outer) = (&self.domains[inner.at()], &self.domains[outer.at()]);
        let Some(first) = inner.nodes.first().filter(|_| inner.nodes.len() <= outer.nodes.len())
        else {
            return false;
        };
        // Domains of one topology lie in each other or apart.
        match inner.topology == outer.topology {
            true => outer.nodes.contains(first),
            false => inner.nodes.is_subset(&outer.nodes),
        }
    }

    /// The domains of a label level by their first nodes.
    pub fn domains_in_order(&self, topology: u32, depth: u32) -> Vec<DomainIx> {
        let mut found: Vec<DomainIx> = self.domains_of(topology, depth).collect();
        found.sort_by_key(|domain| self.first_of(*domain));
        found
    }

    /// The domain of that level a node lies in, if its labels say so.
    pub fn domain_of(&self, node: NodeIx, topology: u32, depth: u32) -> Option<DomainIx> {
        self.node(node).domains.iter().copied().find(|ix| {
            let domain = &self.domains[ix.at()];
            domain.topology == topology && domain.depth == depth
        })
    }

    fn intern_domain(&mut self, topology: u32, path: Vec<Name>) -> DomainIx {
        if let Some(ix) = self.domain_by_path.get(&(topology, path.clone())) {
            return *ix;
        }
        let ix = DomainIx(self.domains.len() as u32);
        self.domains.push(Domain {
            topology,
            depth: path.len() as u32 - 1,
            name: path.last().cloned().unwrap_or_default(),
            nodes: BTreeSet::new(),
            counts: Vec::new(),
            sure: 0,
            contested: 0,
        });
        self.domain_by_path.insert((topology, path), ix);
        ix
    }

    fn domains_for(&mut self, spec: &NodeSpec) -> Vec<DomainIx> {
        let mut found = vec![WHOLE];
        for topology in 0..self.topologies.len() {
            let mut path = Vec::new();
            for key in self.topologies[topology].1.clone() {
                // A node that lacks a label has no domain there, nor below.
                let Some(value) = spec.labels.get(&key) else { break };
                path.push(value.clone());
                found.push(self.intern_domain(topology as u32, path.clone()));
            }
        }
        found
    }

    fn class_for(&mut self, spec: &NodeSpec) -> ClassIx {
        let gpus: Vec<(ModelIx, i64)> =
            spec.gpus.iter().map(|gpu| (self.model(&gpu.model), gpu.memory.0)).collect();
        let keys: BTreeSet<&Name> = self.topologies.iter().flat_map(|(_, keys)| keys).collect();
        let key = ClassKey {
            gpus: gpus.clone(),
            labels: spec
                .labels
                .iter()
                .filter(|(key, _)| !keys.contains(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            taints: spec.taints.clone(),
            lifecycle: spec.lifecycle,
            cpu_bound: spec.cpu.is_some(),
            memory_bound: spec.memory.is_some(),
        };
        if let Some(ix) = self.class_by_key.get(&key) {
            return *ix;
        }
        let ix = ClassIx(self.classes.len() as u32);
        let alike = gpus.first().filter(|first| gpus.iter().all(|gpu| gpu == *first));
        self.classes.push(Class {
            gpus: gpus.len() as u32,
            nodes: 0,
            model: alike.map(|(model, _)| *model),
            buckets: vec![BTreeSet::new(); gpus.len() + 1],
            key: key.clone(),
        });
        self.class_by_key.insert(key, ix);
        ix
    }

    /// Adds a node at the end of the order.
    pub fn add(&mut self, spec: NodeSpec, since: Time) -> NodeIx {
        let ix = NodeIx(self.nodes.len() as u32);
        let class = self.class_for(&spec);
        let domains = self.domains_for(&spec);
        let island = |gpu: usize| {
            let at = spec.nvlink.iter().position(|island| island.contains(&(gpu as u32)));
            match at {
                Some(at) => at as u8,
                // Listed islands first; a GPU in none is alone, and without lists all are one.
                None if spec.nvlink.is_empty() => 0,
                None => (spec.nvlink.len() + gpu) as u8,
            }
        };
        let gpus: Vec<Gpu> = (0..spec.gpus.len())
            .map(|at| {
                let model = self.model_by_name[&spec.gpus[at].model];
                Gpu::new(&spec.gpus[at], model, island(at))
            })
            .collect();
        self.by_name.insert(spec.name.clone(), ix);
        for domain in &domains {
            self.domains[domain.at()].nodes.insert(ix);
        }
        self.nodes.push(Node {
            cpu_free: spec.cpu.map_or(UNBOUNDED, |cpu| cpu.0),
            memory_free: spec.memory.map_or(UNBOUNDED, |memory| memory.0),
            counted_free: spec.counted.clone(),
            class,
            gpus,
            tasks: Vec::new(),
            kept: Vec::new(),
            blocks: Vec::new(),
            domains,
            idle_since: Some(since),
            since,
            gpu_prices: Vec::new(),
            indexed: None,
            removed: false,
            spec,
        });
        self.classes[class.at()].nodes += 1;
        self.kinds += u64::from(self.classes[class.at()].nodes == 1);
        self.counted.push(None);
        self.held.push(Held::default());
        self.sure.push(0);
        self.looks.push(0);
        self.expect_openings(ix);
        self.count_empty(ix, true);
        self.reindex(ix);
        ix
    }

    pub fn remove(&mut self, ix: NodeIx) {
        self.count_empty(ix, false);
        self.nodes[ix.at()].removed = true;
        self.reindex(ix);
        let node = &self.nodes[ix.at()];
        self.classes[node.class.at()].nodes -= 1;
        self.kinds += u64::from(self.classes[node.class.at()].nodes == 0);
        self.by_name.remove(&node.spec.name);
        for domain in node.domains.clone() {
            self.domains[domain.at()].nodes.remove(&ix);
        }
        self.removed += 1;
    }

    /// Describes a node anew: its labels, its taints, how much CPU and memory it has. Its GPUs are
    /// the same ones, and its leases stay. Nothing may be promised there.
    pub fn describe(&mut self, ix: NodeIx, spec: &NodeSpec) {
        self.count_empty(ix, false);
        // Out of every count by which nodes are found, as if it had gone.
        self.nodes[ix.at()].removed = true;
        self.reindex(ix);
        let old = self.nodes[ix.at()].class;
        self.classes[old.at()].nodes -= 1;
        for domain in self.nodes[ix.at()].domains.clone() {
            self.domains[domain.at()].nodes.remove(&ix);
        }
        let class = self.class_for(spec);
        let domains = self.domains_for(spec);
        self.classes[class.at()].nodes += 1;
        for domain in &domains {
            self.domains[domain.at()].nodes.insert(ix);
        }
        // Shapes know the classes that suit them; these may be others now.
        self.kinds += u64::from(class != old);
        let node = &mut self.nodes[ix.at()];
        let more = |new: i64, old: i64| new.saturating_sub(old);
        if let (Some(new), Some(old)) = (spec.cpu, node.spec.cpu) {
            node.cpu_free += more(new.0, old.0);
        }
        if let (Some(new), Some(old)) = (spec.memory, node.spec.memory) {
            node.memory_free += more(new.0, old.0);
        }
        recount(node, &spec.counted);
        for (gpu, described) in node.gpus.iter_mut().zip(&spec.gpus) {
            gpu.healthy = described.health == Health::Ok;
            gpu.redivide(described);
        }
        node.class = class;
        node.domains = domains;
        node.spec = spec.clone();
        node.removed = false;
        self.count_empty(ix, true);
        self.reindex(ix);
    }

    /// Changes what a node is able to do; its leases stay.
    pub fn alter(&mut self, ix: NodeIx, change: impl FnOnce(&mut Node)) {
        self.count_empty(ix, false);
        change(&mut self.nodes[ix.at()]);
        self.count_empty(ix, true);
        self.reindex(ix);
    }

    pub fn set_health(&mut self, ix: NodeIx, gpu: usize, health: Health) {
        self.alter(ix, |node| {
            node.spec.gpus[gpu].health = health;
            node.gpus[gpu].healthy = health == Health::Ok;
        });
    }

    /// GPUs that would be free as wholes if nothing ran on the node.
    fn empty_gpus(node: &Node) -> u32 {
        let usable = |gpu: &&Gpu| gpu.healthy && gpu.unused() == Mode::Free;
        node.gpus.iter().filter(usable).count() as u32
    }

    /// Adds or takes away a node's part in what the empty cluster could hold.
    fn count_empty(&mut self, ix: NodeIx, adding: bool) {
        self.version += 1;
        let node = &self.nodes[ix.at()];
        if !node.open() {
            return;
        }
        let (class, whole) = (node.class, Cluster::empty_gpus(node));
        let tasks = node.spec.tasks.unwrap_or(u32::MAX);
        let sign = if adding { 1 } else { -1 };
        let mut amounts = Amounts {
            cpu: node.spec.cpu.map_or(0, |cpu| cpu.0),
            memory: node.spec.memory.map_or(0, |memory| memory.0),
            ..Amounts::default()
        };
        for gpu in node.gpus.iter().filter(|gpu| gpu.healthy) {
            amounts.gpu += 1_000;
            amounts.models.resize(amounts.models.len().max(gpu.model.at() + 1), 0);
            amounts.models[gpu.model.at()] += 1_000;
        }
        self.capacity.add(&amounts, sign);
        let most = self.classes[class.at()].gpus;
        for domain in node.domains.clone() {
            let count = count_of(&mut self.domains[domain.at()], class, most);
            for g in 0..=most as usize {
                let slots = whole.checked_div(g as u32).unwrap_or(1).min(tasks);
                count.empty[g] = count.empty[g].wrapping_add_signed(slots as i32 * sign as i32);
            }
        }
    }

    /// Brings the free counts up to date after anything on the node changed.
    pub fn reindex(&mut self, ix: NodeIx) {
        self.outdate(ix);
        self.await_places(ix);
        let node = &mut self.nodes[ix.at()];
        let free = node.free_whole();
        let open = node.open().then_some(free);
        let contested = node.contested();
        let clean = open.filter(|_| !contested);
        let changed = match contested {
            true => self.contested.insert(ix),
            false => self.contested.remove(&ix),
        };
        let sure = if contested { node.free_before(Time::MAX) } else { open.unwrap_or(0) };
        let was = std::mem::replace(&mut self.sure[ix.at()], sure);
        let more = sure.wrapping_sub(was);
        let looks = node.looks();
        if looks != self.looks[ix.at()] {
            let looked = std::mem::replace(&mut self.looks[ix.at()], looks);
            self.touched.entry(ix).or_insert(looked);
        }
        if changed || more != 0 {
            let sign = if changed { if contested { 1 } else { -1 } } else { 0 };
            for domain in &node.domains {
                let domain = &mut self.domains[domain.at()];
                domain.sure = domain.sure.wrapping_add(more);
                domain.contested = domain.contested.wrapping_add_signed(sign);
            }
        }
        let (was_open, was_clean) = (self.counted[ix.at()], node.indexed);
        if open == was_open && clean == was_clean {
            return;
        }
        self.counted[ix.at()] = open;
        node.indexed = clean;
        let class = node.class;
        let buckets = &mut self.classes[class.at()].buckets;
        if let Some(free) = was_clean {
            buckets[free as usize].remove(&ix);
        }
        if let Some(free) = clean {
            buckets[free as usize].insert(ix);
        }
        let most = self.classes[class.at()].gpus;
        for domain in &self.nodes[ix.at()].domains {
            let count = count_of(&mut self.domains[domain.at()], class, most);
            let slots = |free: Option<u32>, g: usize| match (free, g) {
                (None, _) => 0,
                (Some(_), 0) => 1,
                (Some(free), g) => (free as usize / g) as i32,
            };
            for (g, free) in count.free.iter_mut().enumerate() {
                *free = free.wrapping_add_signed(slots(clean, g) - slots(was_clean, g));
            }
            for (g, room) in count.room.iter_mut().enumerate() {
                *room = room.wrapping_add_signed(slots(open, g) - slots(was_open, g));
            }
        }
    }

    pub fn take(&mut self, ix: NodeIx, task: TaskIx, slices: &[Slice], held: &Takes) {
        let node = &mut self.nodes[ix.at()];
        node.take(task, slices, held.bound(&node.spec));
        self.reindex(ix);
    }

    pub fn give(&mut self, ix: NodeIx, task: TaskIx, slices: &[Slice], held: &Takes) {
        let node = &mut self.nodes[ix.at()];
        node.give(task, slices, held.bound(&node.spec));
        self.reindex(ix);
    }

    /// Keeps a place for a job; whether it is free for it is found out here.
    pub fn keep(&mut self, ix: NodeIx, kept: Kept) {
        let job = kept.job;
        let node = &mut self.nodes[ix.at()];
        node.kept.push(Kept { ready: false, ..kept });
        node.kept.sort_by_key(|kept| (kept.from, kept.job));
        *self.awaited.entry(job).or_default() += 1;
        self.ready.remove(&job);
        self.reindex(ix);
    }

    pub fn unkeep(&mut self, ix: NodeIx, job: JobIx) {
        self.nodes[ix.at()].kept.retain(|kept| kept.job != job);
        self.reindex(ix);
    }

    /// Nodes that look different from when claims were last looked at.
    pub fn changed(&self) -> Vec<NodeIx> {
        let changed = self.touched.iter().filter(|(ix, looked)| self.looks[ix.at()] != **looked);
        changed.map(|(ix, _)| *ix).collect()
    }

    /// Claims are looked at now.
    pub fn settle_looks(&mut self) {
        self.touched.clear();
    }

    /// Forgets that places were kept for a job; they are no longer.
    pub fn forget(&mut self, job: JobIx) {
        self.awaited.remove(&job);
        self.ready.remove(&job);
    }

    /// Finds out which of the places kept on a node are free for their jobs now.
    fn await_places(&mut self, ix: NodeIx) {
        for at in 0..self.nodes[ix.at()].kept.len() {
            let node = &mut self.nodes[ix.at()];
            let (is, was, job) =
                (node.is_ready(&node.kept[at]), node.kept[at].ready, node.kept[at].job);
            if is == was {
                continue;
            }
            node.kept[at].ready = is;
            let awaited = self.awaited.entry(job).or_default();
            *awaited = awaited.wrapping_add_signed(if is { -1 } else { 1 });
            match *awaited {
                0 => self.ready.insert(job),
                _ => self.ready.remove(&job),
            };
        }
    }

    pub fn block(&mut self, ix: NodeIx, blocks: Vec<Block>) {
        self.nodes[ix.at()].blocks = blocks;
        self.reindex(ix);
    }

    /// Whether the node is open and has so many free GPUs, whatever is promised there.
    pub fn has_free(&self, ix: NodeIx, gpus: u32) -> bool {
        self.counted[ix.at()].is_some_and(|free| free >= gpus)
    }

    /// How many tasks of `g` whole GPUs fit the uncontested nodes of these classes in the domain,
    /// by GPUs alone.
    pub fn slots(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.free.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    /// The same on all open nodes, what is promised left aside: no job finds more.
    pub fn room(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.room.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    /// The same if nothing ran.
    pub fn empty_slots(&self, domain: DomainIx, classes: &[ClassIx], g: u32) -> u32 {
        let counts = &self.domains[domain.at()].counts;
        counts
            .iter()
            .filter(|count| classes.contains(&count.class))
            .map(|count| count.empty.get(g as usize).copied().unwrap_or(0))
            .sum()
    }

    pub fn state(&mut self, ix: NodeIx, state: NodeState) {
        self.alter(ix, |node| node.spec.state = state);
    }

    /// The node as it would be if nothing ran on it and nothing were kept.
    pub fn emptied(&self, ix: NodeIx) -> Node {
        let mut node = self.node(ix).clone();
        node.kept.clear();
        node.blocks.clear();
        node.tasks.clear();
        node.cpu_free = node.spec.cpu.map_or(UNBOUNDED, |cpu| cpu.0);
        node.memory_free = node.spec.memory.map_or(UNBOUNDED, |memory| memory.0);
        node.counted_free = node.spec.counted.clone();
        for (at, gpu) in node.gpus.iter_mut().enumerate() {
            gpu.used = 0;
            gpu.holders = 0;
            match gpu.mig.as_deref_mut() {
                Some(mig) if mig.fixed => {
                    mig.idle.append(&mut mig.held);
                    mig.layout = berth_model::MigLayout::default();
                }
                _ => gpu.mig = None,
            }
            gpu.mode = gpu.unused();
            gpu.healthy = node.spec.gpus[at].health == Health::Ok;
        }
        node
    }
}

/// What is held stays held, whatever there is of it now.
fn recount(node: &mut Node, now: &Counted) {
    for (resource, was) in &node.spec.counted {
        *node.counted_free.entry(resource.clone()).or_default() -= was;
    }
    for (resource, is) in now {
        *node.counted_free.entry(resource.clone()).or_default() += is;
    }
    node.counted_free.retain(|resource, free| *free != 0 || now.contains_key(resource));
}

fn count_of(domain: &mut Domain, class: ClassIx, most: u32) -> &mut ClassCount {
    let at = match domain.counts.iter().position(|count| count.class == class) {
        Some(at) => at,
        None => {
            let zeros = vec![0; most as usize + 1];
            domain.counts.push(ClassCount {
                class,
                free: zeros.clone(),
                room: zeros.clone(),
                empty: zeros,
            });
            domain.counts.len() - 1
        }
    };
    &mut domain.counts[at]
}
