//! Whether sandboxes work on this machine: tried, not guessed. Kernels, containers and security
//! modules refuse namespaces in many ways.

use crate::channel::{self, Channel};
use crate::enter::{Enter, Limits};
use crate::parent::{Helper, close_inherited};
use crate::spec::{Account, Mount, Network, Sandbox, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

pub(crate) const WORD: &str = "sandbox-probe";

/// Why there can be no sandbox here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct ProbeError {
    pub why: String,
    /// The machine lacked something, such as memory or processes: another try may succeed, and
    /// nothing is known about sandboxes.
    pub is_passing: bool,
}

/// Of the operating system's errors those that come and go: EINTR, EAGAIN, ENOMEM, ENFILE, EMFILE.
/// ENOSPC is none of them: it says that there may be no more user namespaces.
const PASSING: [i32; 5] = [4, 11, 12, 23, 24];

impl ProbeError {
    fn of(error: &io::Error) -> ProbeError {
        ProbeError::new(error, error.raw_os_error())
    }

    fn new(why: impl ToString, errno: Option<i32>) -> ProbeError {
        let is_passing = errno.is_some_and(|errno| PASSING.contains(&errno));
        ProbeError { why: why.to_string(), is_passing }
    }

    fn passing(why: impl ToString) -> ProbeError {
        ProbeError { why: why.to_string(), is_passing: true }
    }
}

#[derive(Serialize, Deserialize)]
struct Order {
    helper: Helper,
    scratch: PathBuf,
    account: Option<Account>,
}

#[derive(Serialize, Deserialize)]
struct Tried {
    failed: Option<ProbeError>,
}

/// Runs a command in a sandbox as small as can be. `scratch` is an empty folder.
pub fn probe(helper: &Helper, scratch: &Path, account: Option<Account>) -> Result<(), ProbeError> {
    let ask = || -> io::Result<Option<Tried>> {
        let (channel, input) = Channel::open()?;
        let mut command = helper.command(WORD);
        let mut child = command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        drop(command);
        let scratch = scratch.to_owned();
        let tried = channel.ask(&Order { helper: helper.clone(), scratch, account });
        child.wait()?;
        tried
    };
    match ask() {
        Ok(Some(Tried { failed: None })) => Ok(()),
        Ok(Some(Tried { failed: Some(error) })) => Err(error),
        Ok(None) => Err(ProbeError::passing("the process that tried it was killed")),
        // It did not answer in time.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(ProbeError::passing(error)),
        Err(error) => Err(ProbeError::of(&error)),
    }
}

pub(crate) fn run() -> ExitCode {
    close_inherited();
    let Ok((order, answer)) = channel::receive::<Order>() else { return ExitCode::FAILURE };
    let tried = Tried { failed: attempt(order).err() };
    match answer.send(&tried) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn attempt(order: Order) -> Result<(), ProbeError> {
    let system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/nix"];
    let mut mounts: Vec<Mount> = system
        .iter()
        .map(|path| Mount::new(path, Source::System { path: PathBuf::from(path) }))
        .collect();
    mounts.push(Mount::new("/proc", Source::Processes));
    mounts.push(Mount::new("/dev/null", Source::Device { path: PathBuf::from("/dev/null") }));
    mounts.push(Mount::new("/dev/pts", Source::Terminals));
    let network = Network::Machine;
    let account = order.account.clone();
    let sandbox = Sandbox { scratch: order.scratch, mounts, network, account };
    let started = sandbox.start(order.helper);
    let mut running = started.map_err(|error| ProbeError::new(&error, error.errno()))?;
    let enter = Enter {
        argv: ["sh", "-c", ":"].map(str::to_owned).to_vec(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        directory: PathBuf::from("/"),
        account: order.account,
        limits: Limits::default(),
        network,
        terminal: false,
    };
    let spawned = running.spawn(&enter, Stdio::null(), Stdio::null());
    let status = spawned
        .map_err(|error| ProbeError::new(&error, error.errno()))
        .and_then(|mut child| child.wait().map_err(|error| ProbeError::of(&error)));
    let _ = running.init.kill();
    let _ = running.init.wait();
    match status? {
        status if status.success() => Ok(()),
        // Nobody but the system has reason to kill it.
        status if status.code().is_none() => {
            Err(ProbeError::passing(format!("a command in it ended with {status}")))
        }
        status => Err(ProbeError::new(format!("a command in it ended with {status}"), None)),
    }
}
