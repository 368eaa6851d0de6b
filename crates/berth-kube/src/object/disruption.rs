//! How many pods may be disrupted at a time.

use super::{LabelSelector, Meta};
use serde::Deserialize;

/// Of the pods that it selects only some may be disrupted. Its controller keeps the number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    pub spec: DisruptionSpec,
    pub status: DisruptionStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct DisruptionSpec {
    /// Absent: no pods.
    pub selector: Option<LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionStatus {
    pub disruptions_allowed: i64,
}
