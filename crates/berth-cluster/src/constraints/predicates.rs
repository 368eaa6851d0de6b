//! The node predicates in use: each becomes a label of the nodes that meet it, for as long as some
//! pod needs it.

use crate::view::NodePredicate;
use berth_model::Name;
use std::collections::BTreeMap;

/// How many predicates and ports without a user are kept: pods with the same ones may come again.
const MAX_UNUSED: usize = 64;

#[derive(Default)]
pub struct NodePredicates {
    rules: BTreeMap<Name, Used<NodePredicate>>,
    /// Ports of nodes, and how much every node has of each.
    ports: BTreeMap<Name, Used<i64>>,
}

struct Used<T> {
    what: T,
    /// By so many pods.
    by: usize,
}

/// References to predicates and ports, until they are released.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "what is not given back is kept for ever"]
pub struct PredicateRefs {
    rules: Vec<Name>,
    ports: Vec<Name>,
}

impl NodePredicates {
    pub fn rules(&self) -> impl Iterator<Item = &NodePredicate> {
        self.rules.values().map(|used| &used.what)
    }

    pub fn rule(&self, name: &Name) -> Option<&NodePredicate> {
        self.rules.get(name).map(|used| &used.what)
    }

    /// How much every node has of a port or a disk.
    pub fn port(&self, name: &Name) -> Option<i64> {
        self.ports.get(name).map(|used| used.what)
    }

    pub fn ports(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.ports.iter().map(|(port, used)| (port, used.what))
    }

    /// Adds references to these. Also returns whether any of them is new, so that the labels of
    /// nodes change.
    pub fn acquire(
        &mut self,
        rules: &[NodePredicate],
        ports: &BTreeMap<Name, i64>,
    ) -> (PredicateRefs, bool) {
        let is_new = rules.iter().any(|rule| !self.rules.contains_key(&rule.name))
            || ports.keys().any(|port| !self.ports.contains_key(port));
        for rule in rules {
            let new = || Used { what: rule.clone(), by: 0 };
            self.rules.entry(rule.name.clone()).or_insert_with(new).by += 1;
        }
        for (port, size) in ports {
            let new = || Used { what: *size, by: 0 };
            self.ports.entry(port.clone()).or_insert_with(new).by += 1;
        }
        if is_new {
            // All nodes are described anew, so that it costs nothing to forget what is over.
            self.forget_unused();
        }
        let rules = rules.iter().map(|rule| rule.name.clone()).collect();
        (PredicateRefs { rules, ports: ports.keys().cloned().collect() }, is_new)
    }

    pub fn release_predicates(&mut self, PredicateRefs { rules, ports }: PredicateRefs) {
        for rule in rules {
            if let Some(used) = self.rules.get_mut(&rule) {
                used.by -= 1;
            }
        }
        for port in ports {
            if let Some(used) = self.ports.get_mut(&port) {
                used.by -= 1;
            }
        }
    }

    fn forget_unused(&mut self) {
        let rules = self.rules.values().filter(|used| used.by == 0).count();
        let ports = self.ports.values().filter(|used| used.by == 0).count();
        if rules + ports > MAX_UNUSED {
            self.rules.retain(|_, used| used.by > 0);
            self.ports.retain(|_, used| used.by > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Asks;
    use std::sync::Arc;

    fn rule(name: &str) -> NodePredicate {
        NodePredicate { name: Name::new(name), allows: Arc::new(|_| true), asks: Asks::Named }
    }

    fn acquire(predicates: &mut NodePredicates, name: &str) -> (PredicateRefs, bool) {
        predicates.acquire(&[rule(name)], &BTreeMap::new())
    }

    #[test]
    fn a_rule_that_pods_share_makes_nodes_different_only_once() {
        let mut predicates = NodePredicates::default();
        let (first, is_new) = acquire(&mut predicates, "a");
        assert!(is_new);
        let (second, is_new) = acquire(&mut predicates, "a");
        assert!(!is_new);
        predicates.release_predicates(first);
        predicates.release_predicates(second);
        let (_third, is_new) = acquire(&mut predicates, "a");
        assert!(!is_new, "pods that follow one another find their rule there");
    }

    #[test]
    fn rules_that_no_pod_has_any_more_are_forgotten_and_the_others_stay() {
        let mut predicates = NodePredicates::default();
        let (_stays, _) = acquire(&mut predicates, "stays");
        for at in 0..1_000 {
            let ports = BTreeMap::from([(Name::new(&format!("port {at}")), 1)]);
            let (predicate_refs, is_new) =
                predicates.acquire(&[rule(&format!("rule {at}"))], &ports);
            assert!(is_new);
            predicates.release_predicates(predicate_refs);
            assert!(predicates.rules().count() + predicates.ports().count() <= MAX_UNUSED + 4);
        }
        assert!(predicates.rules().any(|rule| rule.name == Name::new("stays")));
    }
}
