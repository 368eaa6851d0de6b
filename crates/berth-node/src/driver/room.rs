//! Whether the machine can start anything: asked before each start, and again after trouble until
//! it can.

use super::Driver;
use crate::trouble::{Lack, Trouble};
use berth_model::Bytes;
use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

/// Room that tasks do not get to start with: the server has to write down how the running ones
/// end. Of a small file system it is a fiftieth.
const RESERVE: u64 = 64 << 20;
const PART: u64 = 50;
/// Descriptors that have to be free for the server before it starts a task.
const DESCRIPTORS: usize = 24;
/// What a start writes, generously.
const TRIAL: usize = 64 << 10;

impl Driver {
    /// Whether there is enough of what counts: what is found here costs a few system calls.
    pub fn check_room(&self) -> Result<(), Trouble> {
        check_disk(&self.root)?;
        check_descriptors()
    }

    /// Tries what a start does: writes a file and starts a process.
    pub fn probe(&self) -> Result<(), Trouble> {
        self.check_room()?;
        let path = self.root.join("probe");
        let written = write_and_sync(&path);
        let _ = std::fs::remove_file(&path);
        written.map_err(|error| trouble(&error, "a file cannot be written"))?;
        let run = || {
            let mut command = self.launcher.command("probe", &self.root, &())?;
            command.stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        let status = run().map_err(|error| trouble(&error, "no process can be started"))?;
        if status.success() {
            return Ok(());
        }
        let told = status.code().and_then(Trouble::of_exit_code);
        let otherwise = || {
            let detail = format!("a process that does nothing ended with {status}");
            Trouble::new(Lack::Processes, detail)
        };
        Err(told.unwrap_or_else(otherwise))
    }
}

/// An error that is no known trouble keeps a start from going well all the same.
fn trouble(error: &io::Error, what: &str) -> Trouble {
    Trouble::of(error).unwrap_or_else(|| Trouble::new(Lack::Disk, format!("{what}: {error}")))
}

fn write_and_sync(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[0; TRIAL])?;
    file.sync_all()
}

fn check_disk(path: &Path) -> Result<(), Trouble> {
    let Ok(found) = statvfs(path) else { return Ok(()) };
    let (free, all) = (found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize);
    let reserve = RESERVE.min(all / PART);
    let shown = |bytes: u64| Bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
    if free < TRIAL as u64 {
        let detail = format!("{}: {}", path.display(), io::Error::from(Errno::NOSPC));
        return Err(Trouble::new(Lack::Room, detail));
    }
    if free < reserve {
        let detail = format!(
            "{} are free at {}, and Berth keeps {} for itself",
            shown(free),
            path.display(),
            shown(reserve)
        );
        return Err(Trouble::new(Lack::Room, detail));
    }
    // Some file systems do not count their files.
    if found.f_files > 0 && found.f_favail == 0 {
        let detail = format!("no more files can be made at {}", path.display());
        return Err(Trouble::new(Lack::Room, detail));
    }
    Ok(())
}

fn check_descriptors() -> Result<(), Trouble> {
    let Some(most) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let open = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.count(),
        Err(error) => return Trouble::of(&error).map_or(Ok(()), Err),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most.saturating_sub(open) < DESCRIPTORS {
        let detail = format!(
            "{open} of {most} are open, and the server keeps {DESCRIPTORS} for itself; raise the \
             limit (ulimit -n)"
        );
        return Err(Trouble::new(Lack::Descriptors, detail));
    }
    Ok(())
}
