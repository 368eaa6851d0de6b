//! NodeSelection of nodes: the selector and the affinity of a pod.

use super::NodeView;
use crate::object::{NodeSelector, NodeTerm, PodSpec, Requirement};
use crate::selector::{LabelExpr, LabelOp, UnsupportedConstraint, Word};
use std::fmt;

/// What a node must and should be.
///
/// The labels of `nodeSelector` are part of every term of the affinity, so that the same wish is
/// the same value whichever way it is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeSelection {
    /// One of these must hold; `None`: nothing is required. An empty list holds nowhere.
    required: Option<Vec<Term>>,
    /// Weights with what they are for.
    preferred: Vec<(i32, Term)>,
}

/// Tests of labels and of the node's name, all of which must hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Term {
    labels: Vec<LabelExpr>,
    names: Vec<LabelExpr>,
}

impl NodeSelection {
    pub fn of(spec: &PodSpec) -> Result<NodeSelection, UnsupportedConstraint> {
        let labels: Vec<LabelExpr> =
            spec.node_selector.iter().map(|(key, value)| LabelExpr::equals(key, value)).collect();
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = match affinity.and_then(|affinity| affinity.required.as_ref()) {
            None if labels.is_empty() => None,
            None => Some(vec![Term::all(labels, Vec::new())]),
            Some(selector) => {
                let terms = selector.node_selector_terms.iter().filter_map(Term::of);
                let mut terms = terms
                    .map(|term| term.map(|term| term.and(&labels)))
                    .collect::<Result<Vec<Term>, _>>()?;
                terms.sort();
                terms.dedup();
                Some(terms)
            }
        };
        let mut preferred = Vec::new();
        for wish in affinity.iter().flat_map(|affinity| &affinity.preferred) {
            // A term without tests, or without weight, changes nothing.
            if let Some(term) = Term::of(&wish.preference)
                && wish.weight != 0
            {
                preferred.push((wish.weight, term?));
            }
        }
        preferred.sort();
        Ok(NodeSelection { required, preferred })
    }

    /// Where a volume can be used.
    pub fn of_volume(selector: &NodeSelector) -> Result<NodeSelection, UnsupportedConstraint> {
        let terms = selector.node_selector_terms.iter().filter_map(Term::of);
        let required = Some(terms.collect::<Result<Vec<Term>, _>>()?);
        Ok(NodeSelection { required, preferred: Vec::new() })
    }

    pub fn allows(&self, node: &NodeView) -> bool {
        self.required.as_ref().is_none_or(|terms| terms.iter().any(|term| term.holds(node)))
    }

    /// The weights of the preferences that the node meets, together.
    pub fn score(&self, node: &NodeView) -> i32 {
        let met = self.preferred.iter().filter(|(_, term)| term.holds(node));
        met.fold(0i32, |sum, (weight, _)| sum.saturating_add(*weight))
    }

    pub fn is_trivial(&self) -> bool {
        self.required.is_none() && self.preferred.is_empty()
    }

    /// What it would rather have, each with its weight.
    pub fn preferences(&self) -> impl Iterator<Item = &(i32, Term)> {
        self.preferred.iter()
    }

    /// The same without its preferences.
    pub fn required(&self) -> NodeSelection {
        NodeSelection { required: self.required.clone(), preferred: Vec::new() }
    }

    /// Whether some node is preferred to another.
    pub fn has_preferences(&self) -> bool {
        !self.preferred.is_empty()
    }

    pub fn text(&self) -> String {
        self.to_string()
    }
}

impl Term {
    /// `None` for a term without tests, which in Kubernetes holds nowhere.
    fn of(written: &NodeTerm) -> Option<Result<Term, UnsupportedConstraint>> {
        if written.match_expressions.is_empty() && written.match_fields.is_empty() {
            return None;
        }
        Some(Term::read(written))
    }

    fn read(written: &NodeTerm) -> Result<Term, UnsupportedConstraint> {
        let labels =
            written.match_expressions.iter().map(|e| LabelExpr::of_node("nodeAffinity", e));
        let names = written.match_fields.iter().map(name);
        Ok(Term::all(labels.collect::<Result<_, _>>()?, names.collect::<Result<_, _>>()?))
    }

    fn all(mut labels: Vec<LabelExpr>, mut names: Vec<LabelExpr>) -> Term {
        for tests in [&mut labels, &mut names] {
            tests.sort();
            tests.dedup();
        }
        Term { labels, names }
    }

    fn and(mut self, more: &[LabelExpr]) -> Term {
        self.labels.extend_from_slice(more);
        Term::all(self.labels, self.names)
    }

    pub fn holds(&self, node: &NodeView) -> bool {
        let label = |key: &str| node.labels.get(key).map(|value| &**value);
        self.labels.iter().all(|expr| expr.holds(label(&expr.key)))
            && self.names.iter().all(|expr| expr.holds(Some(node.name)))
    }
}

/// A field of a node: Kubernetes knows the name alone, and one value of it.
fn name(written: &Requirement) -> Result<LabelExpr, UnsupportedConstraint> {
    let known = &*written.key == "metadata.name"
        && matches!(&*written.operator, "In" | "NotIn")
        && written.values.len() == 1;
    if known {
        return LabelExpr::of_labels("nodeAffinity", written);
    }
    let what = format!(
        "matchFields takes metadata.name, In or NotIn and one value, not {} {}",
        written.key, written.operator
    );
    Err(UnsupportedConstraint::new("nodeAffinity", what))
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.iter().map(|expr| match &expr.test {
            LabelOp::NotIn(names) => format!("not node {}", Word(&names[0])),
            LabelOp::In(names) => format!("node {}", Word(&names[0])),
            LabelOp::Exists | LabelOp::Absent | LabelOp::Above(_) | LabelOp::Below(_) => {
                unreachable!("a node is named by In and NotIn only")
            }
        });
        let tests: Vec<String> =
            names.chain(self.labels.iter().map(LabelExpr::to_string)).collect();
        f.write_str(&tests.join(" and "))
    }
}

impl fmt::Display for NodeSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.required {
            None => f.write_str("any node")?,
            Some(terms) if terms.is_empty() => f.write_str("no node")?,
            Some(terms) => {
                let terms: Vec<String> = terms.iter().map(Term::to_string).collect();
                f.write_str(&terms.join(" or "))?;
            }
        }
        for (at, (weight, term)) in self.preferred.iter().enumerate() {
            let lead = if at == 0 { "; prefers" } else { "," };
            write!(f, "{lead} {term} by {weight}")?;
        }
        Ok(())
    }
}
