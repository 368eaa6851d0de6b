//! Priority classes.

use super::{Meta, Text};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityClass {
    pub metadata: Meta,
    pub value: i32,
    /// For pods that name no class.
    pub global_default: bool,
    /// `Never`: its pods wait rather than preempt.
    pub preemption_policy: Option<Text>,
}
