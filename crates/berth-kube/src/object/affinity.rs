//! Constraints as they are written: selectors, affinity, tolerations, spread. What they mean is in
//! [`node_constraint`](crate::pod::node_constraint) and
//! [`interpod`](crate::pod::interpod).

use super::{Labels, List, Text};
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
    pub key: Text,
    pub operator: Text,
    pub values: List<Text>,
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
    pub namespaces: List<Text>,
    pub topology_key: Text,
    pub match_label_keys: List<Text>,
    pub mismatch_label_keys: List<Text>,
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
    pub key: Text,
    /// Empty: `Equal`.
    pub operator: Text,
    pub value: Text,
    /// Empty: every effect.
    pub effect: Text,
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// The API server adds two of these to every pod, for the minutes a pod stays on a node that
    /// has stopped answering. A node with either taint takes no new work from us in any case, and
    /// without them most pods are alike and smaller.
    fn is_default(&self) -> bool {
        matches!(&*self.key, "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
            && &*self.operator == "Exists"
            && &*self.effect == "NoExecute"
            && self.toleration_seconds.is_some()
    }
}

/// Those that the pod's author wrote.
pub(super) fn own_tolerations(all: Option<Vec<Toleration>>) -> List<Toleration> {
    let all = all.unwrap_or_default().into_iter();
    all.filter(|toleration| !toleration.is_default()).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Text,
    pub when_unsatisfiable: Text,
    pub label_selector: Option<LabelSelector>,
    pub min_domains: Option<i32>,
    pub node_affinity_policy: Option<Text>,
    pub node_taints_policy: Option<Text>,
    pub match_label_keys: List<Text>,
}
