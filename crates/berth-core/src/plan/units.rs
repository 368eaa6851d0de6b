//! Tasks that are preempted together, and what is stored of them per queue and per node.

use crate::ix::{JobIx, NodeIx, QueueIx};
use crate::state::State;

/// What may be preempted in one queue, in the order it is preempted.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueVictims {
    /// Members of elastic gangs beyond their minimum, newest first.
    pub(super) surplus: Vec<Unit>,
    /// Whole jobs: lowest class, least lost work, newest, by id.
    pub(super) whole: Vec<Unit>,
    /// How many of them, from the first, this plan has preempted.
    pub(super) preempted: usize,
}

/// Tasks that are preempted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub job: JobIx,
    pub tasks: Vec<u32>,
    pub surplus: bool,
}

impl Unit {
    /// Whether a task of its job goes with it.
    pub fn takes(&self, task: u32) -> bool {
        !self.surplus || self.tasks.contains(&task)
    }
}

/// A victim on one node.
#[derive(Debug, Clone)]
pub(crate) struct NodeVictim {
    pub(crate) unit: Unit,
    pub(crate) loss: i128,
    /// What it holds on the node, in thousandths of GPUs.
    pub(super) here: i64,
    /// CPU and memory that it holds there.
    pub(super) cpu: i64,
    pub(super) memory: i64,
    pub(super) queue: QueueIx,
    pub(super) priority: i32,
    /// It runs, may be stopped, and has had its minimum run time.
    pub(super) open: bool,
}

impl NodeVictim {
    /// Its class; what a gang has to spare is below all of them.
    pub(super) fn class(&self) -> i32 {
        if self.unit.surplus { i32::MIN } else { self.priority }
    }
}

/// Victims by node, made when first needed and reused until the node changes.
#[derive(Debug, Default)]
pub(crate) struct NodeVictims {
    by_node: Vec<Option<Vec<NodeVictim>>>,
}

impl NodeVictims {
    /// Drops those of nodes that have changed since.
    pub(super) fn refresh(&mut self, state: &mut State) {
        let dirty = state.cluster.take_dirty();
        // What a gang has to spare depends on its members on other nodes.
        if !state.elastic.is_empty() {
            self.by_node.clear();
        }
        self.by_node.resize(state.cluster.nodes.len(), None);
        dirty.into_iter().for_each(|ix| self.by_node[ix.at()] = None);
    }

    pub(crate) fn on(
        &mut self,
        ix: NodeIx,
        make: impl FnOnce() -> Vec<NodeVictim>,
    ) -> &[NodeVictim] {
        self.by_node[ix.at()].get_or_insert_with(make)
    }
}
