//! Containers: what they ask for, and the ports they take of their node.

use super::{List, Map, Raw, Text};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub name: Text,
    pub resources: Resources,
    /// `Always` makes a sidecar of an init container.
    pub restart_policy: Option<Text>,
    pub ports: List<Port>,
    /// Its environment tells it which GPUs it has a part of.
    #[serde(rename = "env", deserialize_with = "crate::shares::learns_gpu")]
    pub learns_gpu: bool,
}

impl Container {
    /// An init container that keeps running beside the others.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub requests: Map<Raw>,
    pub limits: Map<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    pub container_port: u16,
    /// Zero: none of the node's ports.
    pub host_port: u16,
    #[serde(rename = "hostIP")]
    pub host_ip: Text,
    pub protocol: Text,
}
