//! Nodes that join, leave or are described anew, and what the empty cluster could hold.

use crate::amounts::{Amounts, UNBOUNDED};
use crate::cluster::Cluster;
use crate::cluster::class::{Class, ClassKey};
use crate::cluster::domain::count_of;
use crate::cluster::gpu::{Gpu, Mode};
use crate::cluster::gpus_by_queue::GpusByQueue;
use crate::cluster::node::{Counted, Node};
use crate::ix::{ClassIx, ModelIx, NodeIx};
use berth_model::{Health, Name, NodeSpec, NodeState, Time};
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
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
            promised_slots: Vec::new(),
            gpu_debt: (0, 0),
            ends: Vec::new(),
            blocks: Vec::new(),
            domains,
            idle_since: Some(since),
            since,
            data: BTreeMap::new(),
            gpu_prices: Vec::new(),
            indexed: None,
            removed: false,
            spec,
        });
        self.classes[class.at()].nodes += 1;
        self.class_version += u64::from(self.classes[class.at()].nodes == 1);
        self.free_by_node.push(None);
        self.held_by_queue.push(GpusByQueue::default());
        self.uncommitted.push(0);
        self.fingerprints.push(0);
        self.add_release_times(ix);
        self.count_empty(ix, true);
        self.reindex(ix);
        ix
    }

    pub fn remove(&mut self, ix: NodeIx) {
        self.keep_data(ix, BTreeMap::new());
        self.count_empty(ix, false);
        self.nodes[ix.at()].removed = true;
        self.reindex(ix);
        let node = &self.nodes[ix.at()];
        self.classes[node.class.at()].nodes -= 1;
        self.class_version += u64::from(self.classes[node.class.at()].nodes == 0);
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
        self.class_version += u64::from(class != old);
        let node = &mut self.nodes[ix.at()];
        let more = |new: i64, old: i64| new.saturating_sub(old);
        if let (Some(new), Some(old)) = (spec.cpu, node.spec.cpu) {
            node.cpu_free += more(new.0, old.0);
        }
        if let (Some(new), Some(old)) = (spec.memory, node.spec.memory) {
            node.memory_free += more(new.0, old.0);
        }
        adjust_counted_free(node, &spec.counted);
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

    pub fn set_state(&mut self, ix: NodeIx, state: NodeState) {
        self.alter(ix, |node| node.spec.state = state);
    }
}

/// What is held stays held, whatever there is of it now.
fn adjust_counted_free(node: &mut Node, now: &Counted) {
    for (resource, was) in &node.spec.counted {
        *node.counted_free.entry(resource.clone()).or_default() -= was;
    }
    for (resource, is) in now {
        *node.counted_free.entry(resource.clone()).or_default() += is;
    }
    node.counted_free.retain(|resource, free| *free != 0 || now.contains_key(resource));
}
