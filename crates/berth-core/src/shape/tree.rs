//! The tree of groups of a request, resolved against the topologies of the cluster.

use crate::cluster::Cluster;
use crate::cluster::domain::Level;
use crate::cluster::node::Need;
use crate::shape::leaf::{Leaf, NearAsk, Together};
use berth_model::{GroupSpec, Name, TopologyAsk};
use std::sync::Arc;

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

pub(crate) fn tree(group: &GroupSpec, cluster: &mut Cluster, leaves: &mut Vec<Leaf>) -> Tree {
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
            left_to_gpus: 0,
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
