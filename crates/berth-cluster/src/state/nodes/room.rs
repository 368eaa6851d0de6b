//! What nodes would have if pods of other schedulers left, and which nodes a group of tasks may
//! have: what a reason says has to be true of the cluster, not of what the core was given of it.

use super::Nodes;
use crate::constraints::YES;
use crate::view::NodeView;
use berth_model::{GpuAsk, GroupSpec, Name, RuledOut};
use std::collections::BTreeMap;

/// Nodes that a group may have by its labels, and why not the others.
pub struct Suits<'a> {
    pub nodes: Vec<&'a NodeView>,
    pub ruled_out: Vec<RuledOut>,
}

impl Nodes {
    pub fn suits(&self, group: &GroupSpec) -> Suits<'_> {
        let mut nodes = Vec::new();
        let mut causes: BTreeMap<(String, bool), u32> = BTreeMap::new();
        for (name, node) in &self.nodes {
            match self.fault(group, name, &node.view) {
                None => nodes.push(&node.view),
                Some(fault) => *causes.entry(fault).or_default() += 1,
            }
        }
        let cause = |((why, passes), nodes)| RuledOut { nodes, why, passes };
        Suits { nodes, ruled_out: causes.into_iter().map(cause).collect() }
    }

    /// The first that a group asks for and a node lacks, in words, and whether that may pass: taints
    /// first, as kube-scheduler has it.
    fn fault(&self, group: &GroupSpec, name: &Name, view: &NodeView) -> Option<(String, bool)> {
        let reported = self.nodes.get(name).and_then(|node| node.reported.as_ref());
        let mut first: Option<(u8, (String, bool))> = None;
        for (key, value) in &group.labels.need {
            let is_yes = value.as_str() == YES;
            let fault = match self.predicates.rule(key).filter(|_| is_yes) {
                Some(rule) if (rule.allows)(view) => continue,
                Some(rule) => (rule.asks.rank(), rule.fault(view)),
                None if reported.is_some_and(|spec| spec.labels.get(key) == Some(value)) => {
                    continue;
                }
                None if is_yes => (u8::MAX, (format!("without {key}"), false)),
                None => (u8::MAX, (format!("without the label {key}={value}"), false)),
            };
            if first.as_ref().is_none_or(|(rank, _)| fault.0 < *rank) {
                first = Some(fault);
            }
        }
        first.map(|(_, fault)| fault)
    }

    /// How much a node has of a resource in all, whatever pods of others take of it.
    pub fn in_all(&self, view: &NodeView, resource: &Name) -> i64 {
        let of_node = view.spec.counted.get(resource).copied();
        self.predicates.port(resource).or(of_node).unwrap_or(0)
    }

    /// Whether a resource is a port or a disk of nodes, whose amounts are bookkeeping.
    pub fn is_port(&self, resource: &Name) -> bool {
        self.predicates.port(resource).is_some()
    }

    /// How many tasks of a group a node would have room for if it were empty.
    pub fn room_in_all(&self, view: &NodeView, group: &GroupSpec) -> u32 {
        let spec = &view.spec;
        let times = |has: i64, asks: i64| if asks > 0 { has / asks } else { i64::MAX };
        let gpus = match &group.gpus {
            GpuAsk::None => i64::MAX,
            ask => times(spec.gpus.len() as i64, i64::from(ask.count())),
        };
        let cpu = spec.cpu.map_or(i64::MAX, |cpu| times(cpu.0, group.cpu.0));
        let memory = spec.memory.map_or(i64::MAX, |memory| times(memory.0, group.memory.0));
        let tasks = spec.tasks.map_or(i64::MAX, i64::from);
        let counted = group.counted.iter();
        let counted = counted.map(|(name, asks)| times(self.in_all(view, name), *asks)).min();
        let most = gpus.min(cpu).min(memory).min(tasks).min(counted.unwrap_or(i64::MAX));
        u32::try_from(most.max(0)).unwrap_or(u32::MAX)
    }
}
