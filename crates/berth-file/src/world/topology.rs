//! The levels of topologies, such as zone and rack.

use crate::error::Result;
use crate::fields::{named, names};
use crate::tree::{Node, Value};
use berth_model::Name;
use std::collections::BTreeMap;

/// A list is the default topology; a map holds several by name.
pub(crate) fn read_topologies(node: &Node) -> Result<BTreeMap<Name, Vec<Name>>> {
    match &node.value {
        Value::List(_) => Ok([(Name::new("default"), names(node)?)].into()),
        Value::Map(_) | Value::Null | Value::Scalar { .. } => named(node, names),
    }
}
