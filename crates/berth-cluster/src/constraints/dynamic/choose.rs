//! Filters nodes, scores them, and says why none is feasible.

use super::context::{PlacementContext, label};
use super::infeasible::{Infeasible, NodeFault};
use super::volumes::Place;
use crate::view::{NodeView, untolerated};
use berth_kube::object::Text;
use berth_kube::pod::node_constraint::{self, NodeConstraint};
use berth_model::{Name, NodeAsk};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked of a node.
pub enum Test<'a> {
    /// It has the label, with one of these values; otherwise that is wrong with it.
    In(&'a Text, BTreeSet<Text>, NodeFault),
    /// It has none of these values.
    NotIn(&'a Text, BTreeSet<Text>, NodeFault),
    Has(&'a Text),
    Volume(Place<'a>),
    /// It is none of these.
    Unbarred(BTreeMap<Name, NodeFault>),
}

/// Nodes that pass, and those of them that are best by what labels are worth. An error where none
/// passes of those that are allowed by the constraint.
pub fn choose(
    context: &PlacementContext<'_>,
    constraint: Option<&NodeConstraint>,
    tests: &[Test<'_>],
    preferences: &[(&Text, BTreeMap<Text, i64>)],
) -> Result<Option<NodeAsk>, Infeasible> {
    let mut yes: Vec<(i64, &Name)> = Vec::new();
    let mut no: BTreeSet<Name> = BTreeSet::new();
    let mut faults: BTreeMap<NodeFault, u32> = BTreeMap::new();
    let mut is_any = false;
    for node in context.nodes.views() {
        let name = &node.spec.name;
        // What it must not be on anyhow does not help.
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
        if let Some(constraint) = constraint {
            add_own_faults(context, constraint, &mut faults);
        }
        return Err(Infeasible::NoNode(faults));
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

/// Counts the nodes that the pod's own node selector, affinity and tolerations rule out.
fn add_own_faults(
    context: &PlacementContext<'_>,
    constraint: &NodeConstraint,
    faults: &mut BTreeMap<NodeFault, u32>,
) {
    let (required, tolerance) = (constraint.selection.required(), &constraint.tolerance);
    let mut unselected = 0;
    for node in context.nodes.views() {
        let view = node_constraint::NodeView::from(&*node.object);
        if !tolerance.allows(&view) {
            let (why, passes) = untolerated(&tolerance.untolerated(&view));
            *faults.entry(NodeFault::Taints { why, passes }).or_default() += 1;
        } else if !required.allows(&view) {
            unselected += 1;
        }
    }
    if unselected > 0 {
        faults.insert(NodeFault::Selection { asks: required.text() }, unselected);
    }
}

/// What is wrong with a node, if anything is.
fn fault(context: &PlacementContext<'_>, test: &Test<'_>, node: &NodeView) -> Option<NodeFault> {
    let no_label = |key: &Text| NodeFault::NoLabel { key: key.clone() };
    match test {
        Test::In(key, values, fault) => match label(node, key) {
            None => Some(no_label(key)),
            Some(value) => (!values.contains(value)).then(|| fault.clone()),
        },
        Test::NotIn(key, values, fault) => {
            let is_there = label(node, key).is_some_and(|value| values.contains(value));
            is_there.then(|| fault.clone())
        }
        Test::Has(key) => label(node, key).is_none().then(|| no_label(key)),
        Test::Volume(place) => {
            let node = node_constraint::NodeView::from(&*node.object);
            context.volumes.fault(place, &node)
        }
        Test::Unbarred(barred) => barred.get(&node.spec.name).cloned(),
    }
}
