//! What passes on a connection, and how long nothing has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    /// Answers that could give more, if the client took what there is, and how often each moved.
    held: Mutex<BTreeMap<u64, u64>>,
}

impl Traffic {
    pub fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Relaxed)
    }

    /// An answer waits for its client, after so many moves.
    pub fn hold(&self, answer: u64, moves: u64) {
        self.held().insert(answer, moves);
    }

    pub fn release(&self, answer: u64) {
        self.held().remove(&answer);
    }

    #[cfg(test)]
    pub fn is_held(&self) -> bool {
        !self.held().is_empty()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How long a client has left some answer where it is. Others may move meanwhile: whoever takes a
/// little of one could otherwise keep all the rest. An answer that has nothing to give, as a stream
/// of events may, waits for the server and not for the client.
#[derive(Debug, Default)]
pub struct Stall(BTreeMap<u64, (u64, Instant)>);

impl Stall {
    pub fn lasts(&mut self, traffic: &Traffic, now: Instant) -> Duration {
        let before = std::mem::take(&mut self.0);
        for (answer, moves) in traffic.held().iter() {
            let since = match before.get(answer) {
                Some((seen, since)) if seen == moves => *since,
                _ => now,
            };
            self.0.insert(*answer, (*moves, since));
        }
        let longest = self.0.values().map(|(_, since)| *since).min();
        longest.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}
