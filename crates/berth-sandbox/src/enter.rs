//! Becoming a process of the task: joins the sandbox, gives up every right it does not need, and
//! executes the command.

use crate::channel::{self, Answer};
use crate::scope;
use crate::spec::{Account, Network};
use crate::syscalls::{self, Keep};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, pidfd_open, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) const WORD: &str = "sandbox-enter";

/// What a process of the task executes, and as whom.
#[derive(Clone, Serialize, Deserialize)]
pub struct Enter {
    pub argv: Vec<String>,
    /// May hold secrets.
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub account: Option<Account>,
    pub limits: Limits,
    /// That of the sandbox.
    pub network: Network,
    /// Its output is a terminal, which becomes its input too. It dies with whoever started it.
    pub terminal: bool,
}

/// Who starts a process of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    Supervisor,
    /// Somebody who joined the sandbox, and to whom nothing of it has been handed down.
    Elsewhere,
}

/// Limits of each process, for machines where control groups cannot hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Private memory that it can write to, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads of its account in its namespace.
    pub processes: Option<u64>,
}

/// Why the command was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum EnterError {
    #[error("the working directory cannot be used: {}", os(*.0))]
    Directory(i32),
    /// With the folders of the program, or of `PATH`, that are not there for the job.
    #[error("the command cannot be executed: {}", os(*errno))]
    Exec { errno: i32, unseen: Vec<PathBuf> },
    /// The machine did not do what every start needs.
    #[error("{step}: {}", os(*errno))]
    Machine { step: String, errno: i32 },
    #[error("{0}")]
    Other(String),
}

impl EnterError {
    /// The number of the operating system's own error, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            EnterError::Directory(errno)
            | EnterError::Exec { errno, .. }
            | EnterError::Machine { errno, .. } => Some(*errno),
            EnterError::Other(_) => None,
        }
    }
}

fn os(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

pub(crate) fn run() -> ExitCode {
    let ((order, from), answer) = match channel::receive::<(Enter, Origin)>() {
        Ok(received) => received,
        Err(error) => {
            eprintln!("the order of a process could not be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    become_command(&order, from, answer)
}

fn become_command(order: &Enter, from: Origin, answer: Answer) -> ExitCode {
    let error = match enter(order, from) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let _ = answer.send(&error);
    ExitCode::FAILURE
}

fn enter(order: &Enter, from: Origin) -> Result<Infallible, EnterError> {
    // Once it has the job's account, another process of the job could look into this one before
    // the filter holds. Executing the command undoes it; so does a change of account, which is
    // why it is said again below.
    hide_from_job()?;
    // This process was born in the PID namespace of the sandbox, where `init` is the first.
    join(order.network).map_err(|error| other("joining the sandbox", error))?;
    if from == Origin::Elsewhere {
        // Only now: it closes the processes of the sandbox, too, to whoever is not one of them.
        scope::leave_abstract_sockets()
            .map_err(|error| other("closing abstract sockets of the machine", error))?;
    }
    if order.terminal {
        take_terminal().map_err(|error| other("taking the terminal", error))?;
    }
    let keep = kept(order.account.as_ref(), own_ids());
    give_up_rights(order.account.as_ref()).map_err(|error| other("giving up rights", error))?;
    hide_from_job()?;
    if order.terminal {
        // After the change of account, which undoes it.
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| other("following the terminal", error.into()))?;
    }
    limit(order.limits).map_err(|error| other("setting limits", error))?;
    let errno = |error: &io::Error| error.raw_os_error().unwrap_or(0);
    std::env::set_current_dir(&order.directory)
        .map_err(|error| EnterError::Directory(errno(&error)))?;
    let filters = syscalls::filters(keep).map_err(|error| EnterError::Other(error.to_string()))?;
    for filter in &filters {
        seccompiler::apply_filter(filter)
            .map_err(|error| EnterError::Other(format!("filtering system calls: {error}")))?;
    }
    let Some((program, args)) = order.argv.split_first() else {
        return Err(EnterError::Other("the command is empty".to_owned()));
    };
    let mut command = Command::new(program);
    let error = command.args(args).env_clear().envs(&order.env).exec();
    let unseen = unseen(program, order.env.get("PATH").map_or("", String::as_str));
    Err(EnterError::Exec { errno: errno(&error), unseen })
}

/// The folders that a program is looked for in and that this process cannot use: they do not exist, or its
/// account may not read them. Folders of the system are left out, because most of them are optional.
pub fn unseen(program: &str, path: &str) -> Vec<PathBuf> {
    let folders = match Path::new(program).parent().filter(|_| program.contains('/')) {
        Some(folder) => vec![folder.to_owned()],
        None => path.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from).collect(),
    };
    let is_optional = |folder: &PathBuf| {
        ["/usr", "/bin", "/sbin", "/snap", "/opt"].iter().any(|start| folder.starts_with(start))
    };
    // Looking into a folder takes the right to use it.
    let is_unseen = |folder: &PathBuf| folder.join(".").metadata().is_err();
    folders.into_iter().filter(|folder| !is_optional(folder) && is_unseen(folder)).collect()
}

/// The user and the group of the server, which this process has until it gives up its rights.
fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Which bits a task may not set. Without an account of its own it has that of the server, and
/// the tasks of whoever started a server of root have it by name.
fn kept(account: Option<&Account>, (uid, gid): (u32, u32)) -> Keep {
    match account {
        Some(account) if account.uid != uid && account.gid != gid => Keep::User,
        _ => Keep::UserAndGroup,
    }
}

fn hide_from_job() -> Result<(), EnterError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| other("hiding from the job", error.into()))
}

