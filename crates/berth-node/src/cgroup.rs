//! Control groups (version 2), where this process may make some.
//!
//! With one, a task's CPU and memory are bounded, an out-of-memory kill is known to be one, and
//! nothing can escape its end. Without, the supervisor is on its own, and the inventory says so.

use berth_model::{Bytes, Cpu};
use fnv::FnvHasher;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

/// The leaf the server moves to, because only an empty group may have children with limits.
const SERVER: &str = "berth-server";
/// The scheduling period, in microseconds, that `cpu.max` is given in.
const PERIOD_US: i64 = 100_000;
/// Processes and threads of a task. A job that forks without end must not take the machine along.
pub(crate) const PROCESSES: u64 = 32_768;

/// Why tasks have no control groups.
#[derive(Debug, thiserror::Error)]
enum NoCgroups {
    #[error("control groups are switched off")]
    SwitchedOff,
    #[error("there is no version 2 hierarchy of control groups")]
    NoHierarchy,
    #[error("the control group {} is not ours to divide: {error}", path.display())]
    NotDelegated { path: PathBuf, error: io::Error },
}

/// What is enforced on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Tasks have a control group, which ends whatever they leave behind.
    pub groups: bool,
    pub cpu: bool,
    pub memory: bool,
    /// How many processes a task may have.
    #[serde(default)]
    pub processes: bool,
    /// Why something of it is missing, for people.
    pub missing: Option<String>,
}

/// The place where tasks get their groups.
#[derive(Debug)]
pub(crate) struct Cgroups {
    base: PathBuf,
    cpu: bool,
    memory: bool,
    processes: bool,
}

impl Cgroups {
    /// The place for the tasks of a root, if there can be one, and what that means.
    pub fn open(root: &Path, wanted: bool) -> (Option<Cgroups>, Limits) {
        let prepared =
            if wanted { Cgroups::prepare(&scope(root)) } else { Err(NoCgroups::SwitchedOff) };
        match prepared {
            Ok(cgroups) => {
                let limits = cgroups.limits();
                (Some(cgroups), limits)
            }
            Err(missing) => {
                let missing = Some(missing.to_string());
                (None, Limits { missing, ..Limits::default() })
            }
        }
    }

    /// Makes the place, below the group of this process; or says why that cannot be.
    fn prepare(scope: &str) -> Result<Cgroups, NoCgroups> {
        let own = own_group().ok_or(NoCgroups::NoHierarchy)?;
        let own = match own.file_name() {
            Some(name) if name == SERVER => own.parent().unwrap_or(&own).to_owned(),
            _ => own,
        };
        let base = own.join(format!("berth-{scope}"));
        fs::create_dir_all(&base)
            .map_err(|error| NoCgroups::NotDelegated { path: own.clone(), error })?;
        enable(&own);
        enable(&base);
        let enabled = controllers(&base.join("cgroup.subtree_control"));
        let has = |name: &str| enabled.iter().any(|found| found == name);
        let (cpu, memory, processes) = (has("cpu"), has("memory"), has("pids"));
        Ok(Cgroups { cpu, memory, processes, base })
    }

    fn limits(&self) -> Limits {
        let missing = match (self.cpu, self.memory) {
            (true, true) => None,
            (false, true) => Some("the cpu controller is not delegated"),
            (true, false) => Some("the memory controller is not delegated"),
            (false, false) => Some("the controllers for CPU and memory are not delegated"),
        };
        let missing = missing.map(str::to_owned);
        let (cpu, memory, processes) = (self.cpu, self.memory, self.processes);
        Limits { groups: true, cpu, memory, processes, missing }
    }

    pub fn group(&self, name: &str, cpu: Option<Cpu>, memory: Option<Bytes>) -> Cgroup {
        Cgroup {
            path: self.base.join(name),
            cpu: cpu.filter(|_| self.cpu),
            memory: memory.filter(|_| self.memory),
            processes: self.processes.then_some(PROCESSES),
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // Refused while a task is in it, as it should be.
        let _ = fs::remove_dir(&self.base);
    }
}

/// Tells the groups of this root from those of another on the same machine (FNV-1a).
fn scope(root: &Path) -> String {
    let mut hasher = FnvHasher::default();
    hasher.write(root.as_os_str().as_encoded_bytes());
    format!("{:016x}", hasher.finish())
}

fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(mount_point(&mounts)?.join(own_path(&groups)?.trim_start_matches('/')))
}

fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    let line = mountinfo.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

