//! A terminal beside a running task.

use crate::cgroup::Cgroup;
use crate::error::Error;
use crate::home::{Home, private, read_json};
use crate::launcher::Launcher;
use crate::process::{self, Process};
use crate::task::TaskSpec;
use berth_model::LeaseId;
use berth_sandbox::{Account, Enter, Helper, Limits, Network};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

/// An open terminal. What is typed goes into the descriptor and what is shown comes out of it;
/// dropping it hangs up.
#[derive(Debug)]
pub struct Shell {
    master: OwnedFd,
    child: Child,
}

/// For the helper that becomes the shell.
#[derive(Serialize, Deserialize)]
struct Entry {
    command: Vec<String>,
    directory: PathBuf,
    env: BTreeMap<String, String>,
    cgroup: Option<PathBuf>,
    /// Where the task is in a sandbox.
    inside: Option<Inside>,
}

/// How a shell joins the sandbox of its task.
#[derive(Serialize, Deserialize)]
struct Inside {
    /// The first process of the sandbox.
    init: i32,
    /// When it was started: its number may be another's by now.
    init_start: Option<u64>,
    limits: Limits,
    account: Option<Account>,
    network: Network,
    helper: Helper,
}

impl Shell {
    pub(crate) fn open(
        home: &Home,
        lease: LeaseId,
        launcher: &Launcher,
        command: &[String],
        term: &str,
        size: Size,
    ) -> Result<Shell, Error> {
        let entry = entry(home, lease, launcher, command, term)?;
        let fail = |source| Error::Terminal { lease, source };
        // The supervisor then knows that there are processes which are not below it.
        private().create(true).append(true).open(home.file("shells")).map_err(fail)?;
        let open = || -> io::Result<Shell> {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let slave = ioctl_tiocgptpeer(&master, flags)?;
            resize(&master, size)?;
            let mut command = launcher.command("shell", &home.dir, &entry)?;
            let child = command.stdout(slave.try_clone()?).stderr(slave).spawn()?;
            Ok(Shell { master, child })
        };
        open().map_err(fail)
    }

    pub fn resize(&self, size: Size) -> io::Result<()> {
        resize(&self.master, size)
    }

    /// The exit status once the shell has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl AsFd for Shell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn resize(terminal: impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

fn entry(
    home: &Home,
    lease: LeaseId,
    launcher: &Launcher,
    command: &[String],
    term: &str,
) -> Result<Entry, Error> {
    let running = home.running()?.filter(|_| !home.has_ended());
    let running = running.ok_or(Error::NotRunning { lease })?;
    let spec: Option<TaskSpec> = read_json(&home.file("task.json"))?;
    let mut env = task_environment(home, &running.pids);
    env.insert("TERM".to_owned(), term.to_owned());
    let shell = env.get("SHELL").cloned().unwrap_or_else(|| "/bin/sh".to_owned());
    let confine = spec.as_ref().and_then(|spec| spec.confine.clone());
    if confine.is_some() && running.init.is_none() {
        // It would see the machine.
        return Err(Error::NotRunning { lease });
    }
    let confine = confine.unwrap_or_default();
    let inside = running.init.map(|init| Inside {
        init,
        init_start: running.init_start,
        limits: running.limits,
        account: confine.account,
        network: confine.network,
        helper: launcher.sandbox(),
    });
    let begun = home.open_lock().map_err(|source| Error::Terminal { lease, source })?.begun()?;
    Ok(Entry {
        command: if command.is_empty() { vec![shell] } else { command.to_vec() },
        directory: spec.map(|spec| spec.directory).unwrap_or_else(|| PathBuf::from("/")),
        env,
        cgroup: begun.and_then(|begun| begun.cgroup),
        inside,
    })
}

/// The environment of the task, taken from one of its processes: it is nowhere else, because it
/// may hold secrets. A program may have overwritten its own with a title; then another one's.
fn task_environment(home: &Home, pids: &[i32]) -> BTreeMap<String, String> {
    let name = "BERTH_TASK_DIR";
    let markers = [home.job(), home.dir.clone()].map(|dir| dir.display().to_string());
    let others = process::marked(&home.dir).into_iter().map(|found| found.pid);
    for pid in pids.iter().copied().chain(others) {
        let lines = process::environ(pid);
        let env: BTreeMap<String, String> = lines
            .iter()
            .filter_map(|line| {
                let (name, value) = std::str::from_utf8(line).ok()?.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect();
        if env.get(name).is_some_and(|dir| markers.contains(dir)) {
            return env;
        }
    }
    let [marker, _] = markers;
    BTreeMap::from([(name.to_owned(), marker)])
}

/// The helper's part: takes the terminal that is its standard output as its own, and becomes
/// the command. With a sandbox it starts the command in there and waits for its end.
pub(crate) fn enter() -> ExitCode {
    match try_enter() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("the shell could not be started: {error}\r");
            ExitCode::FAILURE
        }
    }
}

fn try_enter() -> io::Result<ExitCode> {
    let mut order = Vec::new();
    io::stdin().read_to_end(&mut order)?;
    let entry: Entry = serde_json::from_slice(&order).map_err(io::Error::other)?;
    if let Some(path) = &entry.cgroup
        && path.exists()
    {
        Cgroup::at(path).join(rustix::process::getpid().as_raw_pid())?;
    }
    if let Some(inside) = entry.inside {
        return run_inside(inside, entry.command, entry.env, entry.directory);
    }
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(io::stdout())?;
    rustix::stdio::dup2_stdin(io::stdout())?;
    let (program, args) = entry.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    Err(command.args(args).env_clear().envs(&entry.env).current_dir(&entry.directory).exec())
}

fn run_inside(
    inside: Inside,
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    directory: PathBuf,
) -> io::Result<ExitCode> {
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let Inside { init, init_start, helper, .. } = inside;
    let is_it =
        || init_start.is_none_or(|start| Process::of(init) == Some(Process { pid: init, start }));
    let joined = berth_sandbox::join(init, is_it, helper).map_err(io::Error::other)?;
    let enter = Enter {
        argv,
        env,
        directory,
        account: inside.account,
        limits: inside.limits,
        network: inside.network,
        terminal: true,
    };
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let errors = io::stderr().as_fd().try_clone_to_owned()?;
    let mut child = joined.spawn(&enter, output, errors).map_err(io::Error::other)?;
    let status = child.wait()?;
    // As a shell says it of a command that a signal ended.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
