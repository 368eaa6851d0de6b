//! Cordoned nodes for pods that tolerate the cordon, as those of DaemonSets do.
//!
//! The core closes a cordoned node to all work. While a pod waits that may run there all the same,
//! the node is reported as open, and its missing labels keep all other pods away, as its taint does.

use crate::view::{NodePredicate, NodeView};
use berth_model::NodeState;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Cordons {
    /// The predicates of pods that wait, by the pods.
    waiting: BTreeMap<String, Vec<NodePredicate>>,
}

impl Cordons {
    /// Returns whether nodes may be open that were not, or the other way round.
    pub fn set(&mut self, uid: &str, rules: Option<&[NodePredicate]>) -> bool {
        let known = self.waiting.get(uid).map(Vec::as_slice);
        if known == rules {
            return false;
        }
        match rules {
            Some(rules) => self.waiting.insert(uid.to_owned(), rules.to_vec()),
            None => self.waiting.remove(uid),
        };
        true
    }

    /// Whether a node is closed by its cordon, and by nothing else.
    pub fn is_cordoned(view: &NodeView) -> bool {
        let conditions = &view.object.status.conditions;
        let is_ready = conditions.iter().any(|one| &*one.kind == "Ready" && &*one.status == "True");
        view.spec.state == NodeState::Cordoned
            && view.object.spec.unschedulable
            && is_ready
            && !view.is_unreadable
    }

    /// Whether a cordoned node is to be open for a pod that waits.
    pub fn opens(&self, view: &NodeView) -> bool {
        let may = |rules: &Vec<NodePredicate>| rules.iter().all(|rule| (rule.allows)(view));
        Cordons::is_cordoned(view) && self.waiting.values().any(may)
    }
}