fn own_path(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

fn controllers(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Lets the children of a group have limits, as far as the group has them itself.
fn enable(group: &Path) {
    for name in ["cpu", "memory", "pids"] {
        let switch = group.join("cgroup.subtree_control");
        let has = |file: &Path| controllers(file).iter().any(|found| found == name);
        let on = || fs::write(&switch, format!("+{name}"));
        if !has(&group.join("cgroup.controllers")) || has(&switch) || on().is_ok() {
            continue;
        }
        if vacate(group).is_ok() {
            let _ = on();
        }
    }
}

/// Moves this process into a leaf of its own, if it is alone in its group. Others in it (a
/// terminal's shell) are not ours to move.
fn vacate(group: &Path) -> io::Result<()> {
    let me = rustix::process::getpid().as_raw_pid().to_string();
    if fs::read_to_string(group.join("cgroup.procs"))?.trim() != me {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    fs::create_dir_all(group.join(SERVER))?;
    fs::write(group.join(SERVER).join("cgroup.procs"), me)
}

/// The group of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cgroup {
    pub path: PathBuf,
    cpu: Option<Cpu>,
    memory: Option<Bytes>,
    #[serde(default)]
    processes: Option<u64>,
}

impl Cgroup {
    /// One that exists already.
    pub fn at(path: &Path) -> Cgroup {
        Cgroup { path: path.to_owned(), cpu: None, memory: None, processes: None }
    }

    /// Makes the group and moves this process into it: a child begins where its parent is, so
    /// what is started now has no moment outside. Returns where to go back to.
    pub fn enter(&self) -> io::Result<PathBuf> {
        let back = own_group().ok_or(io::ErrorKind::NotFound)?;
        fs::create_dir_all(&self.path)?;
        self.limit_cpu()?;
        if let Some(most) = self.processes {
            fs::write(self.path.join("pids.max"), most.to_string())?;
        }
        self.join(rustix::process::getpid().as_raw_pid())?;
        Ok(back)
    }

    /// Moves this process back. The limit on memory comes only now: an early end of the task for
    /// lack of memory would have taken this process along.
    pub fn leave(&self, back: &Path) -> io::Result<()> {
        let me = rustix::process::getpid().as_raw_pid().to_string();
        fs::write(back.join("cgroup.procs"), me)?;
        self.limit_memory()
    }

    pub fn join(&self, pid: i32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
    }

    fn limit_cpu(&self) -> io::Result<()> {
        let Some(cpu) = self.cpu else { return Ok(()) };
        let quota = (cpu.0 * PERIOD_US / 1_000).max(1_000);
        fs::write(self.path.join("cpu.max"), format!("{quota} {PERIOD_US}"))?;
        let weight = (cpu.0 / 10).clamp(1, 10_000);
        fs::write(self.path.join("cpu.weight"), weight.to_string())
    }

    fn limit_memory(&self) -> io::Result<()> {
        let Some(memory) = self.memory else { return Ok(()) };
        // One process of a task killed alone would leave the others waiting for it.
        fs::write(self.path.join("memory.oom.group"), "1")?;
        fs::write(self.path.join("memory.max"), memory.0.to_string())
    }

    pub fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.path.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    pub fn had_oom_kill(&self) -> bool {
        self.number("memory.events", "oom_kill").is_some_and(|count| count > 0)
    }

    pub fn cpu_ms(&self) -> Option<u64> {
        self.number("cpu.stat", "usage_usec").map(|usec| usec / 1_000)
    }

    /// What is in memory and cannot be dropped at once: without files that were read.
    pub fn memory_now(&self) -> Option<Bytes> {
        let all: i64 = self.text("memory.current")?.trim().parse().ok()?;
        let files = self.number("memory.stat", "inactive_file").unwrap_or(0);
        Some(Bytes((all - i64::try_from(files).unwrap_or(0)).max(0)))
    }

    /// Processes in it, without their threads.
    pub fn pids(&self) -> Option<Vec<i32>> {
        let text = self.text("cgroup.procs")?;
        Some(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.path.join(file)).ok()
    }

    pub fn memory_peak(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.path.join("memory.peak")).ok()?;
        text.trim().parse().ok().map(Bytes)
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.path);
    }

    fn number(&self, file: &str, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_and_the_group_in_it_are_found() {
        let mounts = "25 30 0:23 / /sys rw - sysfs sysfs rw\n\
                      34 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(mount_point("25 30 0:23 / /sys rw - sysfs sysfs rw\n"), None);
        assert_eq!(own_path("4:memory:/x\n0::/user.slice/a.scope\n"), Some("/user.slice/a.scope"));
        assert_eq!(own_path("4:memory:/x\n"), None);
    }

    #[test]
    fn figures_are_read_by_their_key() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("memory.events"), "oom 3\noom_kill 2\n").unwrap();
        std::fs::write(dir.path().join("cpu.stat"), "usage_usec 41999\nuser_usec 1\n").unwrap();
        let group = Cgroup::at(dir.path());
        assert!(group.had_oom_kill());
        assert_eq!(group.cpu_ms(), Some(41));
        assert_eq!(group.memory_peak(), None);
        assert_eq!((group.memory_now(), group.pids()), (None, None));
        for (file, text) in [
            ("memory.current", "5000\n"),
            ("memory.stat", "anon 10\ninactive_file 1000\n"),
            ("cgroup.procs", "12\n7\n"),
        ] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        assert_eq!((group.memory_now(), group.pids()), (Some(Bytes(4_000)), Some(vec![12, 7])));
    }
}
