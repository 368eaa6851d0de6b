//! Tolerations of taints.

use super::NodeView;
use crate::object::{PodSpec, Taint, Text, Toleration};
use crate::selector::{UnsupportedConstraint, Word};
use std::fmt;

/// The taints a pod tolerates, in order, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tolerations(Vec<Tolerated>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tolerated {
    /// `None`: every key.
    key: Option<Text>,
    /// `None`: every value.
    value: Option<Text>,
    /// `None`: every effect.
    effect: Option<Text>,
}

/// What the control plane taints nodes with that are cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

impl Tolerations {
    pub fn of(spec: &PodSpec) -> Result<Tolerations, UnsupportedConstraint> {
        let written = spec.tolerations.iter();
        let mut tolerated = written.map(Tolerated::of).collect::<Result<Vec<_>, _>>()?;
        tolerated.sort();
        tolerated.dedup();
        Ok(Tolerations(tolerated))
    }

    /// Whether every taint that keeps pods away is tolerated. An effect that we do not know is
    /// taken for one that does.
    pub fn allows(&self, node: &NodeView) -> bool {
        let is_closed = node.unschedulable && !self.tolerates_cordon();
        !is_closed && node.taints.iter().all(|taint| is_soft(taint) || self.tolerates(taint))
    }

    /// The taints that keep such a pod away from the node, as `key=value:effect`.
    pub fn untolerated(&self, node: &NodeView) -> Vec<String> {
        let hard = node.taints.iter().filter(|taint| !is_soft(taint) && !self.tolerates(taint));
        let word = |taint: &Taint| match taint.value.is_empty() {
            true => format!("{}:{}", taint.key, taint.effect),
            false => format!("{}={}:{}", taint.key, taint.value, taint.effect),
        };
        let mut all: Vec<String> = hard.map(word).collect();
        // The control plane adds the taint a moment after the node was cordoned.
        if all.is_empty() && node.unschedulable && !self.tolerates_cordon() {
            all.push(format!("{UNSCHEDULABLE}:NoSchedule"));
        }
        all
    }

    /// Whether it may run on a node that is marked unschedulable, as pods of DaemonSets do.
    pub fn tolerates_cordon(&self) -> bool {
        let effect = "NoSchedule".into();
        self.tolerates(&Taint { key: UNSCHEDULABLE.into(), effect, ..Taint::default() })
    }

    /// How many taints the pod would rather avoid.
    pub fn avoided(&self, node: &NodeView) -> usize {
        node.taints.iter().filter(|taint| is_soft(taint) && !self.tolerates(taint)).count()
    }

    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.0.iter().any(|tolerated| tolerated.covers(taint))
    }

    pub fn is_trivial(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> String {
        self.to_string()
    }
}

impl Tolerated {
    fn of(written: &Toleration) -> Result<Tolerated, UnsupportedConstraint> {
        let given = |text: &str| (!text.is_empty()).then(|| text.into());
        let value = match &*written.operator {
            "" | "Equal" => Some(written.value.clone()),
            "Exists" => None,
            other => {
                return Err(UnsupportedConstraint::new(
                    format!("toleration of {}", Word(&written.key)),
                    format!("the operator `{other}` is not one we know; use Equal or Exists"),
                ));
            }
        };
        Ok(Tolerated { key: given(&written.key), value, effect: given(&written.effect) })
    }

    fn covers(&self, taint: &Taint) -> bool {
        let same = |wanted: &Option<Text>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        same(&self.effect, &taint.effect)
            && same(&self.key, &taint.key)
            && same(&self.value, &taint.value)
    }
}

fn is_soft(taint: &Taint) -> bool {
    &*taint.effect == "PreferNoSchedule"
}

impl fmt::Display for Tolerated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.key, &self.value) {
            (None, None) => f.write_str("every taint")?,
            (None, Some(value)) => write!(f, "every taint ={}", Word(value))?,
            (Some(key), None) => write!(f, "{}", Word(key))?,
            (Some(key), Some(value)) => write!(f, "{}={}", Word(key), Word(value))?,
        }
        match &self.effect {
            None => Ok(()),
            Some(effect) => write!(f, ":{}", Word(effect)),
        }
    }
}

impl fmt::Display for Tolerations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("tolerates no taint");
        }
        let all: Vec<String> = self.0.iter().map(Tolerated::to_string).collect();
        write!(f, "tolerates {}", all.join(", "))
    }
}
