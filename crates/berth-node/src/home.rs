//! The folder of a task: all that is known about it, in files that outlive every process.
//!
//! ```text
//! tasks/17.0.2/        one lease: job 17, task 0, attempt 2
//!   task.json          what to run, without the values of its environment
//!   lock               locked while the supervisor lives; once it has begun, it says so in it
//!   poke               a fifo: a byte wakes the supervisor
//!   started.json       the processes run
//!   ready.json         the ready check has passed
//!   stop.json          the request to stop
//!   limit.json         until when it may run, where that was changed
//!   gpu_error.json     a hardware error on one of its GPUs
//!   exit.json          how it ended; written once
//!   exit.spare         the room for it, taken at the start in case the disk fills
//!   supervisor.log     what the supervisor has to complain about
//!   logs/              what the task wrote
//!   job/               the task's own folder, the only one here that it can write to
//!   notices/           what the task may read: a copy of the request to stop
//! ```
//!
//! A task in a sandbox sees the last two and nothing else of it, so what it reports of itself is
//! written by its supervisor alone.

use crate::error::Error;
use crate::owner::give;
use crate::process::{self, Process};
use berth_model::Ended;
use berth_model::{Cause, Span, Time};
use berth_sandbox::Account;
use rustix::fs::{FallocateFlags, FlockOperation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Written into the lock before the first process is started: from here on this lease has been
/// run, whatever happens next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub at: Time,
    pub boot: String,
    /// The supervisor, which leads a session of that number.
    pub supervisor: i32,
    /// When that process was started, in clock ticks: another one may get its number.
    #[serde(default)]
    pub start: Option<u64>,
    pub cgroup: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub at: Time,
    /// The process of each rank.
    pub pids: Vec<i32>,
    /// When each of them was started, in clock ticks.
    #[serde(default)]
    pub starts: Vec<u64>,
    /// The first process of its sandbox, if it is in one.
    #[serde(default)]
    pub init: Option<i32>,
    /// When that was started, in clock ticks.
    #[serde(default)]
    pub init_start: Option<u64>,
    /// What its processes may use, where no control group holds them.
    #[serde(default)]
    pub limits: berth_sandbox::Limits,
    /// The same moment as `at` by the clock of [`process::uptime_ms`].
    #[serde(default)]
    pub uptime_ms: Option<u64>,
}

/// Until when a task may run, by the clock of [`process::uptime_ms`]; as long as it likes where left
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub uptime_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct At {
    pub at: Time,
}

/// A hardware error on one of the task's GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenError {
    pub xid: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StopRequest {
    pub cause: Cause,
    pub at: Time,
    pub grace_ms: u64,
    /// Instead of TERM.
    pub signal: Option<i32>,
    /// When it was asked, by the clock of [`process::uptime_ms`].
    #[serde(default)]
    pub uptime_ms: Option<u64>,
    /// Nobody wants it stopped: a GPU of it has failed. Then the cause does not count.
    #[serde(default)]
    pub gpu_failed: bool,
}

