//! The loopback of a network namespace. It is down in a new one, and processes of one task talk to
//! each other over it.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use std::io;

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const IFF_UP: u32 = 1;
/// The first interface of every namespace.
const LOOPBACK: i32 = 1;

pub(crate) fn bring_up() -> io::Result<()> {
    let kind = SocketType::RAW;
    let flags = SocketFlags::CLOEXEC;
    // Without a protocol it is the one for routes and interfaces.
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    sendto(&socket, &message(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    Ok(())
}

/// A header (`nlmsghdr`), then what is to change (`ifinfomsg`). The kernel acts on it before it
/// returns from the call.
fn message() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(32_u32.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    // Family, padding and type.
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    // The flags, and which of them to change.
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes
}
