//! Why a job that would fit the empty cluster does not fit what is free now.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::Who;
use crate::ix::{DomainIx, JobIx, NodeIx, TaskIx};
use crate::jobs::Lease;
use crate::plan::fit::fit;
use crate::plan::fit::nearby::Nearby;
use crate::plan::fit::spot::{Misfit, Spot};
use crate::plan::planner::Planner;
use crate::reasons::rooms::{Rooms, bare, on_node, suits, timeless};
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::{
    Bytes, Cpu, GpuAsk, JobTarget, Micros, Milli, Name, NodeState, Reason, Reservation, Shortage,
    Time,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Unlike tasks that are placed one by one for a figure, at the most.
const PLACED: u32 = 256;

impl Planner<'_> {
    /// What is short for a job that fits the empty cluster.
    pub(super) fn misfit(&mut self, job: JobIx, rooms: &Rooms) -> Vec<Reason> {
        let who = timeless(&self.who(job));
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let mut cut_off = false;
        let short = shape.single().is_some_and(|leaf| {
            let (state, plain) = (self.state(), bare(leaf));
            let lacks = |domain| rooms.tasks(state, &plain, domain, &who, leaf.min) < leaf.min;
            lacks(WHOLE)
                || match leaf.together.required {
                    Some(Level::Label { topology, depth }) => {
                        state.cluster.domains_of(topology, depth).all(lacks)
                    }
                    _ => false,
                }
        });
        if !short {
            let mark = self.draft.mark();
            let tried = fit(&mut self.draft, &self.mix, job, who);
            self.draft.roll_back(mark);
            match tried {
                Ok(spots) => return self.kept_from(job, &spots),
                Err(misfit) => cut_off = misfit == Misfit::CutOff,
            }
        }
        let state = self.state();
        let mut found = Vec::new();
        for leaf in &shape.leaves {
            found.extend(Group { state, rooms, leaf, who }.reasons());
        }
        if found.is_empty() {
            self.no_common_domain(job, &shape, &shape.tree, &who, &mut found);
        }
        if !found.is_empty() {
            return found;
        }
        if cut_off {
            return vec![Reason::SearchBound { steps: self.state().policy.search }];
        }
        vec![self.together(job, &shape, rooms, who)]
    }

    /// Each group fits alone, but not all of them beside each other.
    fn together(&mut self, job: JobIx, shape: &Shape, rooms: &Rooms, who: Who) -> Reason {
        let state = self.state();
        let asks = Milli(shape.amounts.gpu);
        let free = shape.leaves.iter().map(|leaf| rooms.free(state, leaf)).max();
        let free = free.unwrap_or(Milli::ZERO);
        let tasks: u32 = shape.leaves.iter().map(|leaf| leaf.min).sum();
        let all: Vec<usize> = (0..shape.leaves.len()).collect();
        let fit = self.place_some(job, shape, &all, WHOLE, &who).min(tasks - 1);
        let short = if free < asks { Shortage::Gpu } else { Shortage::Fragments };
        Reason::NoFit { short, asks, free, tasks, fit }
    }

    /// Groups of groups that must lie together: the best domain for them.
    fn no_common_domain(
        &mut self,
        job: JobIx,
        shape: &Shape,
        tree: &Tree,
        who: &Who,
        found: &mut Vec<Reason>,
    ) {
        let Tree::Group { children, together, .. } = tree else { return };
        for child in children {
            self.no_common_domain(job, shape, child, who, found);
        }
        let Some(level @ Level::Label { topology, depth }) = together.required else { return };
        let leaves = tree.leaves();
        let tasks: u32 = leaves.iter().map(|at| shape.leaves[*at].min).sum();
        let domains = self.state().cluster.domains_in_order(topology, depth);
        let mut best = (0, Name::default());
        for domain in domains {
            let fit = self.place_some(job, shape, &leaves, domain, who);
            if fit > best.0 {
                best = (fit, self.state().cluster.domains[domain.at()].name.clone());
            }
        }
        let (fit, best) = best;
        if fit < tasks {
            let level = self.state().cluster.level_name(level);
            found.push(Reason::NoDomain { level, tasks, best, fit });
        }
    }

    /// How many tasks of these groups find a place in the domain, the largest first.
    fn place_some(
        &mut self,
        job: JobIx,
        shape: &Shape,
        leaves: &[usize],
        domain: DomainIx,
        who: &Who,
    ) -> u32 {
        let mark = self.draft.mark();
        let mut leaves: Vec<&Leaf> = leaves.iter().map(|at| &shape.leaves[*at]).collect();
        leaves.sort_by_key(|leaf| Reverse(leaf.gpu_milli(&self.state().cluster)));
        let mut placed = 0;
        for leaf in leaves {
            for task in leaf.first..leaf.first + leaf.min {
                let state = self.state();
                let nodes = &state.cluster.domains[domain.at()].nodes;
                let place = nodes.iter().find_map(|ix| {
                    let node = state.cluster.node(*ix);
                    let slices = suits(leaf, node).then(|| node.choose(&leaf.need, who))??;
                    Some((*ix, slices))
                });
                let Some((node, slices)) = place.filter(|_| placed < PLACED) else { break };
                let lease = Lease {
                    attempt: 0,
                    node,
                    charge: state.charge_of(leaf, node, &slices),
                    price: Micros::ZERO,
                    since: state.now,
                    bound: false,
                    stopping: None,
                    slices,
                };
                self.draft.open(TaskIx { job, task }, lease);
                placed += 1;
            }
        }
        self.draft.roll_back(mark);
        placed
    }

    /// The job would fit these places if they were not kept for others, or about to go.
    fn kept_from(&self, job: JobIx, spots: &[Spot]) -> Vec<Reason> {
        let state = self.state();
        let who = self.who(job);
        let mut jobs = BTreeSet::new();
        let mut from = Time::MAX;
        let mut leaves_at: Option<Time> = None;
        let mut blocked: BTreeSet<&Name> = BTreeSet::new();
        for spot in spots {
            let node = state.cluster.node(spot.node);
            let need = &state.leaf_of(job, spot.task).need;
            let (cpu, memory) = node.spare(&who);
            let crowded = cpu < need.cpu || memory < need.memory || !node.takes_one(need, &who);
            for kept in node.conflicts(&who) {
                let same = kept.slices.iter().any(|k| spot.slices.iter().any(|s| s.gpu == k.gpu));
                if same || crowded {
                    jobs.insert(kept.job);
                    from = from.min(kept.from.max(state.now));
                }
            }
            if let NodeState::Leaving { at } = node.spec.state
                && who.until > at
            {
                leaves_at = leaves_at.into_iter().chain([at]).min();
            }
            let here = |nodes: &[Name]| nodes.contains(&node.spec.name);
            blocked.extend(
                reserved(state, &who).filter(|held| here(&held.nodes)).map(|held| &held.name),
            );
        }
        let leaf = state.leaf_of(job, spots.first().map_or(0, |spot| spot.task));
        let free = timeless(&who);
        let room = |ix: NodeIx| on_node(state, leaf, ix, &free, 1) > 0;
        let mut found = Vec::new();
        if let Some(at) = leaves_at {
            let leaving = state.cluster.live().filter(|(ix, node)| {
                matches!(node.spec.state, NodeState::Leaving { .. }) && room(*ix)
            });
            let nodes = leaving.count() as u32;
            found.push(Reason::Leaving { nodes, within: at - state.now });
        }
        for name in blocked {
            let held = &state.reservations[name];
            let nodes = held.nodes.iter().filter_map(|node| state.cluster.find(node));
            found.push(Reason::ReservedByOperator {
                name: name.clone(),
                nodes: nodes.filter(|ix| room(*ix)).count() as u32,
                from: held.from,
                to: held.to,
            });
        }
        if !jobs.is_empty() {
            found.push(Reason::ReservedForOthers { from, jobs: jobs.len() as u32 });
        }
        found
    }
}

