//! Priority classes.

use crate::error::Result;
use crate::fields::{Fields, int, named};
use crate::tree::{Node, Value};
use berth_model::{Name, PriorityClass};
use std::collections::BTreeMap;

/// The classes of a world that names none.
pub fn default_classes() -> BTreeMap<Name, PriorityClass> {
    [("critical", 1_000), ("high", 100), ("normal", 50), ("low", 10)]
        .into_iter()
        .map(|(name, value)| (Name::new(name), PriorityClass { value, across: name == "critical" }))
        .collect()
}

pub(crate) fn read_classes(node: &Node) -> Result<BTreeMap<Name, PriorityClass>> {
    named(node, |node| match &node.value {
        Value::Map(_) => {
            let fields = Fields::of(node, "a priority class", &["value", "across"])?;
            Ok(PriorityClass {
                value: fields.demand("value", int)?,
                across: fields.flag("across")?,
            })
        }
        Value::Null | Value::Scalar { .. } | Value::List(_) => {
            Ok(PriorityClass { value: int(node)?, across: false })
        }
    })
}
