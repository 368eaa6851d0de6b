//! Ports of the node that a pod takes for itself.

use crate::object::{PodSpec, Text};
use crate::selector::UnsupportedConstraint;
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub port: u16,
    pub protocol: Text,
    /// `0.0.0.0` is every address of the node.
    pub ip: Text,
}

const EVERY: &str = "0.0.0.0";

/// Of one port of a node there is so much to have: all of it for a pod that takes the port on every
/// address, and a little for each that takes it on one.
pub const PORT_CAPACITY: i64 = 1_000;

impl HostPort {
    /// The port as amounts of things that a node counts, each with how much a node has of it, such
    /// that pods whose ports clash do not fit together.
    pub fn amounts(&self) -> Vec<(String, i64, i64)> {
        let HostPort { port, protocol, ip } = self;
        let whole = format!("host port {port}/{protocol}");
        if &**ip == EVERY {
            return vec![(whole, PORT_CAPACITY, PORT_CAPACITY)];
        }
        let one = format!("{whole} on {ip}");
        vec![(whole, 1, PORT_CAPACITY), (one, 1, 1)]
    }

    /// Of the containers and the sidecars: a plain init container has ended before either runs.
    pub fn of(spec: &PodSpec) -> Result<BTreeSet<HostPort>, UnsupportedConstraint> {
        let sidecars = spec.init_containers.iter().filter(|init| init.is_sidecar());
        let ports = spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
        let taken = ports.filter(|port| port.host_port != 0).map(|port| {
            let or =
                |text: &str, default: &str| if text.is_empty() { default } else { text }.into();
            let protocol: Text = or(&port.protocol, "TCP");
            if !matches!(&*protocol, "TCP" | "UDP" | "SCTP") {
                let what =
                    format!("the protocol `{protocol}` is not one we know; use TCP, UDP or SCTP");
                return Err(UnsupportedConstraint::new(
                    format!("hostPort {}", port.host_port),
                    what,
                ));
            }
            Ok(HostPort { port: port.host_port, protocol, ip: or(&port.host_ip, EVERY) })
        });
        taken.collect()
    }

    /// Whether two pods with these ports cannot be on one node.
    pub fn clashes(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || &*self.ip == EVERY || &*other.ip == EVERY)
    }
}
