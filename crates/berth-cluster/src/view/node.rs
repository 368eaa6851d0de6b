//! A node as it was last observed, and conditions that nodes meet or do not meet.

use berth_kube::dra::Device;
use berth_kube::pod::node_constraint::{self, Tolerations, UNSCHEDULABLE};
use berth_kube::pod::requests::DevicePluginResources;
use berth_model::{Name, NodeSpec};
use std::sync::Arc;

/// On which nodes a pod may run. The core sees the predicate as a label with this name on the
/// nodes that meet it.
#[derive(Clone)]
pub struct NodePredicate {
    pub name: Name,
    pub allows: Arc<dyn Fn(&NodeView) -> bool + Send + Sync>,
    pub asks: Asks,
}

/// What a predicate asks of nodes, so that people read that and not its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// No taints but these, and no cordon unless it is tolerated.
    Tolerations(Tolerations),
    /// What the node selector and the affinity to nodes say, in words.
    Selection,
    /// What its name says.
    Named,
}

impl Asks {
    /// If a node misses several rules, the reason names the one of the smallest rank.
    pub const fn rank(&self) -> u8 {
        match self {
            Asks::Tolerations(_) => 0,
            Asks::Selection => 1,
            Asks::Named => 2,
        }
    }
}

impl NodePredicate {
    /// Why it does not allow a node, and whether that may pass by itself.
    pub fn fault(&self, node: &NodeView) -> (String, bool) {
        match &self.asks {
            Asks::Tolerations(tolerations) => {
                let view = node_constraint::NodeView::from(&*node.object);
                untolerated(&tolerations.untolerated(&view))
            }
            Asks::Selection => (
                format!("without what its node selector or affinity asks for ({})", self.name),
                false,
            ),
            Asks::Named => (format!("without {}", self.name), false),
        }
    }
}

/// Taints that keep a pod away from a node, in words, and whether they may go by themselves.
pub fn untolerated(taints: &[String]) -> (String, bool) {
    const OF_NODES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
    let passes = |taint: &String| OF_NODES.iter().any(|of_nodes| taint.starts_with(of_nodes));
    let is_cordon = |taint: &String| taint.starts_with(UNSCHEDULABLE);
    if taints.iter().all(is_cordon) {
        return ("cordoned".to_owned(), true);
    }
    let text = format!("with a taint that it does not tolerate ({})", taints.join(", "));
    (text, taints.iter().any(passes))
}

impl std::fmt::Debug for NodePredicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.name.fmt(f)
    }
}

impl PartialEq for NodePredicate {
    fn eq(&self, other: &NodePredicate) -> bool {
        self.name == other.name
    }
}

impl Eq for NodePredicate {}

/// A node as it was last seen.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// Without what pods of other schedulers take, and without rules.
    pub spec: NodeSpec,
    /// What its GPU resources stand for.
    pub devices: DevicePluginResources,
    /// The GPUs that can be claimed, where its GPUs are such.
    pub claimable: Arc<[Device]>,
    pub object: Arc<berth_kube::object::Node>,
    /// Its object cannot be read, so Berth places nothing new there.
    pub is_unreadable: bool,
}

impl NodeView {
    /// With the GPUs that can be claimed. The Node object does not list them.
    #[must_use]
    pub fn with_claims(mut self, known: &NodeView) -> NodeView {
        if !known.claimable.is_empty() && self.spec.gpus.is_empty() {
            self.claimable = known.claimable.clone();
            self.spec.gpus = known.spec.gpus.clone();
        }
        self
    }
}

/// All nodes, as they were last observed.
pub trait NodeViews {
    fn view(&self, name: &str) -> Option<&NodeView>;

    fn views(&self) -> Box<dyn Iterator<Item = &NodeView> + '_>;
}
