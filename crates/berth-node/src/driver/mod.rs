//! Starting, stopping and watching the tasks of one machine.

mod figures;
mod gpu_use;
mod launch;
mod lost;
mod retain;
mod room;
mod watch;

pub use figures::TaskUse;
pub use gpu_use::Stranger;
pub use retain::Kept;

use crate::cgroup::{Cgroups, Limits};
use crate::error::Error;
use crate::folder::{folder_name, parse_folder_name};
use crate::home::{self, Home, Limit, Lock, StopRequest};
use crate::isolation::{Isolation, Room, Wanted};
use crate::launcher::Launcher;
use crate::log::LogReader;
use crate::owner::remove_tree;
use crate::process;
use crate::shell::{Shell, Size};
use crate::task::{Gpus, TaskSpec};
use berth_model::Ended;
use berth_model::{Cause, LeaseId, Span, Time};
use rustix::fs::FlockOperation;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// What may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether tasks get control groups where that is possible.
    pub cgroups: bool,
    pub isolation: Wanted,
}

impl Default for Options {
    fn default() -> Options {
        Options { cgroups: true, isolation: Wanted::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    Fresh,
    /// The lease was started before; nothing was done.
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub cause: Cause,
    pub grace: Span,
    /// Instead of TERM.
    pub signal: Option<i32>,
}

/// How far a task has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has a folder and was never begun: it is started by [`Driver::start`], or never.
    Prepared,
    Running,
    /// And not yet acknowledged.
    Ended,
}

/// A task that was there when the driver was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    pub lease: LeaseId,
    pub state: State,
    pub started_at: Option<Time>,
    /// The values of its environment are not known any more; the names are.
    pub spec: Option<TaskSpec>,
}

/// The tasks of one machine, below one folder. There is at most one driver for a folder.
#[derive(Debug)]
pub struct Driver {
    root: PathBuf,
    tasks: PathBuf,
    ended: PathBuf,
    launcher: Launcher,
    cgroups: Option<Cgroups>,
    limits: Limits,
    isolation: Isolation,
    /// Where tasks have what they need only while they run.
    rooms: PathBuf,
    bell: File,
    bell_path: PathBuf,
    table: Mutex<Table>,
    /// Kept for its lock.
    _lock: File,
}

#[derive(Debug)]
struct Table {
    live: BTreeMap<LeaseId, Live>,
    /// Ended, told, and to be acknowledged.
    reported: BTreeSet<LeaseId>,
    /// Supervisors that have written the end and are about to exit.
    leaving: Vec<Child>,
    looked_at: Option<Instant>,
}

/// A task whose end has not been told yet.
#[derive(Debug)]
struct Live {
    home: Home,
    lock: Lock,
    /// Its supervisor, if this driver started it.
    child: Option<Child>,
    /// The supervisor this driver started has exited.
    gone: Option<Gone>,
    gpus: Gpus,
    told_started: bool,
    told_ready: bool,
    /// What was last wrong with looking at it, so that it is complained of once.
    complaint: Option<String>,
}

/// How a supervisor exited.
#[derive(Debug, Clone, Copy)]
struct Gone {
    status: Option<ExitStatus>,
}

