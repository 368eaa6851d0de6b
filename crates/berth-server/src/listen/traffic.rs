//! What passes on a connection, and how long nothing has.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a client of HTTP/2 must take to count as one that reads: whoever sends pings is written
/// to, and takes nothing.
const LEAST_HTTP2: u64 = 4 << 10;

/// Bytes that have passed, and bodies that have not.
#[derive(Debug, Default)]
pub struct Traffic {
    pub read: AtomicU64,
    pub written: AtomicU64,
    /// Of HTTP/2, where what comes between two requests is no part of one.
    pub is_http2: AtomicBool,
    /// Bodies that could give more, if the client took what there is.
    pub held: AtomicUsize,
    /// Parts of bodies that were handed on.
    pub handed: AtomicU64,
}

impl Traffic {
    pub fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Relaxed)
    }

    fn least(&self) -> u64 {
        if self.is_http2() { LEAST_HTTP2 } else { 1 }
    }
}

/// How long a client has taken nothing.
#[derive(Debug)]
pub struct Quiet {
    since: Instant,
    written: u64,
}

impl Quiet {
    pub fn new(traffic: &Traffic, now: Instant) -> Quiet {
        Quiet { since: now, written: traffic.written.load(Ordering::Relaxed) }
    }

    pub fn lasts(&mut self, traffic: &Traffic, now: Instant) -> Duration {
        let written = traffic.written.load(Ordering::Relaxed);
        if written - self.written >= traffic.least() {
            (self.since, self.written) = (now, written);
        }
        now.duration_since(self.since)
    }
}

/// How long a client has left the bodies of its answers where they are. A body that has nothing to
/// give, as that of a stream of events may, waits for the server and not for the client.
#[derive(Debug, Default)]
pub struct Stall(Option<(Quiet, u64)>);

impl Stall {
    pub fn lasts(&mut self, traffic: &Traffic, now: Instant) -> Duration {
        if traffic.held.load(Ordering::Relaxed) == 0 {
            self.0 = None;
            return Duration::ZERO;
        }
        let handed = traffic.handed.load(Ordering::Relaxed);
        match &mut self.0 {
            Some((quiet, before)) if *before == handed => quiet.lasts(traffic, now),
            _ => {
                self.0 = Some((Quiet::new(traffic, now), handed));
                Duration::ZERO
            }
        }
    }
}
