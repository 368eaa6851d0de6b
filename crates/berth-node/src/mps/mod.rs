//! The MPS daemons of GPUs that several tasks share: NVIDIA's own way to let their kernels run at the
//! same time, each with a part of the threads and a limit of memory.
//!
//! There is one daemon for each such GPU, with a folder of its own. It lives on without a server, as
//! the tasks do; what no task needs is stopped, also after a crash.
//!
//! Jobs reach the folder and the daemon's socket. So what is known of a daemon lies elsewhere, and
//! whether it lives is asked of the kernel alone: a job that keeps the socket busy or writes into
//! the folder moves nothing.

mod control;

pub use control::{MpsControl, NvidiaMps};

use crate::home::{read_json, write_json};
use crate::process::{self, Process, Stat};
use control::pipe;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a daemon may take to come up, or to go.
const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum MpsError {
    #[error("the MPS daemon of GPU {gpu} cannot be started: {source}")]
    Start { gpu: u32, source: io::Error },
    #[error("the MPS daemon of GPU {gpu} does not answer")]
    Silent { gpu: u32 },
    #[error("the MPS daemon of GPU {gpu} does not end")]
    Stays { gpu: u32 },
    #[error("the folder of the MPS daemon of GPU {gpu} cannot be removed: {source}")]
    Folder { gpu: u32, source: io::Error },
}

/// The MPS daemons of one machine.
pub struct Mps {
    folder: PathBuf,
    /// What is known of the daemons, where no job gets.
    note: PathBuf,
    control: Arc<dyn MpsControl>,
    /// One change at a time.
    turn: Mutex<()>,
    known: Mutex<Known>,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct Known {
    daemons: BTreeMap<u32, Daemon>,
    /// GPUs whose daemon was replaced before anybody had noticed its end.
    lost: BTreeSet<u32>,
}

/// A daemon that was started, whether it lives or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Daemon {
    process: Process,
    /// Those behind it at the last look.
    servers: BTreeSet<Process>,
    /// What is left of those before it.
    #[serde(default)]
    orphans: BTreeSet<Process>,
    /// Berth has reported its end.
    is_over: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    /// Process ids mean nothing after another start of the machine.
    boot: String,
    daemons: BTreeMap<u32, Daemon>,
}

impl Daemon {
    fn of(pid: i32) -> Option<Daemon> {
        let process = Process::of(pid).filter(|process| process.is_alive())?;
        let (servers, orphans) = (BTreeSet::new(), BTreeSet::new());
        Some(Daemon { process, servers, orphans, is_over: false })
    }

    /// Itself and the servers behind it, as far as they live.
    fn living(&self) -> BTreeSet<Process> {
        let all = self.servers.union(&self.orphans).copied().chain([self.process]);
        all.filter(|process| process.is_alive()).collect()
    }
}

impl Mps {
    pub fn new(folder: &Path, control: Arc<dyn MpsControl>) -> Mps {
        let (turn, known) = (Mutex::default(), Mutex::default());
        let (note, folder) = (folder.join("mps.json"), folder.join("mps"));
        let mps = Mps { folder, note, control, turn, known, timeout: TIMEOUT };
        mps.remember();
        mps
    }

    /// Whether GPUs can be shared this way here.
    pub fn is_there(&self) -> bool {
        self.control.exists()
    }

    /// What an earlier server has noted.
    fn remember(&self) {
        let note = read_json::<Note>(&self.note).unwrap_or_else(|error| {
            tracing::error!(%error, "the note about MPS daemons cannot be read");
            None
        });
        let note = note.filter(|note| note.boot == process::boot_id()).unwrap_or_default();
        let mut daemons = note.daemons;
        for gpu in self.folders() {
            // An earlier version took no note, or its server ended in between.
            if !daemons.contains_key(&gpu)
                && let Some(daemon) = self.control.daemon(&self.of(gpu)).and_then(Daemon::of)
            {
                daemons.insert(gpu, daemon);
            }
        }
        self.known().daemons = daemons;
    }

    fn take_note(&self) -> io::Result<()> {
        let note = Note { boot: process::boot_id(), daemons: self.known().daemons.clone() };
        write_json(&self.note, &note).map_err(io::Error::other)
    }

    fn of(&self, gpu: u32) -> PathBuf {
        self.folder.join(format!("gpu-{gpu}"))
    }

