//! Who uses the GPUs that a task is about to get. A process that a task left behind, or that
//! somebody started beside Berth, may hold one; the next task would share it unawares.

use super::Driver;
use crate::inventory::GpuProcess;
use crate::mps::Mps;
use crate::process::{self, Stat};
use crate::task::Gpus;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

/// A process on a GPU that belongs to no task which has that GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stranger {
    pub gpu: u32,
    pub pid: u32,
    /// What the process is called; nothing where it cannot be seen from here.
    pub name: Option<String>,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stranger { gpu, pid, name } = self;
        match name {
            Some(name) => write!(f, "GPU {gpu} is held by process {pid} ({name})")?,
            None => write!(f, "GPU {gpu} is held by process {pid} of another container")?,
        }
        f.write_str(", which belongs to no job that has this GPU")
    }
}

impl Driver {
    /// Of the processes on these GPUs, those that do not belong to a task which has the GPU. The MPS
    /// daemon of a GPU and the servers behind it hold it on behalf of tasks; any process may take
    /// their names, so only those that were started here count.
    pub fn strangers(&self, gpus: &Gpus, found: &[GpuProcess], mps: &Mps) -> Vec<Stranger> {
        let Gpus::Real { indices, .. } = gpus else { return Vec::new() };
        let found = found.iter().filter(|found| indices.contains(&found.gpu));
        let found: BTreeSet<GpuProcess> = found.copied().collect();
        if found.is_empty() {
            return Vec::new();
        }
        let view = View::of(self);
        found.into_iter().filter_map(|process| view.stranger(process, mps)).collect()
    }
}

/// The processes of the machine, and the tasks they may belong to.
struct View {
    processes: BTreeMap<i32, Stat>,
    /// The supervisors that live, with the GPUs of their tasks.
    supervisors: BTreeMap<i32, Vec<u32>>,
    /// The folders of living tasks as their processes name them, with the GPUs of the task.
    folders: BTreeMap<Vec<u8>, Vec<u32>>,
}

impl View {
    fn of(driver: &Driver) -> View {
        let processes: BTreeMap<i32, Stat> =
            process::all().into_iter().map(|stat| (stat.pid, stat)).collect();
        let (mut supervisors, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for live in driver.table().live.values() {
            let gpus = live.gpus.indices().to_vec();
            if let Ok(Some(begun)) = live.lock.begun()
                && let Some(stat) = processes.get(&begun.supervisor)
                && begun.start.is_none_or(|start| start == stat.start)
            {
                supervisors.insert(begun.supervisor, gpus.clone());
            }
            for marker in process::markers(&live.home.dir) {
                folders.insert(marker, gpus.clone());
            }
        }
        View { processes, supervisors, folders }
    }

    fn stranger(&self, process: GpuProcess, mps: &Mps) -> Option<Stranger> {
        let GpuProcess { gpu, pid } = process;
        let stranger = |name| Some(Stranger { gpu, pid, name });
        let Some(stat) = i32::try_from(pid).ok().and_then(|pid| self.processes.get(&pid)) else {
            // Ended since, or not to be seen from here. On a GPU that tasks have it may be one of
            // theirs.
            let is_shared = self.folders.values().any(|gpus| gpus.contains(&gpu));
            return if sees_all() || is_shared { None } else { stranger(None) };
        };
        if stat.is_zombie || mps.has(gpu, stat) || self.has(stat, gpu) {
            return None;
        }
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        stranger(Some(name.trim().to_owned()))
    }

    /// Whether the process belongs to a task that has the GPU.
    fn has(&self, stat: &Stat, gpu: u32) -> bool {
        let mut at = stat;
        // A chain of parents has no cycle; the bound is for a table that changed while it was read.
        for _ in 0..self.processes.len() {
            if let Some(gpus) = self.supervisors.get(&at.pid) {
                return gpus.contains(&gpu);
            }
            let Some(parent) = self.processes.get(&at.parent) else { break };
            at = parent;
        }
        // A shell beside a task is a child of the server.
        let environ = process::environ(stat.pid);
        environ.iter().any(|line| self.folders.get(line).is_some_and(|gpus| gpus.contains(&gpu)))
    }
}

/// Whether this process sees all processes of the machine: it is in the first PID namespace, which
/// always has this number.
fn sees_all() -> bool {
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    space.as_os_str() == "pid:[4026531836]"
}
