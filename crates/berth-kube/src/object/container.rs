//! Containers: what they ask for, and the ports they take of their node.

use super::{List, Map, Raw, Text};
use serde::Deserialize;

/// The variable by which the NVIDIA runtime gives a container its GPUs.
pub const GPU_VARIABLE: &str = "NVIDIA_VISIBLE_DEVICES";
/// The field that the variable is set from: the annotation that names a pod's GPUs.
pub(crate) const GPU_FIELD: &str = "metadata.annotations['berth.dev/gpus']";

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub name: Text,
    pub resources: Resources,
    /// `Always` makes a sidecar of an init container.
    pub restart_policy: Option<Text>,
    pub ports: List<Port>,
    /// Its environment tells it which GPUs it has a part of.
    #[serde(rename = "env", deserialize_with = "has_gpu_variable")]
    pub has_gpu_variable: bool,
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

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Variable {
    name: String,
    value_from: Option<From>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct From {
    field_ref: Option<Field>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Field {
    field_path: String,
}

/// Of the environment of a container only this is looked at, and pods are many.
fn has_gpu_variable<'de, D: serde::Deserializer<'de>>(env: D) -> Result<bool, D::Error> {
    let env = Option::<Vec<Variable>>::deserialize(env)?.unwrap_or_default();
    Ok(env.iter().any(|variable| {
        let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        variable.name == GPU_VARIABLE && field.is_some_and(|field| field.field_path == GPU_FIELD)
    }))
}
