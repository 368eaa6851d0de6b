//! Ports of the node that a pod takes for itself.

use crate::constraint::NotUnderstood;
use crate::object::{PodSpec, Text};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub port: u16,
    pub protocol: Text,
    /// `0.0.0.0` is every address of the node.
    pub ip: Text,
}

const EVERY: &str = "0.0.0.0";

impl HostPort {
    /// Whether two pods with these ports cannot be on one node.
    pub fn clashes(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || &*self.ip == EVERY || &*other.ip == EVERY)
    }
}

/// Of the containers and the sidecars: a plain init container has ended before either runs.
pub(super) fn of(spec: &PodSpec) -> Result<BTreeSet<HostPort>, NotUnderstood> {
    let sidecars = spec.init_containers.iter().filter(|init| init.is_sidecar());
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let taken = ports.filter(|port| port.host_port != 0).map(|port| {
        let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.into();
        let protocol: Text = or(&port.protocol, "TCP");
        if !matches!(&*protocol, "TCP" | "UDP" | "SCTP") {
            let what =
                format!("the protocol `{protocol}` is not one we know; use TCP, UDP or SCTP");
            return Err(NotUnderstood::new(format!("hostPort {}", port.host_port), what));
        }
        Ok(HostPort { port: port.host_port, protocol, ip: or(&port.host_ip, EVERY) })
    });
    taken.collect()
}
