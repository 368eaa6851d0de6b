//! Nodes.

use super::{List, Map, Meta, Raw, Text};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    pub metadata: Meta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    pub unschedulable: bool,
    pub taints: List<Taint>,
    #[serde(rename = "providerID")]
    pub provider_id: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: Text,
    pub value: Text,
    pub effect: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    pub allocatable: Map<Raw>,
    pub capacity: Map<Raw>,
    pub conditions: List<Condition>,
}

/// One condition of a node or a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    pub reason: Text,
}
