//! Processes as `/proc` shows them.
//!
//! The kernel gives a process id to another process some time after the first one has ended. So a
//! process is named here by its id and the time of its start, and both are compared before a signal
//! is sent.

use berth_model::{Bytes, Time};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Milliseconds since the machine was started. Nobody can set this clock, and all processes of the
/// machine read the same.
pub(crate) fn uptime_ms() -> u64 {
    let since = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(since.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(since.tv_nsec).unwrap_or(0) / 1_000_000
}

/// A process, and none that was given the same id later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Process {
    pub pid: i32,
    /// In clock ticks since the machine was started (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

impl Process {
    /// The process that has the id now, if one has.
    pub fn of(pid: i32) -> Option<Process> {
        stat(pid).map(|stat| stat.process())
    }

    pub fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|found| found.start == self.start && !found.is_zombie)
    }

    /// Sends a signal to this process and to no other: the descriptor stays with the process that
    /// had the id when it was opened, and the start time tells whether that was this one.
    pub fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Process::of(self.pid) == Some(self) {
            // It may have ended since it was listed.
            let _ = pidfd_send_signal(&process, signal);
        }
    }
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Differs after each boot, so that a process id is never looked for on the wrong side of one.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    pub is_zombie: bool,
    pub start: u64,
    /// Clock ticks, of children that were waited for.
    children_ticks: u64,
    /// Clock ticks of its own.
    own_ticks: u64,
    /// Pages in memory.
    pages: u64,
}

impl Stat {
    pub fn process(&self) -> Process {
        Process { pid: self.pid, start: self.start }
    }

    /// CPU time of it and of its children that were waited for.
    pub fn cpu_ms(&self) -> u64 {
        ms(self.own_ticks + self.children_ticks)
    }

    pub fn memory(&self) -> Bytes {
        let page = rustix::param::page_size() as u64;
        Bytes(i64::try_from(self.pages * page).unwrap_or(i64::MAX))
    }
}

fn ms(ticks: u64) -> u64 {
    ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Bytes that a process has read from disks and written to them, with its children that were waited
/// for. Only for those who may look into the process.
pub(crate) fn disk_bytes(pid: i32) -> Option<(u64, u64)> {
    parse_io(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

fn parse_io(text: &str) -> Option<(u64, u64)> {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))?;
        line.trim().parse::<u64>().ok()
    };
    Some((number("read_bytes")?, number("write_bytes")?))
}

fn parse_stat(text: &str) -> Option<Stat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    // The name stands in parentheses and may hold spaces and parentheses itself.
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        pid,
        parent: number(1)?,
        session: number(3)?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        own_ticks: ticks(11)? + ticks(12)?,
        children_ticks: ticks(13)? + ticks(14)?,
        start: ticks(19)?,
        pages: ticks(21).unwrap_or(0),
    })
}

/// Every process that can be seen. One that ends meanwhile is left out.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| parse_stat(&fs::read_to_string(entry.path().join("stat")).ok()?))
        .collect()
}

/// The living processes below that one.
pub(crate) fn descendants(of: i32) -> Vec<Process> {
    let all = all();
    let mut family = BTreeSet::from([of]);
    // Ids wrap around, so a child may be listed before its parent: go over the list until
    // nothing is added.
    loop {
        let before = family.len();
        family.extend(
            all.iter().filter(|p| family.contains(&p.parent)).map(|p| p.pid).collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    all.iter()
        .filter(|p| !p.is_zombie && p.pid != of && family.contains(&p.pid))
        .map(Stat::process)
        .collect()
}

/// The processes that one has started, while it lives.
pub(crate) fn children(of: i32) -> Vec<Process> {
    match fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(children) => {
            let pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.filter_map(stat)
                .filter(|found| found.parent == of)
                .map(|it| it.process())
                .collect()
        }
        // Not every kernel has that file.
        Err(_) => all().iter().filter(|p| p.parent == of).map(Stat::process).collect(),
    }
}

/// Whether a process has children, also such as have ended.
pub(crate) fn has_children(of: Pid) -> bool {
    let of = of.as_raw_pid();
    match fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(children) => !children.trim().is_empty(),
        // Not every kernel has that file.
        Err(_) => all().iter().any(|p| p.parent == of),
    }
}

/// What the environment of a process has that belongs to the task of a folder. Tasks that an
/// earlier version started name the folder above.
pub(crate) fn markers(home: &Path) -> [Vec<u8>; 2] {
    let folders = [home.join("job"), home.to_owned()];
    folders.map(|dir| format!("BERTH_TASK_DIR={}", dir.display()).into_bytes())
}

/// The living processes whose environment names that task folder.
pub(crate) fn marked(home: &Path) -> Vec<Process> {
    let markers = markers(home);
    all()
        .into_iter()
        .filter(|p| !p.is_zombie && environ(p.pid).iter().any(|line| markers.contains(line)))
        .map(|p| p.process())
        .collect()
}

/// The environment a process was started with; empty when it is not ours to see.
pub(crate) fn environ(pid: i32) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes.split(|b| *b == 0).filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

pub(crate) fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        process.signal(signal);
    }
}

/// The most memory that process ever had.
pub(crate) fn memory_peak(process: Process) -> Option<Bytes> {
    let text = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib << 10))
}

/// CPU time of all descendants that have been waited for.
pub(crate) fn children_cpu_ms() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| parse_stat(&text));
    ms(stat.map_or(0, |stat| stat.children_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let text = "41 (a) b (c)) S 7 41 40 0 -1 4194560 1 2 3 4 5 6 70 8 20 0 1 0 999 1 2";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.session, stat.start), (41, 7, 40, 999));
        assert_eq!((stat.is_zombie, stat.children_ticks), (false, 78));
        assert_eq!((stat.own_ticks, stat.pages), (11, 2));
        let io = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 7\ncancelled_write_bytes: 0\n";
        assert_eq!((parse_io(io), parse_io("rchar: 9\n")), (Some((4_096, 7)), None));
        assert_eq!(parse_stat("41 (cut"), None);
    }

    #[test]
    fn this_process_is_among_all_and_below_its_parent() {
        let me = Process::of(rustix::process::getpid().as_raw_pid()).unwrap();
        assert!(all().iter().any(|p| p.process() == me));
        let parent = rustix::process::getppid().unwrap().as_raw_pid();
        assert!(descendants(parent).contains(&me));
        assert!(memory_peak(me).unwrap() > Bytes(0));
    }

    #[test]
    fn a_signal_goes_to_no_process_that_was_given_the_id_later() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let it = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        let earlier = Process { start: it.start - 1, ..it };
        earlier.signal(Signal::KILL);
        assert!(!earlier.is_alive() && it.is_alive());
        assert_eq!(child.try_wait().unwrap(), None);
        it.signal(Signal::KILL);
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(!it.is_alive());
    }
}