/// Operators' reservations that `who` would run into.
fn reserved<'a>(state: &'a State, who: &Who) -> impl Iterator<Item = &'a Reservation> {
    let (queue, now, until) = (who.queue, who.now, who.until);
    state.reservations.values().filter(move |held| {
        state.queues.find(&held.owner) != Some(queue) && held.from < until && now < held.to
    })
}

/// The domain of a level with the most room, the first of equals.
fn best_domain(
    state: &State,
    topology: u32,
    depth: u32,
    fits: impl Fn(DomainIx) -> u32,
) -> Option<(u32, Name)> {
    let cluster = &state.cluster;
    let best = cluster.domains_of(topology, depth).map(|domain| (fits(domain), domain)).max_by(
        |(fit, domain), (other_fit, other)| {
            let first = |domain: &DomainIx| Reverse(cluster.first_of(*domain));
            fit.cmp(other_fit).then_with(|| first(domain).cmp(&first(other)))
        },
    );
    best.map(|(fit, domain)| (fit, cluster.domains[domain.at()].name.clone()))
}

/// A group of like tasks that is looked at.
struct Group<'a> {
    state: &'a State,
    rooms: &'a Rooms,
    leaf: &'a Leaf,
    who: Who,
}

impl Group<'_> {
    fn reasons(&self) -> Vec<Reason> {
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
        self.rooms.tasks(self.state, leaf, domain, &self.who, self.leaf.min)
    }

    fn each_node(&self, leaf: &Leaf, most: u32) -> Vec<(NodeIx, u32)> {
        let nodes = &self.state.cluster.domains[WHOLE.at()].nodes;
        let room = |ix: &NodeIx| (*ix, on_node(self.state, leaf, *ix, &self.who, most));
        nodes.iter().map(room).collect()
    }

    /// Which resource is short where there is not enough room anywhere.
    fn too_little(&self, plain: &Leaf, fit: u32) -> Vec<Reason> {
        let (leaf, tasks) = (self.leaf, self.leaf.min);
        let gpus_alone = bare(leaf);
        let with_gpus = self.tasks(&gpus_alone, WHOLE);
        if with_gpus < tasks && leaf.need.ask != GpuAsk::None {
            let asks = Milli(leaf.gpu_milli(&self.state.cluster) * i64::from(tasks));
            let free = self.rooms.free(self.state, leaf);
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
            let left = |ix: NodeIx| self.state.cluster.node(ix).spare_of(resource, &self.who);
            let free = rooms.map(|(ix, _)| left(ix)).max().unwrap_or(0).max(0);
            let (resource, asks) = (resource.clone(), *asks);
            return Some(Reason::NoFitCounted { resource, asks, free, tasks, fit });
        }
        None
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
            let runs = Nearby::of(state, &alone, self.who.job).runs();
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
