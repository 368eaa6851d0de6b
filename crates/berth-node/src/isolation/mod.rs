//! How tasks are kept apart from each other, from the server and from what their users may not
//! reach.

mod accounts;
mod devices;
mod room;
mod view;

pub use accounts::{Accounts, own_account};
pub(crate) use room::Room;
pub use view::is_of_system;
pub(crate) use view::{Own, PROGRAMS, sandbox};

use berth_sandbox::{Account, Helper, Network, Opener, ProbeError, probe};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// The strictest that this machine allows.
    #[default]
    Strictest,
    /// The server does not start without.
    Required,
    Off,
}

/// What tasks get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces with a view of the file system of their own.
    Sandbox {
        /// Each user's tasks run as an account of their own. Only root can do that.
        accounts: bool,
    },
    /// Tasks run as the server does and reach what it reaches.
    Off { why: NoSandbox },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSandbox {
    #[error("it was switched off")]
    SwitchedOff,
    #[error("{0}")]
    Refused(ProbeError),
    #[error("there is no folder to try it in: {0}")]
    NoFolder(String),
}

impl Isolation {
    pub fn is_on(&self) -> bool {
        matches!(self, Isolation::Sandbox { .. })
    }

    /// Tries what was asked for. `rooms` is the folder for the rooms of tasks. A machine that has
    /// no memory or no processes left just now says nothing about sandboxes, and tasks must not run
    /// without one for that: it is tried again, and then the answer is an error.
    pub(crate) fn find(
        wanted: Wanted,
        helper: &Helper,
        rooms: &Path,
    ) -> Result<Isolation, NoSandbox> {
        if wanted == Wanted::Off {
            return Ok(Isolation::Off { why: NoSandbox::SwitchedOff });
        }
        let accounts = rustix::process::geteuid().is_root();
        let account = accounts.then(|| Accounts::made_up("berth-probe"));
        let mut tries = 1;
        loop {
            match try_out(helper, rooms, account.clone()) {
                Ok(()) => return Ok(Isolation::Sandbox { accounts }),
                Err(why) if !why.is_passing() => return Ok(Isolation::Off { why }),
                Err(why) if tries == TRIES => return Err(why),
                Err(_) => {}
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
    }
}

/// How often a sandbox is tried on a machine in trouble.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

impl NoSandbox {
    fn is_passing(&self) -> bool {
        match self {
            NoSandbox::SwitchedOff => false,
            NoSandbox::Refused(error) => error.is_passing,
            NoSandbox::NoFolder(_) => true,
        }
    }
}

fn try_out(helper: &Helper, rooms: &Path, account: Option<Account>) -> Result<(), NoSandbox> {
    let scratch = rooms.join("probe");
    fs::create_dir_all(&scratch).map_err(|error| NoSandbox::NoFolder(error.to_string()))?;
    let tried = probe(helper, &scratch, account);
    let _ = fs::remove_dir(&scratch);
    tried.map_err(NoSandbox::Refused)
}

/// Who a task is, and what it sees beside the system. Only a driver with a sandbox looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Confine {
    /// That of the server where left out.
    pub account: Option<Account>,
    /// What the account is called in there.
    pub user: String,
    /// What `HOME` is.
    pub home: PathBuf,
    pub shown: Vec<Shown>,
    /// Folders and files that stay hidden even where they lie in something that is shown.
    pub hidden: Vec<PathBuf>,
    /// Device nodes of its GPUs.
    pub devices: Vec<PathBuf>,
    #[serde(default)]
    pub network: Network,
}

/// A file or folder of the machine in the view of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub at: PathBuf,
    /// Leads through no link.
    pub source: PathBuf,
    pub write: bool,
    /// Whose rights open it, where somebody has named it. Others could exchange it between the
    /// check and the mount; what Berth keeps itself they cannot.
    #[serde(default)]
    pub by: Option<Opener>,
}

impl Shown {
    /// Something of Berth's own that appears where it is.
    pub fn in_place(path: &Path, write: bool) -> Shown {
        Shown { at: path.to_owned(), source: path.to_owned(), write, by: None }
    }
}
