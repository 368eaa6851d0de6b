//! The MPS daemons of GPUs that several tasks share: NVIDIA's own way to let their kernels run at the
//! same time, each with a part of the threads and a limit of memory.
//!
//! There is one daemon for each such GPU, with a folder of its own. It lives on without a server, as
//! the tasks do; what no task needs is stopped, also after a crash.

use crate::process::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a daemon may take to come up, or to go.
const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// `nvidia-cuda-mps-control`, or what stands for it in a test.
pub trait MpsControl: Send + Sync {
    /// Whether the program is there.
    fn exists(&self) -> bool;
    /// Starts a daemon for a GPU. It returns when the daemon is in the background.
    fn start(&self, folder: &Path, uuid: &str) -> io::Result<()>;
    /// Gives a command to the daemon of a folder; an error where none listens.
    fn tell(&self, folder: &Path, command: &str) -> io::Result<String>;
    /// The ids of the daemon of a folder and of the servers behind it, as far as they can be found.
    fn processes(&self, folder: &Path) -> Vec<i32>;
}

/// The program of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct NvidiaMps;

const PROGRAM: &str = "nvidia-cuda-mps-control";

impl NvidiaMps {
    fn command(folder: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("CUDA_MPS_PIPE_DIRECTORY", pipe(folder))
            .env("CUDA_MPS_LOG_DIRECTORY", folder.join("log"))
            .current_dir("/");
        command
    }
}

impl MpsControl for NvidiaMps {
    fn exists(&self) -> bool {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|dir| dir.join(PROGRAM).exists())
    }

    fn start(&self, folder: &Path, uuid: &str) -> io::Result<()> {
        let mut command = NvidiaMps::command(folder);
        command.arg("-d").env("CUDA_VISIBLE_DEVICES", uuid);
        if rustix::process::geteuid().is_root() {
            // Tasks of different users share one server; otherwise they would wait for each other.
            command.arg("-M");
        }
        // What it prints goes to its log; a pipe would stay open with the daemon.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{PROGRAM} -d ended with {status}")))
    }

    fn tell(&self, folder: &Path, command: &str) -> io::Result<String> {
        // Without a daemon the program would wait for one.
        if !pipe(folder).join("control").exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut child = NvidiaMps::command(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{command}")?;
        drop(input);
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(io::Error::other(format!("{PROGRAM} ended with {}", output.status)))
    }

    fn processes(&self, folder: &Path) -> Vec<i32> {
        let daemon = fs::read_to_string(pipe(folder).join(PID_FILE));
        let Ok(daemon) = daemon.unwrap_or_default().trim().parse::<i32>() else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children"));
        let children = children.unwrap_or_default();
        let servers = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        std::iter::once(daemon).chain(servers).collect()
    }
}

/// The file in which a daemon says its process id.
const PID_FILE: &str = "nvidia-cuda-mps-control.pid";

/// Where clients find the daemon of a folder.
fn pipe(folder: &Path) -> PathBuf {
    folder.join("pipe")
}

#[derive(Debug, thiserror::Error)]
pub enum MpsError {
    #[error("the MPS daemon of GPU {gpu} cannot be started: {source}")]
    Start { gpu: u32, source: io::Error },
    #[error("the MPS daemon of GPU {gpu} does not answer")]
    Silent { gpu: u32 },
    #[error("the MPS daemon of GPU {gpu} does not end")]
    Stays { gpu: u32 },
}

/// The MPS daemons of one machine.
pub struct Mps {
    folder: PathBuf,
    control: Arc<dyn MpsControl>,
    /// One change at a time.
    turn: Mutex<()>,
    /// The processes of each GPU at the last look.
    seen: Mutex<BTreeMap<u32, BTreeSet<Process>>>,
    timeout: Duration,
}

impl Mps {
    pub fn new(folder: &Path, control: Arc<dyn MpsControl>) -> Mps {
        let folder = folder.join("mps");
        let (turn, seen) = (Mutex::default(), Mutex::default());
        Mps { folder, control, turn, seen, timeout: TIMEOUT }
    }

    /// Whether GPUs can be shared this way here.
    pub fn is_there(&self) -> bool {
        self.control.exists()
    }

    fn of(&self, gpu: u32) -> PathBuf {
        self.folder.join(format!("gpu-{gpu}"))
    }