impl Driver {
    /// Opens the folder and finds what is there.
    pub fn open(root: &Path, launcher: Launcher, options: Options) -> Result<Driver, Error> {
        let fail = |source| Error::Root { path: root.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(fail)?;
        // Supervisors work from `/`.
        let root = root.canonicalize().map_err(fail)?;
        let fail = |source| Error::Root { path: root.clone(), source };
        let lock = home::private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(root.join("driver.lock"))
            .map_err(fail)?;
        if !take(&lock) {
            return Err(Error::InUse { path: root });
        }
        let (tasks, ended, rooms) = (root.join("tasks"), root.join("ended"), root.join("rooms"));
        for dir in [&tasks, &ended, &rooms] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
        }
        let bell_path = root.join("bell");
        let bell = home::open_fifo(&bell_path).map_err(fail)?;
        let (cgroups, limits) = Cgroups::open(&root, options.cgroups);
        let isolation = Isolation::find(options.isolation, &launcher.sandbox(), &rooms)
            .map_err(|why| Error::IsolationUntried { why })?;
        if let (Wanted::Required, Isolation::Off { why }) = (options.isolation, &isolation) {
            return Err(Error::NoIsolation { why: why.clone() });
        }
        let live = find_tasks(&tasks).map_err(fail)?;
        remove_old_rooms(&rooms, &live);
        let table = Table { live, reported: BTreeSet::new(), leaving: Vec::new(), looked_at: None };
        Ok(Driver {
            root,
            tasks,
            ended,
            launcher,
            cgroups,
            limits,
            isolation,
            rooms,
            bell,
            bell_path,
            table: Mutex::new(table),
            _lock: lock,
        })
    }

    /// What is enforced on tasks here.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How tasks are kept apart here.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// All tasks that are not acknowledged, as they are now.
    pub fn adopt(&self) -> Result<Vec<Adopted>, Error> {
        self.table().live.iter().map(|(lease, live)| adopted(*lease, live)).collect()
    }

    /// Whether the lease was run before, or runs now: starting it would do nothing.
    pub fn is_known(&self, lease: LeaseId) -> Result<bool, Error> {
        self.knows(&self.table(), lease)
    }

    fn knows(&self, table: &Table, lease: LeaseId) -> Result<bool, Error> {
        let is_live = match table.live.get(&lease) {
            Some(live) => live.child.is_some() || is_begun(live)?,
            None => false,
        };
        let is_over =
            || table.reported.contains(&lease) || self.ended.join(folder_name(lease)).exists();
        Ok(is_live || is_over())
    }

    /// Starts the task of a lease, unless that was done before: a lease is run once, whatever
    /// happens to the server or the supervisor in between.
    pub fn start(&self, spec: TaskSpec) -> Result<Started, Error> {
        let lease = spec.lease;
        if let Some(what) = spec.fault() {
            return Err(Error::Invalid { lease, what });
        }
        let mut table = self.table();
        if self.knows(&table, lease)? {
            return Ok(Started::Known);
        }
        let home = Home::new(self.tasks.join(folder_name(lease)));
        let made = self.check_room().map_err(|source| Error::Trouble { source });
        match made.and_then(|()| self.begin(&home, spec)) {
            Ok((live, started)) => {
                table.live.insert(lease, live);
                Ok(started)
            }
            Err(error) => {
                // Nothing of it runs: what was made so far would only take room.
                table.live.remove(&lease);
                let _ = fs::remove_dir_all(&home.dir);
                self.remove_room(lease);
                Err(error)
            }
        }
    }

    fn begin(&self, home: &Home, spec: TaskSpec) -> Result<(Live, Started), Error> {
        let lease = spec.lease;
        let fail = |source| Error::MakeFolder { lease, path: home.dir.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&home.dir).map_err(fail)?;
        let mut live = Live::new(home.clone(), spec.gpus.clone()).map_err(fail)?;
        if is_begun(&live)? {
            return Ok((live, Started::Known));
        }
        home::write_json(&home.file("task.json"), &spec.without_secrets())?;
        live.child = Some(self.launch(home, spec)?);
        Ok((live, Started::Fresh))
    }

    /// Changes how long a running task may still run; as long as it likes where left out.
    pub fn limit(&self, lease: LeaseId, left: Option<Span>) -> Result<(), Error> {
        let table = self.table();
        let Some(live) = table.live.get(&lease) else { return Ok(()) };
        let left = left.map(|left| u64::try_from(left.0).unwrap_or(0));
        let uptime_ms = left.map(|left| process::uptime_ms().saturating_add(left));
        home::write_json(&live.home.file("limit.json"), &Limit { uptime_ms })?;
        live.home.poke();
        Ok(())
    }

