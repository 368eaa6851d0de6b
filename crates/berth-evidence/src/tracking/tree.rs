//! A process with all that it has started: what they hold in memory, and their time on the CPU.

use berth_testbed::kube::Usage;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// A process, and when it was started: a number alone may come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    id: u32,
    started: u64,
}

/// What a tree of processes holds. A page that several of them share counts for each in `resident`
/// and once in `proportional`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub processes: usize,
    pub resident_mib: f64,
    pub proportional_mib: f64,
}

/// The parent of a process and its start, from its line in /proc.
fn parse(stat: &str) -> Option<(u32, u64)> {
    // The second field is the program's name, in which anything may stand.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// The process of that number and all below it.
pub fn members(root: u32) -> Vec<Member> {
    let mut children: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((parent, started)) = parse(&stat) else { continue };
        let member = Member { id, started };
        children.entry(parent).or_default().push(member);
        if id == root {
            found.push(member);
        }
    }
    let mut at = 0;
    while at < found.len() {
        let of: Vec<Member> = children.remove(&found[at].id).unwrap_or_default();
        found.extend(of);
        at += 1;
    }
    found
}

/// The time on the CPU of all that run now.
pub fn cpu(root: u32) -> Duration {
    members(root).iter().filter_map(|member| Usage::of(member.id)).map(|usage| usage.cpu).sum()
}

pub fn memory(root: u32) -> Memory {
    let members = members(root);
    let mut memory = Memory { processes: members.len(), ..Memory::default() };
    for member in members {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", member.id));
        let rollup = rollup.unwrap_or_default();
        memory.resident_mib += mib(&rollup, "Rss:");
        memory.proportional_mib += mib(&rollup, "Pss:");
    }
    memory
}

fn mib(rollup: &str, key: &str) -> f64 {
    let line = rollup.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok());
    f64::from(kib.unwrap_or(0)) / 1_024.0
}

/// Kills those of them that still run.
pub fn kill(members: &[Member]) {
    for member in members {
        let stat = fs::read_to_string(format!("/proc/{}/stat", member.id)).unwrap_or_default();
        let same = parse(&stat).is_some_and(|(_, started)| started == member.started);
        let pid = i32::try_from(member.id).ok().and_then(Pid::from_raw);
        if let (true, Some(pid)) = (same, pid) {
            // It may have ended since.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_tree_has_the_processes_that_its_root_has_started() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let here = members(std::process::id());
        assert!(here.iter().any(|member| member.id == child.id()));
        assert_eq!(members(child.id()).len(), 1);
        let memory = memory(child.id());
        assert!(memory.resident_mib >= memory.proportional_mib && memory.resident_mib > 0.0);
        let other = Member { started: 1, ..members(child.id())[0] };
        kill(&[other]);
        assert!(child.try_wait().unwrap().is_none());
        kill(&members(child.id()));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn an_odd_name_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 5 7 7 0 -1 0 1 2 3 4 150 50 0 0 20 0 9 0 1234 1000 30 99";
        assert_eq!(parse(stat), Some((5, 1234)));
    }
}
