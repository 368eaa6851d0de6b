//! Who is connected: how many there may be, from where, and who has to go when there are too many.
//!
//! A connection rests while no request of it is under way: it has sent none yet, or only half of
//! one, or waits for its next. Whoever rests longest goes first, so that somebody who opens
//! connections and sends nothing displaces their own and never a request that is being answered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// From the first byte of a request to the last of its head, and from the beginning of a
/// connection to the head of its first request.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests. Clients close theirs after 90 seconds, so that none is closed here in the
/// moment in which its next request is on its way.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Connections that are closed at once when there are no descriptors left.
const SHED: usize = 32;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub all: usize,
    /// From one address, or one network of 64 bits.
    pub per_address: usize,
    /// From this machine itself.
    pub per_loopback: usize,
}

impl ConnectionLimits {
    pub const ALL: usize = 4_096;
    pub const PER_ADDRESS: usize = 256;
    /// Descriptors that connections must leave to the database, to jobs and to everything else.
    pub const RESERVED: usize = 128;

    /// What is asked for, as far as a process that may have so many files open can do it. One that
    /// has to go still holds its descriptor for a moment, so connections get half of them.
    pub fn new(all: usize, per_address: usize, descriptors: u64) -> ConnectionLimits {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let possible = descriptors.saturating_sub(Self::RESERVED) / 2;
        let all = all.min(possible).max(16);
        // Some are left for other machines, whatever runs on this one.
        let per_loopback = all - all / 4;
        ConnectionLimits { all, per_address: per_address.clamp(1, all), per_loopback }
    }
}

/// Whose connections are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Loopback,
    V4(Ipv4Addr),
    /// Whoever has an address of a network of 64 bits has all of them.
    V6(u64),
}

impl Origin {
    fn of(address: IpAddr) -> Origin {
        match address.to_canonical() {
            address if address.is_loopback() => Origin::Loopback,
            IpAddr::V4(address) => Origin::V4(address),
            IpAddr::V6(address) => Origin::V6(network(address)),
        }
    }
}

fn network(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}

/// Counted since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    pub open: u64,
    /// Too many in all, and none of them rested.
    pub refused_all: u64,
    /// The same from one address.
    pub refused_address: u64,
    pub refused_descriptors: u64,
    /// Closed for a new one, because they rested longest.
    pub displaced: u64,
    pub timeouts_head: u64,
    pub timeouts_idle: u64,
    pub timeouts_handshake: u64,
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    All,
    Address,
}

/// All connections of a listener. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: ConnectionLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// For connections, and for the turns in which they began to rest.
    next: u64,
    rows: BTreeMap<u64, Row>,
    origins: BTreeMap<Origin, usize>,
    /// The sum of these.
    open: usize,
    /// The turn in which it began to rest, and which it is; the longest first.
    resting: BTreeSet<(u64, u64)>,
    resting_of: BTreeSet<(Origin, u64, u64)>,
    figures: Figures,
}

#[derive(Debug)]
struct Row {
    origin: Origin,
    /// It was not asked to close.
    is_counted: bool,
    phase: Phase,
    close: Arc<Notify>,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
enum Phase {
    Resting(Rest),
    /// So many requests are under way.
    Busy(usize),
    /// It was asked to close, or became something else than HTTP.
    Gone,
}

#[derive(Debug)]
struct Rest {
    turn: u64,
    /// It has had no request yet.
    is_new: bool,
    /// Since when nothing has come or gone.
    since: Instant,
    read: u64,
    written: u64,
    /// Since when there is a part of a request.
    head: Option<Instant>,
}

/// Bytes that have passed.
#[derive(Debug, Default)]
pub struct Traffic {
    pub read: AtomicU64,
    pub written: AtomicU64,
    /// Of HTTP/2, where what comes between two requests is no part of one.
    is_http2: AtomicBool,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Connections {
        Connections(Arc::new(Inner { limits, table: Mutex::default() }))
    }

    /// A place for a new connection, if need be that of one that rests.
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<Seat, Refusal> {
        let origin = Origin::of(address);
        let limits = self.0.limits;
        let most = match origin {
            Origin::Loopback => limits.per_loopback,
            Origin::V4(_) | Origin::V6(_) => limits.per_address,
        };
        let mut table = self.table();
        if table.origins.get(&origin).is_some_and(|open| *open >= most)
            && !table.displace_of(origin)
        {
            table.figures.refused_address += 1;
            return Err(Refusal::Address);
        }
        if table.open >= limits.all && !table.displace() {
            table.figures.refused_all += 1;
            return Err(Refusal::All);
        }
        let id = table.number();
        let (close, traffic) = (Arc::new(Notify::new()), Arc::new(Traffic::default()));
        let row = Row {
            origin,
            is_counted: true,
            phase: Phase::Gone,
            close: close.clone(),
            traffic: traffic.clone(),
        };
        table.rows.insert(id, row);
        *table.origins.entry(origin).or_default() += 1;
        table.open += 1;
        table.rest(id, true, now);
        Ok(Seat { connections: self.clone(), id, close, traffic })
    }

    /// Closes what has rested too long.
    pub fn sweep(&self, now: Instant) {
        let mut table = self.table();
        let resting: Vec<u64> = table.resting.iter().map(|(_, id)| *id).collect();
        for id in resting {
            let Some(row) = table.rows.get_mut(&id) else { continue };
            let Some(over) = row.overdue(now) else { continue };
            match over {
                Overdue::Head => table.figures.timeouts_head += 1,
                Overdue::Idle => table.figures.timeouts_idle += 1,
            }
            table.dismiss(id);
        }
    }

