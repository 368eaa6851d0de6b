//! Starting a task's processes.

use super::{Boxed, LaunchSpec, complain};
use crate::cgroup::Cgroup;
use crate::environ::environment;
use crate::home::Home;
use crate::log::LogWriter;
use berth_sandbox::{Enter, EnterError, Running, StartError, unseen};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::collections::BTreeMap;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// One process of the task that the supervisor started itself.
pub(super) struct Rank {
    pub number: u32,
    /// It also leads a process group of that number.
    pub pid: Pid,
    /// Readable when the process has ended.
    pub pidfd: Option<OwnedFd>,
    /// Its output and errors in one stream, in the order they were written. `None` at the end.
    pub output: Option<PipeReader>,
    pub log: LogWriter,
    pub exit: Option<Exit>,
}

/// What a process left to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Exit {
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

pub(super) struct Spawned {
    pub ranks: Vec<Rank>,
    /// The group they are in.
    pub cgroup: Option<Cgroup>,
    pub init: Option<Init>,
}

/// The first process of the task's sandbox, with which all others die.
pub(super) struct Init {
    pub pid: Pid,
    pub pidfd: Option<OwnedFd>,
}

/// Why a task could not be started, in a sentence for its user.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpawnError {
    #[error("the working directory {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the working directory {} does not exist", .0.display())]
    NoDirectory(PathBuf),
    #[error(
        "the working directory {} is not there for the job: it does not exist, or the job may not \
         see it",
        .0.display()
    )]
    NotSeen(PathBuf),
    #[error("the working directory {} cannot be used: {error}", path.display())]
    Directory { path: PathBuf, error: io::Error },
    #[error("no pipe for its output could be made: {0}")]
    Pipe(io::Error),
    #[error("{0} does not exist, or the interpreter named in its first line does not")]
    NoProgram(String),
    #[error("no such program: {program} (PATH={path})")]
    NotInPath { program: String, path: String },
    #[error(
        "{error}. The job's account may not read {}, or {} not exist: open the folder to that \
         account, or install the program where every account may read it",
        listed(folders),
        if folders.len() == 1 { "it does" } else { "they do" }
    )]
    Unseen { error: Box<SpawnError>, folders: Vec<PathBuf> },
    #[error("{0} may not be executed: make it executable (chmod +x), or name an interpreter")]
    NotExecutable(String),
    #[error("the command and its environment are too long; pass long values in a file")]
    TooLong,
    #[error("the path {0} leads through a file")]
    ThroughFile(String),
    #[error("{0} is not a program: it needs a first line such as #!/bin/sh")]
    NotAProgram(String),
    #[error("{program} could not be started: {error}")]
    Exec { program: String, error: io::Error },
    #[error("its sandbox could not be made: {0}")]
    Sandbox(StartError),
    #[error("it could not be started in its sandbox: {0}")]
    Enter(EnterError),
}

/// Starts all ranks, or none.
pub(super) fn spawn(home: &Home, order: &LaunchSpec) -> Result<Spawned, SpawnError> {
    if order.sandbox.is_none() {
        check_directory(&order.spec.directory)?;
    }
    let back = order.cgroup.as_ref().and_then(|group| match group.enter() {
        Ok(back) => Some((group, back)),
        Err(error) => {
            complain(&format!("going without the group {}: {error}", group.path.display()));
            None
        }
    });
    let spawned = spawn_all(home, order);
    let cgroup = back.and_then(|(group, back)| match group.leave(&back) {
        Ok(()) => Some(group.clone()),
        // Ending the group from inside would end the supervisor first.
        Err(error) => {
            complain(&format!("cannot leave the group {}: {error}", group.path.display()));
            None
        }
    });
    match spawned {
        Ok((ranks, init)) => Ok(Spawned { ranks, cgroup, init }),
        Err(why) => {
            if let Some(group) = &cgroup {
                group.remove();
            }
            Err(why)
        }
    }
}

fn spawn_all(home: &Home, order: &LaunchSpec) -> Result<(Vec<Rank>, Option<Init>), SpawnError> {
    let Some(boxed) = &order.sandbox else {
        return Ok((spawn_ranks(home, order, None)?, None));
    };
    let started = boxed.sandbox.start(boxed.helper.clone());
    let mut running = started.map_err(SpawnError::Sandbox)?;
    match spawn_ranks(home, order, Some((boxed, &running))) {
        Ok(ranks) => {
            let pid = pid_of(&running.init);
            Ok((ranks, Some(Init { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok() })))
        }
        Err(why) => {
            let _ = running.init.kill();
            let _ = running.init.wait();
            Err(why)
        }
    }
}

