//! What placement looks at.

use super::index::Index;
use super::volumes::Volumes;
use crate::view::{NodeView, NodeViews, PodView};
use berth_kube::object::Text;

/// All nodes, pods and volumes as they are now.
pub struct PlacementContext<'a> {
    pub nodes: &'a dyn NodeViews,
    pub index: &'a Index,
    pub volumes: &'a Volumes,
    /// How many GPUs of a node are free.
    pub free: &'a dyn Fn(&str) -> u32,
}

/// Pods of one group of a job.
pub struct PodGroup<'a> {
    pub views: Vec<&'a PodView>,
    /// So many of them at the most are put into one place, where the group says so.
    pub at_most: Option<u32>,
}

/// The value of a label of a node.
pub fn label<'n>(node: &'n NodeView, key: &str) -> Option<&'n Text> {
    node.object.metadata.labels.get(key)
}
