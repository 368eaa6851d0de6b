//! CPU and memory of the machine.

use berth_model::{Bytes, Cpu};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub host: String,
    /// What this process may use: inside a container that is less than the machine has.
    pub cpu: Cpu,
    pub memory: Bytes,
}

pub fn machine() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let installed = memory_total(&text).unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let limit = limit_files(&groups, &mounts).iter().filter_map(|file| limit_in(file)).min();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Machine {
        host,
        cpu: Cpu::cores(i64::try_from(cores).unwrap_or(i64::MAX)),
        memory: limit.map_or(installed, |limit| limit.min(installed)),
    }
}

fn memory_total(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib << 10))
}

/// Where the limits on this process's memory stand, in its groups and those above them.
fn limit_files(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mount, file) = match controllers {
            "" => (mount_of(mounts, " - cgroup2 ", ""), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (mount_of(mounts, " - cgroup ", "memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let Some(mount) = mount else { continue };
        let group = Path::new(path.trim_start_matches('/'));
        files.extend(group.ancestors().map(|above| mount.join(above).join(file)));
    }
    files
}

fn mount_of(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| {
        line.contains(kind)
            && (option.is_empty()
                || line.rsplit(' ').next().is_some_and(|o| o.split(',').any(|o| o == option)))
    })?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// No limit is `max` in version 2, and a number beyond any memory in version 1.
fn limit_in(file: &Path) -> Option<Bytes> {
    fs::read_to_string(file).ok()?.trim().parse().ok().map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_machine_has() {
        assert_eq!(memory_total("MemFree: 1 kB\nMemTotal:  2048 kB\n"), Some(Bytes::mib(2)));
        assert_eq!(memory_total("nothing"), None);
    }

    #[test]
    fn limits_are_looked_for_in_all_groups_above() {
        let v2 = "34 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let files = limit_files("0::/a/b\n", v2);
        let expect = ["a/b/memory.max", "a/memory.max", "memory.max"];
        assert_eq!(files, expect.map(|file| Path::new("/sys/fs/cgroup").join(file)));
        let v1 = "35 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let files = limit_files("4:memory:/\n3:cpuset:/\n", v1);
        assert_eq!(files, [PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes")]);
    }
}
