//! Label selectors.

use super::{LabelExpr, LabelOp, UnsupportedConstraint};
use crate::object::{LabelSelector, Labels, Text};

/// Tests of labels, all of which must hold. None at all hold for everything; no selector, for
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelMatcher(Option<Vec<LabelExpr>>);

impl LabelMatcher {
    pub const NOTHING: LabelMatcher = LabelMatcher(None);

    pub fn of(
        place: &str,
        written: Option<&LabelSelector>,
    ) -> Result<LabelMatcher, UnsupportedConstraint> {
        let Some(written) = written else {
            return Ok(LabelMatcher::NOTHING);
        };
        let labels =
            written.match_labels.iter().map(|(key, value)| Ok(LabelExpr::equals(key, value)));
        let expressions = written.match_expressions.iter().map(|e| LabelExpr::of_labels(place, e));
        let mut selector = LabelMatcher(Some(labels.chain(expressions).collect::<Result<_, _>>()?));
        selector.order();
        Ok(selector)
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.as_ref().is_some_and(|tests| {
            tests.iter().all(|expr| expr.holds(labels.get(&expr.key).map(|value| &**value)))
        })
    }

    /// A label that everything it matches has, with its value, where it asks for one.
    pub fn label(&self) -> Option<(&Text, &Text)> {
        self.0.iter().flatten().find_map(|expr| match &expr.test {
            LabelOp::In(values) => match &values[..] {
                [value] => Some((&expr.key, value)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Only what has the same value as these labels, for each key that is among them.
    pub(crate) fn same_as(&mut self, labels: &Labels, keys: &[Text]) {
        self.narrow(labels, keys, LabelOp::In);
    }

    /// Only what has another value than these labels.
    pub(crate) fn unlike(&mut self, labels: &Labels, keys: &[Text]) {
        self.narrow(labels, keys, LabelOp::NotIn);
    }

    /// The API server may have done the same when the pod was made; then nothing is new.
    fn narrow(&mut self, labels: &Labels, keys: &[Text], test: fn(Vec<Text>) -> LabelOp) {
        if let Some(tests) = &mut self.0 {
            tests.extend(keys.iter().filter_map(|key| {
                let value = labels.get(key)?.clone();
                Some(LabelExpr { key: key.clone(), test: test(vec![value]) })
            }));
        }
        self.order();
    }

    fn order(&mut self) {
        if let Some(tests) = &mut self.0 {
            tests.sort();
            tests.dedup();
        }
    }
}