/// Why a step failed that has nothing to do with the command.
pub(crate) fn other(step: &str, error: io::Error) -> EnterError {
    match error.raw_os_error() {
        Some(errno) => EnterError::Machine { step: step.to_owned(), errno },
        None => EnterError::Other(format!("{step}: {error}")),
    }
}

fn join(network: Network) -> io::Result<()> {
    let init = pidfd_open(Pid::INIT, PidfdFlags::empty())?;
    let mut spaces = ThreadNameSpaceType::MOUNT | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
    if network == Network::None {
        spaces |= ThreadNameSpaceType::NETWORK;
    }
    Ok(rustix::thread::move_into_thread_name_spaces(init.as_fd(), spaces)?)
}

fn take_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(io::stdout())?;
    Ok(rustix::stdio::dup2_stdin(io::stdout())?)
}

fn give_up_rights(account: Option<&Account>) -> io::Result<()> {
    for capability in all_capabilities().iter() {
        rustix::thread::remove_capability_from_bounding_set(capability)?;
    }
    rustix::thread::clear_ambient_capability_set()?;
    if let Some(account) = account {
        use rustix::process::{Gid, Uid};
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let groups: Vec<Gid> = account.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        // There is one thread, so what holds for it holds for the process.
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Those that this kernel knows.
pub(crate) fn all_capabilities() -> CapabilitySet {
    let last = std::fs::read_to_string("/proc/sys/kernel/cap_last_cap");
    let last: u32 = last.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(40);
    CapabilitySet::from_bits_retain(u64::MAX >> (63 - last.min(63)))
}

fn limit(limits: Limits) -> io::Result<()> {
    // A core dump holds the memory of the task, secrets included.
    set(Resource::Core, 0)?;
    if let Some(bytes) = limits.memory {
        set(Resource::Data, bytes)?;
    }
    if let Some(count) = limits.processes {
        set(Resource::Nproc, count)?;
    }
    Ok(())
}

fn set(resource: Resource, most: u64) -> io::Result<()> {
    // A limit can only be lowered.
    let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let most = Some(most.min(hard));
    Ok(setrlimit(resource, Rlimit { current: most, maximum: most })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_with_the_user_or_the_group_of_the_server_sets_no_group_bit() {
        let account = |uid, gid| Account { uid, gid, groups: vec![5_000] };
        assert_eq!(kept(None, (1_000, 1_000)), Keep::UserAndGroup);
        assert_eq!(kept(Some(&account(0, 0)), (0, 0)), Keep::UserAndGroup);
        assert_eq!(kept(Some(&account(0, 5_000)), (0, 0)), Keep::UserAndGroup);
        assert_eq!(kept(Some(&account(1_000, 0)), (0, 0)), Keep::UserAndGroup);
        assert_eq!(kept(Some(&account(1_000, 1_000)), (0, 0)), Keep::User);
    }

    #[test]
    fn folders_that_a_program_is_looked_for_in_are_told_where_they_cannot_be_used() {
        let path = "/usr/local/nothing:/nowhere/bin::/";
        assert_eq!(unseen("python", path), [PathBuf::from("/nowhere/bin")]);
        assert_eq!(unseen("/nowhere/python", path), [PathBuf::from("/nowhere")]);
        assert_eq!(unseen("/python", path), Vec::<PathBuf>::new(), "its folder is there");
    }
}
