//! Who is at the other end of a connection.

use std::net::SocketAddr;

#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub address: SocketAddr,
    /// Whether nobody on the way can read what is said.
    pub is_encrypted: bool,
}
