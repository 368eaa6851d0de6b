//! What the supervisor does: makes its children be born in a new PID namespace, starts `init`, and
//! then the processes of the task.

use crate::channel::Channel;
use crate::enter::{self, Enter, EnterError, Origin};
use crate::init::{self, Built};
use crate::scope;
use crate::spec::Sandbox;
use nix::sched::CloneFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CapabilitySets, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// How the binary is started as a helper: `exe args… <word>`, which must come to
/// [`helper`](crate::helper).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helper {
    pub exe: PathBuf,
    pub args: Vec<String>,
}

impl Helper {
    pub(crate) fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.exe);
        // Variables such as LD_PRELOAD must not reach a helper, which has rights.
        command.args(&self.args).arg(word).env_clear().current_dir("/");
        command
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the kernel refuses new namespaces: {0}")]
    Namespaces(io::Error),
    #[error("the account cannot be kept in a user namespace: {0}")]
    Map(io::Error),
    #[error("abstract sockets of the machine cannot be closed to the sandbox: {0}")]
    Scope(io::Error),
    #[error("the first process of the sandbox cannot be started: {0}")]
    Init(io::Error),
    #[error("{why}")]
    View { why: String, errno: Option<i32> },
    #[error("the first process of the sandbox was killed, which happens where memory is short")]
    Killed,
}

/// Not enough memory.
const ENOMEM: i32 = 12;

impl StartError {
    /// The number of the operating system's own error, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            StartError::Namespaces(error)
            | StartError::Map(error)
            | StartError::Scope(error)
            | StartError::Init(error) => error.raw_os_error(),
            StartError::View { errno, .. } => *errno,
            StartError::Killed => Some(ENOMEM),
        }
    }
}

/// A sandbox with its first process. It ends with it.
#[derive(Debug)]
pub struct Running {
    pub init: Child,
    helper: Helper,
}

/// Sees to it that no descriptor which this process was handed by its parent reaches a task.
pub fn close_inherited() {
    close_fds::set_fds_cloexec(3, &[]);
}

impl Sandbox {
    /// Starts the sandbox. From then on all children of this process are in it, so this is for a
    /// process that starts nothing else; and it must have one thread.
    pub fn start(&self, helper: Helper) -> Result<Running, StartError> {
        isolate_children()?;
        // Here, so that it is one for all of the sandbox: what each made for itself would keep
        // them from each other.
        scope::leave_abstract_sockets().map_err(StartError::Scope)?;
        let start = || -> io::Result<(Child, Option<Built>)> {
            let (channel, input) = Channel::open()?;
            let mut command = helper.command(init::WORD);
            let child = command.stdin(input).stdout(Stdio::null()).process_group(0).spawn()?;
            // The command holds the helper's end, whose closing says that the helper is gone.
            drop(command);
            let built = channel.ask(self)?;
            Ok((child, built))
        };
        let (mut child, built) = start().map_err(StartError::Init)?;
        let failed = match built {
            Some(Built::Done) => return Ok(Running { init: child, helper }),
            Some(Built::Failed { why, errno }) => StartError::View { why, errno },
            None => StartError::Killed,
        };
        let _ = child.kill();
        let _ = child.wait();
        Err(failed)
    }
}

impl Running {
    /// Starts a process in the sandbox, and waits until it has become the command.
    pub fn spawn(
        &self,
        order: &Enter,
        output: impl Into<Stdio>,
        errors: impl Into<Stdio>,
    ) -> Result<Child, EnterError> {
        spawn(&self.helper, Origin::Supervisor, order, output, errors)
    }
}

fn spawn(
    helper: &Helper,
    from: Origin,
    order: &Enter,
    output: impl Into<Stdio>,
    errors: impl Into<Stdio>,
) -> Result<Child, EnterError> {
    let lost = |error: io::Error| enter::other("starting a process of Berth's own", error);
    let (channel, input) = Channel::open().map_err(lost)?;
    let mut command = helper.command(enter::WORD);
    command.stdin(input).stdout(output).stderr(errors);
    if !order.terminal {
        // The leader of a group cannot lead a session, which a terminal needs.
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(lost)?;
    // It holds the output too, whose end would never come.
    drop(command);
    match channel.ask::<EnterError>(&(order, from)) {
        Ok(None) => Ok(child),
        Ok(Some(error)) => {
            let _ = child.wait();
            Err(error)
        }
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(lost(error))
        }
    }
}

/// Joins a running sandbox from outside, such as for a terminal: children of this process are in
/// it then. The process must have one thread. `is_it` tells whether the number of the first process
/// is still its own.
pub fn join(init: i32, is_it: impl FnOnce() -> bool, helper: Helper) -> Result<Joined, StartError> {
    let join = || -> rustix::io::Result<()> {
        let init = Pid::from_raw(init).ok_or(rustix::io::Errno::SRCH)?;
        let init = pidfd_open(init, PidfdFlags::empty())?;
        // Asked when the descriptor is open, which stays with the process.
        if !is_it() {
            return Err(rustix::io::Errno::SRCH);
        }
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            let user = ThreadNameSpaceType::USER;
            rustix::thread::move_into_thread_name_spaces(init.as_fd(), user)?;
            keep_rights_over_exec()?;
        }
        let processes = ThreadNameSpaceType::PROCESS_ID;
        rustix::thread::move_into_thread_name_spaces(init.as_fd(), processes)
    };
    join().map_err(|error| StartError::Namespaces(error.into()))?;
    Ok(Joined { helper })
}

/// Whoever has joined a sandbox.
#[derive(Debug)]
pub struct Joined {
    helper: Helper,
}

impl Joined {
    /// Starts a process in the sandbox.
    pub fn spawn(
        &self,
        order: &Enter,
        output: impl Into<Stdio>,
        errors: impl Into<Stdio>,
    ) -> Result<Child, EnterError> {
        spawn(&self.helper, Origin::Elsewhere, order, output, errors)
    }
}

/// Root needs no user namespace. Others get all rights in one of their own, where they are still
/// who they were.
pub(crate) fn isolate_children() -> Result<(), StartError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() {
        return unshare(CloneFlags::CLONE_NEWPID);
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    let map = |file: &str, text: String| fs::write(file, text).map_err(StartError::Map);
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw()))?;
    map("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw()))?;
    keep_rights_over_exec().map_err(|error| StartError::Map(error.into()))
}

fn unshare(flags: CloneFlags) -> Result<(), StartError> {
    nix::sched::unshare(flags).map_err(|error| StartError::Namespaces(error.into()))
}

/// Only root keeps its rights when it executes a program; others have to say so. The helpers need
/// them, and `enter` gives them up.
pub(crate) fn keep_rights_over_exec() -> rustix::io::Result<()> {
    let had = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets { inheritable: had.permitted, ..had };
    rustix::thread::set_capabilities(None, sets)?;
    for capability in (had.permitted & enter::all_capabilities()).iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
