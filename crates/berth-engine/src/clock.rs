//! The only clock of the server.
//!
//! Whoever sets the clock of the machine must neither end jobs nor change what they cost. So the
//! server's time goes on with a clock that nobody can set: the one that counts from the start of
//! the machine. The clock on the wall says what time it is in the beginning; later the server
//! follows it only as slowly as the daemons that keep clocks right correct them. A jump is recorded,
//! and not followed. Where the server stood is kept in a file, so that the next one goes on from
//! there, as long as the machine is not started anew.

use berth_model::{Span, Time};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the clock on the wall may change beside the other one and still be the same clock.
const JUMP_MS: i64 = 1_000;
/// How far the server's time may be off and still be brought back. Beyond that it would take days,
/// and would make every hour of them wrong.
const FOLLOWED_MS: i64 = 10_000;
/// A millisecond in a second: twice what a time daemon corrects at the most.
const FOLLOW_PER: u64 = 1_000;
/// Jumps that may wait to be recorded. A clock that is set more often is recorded in part.
const MAX_JUMPS: usize = 16;

thread_local! {
    /// What time it is for a thread that plays a history.
    static PLAYED: Cell<Option<Time>> = const { Cell::new(None) };
}

/// From now on it is this time for this thread, which plays a history: no clock is asked. Other
/// threads keep theirs.
pub fn play(at: Time) {
    PLAYED.set(Some(at));
}

/// The time of the server. It never goes back while the server runs.
pub fn now() -> Time {
    PLAYED.get().unwrap_or_else(|| clock().read(Reading::take()))
}

/// The server's time of a moment that was read from the clock on the wall as it is set now.
pub fn of_wall(wall: Time) -> Time {
    if PLAYED.get().is_some() {
        return wall;
    }
    let mut clock = clock();
    let reading = Reading::take();
    clock.read(reading) - (reading.wall - wall)
}

/// The server's time of a moment by the clock that counts from the start of the machine. Nobody can
/// set it between the moment and now.
pub fn of_uptime(uptime_ms: u64) -> Time {
    let mut clock = clock();
    let now = clock.read(Reading::take());
    clock.at_uptime(uptime_ms).unwrap_or(now)
}

/// What the clock on the wall shows. Whoever observes something on this machine or elsewhere tells
/// the time of it by that clock.
pub fn wall() -> Time {
    if let Some(played) = PLAYED.get() {
        return played;
    }
    let reading = Reading::take();
    clock().read(reading);
    reading.wall
}

/// What the clock on the wall shows at a moment of the server's time, as it is set now.
pub fn to_wall(time: Time) -> Time {
    time + ahead()
}

/// How far the clock on the wall is ahead of the server's time.
pub fn ahead() -> Span {
    if PLAYED.get().is_some() {
        return Span::ZERO;
    }
    let mut clock = clock();
    let reading = Reading::take();
    reading.wall - clock.read(reading)
}

/// Goes on from where the last server stood, and keeps that in this file from now on.
pub fn keep_in(path: &Path) -> io::Result<()> {
    let mut clock = clock();
    let kept = match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let reading = Reading::take();
    clock.resume(reading, &boot_id(), kept);
    clock.read(reading);
    clock.path = Some(path.to_owned());
    clock.store()
}

/// Writes down where the server stands, if that is not known yet.
pub(crate) fn keep() {
    let mut clock = clock();
    if clock.path.is_some() && clock.is_news() {
        // It is tried again in a minute; what is written there until then is a little off.
        let _ = clock.store();
    }
}

/// Nothing is earlier than what is in the log, even where the machine has lost its clock.
pub(crate) fn not_before(time: Time) {
    clock().raise(Reading::take(), time);
}

/// The jumps since the last call.
pub(crate) fn jumps() -> Vec<Jump> {
    std::mem::take(&mut clock().jumps)
}

/// Somebody has set the clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jump {
    /// The server's time.
    pub at: Time,
    pub by: Span,
}

/// Two clocks, read in one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    wall: Time,
    uptime_ms: u64,
}

impl Reading {
    fn take() -> Reading {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Time(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX));
        let since = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(since.tv_sec).unwrap_or(0);
        let uptime_ms = seconds * 1_000 + u64::try_from(since.tv_nsec).unwrap_or(0) / 1_000_000;
        Reading { wall, uptime_ms }
    }

    fn uptime(self) -> i64 {
        i64::try_from(self.uptime_ms).unwrap_or(i64::MAX)
    }
}