fn spawn_ranks(
    home: &Home,
    order: &LaunchSpec,
    sandbox: Option<(&Boxed, &Running)>,
) -> Result<Vec<Rank>, SpawnError> {
    let mut ranks = Vec::new();
    for number in 0..order.spec.processes() {
        match spawn_rank(home, order, sandbox, number) {
            Ok(rank) => ranks.push(rank),
            Err(why) => {
                for started in &ranks {
                    kill_and_wait(started);
                }
                return Err(why);
            }
        }
    }
    Ok(ranks)
}

fn kill_and_wait(rank: &Rank) {
    let _ = rustix::process::kill_process_group(rank.pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(rank.pid), rustix::process::WaitOptions::empty());
}

fn spawn_rank(
    home: &Home,
    order: &LaunchSpec,
    sandbox: Option<(&Boxed, &Running)>,
    number: u32,
) -> Result<Rank, SpawnError> {
    let argv = order.spec.argv();
    let mut env = order.inherited.clone();
    env.extend(environment(&order.spec, &home.job(), &home.notices(), number));
    let (output, input) = io::pipe().map_err(SpawnError::Pipe)?;
    let errors = input.try_clone().map_err(SpawnError::Pipe)?;
    let child = match sandbox {
        None => {
            let mut command = Command::new(&argv[0]);
            command
                .args(&argv[1..])
                .env_clear()
                .envs(&env)
                .current_dir(&order.spec.directory)
                .stdin(Stdio::null())
                .stdout(input)
                .stderr(errors)
                .process_group(0);
            command.spawn().map_err(|error| {
                let path = env.get("PATH").map_or("", String::as_str);
                exec_error(&argv[0], &env, (error, unseen(&argv[0], path)))
            })?
        }
        Some((boxed, running)) => {
            let enter = Enter {
                argv,
                env,
                directory: order.spec.directory.clone(),
                account: boxed.account.clone(),
                limits: boxed.limits,
                network: boxed.sandbox.network,
                terminal: false,
            };
            let entered = running.spawn(&enter, input, errors);
            entered.map_err(|error| enter_error(&enter, error))?
        }
    };
    let pid = pid_of(&child);
    Ok(Rank {
        number,
        pid,
        pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
        output: Some(output),
        log: LogWriter::new(&home.logs(), number, order.spec.logs),
        exit: None,
    })
}

fn pid_of(child: &Child) -> Pid {
    let raw = i32::try_from(child.id()).expect("process ids are positive");
    Pid::from_raw(raw).expect("process ids are positive")
}

/// In the words that a start without a sandbox has.
fn enter_error(enter: &Enter, error: EnterError) -> SpawnError {
    let path = enter.directory.clone();
    match error {
        EnterError::Directory(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            match error.kind() {
                io::ErrorKind::NotFound => SpawnError::NotSeen(path),
                io::ErrorKind::NotADirectory => SpawnError::NotADirectory(path),
                _ => SpawnError::Directory { path, error },
            }
        }
        EnterError::Exec { errno, unseen } => {
            let error = io::Error::from_raw_os_error(errno);
            exec_error(&enter.argv[0], &enter.env, (error, unseen))
        }
        other => SpawnError::Enter(other),
    }
}

/// The kernel has one error for a missing directory and a missing command; tell them apart.
fn check_directory(directory: &Path) -> Result<(), SpawnError> {
    let path = directory.to_owned();
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(SpawnError::NotADirectory(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpawnError::NoDirectory(path)),
        Err(error) => Err(SpawnError::Directory { path, error }),
    }
}

/// Folders that a message names.
const MOST_FOLDERS: usize = 5;

fn listed(folders: &[PathBuf]) -> String {
    let some = folders.iter().take(MOST_FOLDERS).map(|folder| folder.display().to_string());
    some.collect::<Vec<_>>().join(", ")
}

fn exec_error(
    program: &str,
    env: &BTreeMap<String, String>,
    (error, folders): (io::Error, Vec<PathBuf>),
) -> SpawnError {
    let is_missing =
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
    let error = own_error(program, env, error);
    match is_missing && !folders.is_empty() {
        true => SpawnError::Unseen { error: Box::new(error), folders },
        false => error,
    }
}

fn own_error(program: &str, env: &BTreeMap<String, String>, error: io::Error) -> SpawnError {
    let is_path = program.contains('/');
    let program = program.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound if is_path => SpawnError::NoProgram(program),
        io::ErrorKind::NotFound => {
            let path = env.get("PATH").cloned().unwrap_or_default();
            SpawnError::NotInPath { program, path }
        }
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable(program),
        io::ErrorKind::ArgumentListTooLong => SpawnError::TooLong,
        io::ErrorKind::NotADirectory => SpawnError::ThroughFile(program),
        _ => match error.raw_os_error() {
            // Exec format error.
            Some(8) => SpawnError::NotAProgram(program),
            _ => SpawnError::Exec { program, error },
        },
    }
}