    /// Asks the task to end, and has it killed after the grace. Asked again, the grace may get
    /// shorter, and the first cause stays. A task that has ended is left alone.
    pub fn stop(&self, lease: LeaseId, stop: Stop) -> Result<(), Error> {
        self.request(lease, stop, false)
    }

    /// Ends a task one of whose GPUs has failed, with what it may still save within the grace.
    /// Whatever it exits with, its end is an error of the GPU.
    pub fn give_up(&self, lease: LeaseId, grace: Span) -> Result<(), Error> {
        self.request(lease, Stop { cause: Cause::Drain, grace, signal: None }, true)
    }

    fn request(&self, lease: LeaseId, stop: Stop, gpu_failed: bool) -> Result<(), Error> {
        let table = self.table();
        let Some(live) = table.live.get(&lease) else {
            let known = table.reported.contains(&lease) || self.folder(lease).is_ok();
            return if known { Ok(()) } else { Err(Error::Unknown { lease }) };
        };
        let before = live.home.stop_request()?;
        let mut request = merge(before, stop, process::now(), process::uptime_ms());
        // What somebody wants comes before what the GPU makes of it.
        request.gpu_failed = gpu_failed && before.is_none_or(|before| before.gpu_failed);
        // A supervisor that runs hears of it even where the file cannot be written.
        live.home.poke_to_stop(&request);
        home::write_json(&live.home.file("stop.json"), &request)?;
        // A task that was never begun has no folder to read it in.
        if live.home.notices().exists() {
            live.home.tell_stop(&request)?;
        }
        live.home.poke();
        if live.child.is_none() {
            self.close_unbegun(lease, live, request.wanted())?;
        }
        Ok(())
    }

    /// Notes that the caller has stored the end of a task. The driver does not report it again, and
    /// moves the task's folder to where it does not look for news.
    pub fn acknowledge(&self, lease: LeaseId) -> Result<(), Error> {
        let mut table = self.table();
        let (from, to) = (self.tasks.join(folder_name(lease)), self.ended.join(folder_name(lease)));
        if to.exists() {
            return Ok(());
        }
        if !from.exists() {
            // Of some that could not be begun, or whose folder was deleted, nothing is left.
            let known = table.reported.remove(&lease);
            self.remove_room(lease);
            return if known { Ok(()) } else { Err(Error::Unknown { lease }) };
        }
        if !Home::new(&from).has_ended() {
            return Err(Error::NotEnded { lease });
        }
        // Its supervisor has done so, unless it was killed.
        self.remove_room(lease);
        fs::rename(&from, &to).map_err(|source| Error::Write { path: to, source })?;
        table.reported.remove(&lease);
        if let Some(live) = table.live.remove(&lease) {
            table.leaving.extend(live.child);
        }
        Ok(())
    }

    /// How a task ended, also after it was acknowledged; `None` while it has not.
    pub fn ended(&self, lease: LeaseId) -> Result<Option<Ended>, Error> {
        Home::new(self.folder(lease)?).ended()
    }

    pub fn log(&self, lease: LeaseId, rank: u32) -> Result<LogReader, Error> {
        LogReader::open(&self.folder(lease)?, rank)
    }

    /// Opens a terminal beside a running task, in its environment and directory. Without a
    /// command it is the user's shell.
    pub fn shell(
        &self,
        lease: LeaseId,
        command: &[String],
        term: &str,
        size: Size,
    ) -> Result<Shell, Error> {
        Shell::open(&Home::new(self.folder(lease)?), lease, &self.launcher, command, term, size)
    }

    /// The UUIDs of the GPUs and MIG instances that tasks have which have not ended.
    pub fn held_devices(&self) -> BTreeSet<String> {
        let table = self.table();
        let live = table.live.values().filter(|live| !live.home.has_ended());
        let uuids = live.filter_map(|live| match &live.gpus {
            Gpus::Real { uuids, .. } => Some(uuids.clone()),
            Gpus::Declared { .. } => None,
        });
        uuids.flatten().collect()
    }