impl StopRequest {
    /// For what it is stopped, where somebody wants that.
    pub fn wanted(&self) -> Option<Cause> {
        (!self.gpu_failed).then_some(self.cause)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub dir: PathBuf,
}

impl Home {
    pub fn new(dir: impl Into<PathBuf>) -> Home {
        Home { dir: dir.into() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The task's own folder.
    pub fn job(&self) -> PathBuf {
        self.dir.join("job")
    }

    /// What the task can read and not write.
    pub fn notices(&self) -> PathBuf {
        self.dir.join("notices")
    }

    /// Makes the folders that the task sees.
    pub fn make_folders(&self, account: Option<&Account>) -> io::Result<()> {
        let make = |dir: PathBuf, mode| match DirBuilder::new().mode(mode).create(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        make(self.job(), 0o700)?;
        make(self.notices(), 0o755)?;
        give(&self.job(), account)
    }

    /// Tells the task that it is asked to stop. It may run as another account, which has to be
    /// able to read this.
    pub fn tell_stop(&self, request: &StopRequest) -> Result<(), Error> {
        let path = self.notices().join("stop.json");
        let mut options = OpenOptions::new();
        write_json_as(options.mode(0o644), &path, request)
    }

    /// Since when it runs. Processes whose number was given to another one since are left out.
    pub fn running(&self) -> Result<Option<Running>, Error> {
        let Some(mut running) = read_json::<Running>(&self.file("started.json"))? else {
            return Ok(None);
        };
        running.at = self.wall_time_of(running.at, running.uptime_ms);
        if running.starts.len() == running.pids.len() {
            let known = running.pids.iter().zip(&running.starts);
            let same = |(pid, start): &(&i32, &u64)| {
                Process::of(**pid) == Some(Process { pid: **pid, start: **start })
            };
            (running.pids, running.starts) = known.filter(same).unzip();
        }
        Ok(Some(running))
    }

    pub fn limit(&self) -> Result<Option<Limit>, Error> {
        read_json(&self.file("limit.json"))
    }

    pub fn ready(&self) -> Result<Option<At>, Error> {
        read_json(&self.file("ready.json"))
    }

    pub fn stop_request(&self) -> Result<Option<StopRequest>, Error> {
        read_json(&self.file("stop.json"))
    }

    pub fn gpu_error(&self) -> Result<Option<SeenError>, Error> {
        read_json(&self.file("gpu_error.json"))
    }

    pub fn has_ended(&self) -> bool {
        self.file("exit.json").exists()
    }

    /// How it ended, with what the watcher of the GPUs has seen.
    pub fn ended(&self) -> Result<Option<Ended>, Error> {
        let Some(mut ended) = read_json::<Ended>(&self.file("exit.json"))? else {
            return Ok(None);
        };
        ended.gpu_error = self.gpu_error()?.map(|seen| seen.xid);
        if !self.is_of_this_boot() {
            // The clock it is read from has begun anew.
            ended.uptime_ms = None;
        }
        ended.at = self.wall_time_of(ended.at, ended.uptime_ms);
        Ok(Some(ended))
    }

    /// When something happened by the clock on the wall as it is set now. It may have been set
    /// since; how long ago it was is known where the machine has not been started since.
    fn wall_time_of(&self, written: Time, uptime_ms: Option<u64>) -> Time {
        let Some(then) = uptime_ms.filter(|_| self.is_of_this_boot()) else { return written };
        let ago = process::uptime_ms().saturating_sub(then);
        let at = process::now() - Span(i64::try_from(ago).unwrap_or(i64::MAX));
        // Two clocks are never read in the same moment.
        if (at - written).0.abs() < 1_000 { written } else { at }
    }

    /// Whether the task was begun since the machine was started.
    fn is_of_this_boot(&self) -> bool {
        let begun: Option<Begun> = read_json(&self.file("lock")).unwrap_or_default();
        begun.is_some_and(|begun| begun.boot == process::boot_id())
    }

    /// Takes the room that `exit.json` will need, while there is some.
    pub fn keep_room(&self) -> io::Result<()> {
        let file =
            private().write(true).create(true).truncate(true).open(self.file("exit.spare"))?;
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 4096) {
            // Not every file system can; then a full disk makes the end late, and no worse.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => other.map_err(io::Error::from),
        }
    }

    pub fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        let spare = self.file("exit.spare");
        let mut file = private().write(true).create(true).truncate(false).open(&spare)?;
        // Over what a failed try may have left; truncating first would give the room away.
        let bytes = serde_json::to_vec(ended).map_err(io::Error::other)?;
        file.write_all(&bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()?;
        fs::rename(&spare, self.file("exit.json"))?;
        File::open(&self.dir)?.sync_all()
    }

    pub fn open_lock(&self) -> io::Result<Lock> {
        let path = self.file("lock");
        let file = private().read(true).write(true).create(true).truncate(false).open(&path)?;
        Ok(Lock { path, file })
    }

    /// Wakes the supervisor; without one nothing happens.
    pub fn poke(&self) {
        ring(&self.file("poke"), b"!\n");
    }

    /// Hands a request to the supervisor without writing a file: a task that has filled the disk
    /// has to be stopped, too.
    pub fn poke_to_stop(&self, request: &StopRequest) {
        let line = serde_json::to_string(request).expect("it is plain data");
        ring(&self.file("poke"), format!("{line}\n").as_bytes());
    }
}

/// Writes to a fifo if a reader has it open. What does not fit is dropped: a reader that has so
/// much to read looks at everything anyway.
pub(crate) fn ring(path: &Path, bytes: &[u8]) {
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a small flag");
    let fifo = OpenOptions::new().write(true).custom_flags(nonblock).open(path);
    if let Ok(mut fifo) = fifo {
        let _ = fifo.write(bytes);
    }
}

/// Opens a fifo for reading so that it never ends and never blocks.
pub(crate) fn open_fifo(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
    match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).expect("a small flag");
    OpenOptions::new().read(true).write(true).custom_flags(nonblock).open(path)
}

/// Empties a fifo.
pub(crate) fn drain(fifo: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Ends with "would block": the fifo is open for writing, too.
    let _ = (&*fifo).read_to_end(&mut bytes);
    bytes
}

/// Held by the supervisor while it lives: the kernel lets go of it however the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Whether it could be taken. Until it is dropped or given back, no other process has it.
    pub fn try_take(&self) -> bool {
        rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    pub fn give_back(&self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    /// What was begun. It is read from the open file, which stays when its folder is deleted.
    pub fn begun(&self) -> Result<Option<Begun>, Error> {
        let mut bytes = Vec::new();
        let mut part = [0; 1024];
        loop {
            match self.file.read_at(&mut part, bytes.len() as u64) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Read { path: self.path.clone(), source }),
            }
        }
        parse(&self.path, &bytes)
    }