    /// The folder by which clients reach the daemon of a GPU, which is started where none runs.
    pub fn provide(&self, gpu: u32, uuid: &str) -> Result<PathBuf, MpsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.of(gpu);
        if self.is_alive(&folder) {
            return Ok(pipe(&folder));
        }
        let fail = |source| MpsError::Start { gpu, source };
        // What a daemon that died has left keeps the next one from starting.
        remove(&folder).map_err(fail)?;
        make(&folder).map_err(fail)?;
        self.control.start(&folder, uuid).map_err(fail)?;
        match self.wait(|| self.is_alive(&folder)) {
            true => Ok(pipe(&folder)),
            false => Err(MpsError::Silent { gpu }),
        }
    }

    /// Stops the daemon of a GPU that no task shares any more.
    pub fn stop(&self, gpu: u32) -> Result<(), MpsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.of(gpu);
        if !folder.exists() {
            return Ok(());
        }
        self.seen().remove(&gpu);
        // One that died does not answer.
        let _ = self.control.tell(&folder, "quit");
        if !self.wait(|| !self.is_alive(&folder)) {
            return Err(MpsError::Stays { gpu });
        }
        remove(&folder).map_err(|source| MpsError::Start { gpu, source })
    }

    /// The GPUs whose daemon, or a server behind it, has ended since the last look although nobody
    /// stopped it. Programs that used it fail, through no fault of their own.
    pub fn died(&self) -> BTreeSet<u32> {
        let mut seen = self.seen();
        let mut died = BTreeSet::new();
        for gpu in self.gpus() {
            let found = self.control.processes(&self.of(gpu)).into_iter();
            let now: BTreeSet<Process> =
                found.filter_map(Process::of).filter(|process| process.is_alive()).collect();
            let before = seen.insert(gpu, now).unwrap_or_default();
            if before.iter().any(|process| !process.is_alive()) {
                died.insert(gpu);
            }
        }
        died
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<u32, BTreeSet<Process>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The GPUs that have a daemon, or had one when a server ended.
    pub fn gpus(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number = |name: String| name.strip_prefix("gpu-")?.parse().ok();
        entries.filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect()
    }

    /// Stops the daemons of GPUs that no task has.
    pub fn stop_unused(&self, used: &BTreeSet<u32>) -> Vec<MpsError> {
        let unused: Vec<u32> = self.gpus().difference(used).copied().collect();
        unused.into_iter().filter_map(|gpu| self.stop(gpu).err()).collect()
    }

    fn is_alive(&self, folder: &Path) -> bool {
        self.control.tell(folder, "get_server_list").is_ok()
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
mod tests {
    use super::*;

    /// Daemons that live while their folder is in the list.
    #[derive(Default)]
    struct Fake {
        alive: Mutex<BTreeSet<PathBuf>>,
        started: Mutex<Vec<String>>,
        is_deaf: Mutex<bool>,
        processes: Mutex<Vec<i32>>,
    }

    impl MpsControl for Fake {
        fn exists(&self) -> bool {
            true
        }

        fn start(&self, folder: &Path, uuid: &str) -> io::Result<()> {
            assert!(fs::read_dir(pipe(folder))?.next().is_none(), "an old pipe is in the way");
            fs::write(pipe(folder).join("control"), "")?;
            self.started.lock().unwrap().push(uuid.to_owned());
            if !*self.is_deaf.lock().unwrap() {
                self.alive.lock().unwrap().insert(folder.to_owned());
            }
            Ok(())
        }

        fn tell(&self, folder: &Path, command: &str) -> io::Result<String> {
            let mut alive = self.alive.lock().unwrap();
            if !alive.contains(folder) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if command == "quit" {
                alive.remove(folder);
            }
            Ok(String::new())
        }

        fn processes(&self, _: &Path) -> Vec<i32> {
            self.processes.lock().unwrap().clone()
        }
    }

    fn bench() -> (tempfile::TempDir, Arc<Fake>, Mps) {
        let folder = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let mps =
            Mps { timeout: Duration::from_millis(200), ..Mps::new(folder.path(), fake.clone()) };
        (folder, fake, mps)
    }

    #[test]
    fn a_gpu_has_one_daemon_for_all_who_share_it_until_nobody_does() {
        let (_folder, fake, mps) = bench();
        let pipe = mps.provide(3, "GPU-a").unwrap();
        assert_eq!(mps.provide(3, "GPU-a").unwrap(), pipe);
        assert_eq!(*fake.started.lock().unwrap(), ["GPU-a"]);
        assert_eq!(mps.gpus(), BTreeSet::from([3]));
        mps.provide(1, "GPU-b").unwrap();
        assert!(mps.stop_unused(&BTreeSet::from([3])).is_empty());
        assert_eq!(mps.gpus(), BTreeSet::from([3]));
        mps.stop(3).unwrap();
        mps.stop(3).unwrap();
        assert!(mps.gpus().is_empty() && fake.alive.lock().unwrap().is_empty());
    }

    #[test]
    fn a_daemon_that_died_is_replaced_and_one_that_says_nothing_is_told() {
        let (_folder, fake, mps) = bench();
        mps.provide(0, "GPU-a").unwrap();
        fake.alive.lock().unwrap().clear();
        mps.provide(0, "GPU-a").unwrap();
        assert_eq!(fake.started.lock().unwrap().len(), 2);
        fake.alive.lock().unwrap().clear();
        *fake.is_deaf.lock().unwrap() = true;
        let error = mps.provide(0, "GPU-a").unwrap_err();
        assert_eq!(error.to_string(), "the MPS daemon of GPU 0 does not answer");
    }

    #[test]
    fn a_server_that_dies_is_noticed_once_and_one_that_was_stopped_never() {
        let (_folder, fake, mps) = bench();
        mps.provide(0, "GPU-a").unwrap();
        let mut daemon = Command::new("sleep").arg("60").spawn().unwrap();
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let pids = [&daemon, &server].map(|child| i32::try_from(child.id()).unwrap());
        *fake.processes.lock().unwrap() = pids.to_vec();
        assert_eq!(mps.died(), BTreeSet::new());
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(mps.died(), BTreeSet::from([0]));
        assert_eq!(mps.died(), BTreeSet::new());
        mps.stop(0).unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert_eq!(mps.died(), BTreeSet::new());
    }
}
