//! One test of a label: the operators of node terms and of label selectors.

use super::UnsupportedConstraint;
use crate::object::{Requirement, Text};
use std::fmt;

/// A key and what its value must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelExpr {
    pub key: Text,
    pub test: LabelOp,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelOp {
    /// Values in order, each once.
    In(Vec<Text>),
    NotIn(Vec<Text>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl LabelExpr {
    pub fn equals(key: &str, value: &str) -> LabelExpr {
        LabelExpr { key: key.into(), test: LabelOp::In(vec![value.into()]) }
    }

    /// A requirement of a label selector.
    pub fn of_labels(
        place: &str,
        written: &Requirement,
    ) -> Result<LabelExpr, UnsupportedConstraint> {
        let test = match (&*written.operator, written.values.is_empty()) {
            ("In", false) => LabelOp::In(sorted(&written.values)),
            ("NotIn", false) => LabelOp::NotIn(sorted(&written.values)),
            ("Exists", true) => LabelOp::Exists,
            ("DoesNotExist", true) => LabelOp::Absent,
            _ => return Err(not_understood(place, written)),
        };
        Ok(LabelExpr { key: written.key.clone(), test })
    }

    /// A requirement of a node term, which can compare numbers as well.
    pub fn of_node(place: &str, written: &Requirement) -> Result<LabelExpr, UnsupportedConstraint> {
        let number = || match &written.values[..] {
            [value] => value.parse().map_err(|_| not_understood(place, written)),
            _ => Err(not_understood(place, written)),
        };
        let test = match &*written.operator {
            "Gt" => LabelOp::Above(number()?),
            "Lt" => LabelOp::Below(number()?),
            _ => return LabelExpr::of_labels(place, written),
        };
        Ok(LabelExpr { key: written.key.clone(), test })
    }

    /// Whether the test holds for that value; `None` where there is no such label.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            LabelOp::In(values) => value.is_some_and(|value| contains(values, value)),
            LabelOp::NotIn(values) => !value.is_some_and(|value| contains(values, value)),
            LabelOp::Exists => value.is_some(),
            LabelOp::Absent => value.is_none(),
            LabelOp::Above(bound) => number().is_some_and(|number| number > *bound),
            LabelOp::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn contains(values: &[Text], value: &str) -> bool {
    values.binary_search_by(|known| (**known).cmp(value)).is_ok()
}

fn sorted(values: &[Text]) -> Vec<Text> {
    let mut values = values.to_vec();
    values.sort();
    values.dedup();
    values
}

fn not_understood(place: &str, written: &Requirement) -> UnsupportedConstraint {
    let Requirement { key, operator, values } = written;
    UnsupportedConstraint::new(
        place,
        format!(
            "the operator `{operator}` of {key} with {} values is not one we know",
            values.len()
        ),
    )
}

/// Text that is taken for nothing else: what is not a plain word is quoted.
pub(crate) struct Word<'a>(pub &'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if !self.0.is_empty() && self.0.chars().all(plain) {
            f.write_str(self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

fn words(values: &[Text]) -> String {
    values.iter().map(|value| Word(value).to_string()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for LabelExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = Word(&self.key);
        match &self.test {
            LabelOp::In(values) if values.len() == 1 => write!(f, "{key}={}", words(values)),
            LabelOp::In(values) => write!(f, "{key} in ({})", words(values)),
            LabelOp::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", words(values)),
            LabelOp::NotIn(values) => write!(f, "{key} not in ({})", words(values)),
            LabelOp::Exists => write!(f, "has {key}"),
            LabelOp::Absent => write!(f, "no {key}"),
            LabelOp::Above(bound) => write!(f, "{key}>{bound}"),
            LabelOp::Below(bound) => write!(f, "{key}<{bound}"),
        }
    }
}
