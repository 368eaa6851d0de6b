//! Ports of loopback that nobody else comes upon.

use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux gives to outgoing connections. One of those could take the port of
/// a server that is away for a moment, and even connect to itself on it.
const RANGE: Range<u16> = 20_000..32_000;

/// A port that is free now. None is given twice by this process; another process that is as far
/// in its own ports is unlikely, and what it took first shows when our program starts.
pub(super) fn free() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU16::new(u16::from_le_bytes(random())));
    for _ in RANGE {
        let port = RANGE.start + next.fetch_add(1, Ordering::Relaxed) % (RANGE.end - RANGE.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of loopback from {} to {} is free", RANGE.start, RANGE.end);
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let source = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    source.expect("there is a /dev/urandom");
    bytes
}