    /// The MIG instances that tasks have which have not ended, by their UUIDs, and on which GPUs.
    pub fn mig_parts(&self) -> BTreeMap<LeaseId, (Vec<String>, Vec<u32>)> {
        let table = self.table();
        let live = table.live.iter().filter(|(_, live)| !live.home.has_ended());
        let parts = live.filter_map(|(lease, live)| {
            let Gpus::Real { indices, uuids } = &live.gpus else { return None };
            let of_mig = uuids.iter().filter(|uuid| uuid.starts_with("MIG-")).cloned();
            let of_mig: Vec<String> = of_mig.collect();
            (!of_mig.is_empty()).then(|| (*lease, (of_mig, indices.clone())))
        });
        parts.collect()
    }

    /// The real GPUs that tasks have, wholly or in part, which have not ended.
    pub fn held_gpus(&self) -> BTreeSet<u32> {
        let table = self.table();
        let live = table.live.values().filter(|live| !live.home.has_ended());
        let real = live.filter(|live| matches!(live.gpus, Gpus::Real { .. }));
        real.flat_map(|live| live.gpus.indices().to_vec()).collect()
    }

    /// Notes an error of a GPU with the tasks that hold it or a part of it and have not ended, so
    /// that a failure is explained by it. Returns those tasks.
    pub fn note_gpu_error(&self, gpu: u32, xid: u64) -> Result<Vec<LeaseId>, Error> {
        let table = self.table();
        let on_it = table.live.iter().filter(|(_, live)| live.gpus.indices().contains(&gpu));
        let mut leases = Vec::new();
        for (lease, live) in on_it {
            home::write_json(&live.home.file("gpu_error.json"), &home::SeenError { xid })?;
            if !live.home.has_ended() {
                leases.push(*lease);
            }
        }
        Ok(leases)
    }

    /// In the background: there may be millions of files in it, and other tasks wait to be started.
    fn remove_room(&self, lease: LeaseId) {
        let room = Room::of(&self.rooms, lease);
        if !room.exists() {
            return;
        }
        let remove = move || {
            if let Err(error) = room.remove() {
                tracing::warn!(%lease, %error, "cannot remove what a task left in its /tmp");
            }
        };
        // Where there is no thread to be had, it stays until the next start of the server.
        if let Err(error) = std::thread::Builder::new().spawn(remove) {
            tracing::warn!(%lease, %error, "what a task left in its /tmp is removed later");
        }
    }