/// Where a server stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    boot: String,
    /// What the server's time is ahead of the clock that counts from the start of the machine.
    base_ms: i64,
    /// How far the clock on the wall was ahead of it, so that a jump is recorded once.
    #[serde(default)]
    ahead_ms: i64,
}

#[derive(Debug)]
struct Clock {
    /// The server's time when the machine was started. Nothing before the first reading.
    base: Option<i64>,
    last: Reading,
    /// Up to here it has followed the clock on the wall.
    followed_ms: u64,
    jumps: Vec<Jump>,
    path: Option<PathBuf>,
    stored: Option<Kept>,
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock::new());

fn clock() -> MutexGuard<'static, Clock> {
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clock {
    const fn new() -> Clock {
        Clock {
            base: None,
            last: Reading { wall: Time(0), uptime_ms: 0 },
            followed_ms: 0,
            jumps: Vec::new(),
            path: None,
            stored: None,
        }
    }

    fn read(&mut self, reading: Reading) -> Time {
        let Some(mut base) = self.base else { return self.begin(reading, reading.wall) };
        // Two threads may come here in another order than they have read.
        if reading.uptime_ms < self.last.uptime_ms {
            return Time(base + self.last.uptime());
        }
        let passed = reading.uptime() - self.last.uptime();
        let by = (reading.wall - self.last.wall).0 - passed;
        self.last = reading;
        if by.abs() >= JUMP_MS {
            self.note(Jump { at: Time(base + reading.uptime()), by: Span(by) });
        }
        let most = (reading.uptime_ms - self.followed_ms) / FOLLOW_PER;
        if most > 0 {
            self.followed_ms = reading.uptime_ms;
            let off = reading.wall.0 - (base + reading.uptime());
            if off.abs() <= FOLLOWED_MS {
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                base += off.clamp(-most, most);
                self.base = Some(base);
            }
        }
        Time(base + reading.uptime())
    }

    fn at_uptime(&self, uptime_ms: u64) -> Option<Time> {
        let uptime = i64::try_from(uptime_ms).ok()?;
        self.base?.checked_add(uptime).map(Time)
    }

    fn begin(&mut self, reading: Reading, time: Time) -> Time {
        self.base = Some(time.0 - reading.uptime());
        self.last = reading;
        self.followed_ms = reading.uptime_ms;
        time
    }

    /// Goes on where the last server stood, if that was since the machine was started.
    fn resume(&mut self, reading: Reading, boot: &str, kept: Option<Kept>) {
        let Some(kept) = kept.filter(|kept| kept.boot == boot && !boot.is_empty()) else { return };
        let time = Time(kept.base_ms.saturating_add(reading.uptime()));
        self.begin(reading, time);
        let by = reading.wall - time - Span(kept.ahead_ms);
        if by.0.abs() >= JUMP_MS {
            self.note(Jump { at: time, by });
        }
    }

    fn kept(&self) -> Option<Kept> {
        let base_ms = self.base?;
        let ahead_ms = self.last.wall.0 - (base_ms + self.last.uptime());
        Some(Kept { boot: boot_id(), base_ms, ahead_ms })
    }

    /// Whether something else is to be kept than what is in the file.
    fn is_news(&self) -> bool {
        let (Some(now), Some(stored)) = (self.kept(), &self.stored) else { return true };
        now.base_ms != stored.base_ms || (now.ahead_ms - stored.ahead_ms).abs() >= JUMP_MS
    }

    fn raise(&mut self, reading: Reading, time: Time) {
        let now = self.read(reading);
        if now < time {
            self.begin(reading, time);
            self.note(Jump { at: time, by: now - time });
        }
    }

    fn note(&mut self, jump: Jump) {
        if self.jumps.len() < MAX_JUMPS {
            self.jumps.push(jump);
        }
    }

    fn store(&mut self) -> io::Result<()> {
        let (Some(path), Some(kept)) = (&self.path, self.kept()) else { return Ok(()) };
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(&kept).map_err(io::Error::other)?)?;
        fs::rename(&beside, path)?;
        self.stored = Some(kept);
        Ok(())
    }
}

