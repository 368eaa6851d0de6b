//! From the first process of a task to the last.

use super::ready::Readiness;
use super::spawn::{Exit, Init, Rank, Spawned};
use super::{LaunchSpec, complain, ends, leave_room};
use crate::cgroup::Cgroup;
use crate::error::Error;
use crate::home::{At, Home, Running, StopRequest, drain, write_json};
use crate::isolation::Room;
use crate::process::{self, Process};
use crate::task::TaskSpec;
use berth_model::{Bytes, Cause, Time};
use berth_model::{Ended, Usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the others get when one rank has failed: they wait for it in vain.
const PEER_GRACE: Duration = Duration::from_secs(10);
/// What processes get that are still there when the task itself has ended.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);
/// How often the supervisor looks around although nothing woke it: for a request to stop whose
/// poke got lost, and for orphans to be waited for.
const TICK: Duration = Duration::from_secs(1);
/// The same while processes are being killed whose end the kernel does not report to it.
const KILL_TICK: Duration = Duration::from_millis(10);
/// Memory is looked at this long after the start, then after twice as long, and so on.
const FIRST_SAMPLE: Duration = Duration::from_millis(50);
const LAST_SAMPLE: Duration = Duration::from_secs(30);
/// Read from one rank before the others have their turn.
const READ_BYTES: usize = 64 << 10;
const READS: usize = 16;

pub(super) struct Run {
    home: Home,
    spec: TaskSpec,
    bell: PathBuf,
    poke: File,
    ranks: Vec<Rank>,
    cgroup: Option<Cgroup>,
    /// Until it has ended.
    init: Option<Init>,
    room: Option<Room>,
    me: i32,
    started: Running,
    /// The driver can read that it runs. On a full disk that takes until there is room.
    told_started: bool,
    /// When it reaches its time limit, by the clock of [`process::uptime_ms`].
    ends_at: Option<u64>,
    /// The first cause for which we were asked to stop it.
    asked: Option<Cause>,
    /// It is ended because a GPU of it has failed.
    gpu_stop: bool,
    failed: Option<usize>,
    /// Until it is ready.
    readiness: Option<Readiness>,
    /// Until when it has to be ready; nothing when it is, or may take its time.
    ready_by: Option<Instant>,
    not_ready: bool,
    /// When whatever is left is killed.
    kill_at: Option<Instant>,
    leftovers_asked: bool,
    memory_peak: Option<Bytes>,
    sample_at: Instant,
    sample_every: Duration,
    buffer: Vec<u8>,
}

impl Run {
    pub fn new(home: Home, order: LaunchSpec, poke: File, spawned: Spawned) -> Run {
        let limits = order.sandbox.as_ref().map(|boxed| boxed.limits).unwrap_or_default();
        let started = running(&spawned, limits, process::now());
        let readiness = order.spec.ready.clone().zip(order.spec.port);
        let readiness = readiness.map(|(check, port)| Readiness::new(check, port));
        let ready_by = ready_by(&order.spec);
        let ends_at = ends_at(&order.spec);
        let mut spec = order.spec;
        // The processes have it; here it would only lie about.
        spec.env.clear();
        let mut run = Run {
            home,
            spec,
            bell: order.bell,
            poke,
            ranks: spawned.ranks,
            cgroup: spawned.cgroup,
            init: spawned.init,
            room: order.sandbox.map(|boxed| boxed.room),
            me: rustix::process::getpid().as_raw_pid(),
            started,
            told_started: false,
            ends_at,
            asked: None,
            gpu_stop: false,
            failed: None,
            readiness,
            ready_by,
            not_ready: false,
            kill_at: None,
            leftovers_asked: false,
            memory_peak: None,
            sample_at: Instant::now() + FIRST_SAMPLE,
            sample_every: FIRST_SAMPLE,
            buffer: vec![0; READ_BYTES],
        };
        if let Err(error) = run.tell_started() {
            complain(&format!("{}, trying again", error.in_full()));
        }
        run
    }

    fn tell_started(&mut self) -> Result<(), Error> {
        write_json(&self.home.file("started.json"), &self.started)?;
        self.told_started = true;
        ends::tell(&self.bell, self.spec.lease);
        Ok(())
    }

    pub fn until_over(mut self) {
        loop {
            self.read_output();
            let has_children = self.reap();
            if !has_children && self.nothing_left() {
                break;
            }
            if !self.told_started {
                // It was complained of once.
                let _ = self.tell_started();
            }
            self.notice_stop();
            self.notice_limit();
            self.notice_failure();
            self.notice_readiness();
            self.notice_lateness();
            self.notice_leftovers();
            self.close_sandbox();
            self.enforce();
            self.sample_memory();
            self.wait();
        }
        self.read_output_to_its_end();
        self.write_end();
    }

    /// Sleeps until a process ends or writes, a poke arrives, or something is due.
    fn wait(&mut self) {
        let now = Instant::now();
        let mut until = (now + TICK).min(self.sample_at);
        if let Some(ready_by) = self.ready_by {
            until = until.min(ready_by.max(now));
        }
        if let Some(readiness) = &self.readiness {
            until = until.min(readiness.due());
        }
        if let Some(ends_at) = self.ends_at.filter(|_| self.asked.is_none()) {
            let left = Duration::from_millis(ends_at.saturating_sub(process::uptime_ms()));
            until = until.min(now + left.clamp(KILL_TICK, TICK));
        }
        if let Some(kill_at) = self.kill_at {
            until = until.min(kill_at.max(now + KILL_TICK));
        }
        let all_ended = self.ranks.iter().all(|rank| rank.exit.is_some());
        if all_ended {
            until = until.min(now + KILL_TICK);
        }
        let timeout = until.saturating_duration_since(now);
        let timeout = Timespec::try_from(timeout).expect("at most a few seconds");
        let mut fds = vec![PollFd::new(&self.poke, PollFlags::IN)];
        for rank in &self.ranks {
            let ended = rank.pidfd.as_ref().filter(|_| rank.exit.is_none());
            fds.extend(ended.map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(rank.output.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        }
        let init = self.init.as_ref().and_then(|init| init.pidfd.as_ref());
        fds.extend(init.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let asked = self.readiness.as_ref().and_then(Readiness::waits_for);
        fds.extend(asked.map(|(socket, flags)| PollFd::new(socket, flags)));
        // An interrupted wait is as good as one that is over.
        let _ = poll(&mut fds, Some(&timeout));
    }

    fn read_output(&mut self) {
        for rank in &mut self.ranks {
            for _ in 0..READS {
                if !read_once(rank, &mut self.buffer) {
                    break;
                }
            }
        }
    }

    /// Everybody who could write is gone, so this ends; a stranger that was handed the pipe has
    /// no say in it.
    fn read_output_to_its_end(&mut self) {
        for rank in &mut self.ranks {
            while read_once(rank, &mut self.buffer) {}
        }
    }

    /// Waits for whatever has ended; whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.note_exit(pid, status),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn note_exit(&mut self, pid: Pid, status: WaitStatus) {
        let exit = Exit { code: status.exit_status(), signal: status.terminating_signal() };
        if self.init.as_ref().is_some_and(|init| init.pid == pid) {
            self.init = None;
        }
        let Some(at) = self.ranks.iter().position(|rank| rank.pid == pid) else { return };
        self.ranks[at].exit = Some(exit);
        if !exit.is_success() && self.failed.is_none() {
            self.failed = Some(at);
        }
    }

    /// Without children there are no descendants, since orphans become children. A shell that
    /// was opened beside the task is no child, and ends with it.
    fn nothing_left(&self) -> bool {
        if let Some(group) = &self.cgroup
            && !group.is_empty()
        {
            group.kill();
            return false;
        }
        if !self.home.file("shells").exists() {
            return true;
        }
        let shells = process::marked(&self.home.dir);
        process::signal(&shells, Signal::KILL);
        shells.is_empty()
    }

    fn notice_stop(&mut self) {
        let poked = poked(&drain(&self.poke));
        let request = match self.home.stop_request() {
            Ok(Some(request)) => request,
            Ok(None) => match poked {
                Some(request) => request,
                None => return,
            },
            Err(error) => return complain(&error.to_string()),
        };
        // A later request may shorten the grace and never lengthens it.
        self.kill_within(Duration::from_millis(request.grace_ms));
        if self.asked.is_some() || self.ranks.iter().all(|rank| rank.exit.is_some()) {
            return;
        }
        // A rank of this task failed by itself, maybe first of all tasks, so report its own end.
        if self.failed.is_some() && request.wanted() == Some(Cause::PeerFailed) {
            return;
        }
        self.asked = request.wanted();
        if !self.gpu_stop {
            self.ask_to_stop(request);
        }
        self.gpu_stop = self.asked.is_none();
    }

    /// Ends the task at its time limit. The server does so, too, a moment earlier; it may be away.
    fn notice_limit(&mut self) {
        match self.home.limit() {
            Ok(Some(limit)) => self.ends_at = limit.uptime_ms,
            Ok(None) => {}
            Err(error) => complain(&error.to_string()),
        }
        let is_due = self.ends_at.is_some_and(|at| at <= process::uptime_ms());
        let is_stopped = self.asked.is_some() || self.gpu_stop;
        let is_ending = is_stopped || self.failed.is_some() || self.not_ready;
        if !is_due || is_ending || self.ranks.iter().all(|rank| rank.exit.is_some()) {
            return;
        }
        self.asked = Some(Cause::TimeLimit);
        self.signal_ranks(Signal::TERM);
        self.kill_within(self.grace());
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.spec.grace.0).unwrap_or(0))
    }

    /// Where the choice of a checkpoint signal belongs.
    fn ask_to_stop(&self, request: StopRequest) {
        let signal = request.signal.and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
        self.signal_ranks(signal);
    }

    fn signal_ranks(&self, signal: Signal) {
        for rank in self.ranks.iter().filter(|rank| rank.exit.is_none()) {
            let _ = rustix::process::kill_process_group(rank.pid, signal);
        }
    }

    fn notice_failure(&mut self) {
        let first = self.failed.is_some() && self.kill_at.is_none();
        if first && self.ranks.iter().any(|rank| rank.exit.is_none()) {
            self.signal_ranks(Signal::TERM);
            self.kill_within(PEER_GRACE);
        }
    }

    /// A service that does not serve holds its GPUs for nothing. It is asked to end like one that
    /// is stopped, and has failed.
    fn notice_lateness(&mut self) {
        if self.ready_by.is_none_or(|by| Instant::now() < by) {
            return;
        }
        self.ready_by = None;
        let is_ready = self.home.file("ready.json").exists();
        let is_over = self.ranks.iter().all(|rank| rank.exit.is_some());
        if is_ready || is_over || self.asked.is_some() || self.failed.is_some() {
            return;
        }
        self.not_ready = true;
        self.signal_ranks(Signal::TERM);
        self.kill_within(self.grace());
    }

    fn notice_readiness(&mut self) {
        if !self.readiness.as_mut().is_some_and(Readiness::advance) {
            return;
        }
        self.readiness = None;
        if let Err(error) = write_json(&self.home.file("ready.json"), &At { at: process::now() }) {
            complain(&error.to_string());
        }
        ends::tell(&self.bell, self.spec.lease);
    }

    /// Ends the sandbox when the task has ended and nothing of it is left in there. What a shell
    /// left goes with it.
    fn close_sandbox(&self) {
        let all_ended = self.ranks.iter().all(|rank| rank.exit.is_some());
        if let Some(init) = &self.init
            && all_ended
            && !process::has_children(init.pid)
        {
            let _ = rustix::process::kill_process(init.pid, Signal::KILL);
        }
    }

    fn notice_leftovers(&mut self) {
        if !self.leftovers_asked && self.ranks.iter().all(|rank| rank.exit.is_some()) {
            self.leftovers_asked = true;
            process::signal(&process::descendants(self.me), Signal::TERM);
            self.kill_within(LEFTOVER_GRACE);
        }
    }

    fn kill_within(&mut self, grace: Duration) {
        // A grace beyond a year is as good as none.
        let grace = grace.min(Duration::from_secs(365 * 86_400));
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
    }

    /// Kills what is left when its time is over, again and again: a process may have forked
    /// between being listed and being killed.
    fn enforce(&self) {
        if self.kill_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        if let Some(group) = &self.cgroup {
            group.kill();
        }
        process::signal(&process::descendants(self.me), Signal::KILL);
    }

    /// Short tasks are looked at early, long ones seldom: reading all of `/proc` has a price. A
    /// group knows its peak by itself.
    fn sample_memory(&mut self) {
        if Instant::now() < self.sample_at {
            return;
        }
        self.sample_every = (self.sample_every * 2).min(LAST_SAMPLE);
        self.sample_at = Instant::now() + self.sample_every;
        if self.cgroup.as_ref().is_some_and(|group| group.memory_peak().is_some()) {
            return;
        }
        let most = process::descendants(self.me).into_iter().filter_map(process::memory_peak).max();
        self.memory_peak = self.memory_peak.max(most);
    }

    fn write_end(self) {
        let rank = self.failed.unwrap_or(0);
        let exit = self.ranks[rank].exit;
        let group = self.cgroup.as_ref();
        let ended = Ended {
            started_at: Some(self.started.at),
            code: exit.and_then(|exit| exit.code),
            signal: exit.and_then(|exit| exit.signal),
            rank: self.ranks[rank].number,
            oom: group.is_some_and(Cgroup::had_oom_kill),
            asked: self.asked,
            gpu_stop: self.gpu_stop,
            not_ready: self.not_ready,
            usage: Usage {
                cpu_ms: group.and_then(Cgroup::cpu_ms).unwrap_or_else(process::children_cpu_ms),
                memory_peak: group.and_then(Cgroup::memory_peak).or(self.memory_peak),
            },
            log_lost: self.ranks.iter().map(|rank| rank.log.lost()).sum(),
            ..Ended::unknown(self.spec.lease, process::now())
        };
        if let Some(group) = group {
            group.remove();
        }
        ends::write(&self.home, &ended, &self.bell);
        leave_room(self.room.as_ref());
    }
}

/// Whether something was read.
fn read_once(rank: &mut Rank, buffer: &mut [u8]) -> bool {
    let Some(pipe) = &rank.output else { return false };
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    let none = Timespec::default();
    if !matches!(poll(&mut fds, Some(&none)), Ok(1)) {
        return false;
    }
    match (&*pipe).read(buffer) {
        Ok(0) | Err(_) => {
            rank.output = None;
            false
        }
        Ok(length) => {
            rank.log.write(&buffer[..length], process::now());
            true
        }
    }
}

fn running(spawned: &Spawned, limits: berth_sandbox::Limits, at: Time) -> Running {
    let pids: Vec<i32> = spawned.ranks.iter().map(|rank| rank.pid.as_raw_pid()).collect();
    let start = |pid: &i32| Process::of(*pid).map_or(0, |process| process.start);
    let starts = pids.iter().map(start).collect();
    let init = spawned.init.as_ref().map(|init| init.pid.as_raw_pid());
    let init_start = init.and_then(Process::of).map(|process| process.start);
    let uptime_ms = Some(process::uptime_ms());
    Running { at, pids, starts, init, init_start, limits, uptime_ms }
}

/// The last request to stop among what was written to the fifo.
fn poked(bytes: &[u8]) -> Option<StopRequest> {
    let lines = String::from_utf8_lossy(bytes);
    lines.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

fn ends_at(spec: &TaskSpec) -> Option<u64> {
    let left = u64::try_from(spec.runs_for?.0).unwrap_or(0);
    process::uptime_ms().checked_add(left)
}

fn ready_by(spec: &TaskSpec) -> Option<Instant> {
    let within = spec.ready.as_ref().and(spec.ready_within)?;
    // One that is longer than the clock goes is as good as none.
    Instant::now().checked_add(Duration::from_millis(u64::try_from(within.0).ok()?))
}
