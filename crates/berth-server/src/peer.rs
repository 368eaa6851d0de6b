//! Who is at the other end of a connection.

use std::net::SocketAddr;

#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);
