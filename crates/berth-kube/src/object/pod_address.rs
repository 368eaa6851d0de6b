//! Pods as programs that can be asked something.

use super::{List, Meta, Text};
use serde::Deserialize;

/// Where a pod is reached. Of a pod that is only asked something nothing else is read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PodAddress {
    pub metadata: Meta,
    pub spec: AddressSpec,
    pub status: AddressStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressSpec {
    pub node_name: Text,
    pub containers: List<ListeningContainer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ListeningContainer {
    pub ports: List<NamedPort>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedPort {
    pub name: Text,
    pub container_port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AddressStatus {
    pub phase: Text,
    /// Empty until it has one.
    #[serde(rename = "podIP")]
    pub pod_ip: Text,
}

impl PodAddress {
    /// The port that its containers call so.
    pub fn port(&self, name: &str) -> Option<u16> {
        let mut ports = self.spec.containers.iter().flat_map(|container| &container.ports);
        ports.find(|port| &*port.name == name).map(|port| port.container_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_reached_at_its_address_by_a_port_with_a_name() {
        let pod: PodAddress = serde_json::from_str(
            r#"{"metadata": {"name": "dcgm-exporter-x7", "namespace": "gpu-operator"},
                "spec": {"nodeName": "gpu-1", "schedulerName": "x", "containers": [{"name": "a"},
                    {"name": "b", "ports": [{"containerPort": 8080},
                        {"name": "metrics", "containerPort": 9400, "protocol": "TCP"}]}]},
                "status": {"phase": "Running", "podIP": "10.1.2.3"}}"#,
        )
        .unwrap();
        assert_eq!((pod.port("metrics"), pod.port("web")), (Some(9_400), None));
        assert_eq!((&*pod.spec.node_name, &*pod.status.pod_ip), ("gpu-1", "10.1.2.3"));
    }
}
