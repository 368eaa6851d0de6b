//! Why one group of tasks does not fit.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::Requester;
use crate::ix::{DomainIx, NodeIx};
use crate::plan::fit::nearby::Nearby;
use crate::reasons::rooms::{Rooms, bare, best_domain, on_node};
use crate::shape::leaf::Leaf;
use crate::state::State;
use berth_model::{Bytes, Cpu, GpuAsk, JobTarget, Milli, Name, Reason, Shortage};
use std::sync::Arc;

/// A group of like tasks that is looked at.
pub(crate) struct Group<'a> {
    pub(super) state: &'a State,
    pub(super) rooms: &'a Rooms,
    pub(super) leaf: &'a Leaf,
    pub(super) requester: Requester,
}

impl Group<'_> {
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let leaf = self.leaf;
        let tasks = leaf.min;
        let plain = Leaf { near: Vec::new(), ..leaf.clone() };
        let fit = self.tasks(&plain, WHOLE);
        let mut found = Vec::new();
        if fit < tasks {
            found.extend(self.too_little(&plain, fit));
            if self.rooms.exact() {
                found.extend(self.closed(fit));
            }
        }
        if tasks > 1 {
            found.extend(self.no_domain());
        }
        found.extend(self.no_segment());
        found.extend(self.no_spread());
        found.extend(self.no_neighbour(fit));
        found
    }

    fn tasks(&self, leaf: &Leaf, domain: DomainIx) -> u32 {
        self.rooms.tasks(self.state, leaf, domain, &self.requester, self.leaf.min)
    }

    fn each_node(&self, leaf: &Leaf, most: u32) -> Vec<(NodeIx, u32)> {
        let nodes = &self.state.cluster.domains[WHOLE.at()].nodes;
        let room = |ix: &NodeIx| (*ix, on_node(self.state, leaf, *ix, &self.requester, most));
        nodes.iter().map(room).collect()
    }

    /// Which resource is short where there is not enough room anywhere.
    fn too_little(&self, plain: &Leaf, fit: u32) -> Vec<Reason> {
        let (leaf, tasks) = (self.leaf, self.leaf.min);
        let gpus_alone = bare(leaf);
        let with_gpus = self.tasks(&gpus_alone, WHOLE);
        if with_gpus < tasks && leaf.need.ask != GpuAsk::None {
            let asks = Milli(leaf.gpu_milli(&self.state.cluster) * i64::from(tasks));
            let free = self.rooms.free(self.state, leaf, &self.requester);
            let short = if free < asks { Shortage::Gpu } else { Shortage::Fragments };
            return vec![Reason::NoFit { short, asks, free, tasks, fit }];
        }
        let without = |change: fn(&mut Leaf)| {
            let mut other = plain.clone();
            change(&mut other);
            self.tasks(&other, WHOLE) >= tasks
        };
        if leaf.need.island && without(|leaf| leaf.need.island = false) {
            // Of several tasks, those that find a place are counted below.
            let level = self.state.cluster.level_name(Level::Nvlink);
            let none = Reason::NoDomain { level, tasks, best: Name::default(), fit: 0 };
            return if tasks == 1 { vec![none] } else { Vec::new() };
        }
        if without(|leaf| leaf.need.is_task = false) {
            return vec![Reason::NoFitTasks { tasks, fit }];
        }
        if let Some(short) = self.short_of_counted(plain, fit) {
            return vec![short];
        }
        if leaf.need.left_to_gpus > 0
            && without(|leaf| leaf.need.left_to_gpus = 0)
            && let Some(kept) = self.kept_for_gpus(plain)
        {
            return vec![kept];
        }
        let cpu = leaf.need.cpu > 0 && without(|leaf| leaf.need.cpu = 0);
        let memory = leaf.need.memory > 0 && without(|leaf| leaf.need.memory = 0);
        let mut otherwise = plain.clone();
        if cpu || !memory {
            otherwise.need.cpu = 0;
        }
        if memory || !cpu {
            otherwise.need.memory = 0;
        }
        let (cpu_left, memory_left) = self.most_left(&otherwise);
        let mut found = Vec::new();
        if leaf.need.cpu > 0 && (cpu || !memory) {
            let (asks, free) = (Cpu(leaf.need.cpu), Cpu(cpu_left));
            found.push(Reason::NoFitCpu { asks, free, tasks, fit });
        }
        if leaf.need.memory > 0 && (memory || !cpu) {
            let (asks, free) = (Bytes(leaf.need.memory), Bytes(memory_left));
            found.push(Reason::NoFitMemory { asks, free, tasks, fit });
        }
        found
    }

    /// Something counted without which there would be room, and the most of it left on a node.
    fn short_of_counted(&self, plain: &Leaf, fit: u32) -> Option<Reason> {
        let tasks = self.leaf.min;
        for (resource, asks) in plain.need.counted.iter() {
            let mut other = plain.clone();
            Arc::make_mut(&mut other.need.counted).remove(resource);
            if self.tasks(&other, WHOLE) < tasks {
                continue;
            }
            let rooms = self.each_node(&other, 1).into_iter().filter(|(_, fit)| *fit > 0);
            let left = |ix: NodeIx| self.state.cluster.node(ix).spare_of(resource, &self.requester);
            let free = rooms.map(|(ix, _)| left(ix)).max().unwrap_or(0).max(0);
            let (resource, asks) = (resource.clone(), *asks);
            return Some(Reason::NoFitCounted { resource, asks, free, tasks, fit });
        }
        None
    }

    /// A node that has room only because free GPUs are left nothing, and how many there are.
    fn kept_for_gpus(&self, plain: &Leaf) -> Option<Reason> {
        let mut greedy = plain.clone();
        greedy.need.left_to_gpus = 0;
        let here = |leaf: &Leaf, ix| on_node(self.state, leaf, ix, &self.requester, 1) > 0;
        let rooms = self.each_node(&greedy, 1).into_iter().filter(|(_, fit)| *fit > 0);
        let nodes: Vec<NodeIx> = rooms.map(|(ix, _)| ix).filter(|ix| !here(plain, *ix)).collect();
        let node = self.state.cluster.node(*nodes.first()?);
        let (cpu, memory) = node.kept_for_gpus(&plain.need, &self.requester);
        let asks = |asks: i64, kept: i64| if asks > 0 { kept } else { 0 };
        Some(Reason::KeptForGpus {
            node: node.spec.name.clone(),
            cpu: Cpu(asks(plain.need.cpu, cpu)),
            memory: Bytes(asks(plain.need.memory, memory)),
            gpus: Milli(node.free_gpu_milli(&self.requester)),
            nodes: nodes.len() as u32,
        })
    }

    /// The most CPU, and the most memory, left on a node where one task would otherwise fit.
    fn most_left(&self, otherwise: &Leaf) -> (i64, i64) {
        let rooms = self.each_node(otherwise, 1).into_iter().filter(|(_, fit)| *fit > 0);
        let (mut cpu, mut memory) = (0, 0);
        for (ix, _) in rooms {
            let node = self.state.cluster.node(ix);
            if node.spec.cpu.is_some() {
                cpu = cpu.max(node.cpu_free);
            }
            if node.spec.memory.is_some() {
                memory = memory.max(node.memory_free);
            }
        }
        (cpu, memory)
    }

    /// Closed nodes, where these would make the difference.
    fn closed(&self, fit: u32) -> Option<Reason> {
        let (nodes, room) = super::never::closed(self.state, self.leaf, WHOLE);
        (nodes > 0 && fit + room >= self.leaf.min).then_some(Reason::Closed { nodes })
    }

    fn no_domain(&self) -> Option<Reason> {
        let (leaf, tasks, cluster) = (self.leaf, self.leaf.min, &self.state.cluster);
        let level = leaf.together.required?;
        let (fit, best) = match level {
            Level::Label { topology, depth } => {
                best_domain(self.state, topology, depth, |domain| self.tasks(leaf, domain))?
            }
            Level::Node | Level::Nvlink => {
                let mut most: Option<(u32, Name)> = None;
                for (ix, fit) in self.each_node(leaf, tasks) {
                    if most.as_ref().is_none_or(|(other, _)| fit > *other) {
                        most = Some((fit, cluster.node(ix).spec.name.clone()));
                    }
                }
                most?
            }
        };
        // Tasks that find islands of their own on a node do not find one together.
        let split = level == Level::Nvlink && self.joint(tasks) == 0;
        (fit < tasks || split).then(|| Reason::NoDomain {
            level: cluster.level_name(level),
            tasks,
            fit: if split { fit.min(tasks - 1) } else { fit },
            best,
        })
    }

    /// How many blocks of `size` tasks find an island each.
    fn joint(&self, size: u32) -> u32 {
        let Some(g) = self.leaf.whole() else { return 0 };
        let mut block = Leaf { near: Vec::new(), ..self.leaf.clone() };
        block.need.ask = GpuAsk::Whole { count: g * size };
        block.need.cpu *= i64::from(size);
        block.need.memory *= i64::from(size);
        block.need.island = true;
        self.each_node(&block, self.leaf.min).into_iter().map(|(_, fit)| fit).sum()
    }

    fn no_segment(&self) -> Option<Reason> {
        let (leaf, state) = (self.leaf, self.state);
        let (size, level) = leaf.together.segment?;
        let segments = leaf.min / size.max(1);
        let fit = match level {
            Level::Label { topology, depth } => state
                .cluster
                .domains_of(topology, depth)
                .map(|domain| self.tasks(leaf, domain) / size)
                .sum(),
            Level::Node => self.each_node(leaf, leaf.min).iter().map(|(_, n)| n / size).sum(),
            Level::Nvlink => self.joint(size),
        };
        let level = state.cluster.level_name(level);
        (fit < segments).then_some(Reason::NoSegment { level, size, segments, fit })
    }

    fn no_spread(&self) -> Option<Reason> {
        let (leaf, tasks) = (self.leaf, self.leaf.min);
        let (level, at_most) = leaf.spread?;
        let rooms: Vec<u32> = match level {
            Level::Label { topology, depth } => {
                let domains = self.state.cluster.domains_of(topology, depth);
                domains.map(|domain| self.tasks(leaf, domain)).collect()
            }
            Level::Node | Level::Nvlink => {
                self.each_node(leaf, at_most).into_iter().map(|(_, fit)| fit).collect()
            }
        };
        let fit: u32 = rooms.iter().map(|room| room.min(&at_most)).sum();
        let domains = rooms.iter().filter(|room| **room > 0).count() as u32;
        let level = self.state.cluster.level_name(level);
        (fit < tasks).then_some(Reason::Spread { level, at_most, tasks, domains })
    }

    fn no_neighbour(&self, fit: u32) -> Vec<Reason> {
        let (state, tasks) = (self.state, self.leaf.min);
        let mut found = Vec::new();
        for ask in &self.leaf.near {
            let alone = Leaf { near: vec![ask.clone()], ..self.leaf.clone() };
            let runs = Nearby::of(state, &alone, self.requester.job).runs();
            let too_few = fit >= tasks && self.tasks(&alone, WHOLE) < tasks;
            let level = state.cluster.level_name(ask.level);
            let target = match &ask.target {
                JobTarget::Name(name) => name.clone(),
                JobTarget::Label { key, value } => Name::from(format!("a job with {key}={value}")),
            };
            match ask.away {
                false if too_few || !runs => found.push(Reason::Near { target, level, runs }),
                true if too_few => found.push(Reason::Away { target, level }),
                _ => {}
            }
        }
        found
    }
}
