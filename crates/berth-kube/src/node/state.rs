//! Whether a node takes work.

use crate::object::Node;
use berth_model::NodeState;

/// The state, and why it is not ready.
///
/// A kubelet that has stopped answering may come back, and its pods may still run: until the
/// control plane puts up the taint that ends them, the node is cordoned and not failed. Failing it
/// earlier would start its jobs a second time beside themselves.
pub(super) fn of(node: &Node) -> (NodeState, Option<&'static str>) {
    let taint = |keys: &[&str], effect: Option<&str>| {
        node.spec.taints.iter().any(|taint| {
            keys.contains(&&*taint.key) && effect.is_none_or(|effect| effect == &*taint.effect)
        })
    };
    const GONE: [&str; 2] = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];
    const DISRUPTED: [&str; 2] = ["karpenter.sh/disrupted", "karpenter.sh/disruption"];
    let ready = node.status.conditions.iter().find(|condition| &*condition.kind == "Ready");
    let is_ready = ready.is_some_and(|condition| &*condition.status == "True");
    if !is_ready && taint(&GONE, Some("NoExecute")) {
        return (
            NodeState::Failed,
            Some("its kubelet has stopped answering and its pods are ended"),
        );
    }
    if taint(&DISRUPTED, None) {
        return (NodeState::Draining, Some("Karpenter is about to remove it"));
    }
    if node.metadata.deletion_timestamp.is_some() {
        return (NodeState::Draining, Some("it is being deleted"));
    }
    if ready.is_none() {
        return (NodeState::Cordoned, Some("its kubelet has not reported yet"));
    }
    if !is_ready {
        return (NodeState::Cordoned, Some("its kubelet is not ready; what runs may still run"));
    }
    if node.spec.unschedulable {
        return (NodeState::Cordoned, Some("it is marked unschedulable"));
    }
    (NodeState::Ready, None)
}
