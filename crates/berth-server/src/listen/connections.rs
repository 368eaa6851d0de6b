//! Who is connected: how many there may be, from where, and who has to go when there are too many.
//!
//! A connection rests while no request of it is under way: it has sent none yet, or only half of
//! one, or waits for its next. A connection is protected while it has a request of a known user under
//! way, as far as that user's share goes. Of the others, the one whose last request began or ended
//! longest ago goes first: somebody who opens connections displaces their own, whatever they send
//! on them and leave unread, and never the request of somebody else that is being answered.

use super::load::{Load, Loads};
use super::traffic::{Quiet, Stall, Traffic};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// From the first byte of a request to the last of its head, and from the beginning of a
/// connection to the head of its first request.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests. Clients close theirs after 90 seconds, so that none is closed here in the
/// moment in which its next request is on its way.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client may leave an answer where it is.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);
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
    /// Requests under way by which one user, with all jobs of theirs, protects connections.
    pub per_user: usize,
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
        // So that nobody fills the share of this machine by themselves.
        let per_user = (all / 8).max(4);
        ConnectionLimits { all, per_address: per_address.clamp(1, all), per_loopback, per_user }
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
    /// Too many in all, and all of them protected.
    pub refused_all: u64,
    /// The same from one address.
    pub refused_address: u64,
    pub refused_descriptors: u64,
    /// Closed for a new one, because they were unprotected for longest.
    pub displaced: u64,
    pub timeouts_head: u64,
    pub timeouts_idle: u64,
    pub timeouts_stalled: u64,
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
    loads: Loads,
}

#[derive(Debug, Default)]
struct Table {
    /// For connections, and for the turns in which they lost their protection.
    next: u64,
    rows: BTreeMap<u64, Row>,
    origins: BTreeMap<Origin, usize>,
    /// The sum of these.
    open: usize,
    /// Which may be displaced: the turn since which, and the connection; the longest first.
    unprotected: BTreeSet<(u64, u64)>,
    unprotected_of: BTreeSet<(Origin, u64, u64)>,
    /// Requests of each user that protect a connection.
    shares: BTreeMap<String, usize>,
    figures: Figures,
}

#[derive(Debug)]
struct Row {
    origin: Origin,
    /// It was not asked to close.
    is_counted: bool,
    phase: Phase,
    /// The turn since which it may be displaced, where it may.
    turn: Option<u64>,
    stall: Stall,
    close: Arc<Notify>,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
enum Phase {
    Resting(Rest),
    /// So many requests are under way, and so many of them protect it.
    Busy {
        requests: usize,
        protecting: usize,
    },
    /// It was asked to close, or became something else than HTTP.
    Gone,
}

#[derive(Debug)]
struct Rest {
    /// It has had no request yet.
    is_new: bool,
    began: Instant,
    read: u64,
    quiet: Quiet,
    /// Since when there is a part of a request.
    head: Option<Instant>,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Connections {
        Connections(Arc::new(Inner { limits, table: Mutex::default(), loads: Loads::default() }))
    }

    /// A place for a new connection, if need be that of one that is not protected.
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
            turn: None,
            stall: Stall::default(),
            close: close.clone(),
            traffic: traffic.clone(),
        };
        table.rows.insert(id, row);
        *table.origins.entry(origin).or_default() += 1;
        table.open += 1;
        table.rest(id, true, now);
        Ok(Seat { connections: self.clone(), id, close, traffic })
    }

    /// Closes what has rested too long, and whoever takes nothing of their answers.
    pub fn sweep(&self, now: Instant) {
        let mut table = self.table();
        let overdue: Vec<(u64, Overdue)> = table
            .rows
            .iter_mut()
            .filter_map(|(id, row)| row.overdue(now).map(|over| (*id, over)))
            .collect();
        for (id, over) in overdue {
            match over {
                Overdue::Head => table.figures.timeouts_head += 1,
                Overdue::Idle => table.figures.timeouts_idle += 1,
                Overdue::Stalled => table.figures.timeouts_stalled += 1,
            }
            table.dismiss(id);
        }
    }

    /// There are no descriptors left: closes some connections that are not protected.
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

    /// What each client that leaves an answer where it is has taken.
    #[cfg(test)]
    pub fn held(&self) -> Vec<u64> {
        let table = self.table();
        let traffic = table.rows.values().map(|row| &row.traffic);
        let held = traffic.filter(|traffic| traffic.is_held());
        held.map(|traffic| traffic.written.load(Ordering::Relaxed)).collect()
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
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.phase = Phase::Resting(Rest {
            is_new,
            began: now,
            read: row.traffic.read.load(Ordering::Relaxed),
            quiet: Quiet::new(&row.traffic, now),
            head: None,
        });
        self.expose(id);
    }

    /// From now on it may be displaced.
    fn expose(&mut self, id: u64) {
        self.keep(id);
        let turn = self.number();
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.turn = Some(turn);
        self.unprotected.insert((turn, id));
        self.unprotected_of.insert((row.origin, turn, id));
    }

    /// It may not be displaced any more, if it might.
    fn keep(&mut self, id: u64) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if let Some(turn) = row.turn.take() {
            self.unprotected.remove(&(turn, id));
            self.unprotected_of.remove(&(row.origin, turn, id));
        }
    }

    /// A request of a user protects its connection, if that is within the user's share. Nothing
    /// where the connection was to close already.
    fn protect(&mut self, id: u64, user: &str, most: usize) -> Option<bool> {
        let row = self.rows.get_mut(&id)?;
        let Phase::Busy { protecting, .. } = &mut row.phase else { return None };
        let share = self.shares.get(user).copied().unwrap_or(0);
        if share >= most {
            return Some(false);
        }
        *protecting += 1;
        self.shares.insert(user.to_owned(), share + 1);
        self.keep(id);
        Some(true)
    }

    fn give_share_back(&mut self, user: &str) {
        if let Some(share) = self.shares.get_mut(user) {
            *share -= 1;
            if *share == 0 {
                self.shares.remove(user);
            }
        }
    }

    /// Closes the one that is unprotected for longest; none where all are protected.
    fn displace(&mut self) -> bool {
        let longest = self.unprotected.first().map(|(_, id)| *id);
        self.displace_one(longest)
    }

    fn displace_of(&mut self, origin: Origin) -> bool {
        let of_origin = self.unprotected_of.range((origin, 0, 0)..);
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
        self.keep(id);
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
    Stalled,
}