/// Differs after each start of the machine.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_000_000_000;
    const DAY: i64 = 86_400_000;

    /// The clocks of a machine, which this test sets as it likes.
    struct Machine {
        clock: Clock,
        wall: i64,
        uptime_ms: u64,
    }

    impl Machine {
        fn start() -> Machine {
            let mut machine = Machine { clock: Clock::new(), wall: NOON, uptime_ms: 50_000 };
            assert_eq!(machine.now(), NOON);
            machine
        }

        fn reading(&self) -> Reading {
            Reading { wall: Time(self.wall), uptime_ms: self.uptime_ms }
        }

        fn now(&mut self) -> i64 {
            self.clock.read(self.reading()).0
        }

        fn pass(&mut self, ms: u64) {
            self.uptime_ms += ms;
            self.wall += i64::try_from(ms).unwrap();
        }

        fn set(&mut self, by: i64) {
            self.wall += by;
        }

        fn jumps(&mut self) -> Vec<i64> {
            self.clock.jumps.drain(..).map(|jump| jump.by.0).collect()
        }

        /// Another server on the same machine.
        fn restart(&mut self, boot: &str) {
            let kept = Kept { boot: "one".to_owned(), ..self.clock.kept().unwrap() };
            self.clock = Clock::new();
            self.clock.resume(self.reading(), boot, Some(kept));
        }
    }

    #[test]
    fn a_thread_that_plays_a_history_has_its_time_and_others_have_theirs() {
        play(Time(NOON));
        assert_eq!((now(), wall(), to_wall(Time(5)), of_wall(Time(7))), {
            let noon = Time(NOON);
            (noon, noon, Time(5), Time(7))
        });
        let elsewhere = std::thread::spawn(|| PLAYED.get()).join().unwrap();
        assert_eq!(elsewhere, None);
    }

    #[test]
    fn two_days_ahead_change_no_span_and_are_recorded_once() {
        let mut machine = Machine::start();
        machine.pass(5_000);
        machine.set(2 * DAY);
        assert_eq!(machine.now(), NOON + 5_000);
        machine.pass(60_000);
        assert_eq!(machine.now(), NOON + 65_000);
        assert_eq!(machine.jumps(), [2 * DAY]);
        // What happened before it was set is where it was.
        assert_eq!(machine.clock.at_uptime(51_000), Some(Time(NOON + 1_000)));
        machine.pass(60_000);
        machine.now();
        assert_eq!(machine.jumps(), [0; 0]);
    }

    #[test]
    fn time_goes_on_when_the_clock_was_set_back() {
        let mut machine = Machine::start();
        machine.set(-2 * DAY);
        for minute in 1..=10 {
            machine.pass(60_000);
            assert_eq!(machine.now(), NOON + minute * 60_000);
        }
        assert_eq!(machine.jumps(), [-2 * DAY]);
        // Whoever puts it right again is recorded, too, and nothing changes either.
        machine.set(2 * DAY);
        assert_eq!(machine.now(), NOON + 600_000);
        assert_eq!(machine.jumps(), [2 * DAY]);
    }

    #[test]
    fn a_clock_that_a_daemon_keeps_right_is_followed_slowly() {
        let mut machine = Machine::start();
        machine.set(900);
        for _ in 0..100 {
            machine.pass(1_000);
            machine.now();
        }
        // A millisecond each second.
        assert_eq!(machine.now(), NOON + 100_000 + 100);
        for _ in 0..1_000 {
            machine.pass(1_000);
            machine.now();
        }
        assert_eq!(machine.now(), machine.wall);
        assert_eq!(machine.jumps(), [0; 0]);
    }

    #[test]
    fn the_next_server_goes_on_where_the_last_one_stood_although_the_clock_was_set_between() {
        let mut machine = Machine::start();
        machine.pass(10_000);
        machine.now();
        machine.set(2 * DAY);
        machine.pass(30_000);
        machine.restart("one");
        assert_eq!(machine.now(), NOON + 40_000);
        assert_eq!(machine.jumps(), [2 * DAY]);
        // The server after that has nothing new to tell.
        machine.restart("one");
        assert_eq!((machine.now(), machine.jumps()), (NOON + 40_000, Vec::new()));
    }

    #[test]
    fn after_a_start_of_the_machine_the_clock_on_the_wall_counts_but_never_goes_back() {
        let mut machine = Machine::start();
        machine.set(DAY);
        machine.now();
        machine.jumps();
        machine.uptime_ms = 3_000;
        machine.restart("two");
        assert_eq!(machine.now(), NOON + DAY);
        // Its battery is empty: the log knows better.
        machine.set(-3 * DAY);
        machine.clock = Clock::new();
        machine.clock.raise(machine.reading(), Time(NOON + DAY));
        assert_eq!(machine.now(), NOON + DAY);
        machine.pass(7_000);
        assert_eq!(machine.now(), NOON + DAY + 7_000);
    }

    #[test]
    fn readings_that_come_in_another_order_do_not_go_back() {
        let mut machine = Machine::start();
        let early = machine.reading();
        machine.pass(500);
        let late = machine.now();
        assert_eq!(machine.clock.read(early).0, late);
        assert_eq!(machine.jumps(), [0; 0]);
    }
}