    /// Whether the file is still where it was opened. It is not when somebody has deleted the
    /// folder of the task, or has put another one in its place.
    pub fn is_in_place(&self) -> Result<bool, Error> {
        let fail = |source| Error::Read { path: self.path.clone(), source };
        let opened = self.file.metadata().map_err(fail)?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                _ => Err(fail(error)),
            },
        }
    }

    /// Only for the holder of the lock, and only where nothing was begun.
    pub fn begin(&self, begun: &Begun) -> io::Result<()> {
        let bytes = serde_json::to_vec(begun).map_err(io::Error::other)?;
        let written = (&self.file).write_all(&bytes).and_then(|()| self.file.sync_all());
        if written.is_err() {
            // What was not begun must not look as if it were.
            let _ = self.file.set_len(0);
        }
        written
    }
}

/// Files of a task are for its owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The value in a file; none where there is no file or an empty one.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
    };
    parse(path, &bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<Option<T>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(bytes)
        .map(Some)
        .map_err(|source| Error::Malformed { path: path.to_owned(), source })
}

/// Puts a value into a file, whole or not at all.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    write_json_as(&mut private(), path, value)
}

fn write_json_as(
    options: &mut OpenOptions,
    path: &Path,
    value: &impl Serialize,
) -> Result<(), Error> {
    let fail = |source| Error::Write { path: path.to_owned(), source };
    let beside = path.with_extension("new");
    let mut file = options.write(true).create(true).truncate(true).open(&beside).map_err(fail)?;
    let bytes = serde_json::to_vec(value).map_err(io::Error::other).map_err(fail)?;
    file.write_all(&bytes).map_err(fail)?;
    fs::rename(&beside, path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{JobId, LeaseId};

    #[test]
    fn only_one_holds_the_lock_and_what_was_begun_stays() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let (first, second) = (home.open_lock().unwrap(), home.open_lock().unwrap());
        assert!(first.try_take() && !second.try_take());
        assert_eq!(first.begun().unwrap(), None);
        let boot = "b".to_owned();
        let begun = Begun { at: Time(1), boot, supervisor: 2, start: None, cgroup: None };
        first.begin(&begun).unwrap();
        drop(first);
        assert!(second.try_take());
        assert_eq!(second.begun().unwrap(), Some(begun));
    }

    #[test]
    fn a_fifo_without_a_reader_swallows_what_is_rung() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bell");
        ring(&path, b"nobody");
        let fifo = open_fifo(&path).unwrap();
        ring(&path, b"one\n");
        ring(&path, b"two\n");
        assert_eq!(drain(&fifo), b"one\ntwo\n");
        assert_eq!(drain(&fifo), b"");
    }

    #[test]
    fn the_time_of_an_end_holds_although_the_clock_was_set_since() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        let begin = |boot: String| {
            let begun = Begun { at: Time(1), boot, supervisor: 2, start: None, cgroup: None };
            std::fs::write(home.file("lock"), serde_json::to_vec(&begun).unwrap()).unwrap();
        };
        begin(process::boot_id());
        // It ended an hour ago, when the clock was two days ahead.
        let (hour, days) = (Span::hours(1), Span::days(2));
        let mut ended = Ended::unknown(lease, process::now() - hour + days);
        ended.uptime_ms = process::uptime_ms().checked_sub(3_600_000);
        if ended.uptime_ms.is_some() {
            home.write_ended(&ended).unwrap();
            let found = home.ended().unwrap().unwrap().at;
            let off = (found - (process::now() - hour)).0.abs();
            assert!(off < 60_000, "{off} ms off");
        }
        // Of a time before the machine was started nothing else is known.
        begin("another".to_owned());
        ended.uptime_ms = Some(5);
        home.write_ended(&ended).unwrap();
        let found = home.ended().unwrap().unwrap();
        assert_eq!((found.at, found.uptime_ms), (ended.at, None));
    }

    #[test]
    fn a_lock_knows_when_its_folder_was_deleted_and_still_tells_what_was_begun() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("task"));
        fs::create_dir(&home.dir).unwrap();
        let lock = home.open_lock().unwrap();
        let boot = "b".to_owned();
        let begun = Begun { at: Time(1), boot, supervisor: 2, start: Some(3), cgroup: None };
        lock.begin(&begun).unwrap();
        assert!(lock.is_in_place().unwrap());
        fs::remove_dir_all(&home.dir).unwrap();
        assert!(!lock.is_in_place().unwrap());
        fs::create_dir(&home.dir).unwrap();
        let _other = home.open_lock().unwrap();
        assert!(!lock.is_in_place().unwrap());
        assert_eq!(lock.begun().unwrap(), Some(begun));
    }

    #[test]
    fn the_end_is_written_in_the_room_that_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        home.keep_room().unwrap();
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        let ended = Ended::unknown(lease, Time(5));
        assert_eq!(home.ended().unwrap(), None);
        home.write_ended(&ended).unwrap();
        assert_eq!(home.ended().unwrap(), Some(ended));
        assert!(!home.file("exit.spare").exists());
    }
}
