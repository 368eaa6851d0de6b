//! Filters nodes, scores them, and says why none is feasible.

use super::attach::AttachBarrier;
use super::context::{PlacementContext, label};
use super::volumes::{Place, Refusal};
use crate::view::NodeView;
use berth_kube::object::Text;
use berth_kube::pod::node_constraint::{self, NodeConstraint};
use berth_model::{Name, NodeAsk};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is asked of a node.
pub enum Test<'a> {
    /// It has the label, with one of these values.
    In(&'a Text, BTreeSet<Text>),
    /// It has none of these values.
    NotIn(&'a Text, BTreeSet<Text>),
    Has(&'a Text),
    Volume(Place<'a>),
    /// It is none of these.
    Unbarred(BTreeMap<Name, AttachBarrier>),
}

/// Why a node will not do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fault<'t> {
    Barred(&'t AttachBarrier),
    Storage(&'t Text, &'t Text),
    /// By rules about other pods, or because volumes are elsewhere.
    Place,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Barred(AttachBarrier::Full(driver)) => {
                write!(f, "cannot attach that many more volumes of {driver}")
            }
            Fault::Barred(AttachBarrier::Missing(driver)) => {
                write!(f, "without the driver {driver} of its volumes")
            }
            Fault::Storage(claim, class) => {
                write!(f, "with too little storage of the class {class} for the claim {claim}")
            }
            Fault::Place => f.write_str("by rules about other pods, or by where its volumes are"),
        }
    }
}

/// Nodes that pass, and those of them that are best by what labels are worth. An error where none
/// passes of those that are allowed by the constraint.
pub fn choose(
    context: &PlacementContext<'_>,
    constraint: Option<&NodeConstraint>,
    tests: &[Test<'_>],
    preferences: &[(&Text, BTreeMap<Text, i64>)],
) -> Result<Option<NodeAsk>, String> {
    let mut yes: Vec<(i64, &Name)> = Vec::new();
    let mut no: BTreeSet<Name> = BTreeSet::new();
    let mut faults: BTreeMap<Fault<'_>, u32> = BTreeMap::new();
    let mut is_any = false;
    for node in context.nodes.views() {
        let name = &node.spec.name;
        // What it must not be on anyhow neither helps nor says anything.
        let counts = || {
            constraint
                .is_none_or(|rule| rule.allows(&node_constraint::NodeView::from(&*node.object)))
        };
        if let Some(fault) = tests.iter().find_map(|test| fault(context, test, node)) {
            if !is_any && counts() {
                *faults.entry(fault).or_default() += 1;
            }
            no.insert(name.clone());
            continue;
        }
        is_any = is_any || counts();
        let worth = |(key, values): &(&Text, BTreeMap<Text, i64>)| {
            let value = label(node, key).and_then(|value| values.get(value));
            value.copied().unwrap_or(0)
        };
        yes.push((preferences.iter().map(worth).sum(), name));
    }
    if !is_any && !faults.is_empty() || yes.is_empty() && !no.is_empty() {
        return Err(why(&faults));
    }
    let best = yes.iter().map(|(worth, _)| *worth).max();
    let better = yes.iter().filter(|(worth, _)| Some(*worth) == best);
    let better: BTreeSet<Name> = better.map(|(_, name)| (*name).clone()).collect();
    let prefer = if better.len() < yes.len() { better } else { BTreeSet::new() };
    if no.is_empty() && prefer.is_empty() {
        return Ok(None);
    }
    if no.len() <= yes.len() {
        return Ok(Some(NodeAsk { only: None, never: no, prefer }));
    }
    let only = Some(yes.iter().map(|(_, name)| (*name).clone()).collect());
    Ok(Some(NodeAsk { only, never: BTreeSet::new(), prefer }))
}

fn why(faults: &BTreeMap<Fault<'_>, u32>) -> String {
    if faults.keys().all(|fault| *fault == Fault::Place) {
        return "no node suits its rules about other pods, or its volumes, now".to_owned();
    }
    let each: Vec<String> = faults.iter().map(|(fault, n)| format!("{n} {fault}")).collect();
    format!("no node will do for its volumes now: {}", each.join(", "))
}

/// What is wrong with a node, if anything is.
fn fault<'t>(
    context: &PlacementContext<'_>,
    test: &'t Test<'_>,
    node: &NodeView,
) -> Option<Fault<'t>> {
    let passes = match test {
        Test::In(key, values) => label(node, key).is_some_and(|value| values.contains(value)),
        Test::NotIn(key, values) => !label(node, key).is_some_and(|value| values.contains(value)),
        Test::Has(key) => label(node, key).is_some(),
        Test::Volume(place) => {
            return match context
                .volumes
                .refusal(place, &node_constraint::NodeView::from(&*node.object))?
            {
                Refusal::Storage(claim, class) => Some(Fault::Storage(claim, class)),
                Refusal::Elsewhere => Some(Fault::Place),
            };
        }
        Test::Unbarred(barred) => return barred.get(&node.spec.name).map(Fault::Barred),
    };
    (!passes).then_some(Fault::Place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_node_is_told_what_is_wrong_with_how_many() {
        let (full, claim, class) =
            (AttachBarrier::Full("d.example.com".into()), "data".into(), "fast".into());
        let mut faults = BTreeMap::from([(Fault::Place, 2)]);
        assert_eq!(why(&faults), "no node suits its rules about other pods, or its volumes, now");
        faults.insert(Fault::Barred(&full), 3);
        faults.insert(Fault::Storage(&claim, &class), 1);
        assert_eq!(
            why(&faults),
            "no node will do for its volumes now: 3 cannot attach that many more volumes of \
             d.example.com, 1 with too little storage of the class fast for the claim data, \
             2 by rules about other pods, or by where its volumes are"
        );
    }
}
