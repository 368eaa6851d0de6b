//! What tasks use of the machine: from the control group where a task has one, else summed over the
//! processes below its supervisor.

use super::Driver;
use crate::cgroup::Cgroup;
use crate::process::{self, Stat};
use berth_model::{Bytes, LeaseId};
use std::collections::BTreeMap;

/// What a task has used. What cannot be seen is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskUse {
    /// Since its start; it may fall where a process ends that nobody waited for.
    pub cpu_ms: Option<u64>,
    pub memory: Option<Bytes>,
    /// From disks and to them, since its start.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub processes: Option<u32>,
}

/// A living task.
struct Place {
    supervisor: i32,
    /// When that process was started; another one may have its id now.
    start: Option<u64>,
    group: Option<Cgroup>,
}

impl Driver {
    /// What every task that runs has used by now. This reads `/proc`, and waits for nothing else.
    pub fn task_use(&self) -> BTreeMap<LeaseId, TaskUse> {
        let places = self.places();
        if places.is_empty() {
            return BTreeMap::new();
        }
        let families = families(&process::all(), &places);
        let each = places.iter().map(|(lease, place)| {
            let family = families.get(&place.supervisor).map_or(&[][..], Vec::as_slice);
            (*lease, used(place, family))
        });
        each.collect()
    }

    fn places(&self) -> BTreeMap<LeaseId, Place> {
        let table = self.table();
        let running = table.live.iter().filter(|(_, live)| !live.home.has_ended());
        let places = running.filter_map(|(lease, live)| {
            let begun = live.lock.begun().ok()??;
            let group = begun.cgroup.as_deref().map(Cgroup::at);
            Some((*lease, Place { supervisor: begun.supervisor, start: begun.start, group }))
        });
        places.collect()
    }
}

/// The processes at and below each supervisor.
fn families(all: &[Stat], places: &BTreeMap<LeaseId, Place>) -> BTreeMap<i32, Vec<Stat>> {
    let mut families: BTreeMap<i32, Vec<Stat>> =
        places.values().map(|place| (place.supervisor, Vec::new())).collect();
    let starts: BTreeMap<i32, u64> =
        places.values().filter_map(|place| Some((place.supervisor, place.start?))).collect();
    let is_other = |stat: &&Stat| starts.get(&stat.pid).is_some_and(|start| *start != stat.start);
    for other in all.iter().filter(is_other) {
        families.remove(&other.pid);
    }
    let parents: BTreeMap<i32, i32> = all.iter().map(|stat| (stat.pid, stat.parent)).collect();
    for stat in all {
        let mut at = stat.pid;
        // A chain of parents has no cycle; the bound is for a table that changed while it was read.
        for _ in 0..parents.len() {
            if let Some(family) = families.get_mut(&at) {
                family.push(*stat);
                break;
            }
            match parents.get(&at) {
                Some(parent) => at = *parent,
                None => break,
            }
        }
    }
    families
}

fn used(place: &Place, family: &[Stat]) -> TaskUse {
    let there = place.group.as_ref();
    // Without the supervisor, which belongs to the server.
    let living = family.iter().filter(|stat| !stat.is_zombie && stat.pid != place.supervisor);
    let group_pids = there.and_then(Cgroup::pids);
    // The supervisor has the times of those that it has waited for.
    let cpu_ms = || (!family.is_empty()).then(|| family.iter().map(Stat::cpu_ms).sum());
    let memory = || Bytes(living.clone().map(|stat| stat.memory().0).sum());
    let disk = disk(place, family, group_pids.as_deref());
    let processes = group_pids.map_or_else(|| living.clone().count(), |pids| pids.len());
    TaskUse {
        cpu_ms: there.and_then(Cgroup::cpu_ms).or_else(cpu_ms),
        memory: there.and_then(Cgroup::memory_now).or_else(|| (!family.is_empty()).then(memory)),
        read_bytes: disk.map(|(read, _)| read),
        written_bytes: disk.map(|(_, written)| written),
        processes: u32::try_from(processes).ok().filter(|_| !family.is_empty()),
    }
}

/// What the processes have read and written. Control groups do not count that here.
fn disk(place: &Place, family: &[Stat], pids: Option<&[i32]>) -> Option<(u64, u64)> {
    let pids: Vec<i32> = match pids {
        Some(pids) => pids.iter().copied().chain([place.supervisor]).collect(),
        None => family.iter().map(|stat| stat.pid).collect(),
    };
    let all = pids.into_iter().filter_map(process::disk_bytes);
    all.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;
    use rustix::process::getpid;
    use std::process::{Command, Stdio};

    fn place(supervisor: i32, group: Option<Cgroup>) -> BTreeMap<LeaseId, Place> {
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 1 };
        [(lease, Place { supervisor, start: None, group })].into()
    }

    #[test]
    fn a_task_without_a_group_is_the_sum_of_what_is_below_its_supervisor() {
        let script = "sh -c 'while :; do :; done' & sleep 60";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        let places = place(pid, None);
        let look =
            || used(places.values().next().unwrap(), &families(&process::all(), &places)[&pid]);
        let mut seen = look();
        for _ in 0..200 {
            if seen.cpu_ms.is_some_and(|ms| ms >= 100) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            seen = look();
        }
        let below = process::descendants(pid);
        process::signal(&below, rustix::process::Signal::KILL);
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(seen.cpu_ms.is_some_and(|ms| ms >= 100), "{seen:?}");
        assert_eq!(seen.processes, Some(2));
        assert!(seen.memory.is_some_and(|bytes| bytes.0 > 0), "{seen:?}");
        assert!(seen.read_bytes.is_some(), "{seen:?}");
    }

    #[test]
    fn a_task_with_a_group_is_what_the_group_says() {
        let dir = tempfile::tempdir().unwrap();
        let me = getpid().as_raw_pid();
        for (file, text) in [
            ("cpu.stat", "usage_usec 41999\n".to_owned()),
            ("memory.current", "5000\n".to_owned()),
            ("cgroup.procs", format!("{me}\n")),
        ] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let places = place(me, Some(Cgroup::at(dir.path())));
        let family = &families(&process::all(), &places)[&me];
        let seen = used(places.values().next().unwrap(), family);
        assert_eq!(
            (seen.cpu_ms, seen.memory, seen.processes),
            (Some(41), Some(Bytes(5_000)), Some(1))
        );
    }

    #[test]
    fn nothing_is_said_of_a_task_that_cannot_be_seen() {
        let places = place(i32::MAX, None);
        let families = families(&process::all(), &places);
        let seen = used(places.values().next().unwrap(), &families[&i32::MAX]);
        assert_eq!(seen, TaskUse::default());
    }
}
