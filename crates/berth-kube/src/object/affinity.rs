//! Constraints as they are written: selectors, affinity, tolerations, spread. What they mean is in
//! [`constraint`](crate::constraint) and [`dynamic`](crate::dynamic).

use super::{Labels, List};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    pub node_affinity: Option<NodeAffinity>,
    pub pod_affinity: Option<PodAffinity>,
    pub pod_anti_affinity: Option<PodAffinity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: List<PreferredNodeTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    pub node_selector_terms: List<NodeTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeTerm {
    pub match_expressions: List<Requirement>,
    pub match_fields: List<Requirement>,
}

/// A key, an operator and its values: of node terms and of label selectors alike.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub key: Box<str>,
    pub operator: Box<str>,
    pub values: List<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PreferredNodeTerm {
    pub weight: i32,
    pub preference: NodeTerm,
}

/// Affinity or anti-affinity to pods.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: List<PodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: List<PreferredPodTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTerm {
    pub label_selector: Option<LabelSelector>,
    pub namespace_selector: Option<LabelSelector>,
    pub namespaces: List<Box<str>>,
    pub topology_key: Box<str>,
    pub match_label_keys: List<Box<str>>,
    pub mismatch_label_keys: List<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreferredPodTerm {
    pub weight: i32,
    pub pod_affinity_term: PodTerm,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    pub match_labels: Labels,
    pub match_expressions: List<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Empty: every key.
    pub key: Box<str>,
    /// Empty: `Equal`.
    pub operator: Box<str>,
    pub value: Box<str>,
    /// Empty: every effect.
    pub effect: Box<str>,
    pub toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Box<str>,
    pub when_unsatisfiable: Box<str>,
    pub label_selector: Option<LabelSelector>,
    pub min_domains: Option<i32>,
    pub node_affinity_policy: Option<Box<str>>,
    pub node_taints_policy: Option<Box<str>>,
    pub match_label_keys: List<Box<str>>,
}
