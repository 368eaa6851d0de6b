//! Nodes as the core is told of them: what they have, less what pods of others take, with the rules
//! they satisfy as labels.

use super::sight::{NodeSight, PodSight, Rule};
use crate::engine::{Core, Turn};
use berth_model::{Bytes, Cpu, Event, GpuSpec, Health, Name, NodeSpec, Slice};
use std::collections::{BTreeMap, BTreeSet};

const YES: &str = "yes";

#[derive(Default)]
pub struct Nodes {
    nodes: BTreeMap<Name, Node>,
    rules: BTreeMap<Name, Rule>,
    /// Those that may have to be described anew.
    stale: BTreeSet<Name>,
    /// What pods take on nodes that were not seen yet.
    taken: BTreeMap<Name, Taken>,
}

struct Node {
    sight: NodeSight,
    /// As the core knows it.
    told: Option<NodeSpec>,
}

/// What pods that are none of our tasks take of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    cpu: i64,
    memory: i64,
    gpus: i64,
}

impl Taken {
    /// What a pod takes where it is bound, until it is over.
    fn by(sight: &PodSight) -> Option<(Name, Taken)> {
        let node = sight.node.clone().filter(|_| !sight.phase.is_over())?;
        let asks = &sight.asks;
        let gpus = i64::from(asks.gpus.count());
        Some((node, Taken { cpu: asks.cpu.0, memory: asks.memory.0, gpus }))
    }

    fn add(&mut self, other: Taken, sign: i64) {
        self.cpu += other.cpu * sign;
        self.memory += other.memory * sign;
        self.gpus += other.gpus * sign;
    }
}

impl Nodes {
    pub fn names(&self) -> BTreeSet<Name> {
        self.nodes.keys().cloned().collect()
    }

    pub fn put(&mut self, sight: NodeSight) {
        let name = sight.spec.name.clone();
        self.stale.insert(name.clone());
        match self.nodes.get_mut(&name) {
            Some(node) => node.sight = sight,
            None => drop(self.nodes.insert(name, Node { sight, told: None })),
        }
    }

    /// Counts what a pod that is no task takes, or takes it off again. What is counted of it is kept
    /// with the pod, so that counting twice does nothing.
    pub fn count(&mut self, counted: &mut Option<(Name, Taken)>, now: Option<&PodSight>) {
        let now = now.and_then(Taken::by);
        if *counted == now {
            return;
        }
        for (change, sign) in [(counted.as_ref(), -1), (now.as_ref(), 1)] {
            let Some((node, taken)) = change else { continue };
            self.taken.entry(node.clone()).or_default().add(*taken, sign);
            self.stale.insert(node.clone());
        }
        *counted = now;
    }

    /// From now on nodes are told apart by these rules, too.
    pub fn obey(&mut self, rules: Vec<Rule>) {
        for rule in rules {
            if self.rules.contains_key(&rule.name) {
                continue;
            }
            self.rules.insert(rule.name.clone(), rule);
            self.stale.extend(self.nodes.keys().cloned());
        }
    }

    /// What the core knows from before. Returns those that are not there any more.
    pub fn remember(&mut self, core: &Core) -> Vec<Name> {
        let mut missing = Vec::new();
        for known in core.state.node_snapshots() {
            match self.nodes.get_mut(&known.spec.name) {
                Some(node) => node.told = Some(known.spec),
                None => missing.push(known.spec.name),
            }
        }
        missing
    }

    /// A node is gone, with nothing of ours on it any more.
    pub fn remove(&mut self, turn: &mut Turn<'_>, name: &Name) {
        self.stale.remove(name);
        self.nodes.remove(name);
        turn.apply_observed(Event::NodeRemoved { node: name.clone() });
    }

    /// Tells the core what has changed.
    pub fn tell(&mut self, turn: &mut Turn<'_>) {
        for name in std::mem::take(&mut self.stale) {
            let taken = self.taken.get(&name).copied().unwrap_or_default();
            if taken == Taken::default() {
                self.taken.remove(&name);
            }
            let Some(node) = self.nodes.get_mut(&name) else { continue };
            let spec = described(turn.core, &node.sight, taken, &self.rules);
            if node.told.as_ref() == Some(&spec) {
                continue;
            }
            // What was refused is said again when the node is next seen.
            let known = turn.apply_observed(Event::NodeAdded { node: Box::new(spec.clone()) });
            if known {
                node.told = Some(spec);
            }
        }
    }
}

fn described(
    core: &Core,
    sight: &NodeSight,
    taken: Taken,
    rules: &BTreeMap<Name, Rule>,
) -> NodeSpec {
    let mut spec = sight.spec.clone();
    spec.cpu = spec.cpu.map(|cpu| Cpu((cpu.0 - taken.cpu).max(0)));
    spec.memory = spec.memory.map(|memory| Bytes((memory.0 - taken.memory).max(0)));
    if taken.gpus > 0 {
        take_gpus(core, &spec.name, &mut spec.gpus, taken.gpus);
    }
    for rule in rules.values() {
        if (rule.allows)(sight) {
            spec.labels.insert(rule.name.clone(), Name::new(YES));
        }
    }
    spec
}

/// GPUs that others use are as good as failed to us. Which ones they are nobody knows, but they are
/// none of those that our own tasks were given.
fn take_gpus(core: &Core, node: &Name, gpus: &mut [GpuSpec], count: i64) {
    let leases = core.jobs.values().flat_map(|job| job.leases.values());
    let ours: BTreeSet<u32> = leases
        .filter(|lease| lease.row.node == node.as_str())
        .flat_map(|lease| serde_json::from_str::<Vec<Slice>>(&lease.row.slices).unwrap_or_default())
        .map(|slice| slice.gpu)
        .collect();
    let free = gpus.iter_mut().enumerate().rev().filter(|(at, _)| !ours.contains(&(*at as u32)));
    for (_, gpu) in free.take(usize::try_from(count).unwrap_or(usize::MAX)) {
        gpu.health = Health::Failed;
    }
}

/// The label by which nodes that satisfy a rule are told apart.
pub fn need(rules: &[Rule]) -> BTreeMap<Name, Name> {
    rules.iter().map(|rule| (rule.name.clone(), Name::new(YES))).collect()
}