    /// There are no descriptors left: closes some connections that rest.
    pub fn shed(&self) {
        let mut table = self.table();
        table.figures.refused_descriptors += 1;
        for _ in 0..SHED {
            if !table.displace() {
                return;
            }
        }
    }

    pub fn handshake_timed_out(&self) {
        self.table().figures.timeouts_handshake += 1;
    }

    pub fn figures(&self) -> Figures {
        let table = self.table();
        Figures { open: table.rows.len() as u64, ..table.figures }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn rest(&mut self, id: u64, is_new: bool, now: Instant) {
        let turn = self.number();
        let Some(row) = self.rows.get_mut(&id) else { return };
        let origin = row.origin;
        row.phase = Phase::Resting(Rest {
            turn,
            is_new,
            since: now,
            read: row.traffic.read.load(Ordering::Relaxed),
            written: row.traffic.written.load(Ordering::Relaxed),
            head: None,
        });
        self.resting.insert((turn, id));
        self.resting_of.insert((origin, turn, id));
    }

    /// It does not rest any more, if it did.
    fn rouse(&mut self, id: u64) {
        let Some(row) = self.rows.get(&id) else { return };
        if let Phase::Resting(rest) = &row.phase {
            let (turn, origin) = (rest.turn, row.origin);
            self.resting.remove(&(turn, id));
            self.resting_of.remove(&(origin, turn, id));
        }
    }

    /// Closes the one that rests longest; none where all are busy.
    fn displace(&mut self) -> bool {
        let longest = self.resting.first().map(|(_, id)| *id);
        self.displace_one(longest)
    }

    fn displace_of(&mut self, origin: Origin) -> bool {
        let of_origin = self.resting_of.range((origin, 0, 0)..);
        let longest = of_origin.take(1).find(|(of, _, _)| *of == origin).map(|(_, _, id)| *id);
        self.displace_one(longest)
    }

    fn displace_one(&mut self, id: Option<u64>) -> bool {
        let Some(id) = id else { return false };
        self.figures.displaced += 1;
        self.dismiss(id);
        true
    }

    /// Asks a connection to close. Its place is free at once.
    fn dismiss(&mut self, id: u64) {
        self.rouse(id);
        let Some(row) = self.rows.get_mut(&id) else { return };
        (row.phase, row.is_counted) = (Phase::Gone, false);
        row.close.notify_one();
        let origin = row.origin;
        self.leave(origin);
    }

    fn leave(&mut self, origin: Origin) {
        self.open -= 1;
        if let Some(open) = self.origins.get_mut(&origin) {
            *open -= 1;
            if *open == 0 {
                self.origins.remove(&origin);
            }
        }
    }
}

enum Overdue {
    Head,
    Idle,
}

impl Row {
    /// Whether it has rested too long; notes what has come and gone meanwhile.
    fn overdue(&mut self, now: Instant) -> Option<Overdue> {
        let Phase::Resting(rest) = &mut self.phase else { return None };
        if rest.is_new {
            return (now.duration_since(rest.since) >= HEAD_TIMEOUT).then_some(Overdue::Head);
        }
        let read = self.traffic.read.load(Ordering::Relaxed);
        let written = self.traffic.written.load(Ordering::Relaxed);
        if written != rest.written {
            // A slow client still takes its last answer.
            (rest.written, rest.since) = (written, now);
        }
        if read != rest.read && !self.traffic.is_http2.load(Ordering::Relaxed) {
            let head = *rest.head.get_or_insert(now);
            return (now.duration_since(head) >= HEAD_TIMEOUT).then_some(Overdue::Head);
        }
        (now.duration_since(rest.since) >= IDLE_TIMEOUT).then_some(Overdue::Idle)
    }
}

/// The place of one connection. Whatever has the socket has this, too.
#[derive(Debug)]
pub struct Seat {
    connections: Connections,
    id: u64,
    close: Arc<Notify>,
    traffic: Arc<Traffic>,
}

impl Seat {
    /// Waits until the connection has to go.
    pub async fn dismissed(&self) {
        self.close.notified().await;
    }

    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The head of a request has come. The connection is not closed before it is answered; nothing
    /// where it was to close already, and the request must not be begun.
    pub fn begin_request(self: &Arc<Seat>, is_http2: bool) -> Option<UnderWay> {
        self.traffic.is_http2.store(is_http2, Ordering::Relaxed);
        let mut table = self.connections.table();
        table.rouse(self.id);
        let row = table.rows.get_mut(&self.id)?;
        row.phase = match row.phase {
            Phase::Resting(_) => Phase::Busy(1),
            Phase::Busy(requests) => Phase::Busy(requests + 1),
            Phase::Gone => return None,
        };
        Some(UnderWay(self.clone()))
    }

    /// It has become something else than HTTP, which ends by itself.
    pub fn hand_over(&self) {
        let mut table = self.connections.table();
        table.rouse(self.id);
        if let Some(row) = table.rows.get_mut(&self.id) {
            row.phase = Phase::Gone;
        }
    }

    fn end_request(&self, now: Instant) {
        let mut table = self.connections.table();
        let Some(row) = table.rows.get_mut(&self.id) else { return };
        match row.phase {
            Phase::Busy(1) => table.rest(self.id, false, now),
            Phase::Busy(requests) => row.phase = Phase::Busy(requests - 1),
            Phase::Resting(_) | Phase::Gone => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.rouse(self.id);
        if let Some(row) = table.rows.remove(&self.id)
            && row.is_counted
        {
            table.leave(row.origin);
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct UnderWay(Arc<Seat>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.end_request(Instant::now());
    }
}

#[cfg(test)]
mod tests;
