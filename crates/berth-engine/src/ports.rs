//! Ports for notebooks and services.

use berth_model::run::{Port, RunSpec};
use std::net::{Ipv4Addr, TcpListener};

/// The port a job listens on: the one it names, or one that is free now. Another process may take
/// it before the job does; then the job fails to bind, and its own error says so.
pub fn of(run: &RunSpec) -> Option<u16> {
    match run.port {
        Port::None => None,
        Port::At(port) => Some(port),
        Port::Any => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
            listener.local_addr().ok().map(|address| address.port())
        }
    }
}
