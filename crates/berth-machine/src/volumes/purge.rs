//! Deletes what was put aside. The server may be root, and what lies there was written by jobs: no
//! link is followed, and a tree of any depth takes two descriptors and no stack, because every
//! folder that is found is first moved up to where the others wait.

use super::REMOVED;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::fs::{chmod, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Folders that wait in one round.
const ROUND: usize = 1_000;

/// At most one thread deletes. It ends with the server, and the next one goes on.
#[derive(Debug)]
pub struct Purger {
    /// The folder with those of the teams.
    teams: PathBuf,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    runs: bool,
    wanted: bool,
}

impl Purger {
    pub fn new(teams: PathBuf) -> Purger {
        Purger { teams, work: Mutex::default() }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes what was put aside, without waiting for that.
    pub fn soon(self: &Arc<Purger>) {
        let mut work = self.work();
        work.wanted = true;
        if work.runs {
            return;
        }
        let purger = self.clone();
        let thread = std::thread::Builder::new().name("purge-volumes".into());
        match thread.spawn(move || purger.run()) {
            Ok(_) => work.runs = true,
            Err(error) => tracing::warn!(%error, "deleted volumes take room until the next one"),
        }
    }

    fn run(&self) {
        loop {
            {
                let mut work = self.work();
                work.runs = work.wanted;
                if !std::mem::take(&mut work.wanted) {
                    return;
                }
            }
            for team in fs::read_dir(&self.teams).into_iter().flatten().flatten() {
                let removed = team.path().join(REMOVED);
                if let Err(error) = purge(&removed) {
                    let path = removed.display();
                    tracing::warn!(%path, %error, "a deleted volume still takes room on the disk");
                }
            }
        }
    }
}

/// A name that nothing else has, also of what an earlier server left.
pub fn fresh_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Deletes all that is in a folder, and the folder.
pub fn purge(removed: &Path) -> Result<(), Errno> {
    let waiting = match folder(CWD, removed) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut failed = None;
    loop {
        let names = names(&waiting)?;
        let mut deleted = 0;
        for name in &names {
            match delete(&waiting, name) {
                Ok(true) => deleted += 1,
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        if names.is_empty() {
            break;
        }
        // What cannot be deleted keeps nothing else from it.
        let failed = failed.take().unwrap_or(Errno::NOTEMPTY);
        if deleted == 0 {
            return Err(failed);
        }
    }
    match unlinkat(CWD, removed, AtFlags::REMOVEDIR) {
        // Another volume was put there meanwhile.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        done => done,
    }
}

/// Deletes one thing that waits, or all of it but the folders in it, which then wait instead;
/// whether anything is gone or moved.
fn delete(waiting: &OwnedFd, name: &CString) -> Result<bool, Errno> {
    if unlinked(waiting, name)? {
        return Ok(true);
    }
    let inside = match folder(waiting, name) {
        // A job may have taken from a folder of the server's own account what it takes to read it.
        Err(Errno::ACCESS) => {
            open_up(waiting, name)?;
            folder(waiting, name)?
        }
        opened => opened?,
    };
    let _ = fchmod(&inside, Mode::RWXU);
    let mut failed = None;
    let mut moved = false;
    for entry in Dir::read_from(&inside)? {
        let entry = entry?;
        let found = entry.file_name();
        if matches!(found.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinked(&inside, found).and_then(|gone| match gone {
            true => Ok(()),
            false => put_up(&inside, found, waiting),
        }) {
            Ok(()) => moved = true,
            Err(error) => failed = Some(error),
        }
    }
    match (failed, unlinkat(waiting, name, AtFlags::REMOVEDIR)) {
        (_, Ok(()) | Err(Errno::NOENT)) => Ok(true),
        (Some(error), _) if !moved => Err(error),
        (_, Err(Errno::NOTEMPTY | Errno::EXIST)) => Ok(moved),
        (_, Err(error)) => Err(error),
    }
}

/// Deletes what is no folder; whether it was none.
fn unlinked(at: &OwnedFd, name: impl Arg) -> Result<bool, Errno> {
    match unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves a folder to those that wait. What is mounted there cannot be moved, and stays as it is.
fn put_up(at: &OwnedFd, name: impl Arg + Copy, waiting: &OwnedFd) -> Result<(), Errno> {
    let fresh = fresh_name();
    match renameat(at, name, waiting, fresh.as_str()) {
        Err(Errno::ACCESS) => {
            open_up(at, name)?;
            renameat(at, name, waiting, fresh.as_str())
        }
        moved => moved,
    }
}

/// Lets the owner of a folder write to it. By its descriptor: a name could lead elsewhere by then.
fn open_up(at: &OwnedFd, name: impl Arg) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(at, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)
}

fn folder(at: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// The first of those that wait.
fn names(waiting: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let entries = Dir::read_from(waiting)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_real = |name: &Result<CString, Errno>| !matches!(name, Ok(name) if matches!(name.to_bytes(), b"." | b".."));
    names.filter(is_real).take(ROUND).collect()
}
