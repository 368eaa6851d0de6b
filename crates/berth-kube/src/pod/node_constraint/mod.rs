//! Which nodes a pod accepts, by itself: its selector, its affinity to nodes and its tolerations.
//! What depends on other pods is in [`interpod`](super::interpod).
//!
//! Pods with the same constraint are handled together, so that a constraint has a name: its
//! [text](NodeConstraint::text), which is the same for constraints that differ in order only.

mod selection;
mod tolerations;

pub use selection::{NodeSelection, Term};
pub use tolerations::{Tolerated, Tolerations, UNSCHEDULABLE};

use crate::object::{Labels, Node, PodSpec, Taint};
use crate::selector::UnsupportedConstraint;

/// What a constraint looks at in a node.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    pub name: &'a str,
    pub labels: &'a Labels,
    pub taints: &'a [Taint],
    /// It is cordoned.
    pub unschedulable: bool,
}

impl<'a> From<&'a Node> for NodeView<'a> {
    fn from(node: &'a Node) -> NodeView<'a> {
        let Node { metadata, spec, .. } = node;
        NodeView {
            name: &metadata.name,
            labels: &metadata.labels,
            taints: &spec.taints,
            unschedulable: spec.unschedulable,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeConstraint {
    pub selection: NodeSelection,
    pub tolerance: Tolerations,
}

impl NodeConstraint {
    pub fn of(spec: &PodSpec) -> Result<NodeConstraint, UnsupportedConstraint> {
        Ok(NodeConstraint {
            selection: NodeSelection::of(spec)?,
            tolerance: Tolerations::of(spec)?,
        })
    }

    pub fn allows(&self, node: &NodeView) -> bool {
        self.selection.allows(node) && self.tolerance.allows(node)
    }

    /// How well the node meets the preferences, more being better. A taint to be avoided weighs as
    /// much as the heaviest preference.
    pub fn score(&self, node: &NodeView) -> i32 {
        let avoided = i32::try_from(self.tolerance.avoided(node)).unwrap_or(i32::MAX);
        self.selection.score(node).saturating_sub(avoided.saturating_mul(100))
    }

    /// Whether every node without taints is as good as any other.
    pub fn is_trivial(&self) -> bool {
        self.selection.is_trivial() && self.tolerance.is_trivial()
    }

    /// A short sentence that names this constraint and no other.
    pub fn text(&self) -> String {
        if self.tolerance.is_trivial() {
            return self.selection.text();
        }
        format!("{}; {}", self.selection.text(), self.tolerance.text())
    }
}

#[cfg(test)]
mod tests;