    fn folder(&self, lease: LeaseId) -> Result<PathBuf, Error> {
        let name = folder_name(lease);
        let found = [&self.tasks, &self.ended].into_iter().map(|dir| dir.join(&name));
        found.into_iter().find(|dir| dir.exists()).ok_or(Error::Unknown { lease })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table only mirrors the folders; a panic elsewhere cannot have broken it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the lock of the root, with some patience: a process that a killed server was starting
/// holds a copy of it until it has become the supervisor.
fn take(lock: &File) -> bool {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Live {
    fn new(home: Home, gpus: Gpus) -> io::Result<Live> {
        let lock = home.open_lock()?;
        Ok(Live {
            home,
            lock,
            child: None,
            gone: None,
            gpus,
            told_started: false,
            told_ready: false,
            complaint: None,
        })
    }
}

/// Whether a supervisor has begun with it, or is about to: one of an earlier server may be.
fn is_begun(live: &Live) -> Result<bool, Error> {
    let free = live.lock.try_take();
    let begun = live.lock.begun();
    live.lock.give_back();
    Ok(begun?.is_some() || !free)
}

fn merge(before: Option<StopRequest>, stop: Stop, now: Time, uptime_ms: u64) -> StopRequest {
    let grace_ms = u64::try_from(stop.grace.0).unwrap_or(0);
    let (cause, signal, uptime) = (stop.cause, stop.signal, Some(uptime_ms));
    let (at, gpu_failed) = (now, false);
    let asked = StopRequest { cause, at, grace_ms, signal, uptime_ms: uptime, gpu_failed };
    let Some(before) = before else { return asked };
    // The clock on the wall may have been set since; the other one began anew with the machine.
    let passed = before.uptime_ms.and_then(|then| uptime_ms.checked_sub(then));
    let by_wall = || u64::try_from((now - before.at).0).unwrap_or(0);
    let passed = passed.unwrap_or_else(by_wall);
    let left = before.grace_ms.saturating_sub(passed);
    let cause = before.wanted().unwrap_or(asked.cause);
    StopRequest { cause, grace_ms: grace_ms.min(left), ..asked }
}

fn find_tasks(tasks: &Path) -> io::Result<BTreeMap<LeaseId, Live>> {
    let mut live = BTreeMap::new();
    for entry in fs::read_dir(tasks)? {
        let entry = entry?;
        let Some(lease) = entry.file_name().to_str().and_then(parse_folder_name) else {
            tracing::warn!(path = %entry.path().display(), "this is no task's folder; left alone");
            continue;
        };
        let home = Home::new(entry.path());
        let spec: Option<TaskSpec> = home::read_json(&home.file("task.json")).unwrap_or_default();
        live.insert(lease, Live::new(home, spec.map(|spec| spec.gpus).unwrap_or_default())?);
    }
    Ok(live)
}

/// Removes what supervisors that were killed left behind. A task that has not been told of yet may
/// still run.
fn remove_old_rooms(rooms: &Path, live: &BTreeMap<LeaseId, Live>) {
    for entry in fs::read_dir(rooms).into_iter().flatten().flatten() {
        let lease = entry.file_name().to_str().and_then(parse_folder_name);
        let is_used = lease.is_some_and(|lease| live.contains_key(&lease));
        if !is_used && let Err(error) = remove_tree(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove an old room");
        }
    }
}

fn adopted(lease: LeaseId, live: &Live) -> Result<Adopted, Error> {
    let state = if live.home.has_ended() {
        State::Ended
    } else if live.lock.begun()?.is_some() || live.child.is_some() {
        State::Running
    } else {
        State::Prepared
    };
    let started_at = live.home.running()?.map(|running| running.at);
    let spec = home::read_json(&live.home.file("task.json"))?;
    Ok(Adopted { lease, state, started_at, spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_again_never_gives_more_time() {
        let stop = |ms| Stop { cause: Cause::Cancelled, grace: Span(ms), signal: None };
        let first = merge(None, Stop { cause: Cause::Preempt, ..stop(10_000) }, Time(0), 500);
        assert_eq!((first.cause, first.grace_ms), (Cause::Preempt, 10_000));
        let longer = merge(Some(first), stop(60_000), Time(4_000), 4_500);
        assert_eq!((longer.cause, longer.grace_ms), (Cause::Preempt, 6_000));
        assert_eq!(merge(Some(first), stop(1_000), Time(4_000), 4_500).grace_ms, 1_000);
        assert_eq!(merge(Some(first), stop(1_000), Time(99_000), 99_500).grace_ms, 0);
    }

    #[test]
    fn a_clock_that_was_set_takes_nothing_from_the_grace_of_a_task() {
        let stop = Stop { cause: Cause::Cancelled, grace: Span(60_000), signal: None };
        let first = merge(None, Stop { grace: Span(10_000), ..stop }, Time(0), 500);
        let in_two_days = Time(0) + Span::days(2);
        assert_eq!(merge(Some(first), stop, in_two_days, 4_500).grace_ms, 6_000);
        assert_eq!(merge(Some(first), stop, Time(-1_000_000), 4_500).grace_ms, 6_000);
        // Written by an earlier version.
        let old = StopRequest { uptime_ms: None, ..first };
        assert_eq!(merge(Some(old), stop, Time(4_000), 4_500).grace_ms, 6_000);
    }
}
