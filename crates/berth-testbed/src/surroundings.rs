//! What a server runs on, made so that it can be hurt: a clock that can be set and a disk that can
//! be filled, for one server alone. The machine's own clock and disks are left as they are.

use crate::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The library that sets the clock of a process, in a folder of its architecture's.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

/// Programs that the server is started by, in place of its own.
#[derive(Debug)]
pub struct Surroundings {
    folder: TempDir,
}

impl Surroundings {
    /// The server's clock can be set with [`Surroundings::set_clock`].
    ///
    /// # Panics
    ///
    /// If the library that does it is missing: `make` installs it.
    pub fn with_clock(program: &Path) -> Surroundings {
        Surroundings::new(program, "")
    }

    /// Besides, the server's home is a file system of so many megabytes. The mount is made in the
    /// namespace of the caller, which should have one of its own.
    ///
    /// # Panics
    ///
    /// If the library is missing.
    pub fn with_clock_and_disk(program: &Path, megabytes: u32) -> Surroundings {
        let mount = format!(
            "mountpoint -q \"$3\" || mount -t tmpfs -o mode=0700,size={megabytes}m berth-test \"$3\"\n"
        );
        Surroundings::new(program, &mount)
    }

    fn new(program: &Path, prepare: &str) -> Surroundings {
        let library = faketime();
        let folder = TempDir::with_prefix("berth-around-").expect("a temporary folder");
        let berth = program.display();
        let clock = folder.path().join("clock");
        let script = format!(
            "#!/bin/sh\n\
             [ \"$1\" = up ] || exec {berth} \"$@\"\n\
             {prepare}\
             export LD_PRELOAD={} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1\n\
             export FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1\n\
             exec {berth} \"$@\"\n",
            library.display(),
            clock.display()
        );
        let around = Surroundings { folder };
        around.set_clock("+0");
        fs::write(around.program(), script).expect("the folder is ours");
        fs::set_permissions(around.program(), fs::Permissions::from_mode(0o700))
            .expect("it is ours");
        around
    }

    pub fn program(&self) -> PathBuf {
        self.folder.path().join("berth")
    }

    /// Such as `+2d` or `-1h`, beside the machine's clock.
    pub fn set_clock(&self, by: &str) {
        let beside = self.folder.path().join("clock.new");
        fs::write(&beside, format!("{by}\n")).expect("the folder is ours");
        fs::rename(beside, self.folder.path().join("clock")).expect("the folder is ours");
    }
}

fn faketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").expect("there are libraries").flatten();
    let mut found = folders.map(|folder| folder.path().join(FAKETIME)).filter(|path| path.exists());
    found.next().unwrap_or_else(|| panic!("{FAKETIME} is missing: run `make faketime`"))
}

/// Trouble that a test makes for a server.
impl Server {
    /// Writes to the server's disk until nothing fits any more, and gives the file that has to be
    /// deleted for that to end.
    pub fn fill_disk(&self) -> PathBuf {
        let path = self.home.path().join("filler");
        fill(&path);
        path
    }

    /// The server may open so many files beside those it has open. Only the soft limit is set:
    /// nobody but root may raise the other one again.
    pub fn limit_descriptors(&self, more: usize) {
        let open = fs::read_dir(format!("/proc/{}/fd", self.process())).expect("it runs").count();
        self.set_descriptors(open + more);
    }

    pub fn set_descriptors(&self, most: usize) {
        let pid = self.process().to_string();
        let limit = format!("--nofile={most}:");
        let done = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
        assert!(done.is_ok_and(|status| status.success()), "prlimit sets the limit");
    }

    /// Kills the supervisors of all tasks and nothing else, and says how many there were.
    pub fn kill_supervisors(&self) -> u32 {
        let tasks = self.home.path().join("node/tasks");
        let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
        let all: BTreeSet<i32> =
            processes.filter_map(number).filter(|pid| supervises(*pid, &tasks)).collect();
        // The first process of a sandbox is a copy of its supervisor.
        let is_copy = |pid: &i32| parent(*pid).is_some_and(|parent| all.contains(&parent));
        let supervisors =
            all.iter().filter(|pid| !is_copy(pid)).filter_map(|pid| Pid::from_raw(*pid));
        // One may have ended meanwhile.
        let killed = supervisors.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count();
        u32::try_from(killed).expect("there are few")
    }
}

/// Whether a process supervises a task in this folder.
fn supervises(pid: i32, tasks: &Path) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let mut words = line.split(|byte| *byte == 0).map(OsStr::from_bytes);
    words.any(|word| word == "supervise")
        && words.next().is_some_and(|folder| Path::new(folder).starts_with(tasks))
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Writes until nothing fits any more.
pub fn fill(path: &Path) {
    let mut file = File::create(path).expect("there is room for a name");
    for size in [1 << 20, 1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