    /// The folder by which clients reach the daemon of a GPU, which is started where none runs.
    pub fn provide(&self, gpu: u32, uuid: &str) -> Result<PathBuf, MpsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.of(gpu);
        // A job may have removed the socket, where it has the server's account.
        if self.is_alive(gpu) && self.control.has_socket(&folder) {
            return Ok(pipe(&folder));
        }
        let fail = |source| MpsError::Start { gpu, source };
        let orphans = self.bury(gpu);
        // What a daemon that died has left keeps the next one from starting.
        remove(&folder).map_err(fail)?;
        make(&folder).map_err(fail)?;
        self.control.start(&folder, uuid).map_err(fail)?;
        // No job sees the folder yet, so what it says is true.
        self.wait(|| self.control.daemon(&folder).is_some());
        let Some(daemon) = self.control.daemon(&folder).and_then(Daemon::of) else {
            let _ = self.control.tell(&folder, "quit");
            return Err(MpsError::Silent { gpu });
        };
        self.known().daemons.insert(gpu, Daemon { orphans, ..daemon });
        let noted = self.take_note().map_err(fail);
        let answers =
            noted.is_ok() && self.wait(|| self.control.tell(&folder, "get_server_list").is_ok());
        if answers {
            return Ok(pipe(&folder));
        }
        self.end(gpu)?;
        noted.and(Err(MpsError::Silent { gpu }))
    }

    /// Forgets a daemon that has ended, or that nobody reaches any more. What is left of it may still
    /// serve tasks.
    fn bury(&self, gpu: u32) -> BTreeSet<Process> {
        let mut known = self.known();
        let Some(daemon) = known.daemons.remove(&gpu) else { return BTreeSet::new() };
        if !daemon.is_over {
            known.lost.insert(gpu);
        }
        daemon.living()
    }

    /// Stops the daemon of a GPU that no task shares any more.
    pub fn stop(&self, gpu: u32) -> Result<(), MpsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(gpu)
    }

    /// Ends a daemon with the servers behind it, and forgets it.
    fn end(&self, gpu: u32) -> Result<(), MpsError> {
        let folder = self.of(gpu);
        self.look_at(gpu);
        let daemon = self.known().daemons.get(&gpu).cloned();
        if let Some(daemon) = daemon {
            if self.is_alive(gpu) {
                // It may not hear this; there are other ways.
                let _ = self.control.tell(&folder, "quit");
                self.wait(|| daemon.living().is_empty());
            }
            for signal in [Signal::TERM, Signal::KILL] {
                let living = daemon.living();
                if !living.is_empty() {
                    living.iter().for_each(|process| process.signal(signal));
                    self.wait(|| daemon.living().is_empty());
                }
            }
            if !daemon.living().is_empty() {
                return Err(MpsError::Stays { gpu });
            }
            self.known().daemons.remove(&gpu);
            self.take_note().map_err(|source| MpsError::Folder { gpu, source })?;
        }
        remove(&folder).map_err(|source| MpsError::Folder { gpu, source })
    }

    /// The GPUs whose daemon, or a server behind it, has ended since the last look although nobody
    /// stopped it. Programs that used it fail, through no fault of their own.
    pub fn died(&self) -> BTreeSet<u32> {
        // While one is being stopped, its end is no news.
        let Ok(_turn) = self.turn.try_lock() else { return BTreeSet::new() };
        let mut died = std::mem::take(&mut self.known().lost);
        let gpus: Vec<u32> = self.known().daemons.keys().copied().collect();
        died.extend(gpus.into_iter().filter(|gpu| self.look_at(*gpu)));
        died
    }

    /// Notes which processes there are now. Whether one has ended since the last look.
    fn look_at(&self, gpu: u32) -> bool {
        let mut known = self.known();
        let Some(daemon) = known.daemons.get_mut(&gpu) else { return false };
        let before = daemon.clone();
        let is_over = !daemon.process.is_alive();
        let has_died = daemon.servers.iter().any(|server| !server.is_alive());
        daemon.servers.retain(|server| server.is_alive());
        if !is_over {
            let children = process::children(daemon.process.pid);
            daemon.servers.extend(children.into_iter().filter(|child| child.is_alive()));
        }
        daemon.is_over = is_over;
        let is_news = *daemon != before;
        drop(known);
        if is_news && let Err(error) = self.take_note() {
            tracing::warn!(%error, "the note about MPS daemons cannot be written");
        }
        has_died || (is_over && !before.is_over)
    }

    /// Whether a process is the daemon of this GPU, or a server behind it.
    pub(crate) fn has(&self, gpu: u32, stat: &Stat) -> bool {
        let known = self.known();
        let Some(daemon) = known.daemons.get(&gpu) else { return false };
        stat.process() == daemon.process
            || daemon.servers.contains(&stat.process())
            || daemon.orphans.contains(&stat.process())
            || (stat.parent == daemon.process.pid && daemon.process.is_alive())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The GPUs that have a daemon, or had one when a server ended.
    pub fn gpus(&self) -> BTreeSet<u32> {
        let mut gpus = self.folders();
        gpus.extend(self.known().daemons.keys());
        gpus
    }

    fn folders(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number = |name: String| name.strip_prefix("gpu-")?.parse().ok();
        entries.filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect()
    }

    /// Stops the daemons of GPUs that no task has.
    pub fn stop_unused(&self, used: &BTreeSet<u32>) -> Vec<MpsError> {
        let unused: Vec<u32> = self.gpus().difference(used).copied().collect();
        unused.into_iter().filter_map(|gpu| self.stop(gpu).err()).collect()
    }

    fn is_alive(&self, gpu: u32) -> bool {
        self.known().daemons.get(&gpu).is_some_and(|daemon| daemon.process.is_alive())
    }

    fn wait(&self, is_so: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + self.timeout;
        while !is_so() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }
}

/// Tasks of all accounts that share the GPU go through the folder to the pipes.
fn make(folder: &Path) -> io::Result<()> {
    for dir in [folder.to_owned(), pipe(folder), folder.join("log")] {
        DirBuilder::new().recursive(true).mode(0o755).create(&dir)?;
        fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