impl Row {
    /// Whether it has rested too long, or its client leaves answers where they are; notes what has
    /// come and gone meanwhile.
    fn overdue(&mut self, now: Instant) -> Option<Overdue> {
        let traffic = &self.traffic;
        let is_stalled = self.stall.lasts(traffic, now) >= STALL_TIMEOUT;
        let rest = match &mut self.phase {
            Phase::Gone => return None,
            _ if is_stalled => return Some(Overdue::Stalled),
            Phase::Busy { .. } => return None,
            Phase::Resting(rest) => rest,
        };
        if rest.is_new {
            return (now.duration_since(rest.began) >= HEAD_TIMEOUT).then_some(Overdue::Head);
        }
        // A slow client still takes its last answer.
        let quiet = rest.quiet.lasts(traffic, now);
        if traffic.read.load(Ordering::Relaxed) != rest.read && !traffic.is_http2() {
            let head = *rest.head.get_or_insert(now);
            return (now.duration_since(head) >= HEAD_TIMEOUT).then_some(Overdue::Head);
        }
        (quiet >= IDLE_TIMEOUT).then_some(Overdue::Idle)
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

    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// The head of a request has come. Nothing where the connection was to close already, and the
    /// request must not be begun.
    pub fn begin_request(self: &Arc<Seat>, is_http2: bool) -> Option<UnderWay> {
        self.traffic.is_http2.store(is_http2, Ordering::Relaxed);
        let mut table = self.connections.table();
        let row = table.rows.get_mut(&self.id)?;
        let mut is_protected = false;
        row.phase = match row.phase {
            Phase::Resting(_) => Phase::Busy { requests: 1, protecting: 0 },
            Phase::Busy { requests, protecting } => {
                is_protected = protecting > 0;
                Phase::Busy { requests: requests + 1, protecting }
            }
            Phase::Gone => return None,
        };
        if !is_protected {
            table.expose(self.id);
        }
        let (user, load) = (OnceLock::new(), OnceLock::new());
        Some(UnderWay(Arc::new(Ongoing { seat: self.clone(), user, load })))
    }

    /// It has become something else than HTTP, which ends by itself.
    pub fn hand_over(&self) {
        let mut table = self.connections.table();
        table.keep(self.id);
        if let Some(row) = table.rows.get_mut(&self.id) {
            row.phase = Phase::Gone;
        }
    }

    fn end_request(&self, did_protect: bool, now: Instant) {
        let mut table = self.connections.table();
        let Some(row) = table.rows.get_mut(&self.id) else { return };
        let Phase::Busy { requests, protecting } = &mut row.phase else { return };
        (*requests, *protecting) = (*requests - 1, *protecting - usize::from(did_protect));
        match (*requests, *protecting) {
            (0, _) => table.rest(self.id, false, now),
            (_, 0) if did_protect => table.expose(self.id),
            _ => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.keep(self.id);
        if let Some(row) = table.rows.remove(&self.id)
            && row.is_counted
        {
            table.leave(row.origin);
        }
    }
}

/// A request that is being answered. It is so until the last of these is dropped.
#[derive(Debug, Clone)]
pub struct UnderWay(Arc<Ongoing>);

#[derive(Debug)]
struct Ongoing {
    seat: Arc<Seat>,
    /// Whose it is, once that is known, and whether it is within their share.
    user: OnceLock<(String, bool)>,
    /// What its answer keeps in memory.
    load: OnceLock<Load>,
}

impl UnderWay {
    /// Whose request it is. False where the connection had to go before that was known: the
    /// request must not be begun.
    pub fn identify(&self, user: &str) -> bool {
        let Ongoing { seat, user: known, .. } = &*self.0;
        let most = seat.connections.0.limits.per_user;
        let protects = seat.connections.table().protect(seat.id, user, most);
        let Some(protects) = protects else { return false };
        known.set((user.to_owned(), protects)).is_ok()
    }

    /// Notes how large the answer is, where that is known; it is kept in memory until the client has
    /// taken it. False where the user leaves so much unread that there is no room for more.
    pub fn weigh(&self, bytes: Option<u64>) -> bool {
        let Ongoing { seat, user, load } = &*self.0;
        let Some((user, _)) = user.get() else { return true };
        match seat.connections.0.loads.take(user, bytes) {
            Some(taken) => load.set(taken).is_ok(),
            None => false,
        }
    }

    pub fn is_known(&self) -> bool {
        self.0.user.get().is_some()
    }

    /// Whether the connection stays while the request is under way.
    pub fn is_protected(&self) -> bool {
        self.0.user.get().is_some_and(|(_, protects)| *protects)
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        let protecting = self.user.get().filter(|(_, protects)| *protects);
        if let Some((user, _)) = protecting {
            self.seat.connections.table().give_share_back(user);
        }
        self.seat.end_request(protecting.is_some(), Instant::now());
    }
}

#[cfg(test)]
mod tests;
