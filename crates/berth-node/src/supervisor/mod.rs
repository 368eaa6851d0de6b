//! The process between the server and a task. It starts the task, keeps its log, ends it when
//! asked, and writes down how it ended; it needs no server for any of that.
//!
//! It is one thread around one `poll`: there is one of it for every task, so it has to be small.

mod ends;
mod ready;
mod run;
mod spawn;

use crate::cgroup::Cgroup;
use crate::home::{Begun, Home, Lock};
use crate::isolation::Room;
use crate::process::{self, Process};
use crate::task::TaskSpec;
use crate::trouble::{self, Trouble};
use berth_model::Ended;
use berth_sandbox::{Account, EnterError, Helper, Sandbox};
use run::Run;
use serde::{Deserialize, Serialize};
use spawn::SpawnError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a supervisor tries to get its lock. A driver that looks at the task holds it for
/// moments; only another supervisor of the same lease holds it longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// What the driver hands to a supervisor, in memory: the environment may hold secrets.
#[derive(Serialize, Deserialize)]
pub(crate) struct LaunchSpec {
    pub spec: TaskSpec,
    /// Variables of the server that every process needs, such as `PATH`.
    pub inherited: BTreeMap<String, String>,
    pub cgroup: Option<Cgroup>,
    /// The fifo by which the driver hears of news.
    pub bell: PathBuf,
    /// Nothing where tasks run as the server does.
    pub sandbox: Option<Boxed>,
}

/// The sandbox of a task, and who its processes are in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Boxed {
    pub sandbox: Sandbox,
    pub account: Option<Account>,
    pub limits: berth_sandbox::Limits,
    pub room: Room,
    pub helper: Helper,
}

/// The hidden command of the binary: `supervise <folder>` or `shell <folder>`, as the driver's
/// [`Launcher`](crate::Launcher) starts it, and the steps of a sandbox. `probe <folder>` does
/// nothing: it shows that a process can be started. `gpu-check` checks a GPU.
pub fn helper(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // Whatever the server was handed by its own parent is not for tasks.
    berth_sandbox::close_inherited();
    let args: Vec<OsString> = args.into_iter().collect();
    if let [word] = args.as_slice()
        && let Some(done) = berth_sandbox::helper(word)
    {
        return done;
    }
    match args.as_slice() {
        [word, dir] if word == "supervise" => supervise(Path::new(dir)),
        [word, _] if word == "shell" => crate::shell::enter(),
        [word, _] if word == "probe" => ExitCode::SUCCESS,
        [word] if word == crate::gpu_check::WORD => berth_gpucheck::helper(),
        _ => {
            eprintln!("this command is for Berth's own use");
            ExitCode::from(2)
        }
    }
}

/// Runs the task of a folder to its end. The order is read from standard input.
pub fn supervise(dir: &Path) -> ExitCode {
    match prepare(dir) {
        Ok(Some((run, lock))) => {
            run.until_over();
            drop(lock);
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(trouble::exit_code(&error))
        }
    }
}

/// For whoever reads `supervisor.log`, which is where standard error goes.
pub(crate) fn complain(what: &str) {
    eprintln!("{} {what}", process::now());
}

/// Everything up to the first process of the task. `None`: it is not for us to run.
fn prepare(dir: &Path) -> io::Result<Option<(Run, Lock)>> {
    let order = read_order()?;
    // A session of its own, so that no terminal of the server reaches it; and whatever the task
    // leaves behind becomes its child.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    std::env::set_current_dir("/")?;

    let home = Home::new(dir);
    let Some(lock) = take_lock(&home)? else {
        complain("another supervisor has this task");
        return Ok(None);
    };
    if lock.begun().map_err(io::Error::other)?.is_some() {
        complain("this lease was begun before, and is not run twice");
        return Ok(None);
    }
    home.keep_room()?;
    let poke = crate::home::open_fifo(&home.file("poke"))?;
    std::fs::create_dir_all(home.logs())?;
    let me = rustix::process::getpid().as_raw_pid();
    lock.begin(&Begun {
        at: process::now(),
        boot: process::boot_id(),
        supervisor: me,
        start: Process::of(me).map(|process| process.start),
        cgroup: order.cgroup.as_ref().map(|group| group.path.clone()),
    })?;
    if let Ok(Some(stop)) = home.stop_request() {
        let mut ended = Ended::unknown(order.spec.lease, process::now());
        ended.stopped_before_its_start(stop.wanted());
        ends::write(&home, &ended, &order.bell);
        return Ok(None);
    }
    Ok(start(home, order, poke).map(|run| (run, lock)))
}

/// Starts the processes; a start that fails is the end, and is written down as one.
fn start(home: Home, order: LaunchSpec, poke: std::fs::File) -> Option<Run> {
    match spawn::spawn(&home, &order) {
        Ok(spawned) => Some(Run::new(home, order, poke, spawned)),
        Err(error) => {
            let mut ended = Ended::unknown(order.spec.lease, process::now());
            match trouble_of(&error) {
                Some(trouble) => ended.trouble = Some(format!("{error} ({})", trouble.lack)),
                None => ended.not_started = Some(error.to_string()),
            }
            ends::write(&home, &ended, &order.bell);
            leave_room(order.sandbox.as_ref().map(|boxed| &boxed.room));
            None
        }
    }
}

/// Removes what the task needed only while it ran. The driver removes what is left by a supervisor
/// that was killed.
fn leave_room(room: Option<&Room>) {
    if let Some(room) = room
        && let Err(error) = room.remove()
    {
        complain(&format!("cannot remove what the task left in its /tmp: {error}"));
    }
}

/// The trouble of the machine for which no process could be started, if it was that.
fn trouble_of(error: &SpawnError) -> Option<Trouble> {
    match error {
        SpawnError::Directory { error, .. }
        | SpawnError::Pipe(error)
        | SpawnError::Exec { error, .. } => Trouble::of(error),
        SpawnError::Sandbox(error) => {
            error.errno().and_then(|errno| Trouble::of(&io::Error::from_raw_os_error(errno)))
        }
        SpawnError::Enter(EnterError::Machine { errno, .. }) => {
            Trouble::of(&io::Error::from_raw_os_error(*errno))
        }
        _ => None,
    }
}

fn read_order() -> io::Result<LaunchSpec> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    // The order lives in memory that goes with its last descriptor.
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    serde_json::from_slice(&bytes).map_err(io::Error::other)
}

fn take_lock(home: &Home) -> io::Result<Option<Lock>> {
    let lock = home.open_lock()?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    while !lock.try_take() {
        let is_begun = matches!(lock.begun(), Ok(Some(_)));
        if is_begun || Instant::now() >= deadline {
            return Ok(None);
        }
        sleep(Duration::from_millis(5));
    }
    Ok(Some(lock))
}
