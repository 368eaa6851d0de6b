//! Node predicates as labels that the core knows.

use crate::view::NodePredicate;
use berth_model::Name;
use std::collections::BTreeMap;

/// The value of the label of a node that meets a condition.
pub const YES: &str = "yes";

/// The labels of nodes that meet these predicates.
pub fn need(rules: &[NodePredicate]) -> BTreeMap<Name, Name> {
    rules.iter().map(|rule| is_there(rule.name.clone())).collect()
}

pub fn is_there(label: Name) -> (Name, Name) {
    (label, Name::new(YES))
}
