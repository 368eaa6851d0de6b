//! Nodes and edges, each once, up to a limit.

use berth_api::wire::{Lineage, LineageEdge, LineageLink, LineageNode};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Graph {
    limit: usize,
    nodes: Vec<LineageNode>,
    at: BTreeMap<String, usize>,
    edges: BTreeSet<LineageEdge>,
    /// The limit has cut the graph.
    pub more: bool,
}

impl Graph {
    pub fn new(limit: usize) -> Graph {
        let (at, edges) = (BTreeMap::new(), BTreeSet::new());
        Graph { limit, nodes: Vec::new(), at, edges, more: false }
    }

    /// The number of nodes that still fit.
    pub fn room(&self) -> usize {
        self.limit - self.nodes.len()
    }

    pub fn has(&self, id: &str) -> bool {
        self.at.contains_key(id)
    }

    /// Adds a node once. Returns whether the graph has it now.
    pub fn node(&mut self, node: LineageNode) -> bool {
        if self.has(&node.id) {
            return true;
        }
        if self.room() == 0 {
            self.more = true;
            return false;
        }
        self.at.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
        true
    }

    pub fn edge(&mut self, from: &str, to: &str, kind: LineageLink) {
        if from != to {
            let (from, to) = (from.to_owned(), to.to_owned());
            self.edges.insert(LineageEdge { from, to, kind });
        }
    }

    /// The answer, with the cost of these jobs.
    pub fn finish(self, of: String, jobs: &BTreeSet<String>) -> Lineage {
        let counted = || jobs.iter().filter_map(|id| self.at.get(id).map(|at| &self.nodes[*at]));
        Lineage {
            cost_micros: counted().filter_map(|node| node.details.cost_micros).sum(),
            gpu_ms: counted().filter_map(|node| node.details.gpu_ms).sum(),
            of,
            more: self.more,
            edges: self.edges.into_iter().collect(),
            nodes: self.nodes,
        }
    }
}
