//! Starting a task's processes.

use super::{Order, complain};
use crate::cgroup::Cgroup;
use crate::environ::environment;
use crate::home::Home;
use crate::log::LogWriter;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::collections::BTreeMap;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

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
}

/// Starts all ranks, or none: then with a sentence for the user.
pub(super) fn spawn(home: &Home, order: &Order) -> Result<Spawned, String> {
    check_directory(&order.spec.directory)?;
    let back = order.cgroup.as_ref().and_then(|group| match group.enter() {
        Ok(back) => Some((group, back)),
        Err(error) => {
            complain(&format!("going without the group {}: {error}", group.path.display()));
            None
        }
    });
    let ranks = spawn_ranks(home, order);
    let cgroup = back.and_then(|(group, back)| match group.leave(&back) {
        Ok(()) => Some(group.clone()),
        // Ending the group from inside would end the supervisor first.
        Err(error) => {
            complain(&format!("cannot leave the group {}: {error}", group.path.display()));
            None
        }
    });
    match ranks {
        Ok(ranks) => Ok(Spawned { ranks, cgroup }),
        Err(why) => {
            if let Some(group) = &cgroup {
                group.remove();
            }
            Err(why)
        }
    }
}

fn spawn_ranks(home: &Home, order: &Order) -> Result<Vec<Rank>, String> {
    let mut ranks = Vec::new();
    for number in 0..order.spec.processes() {
        match spawn_rank(home, order, number) {
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

fn spawn_rank(home: &Home, order: &Order, number: u32) -> Result<Rank, String> {
    let argv = order.spec.argv();
    let mut env = order.inherited.clone();
    env.extend(environment(&order.spec, &home.dir, number));
    let no_pipe = |error: io::Error| format!("no pipe for its output could be made: {error}");
    let (output, input) = io::pipe().map_err(no_pipe)?;
    let errors = input.try_clone().map_err(no_pipe)?;
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
    let child = command.spawn().map_err(|error| why_not_started(&argv[0], &env, &error))?;
    let raw = i32::try_from(child.id()).expect("process ids are positive");
    let pid = Pid::from_raw(raw).expect("process ids are positive");
    Ok(Rank {
        number,
        pid,
        pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
        output: Some(output),
        log: LogWriter::new(&home.logs(), number, order.spec.logs),
        exit: None,
    })
}

/// The kernel has one error for a missing directory and a missing command; tell them apart.
fn check_directory(directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("the working directory {shown} is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("the working directory {shown} does not exist"))
        }
        Err(error) => Err(format!("the working directory {shown} cannot be used: {error}")),
    }
}

fn why_not_started(program: &str, env: &BTreeMap<String, String>, error: &io::Error) -> String {
    let is_path = program.contains('/');
    match error.kind() {
        io::ErrorKind::NotFound if is_path => {
            format!("{program} does not exist, or the interpreter named in its first line does not")
        }
        io::ErrorKind::NotFound => {
            let path = env.get("PATH").map_or("", String::as_str);
            format!("the command {program} was not found in PATH={path}")
        }
        io::ErrorKind::PermissionDenied => format!(
            "{program} may not be executed: make it executable (chmod +x), or name an interpreter"
        ),
        io::ErrorKind::ArgumentListTooLong => {
            "the command and its environment are too long; pass long values in a file".to_owned()
        }
        io::ErrorKind::NotADirectory => format!("the path {program} leads through a file"),
        _ => match error.raw_os_error() {
            // Exec format error.
            Some(8) => {
                format!("{program} is not a program: it needs a first line such as #!/bin/sh")
            }
            _ => format!("{program} could not be started: {error}"),
        },
    }
}
