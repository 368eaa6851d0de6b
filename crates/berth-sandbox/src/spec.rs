//! What a sandbox is made of.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the processes of a task see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// An empty folder of the machine on which the view is built. Nothing is written to it.
    pub scratch: PathBuf,
    /// Everything there is. A place inside of another one comes after it, whatever their order
    /// here.
    pub mounts: Vec<Mount>,
    pub network: Network,
    /// What the processes run as. Without one they keep that of the server.
    pub account: Option<Account>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it appears: absolute, without `.` and `..`.
    pub at: PathBuf,
    pub source: Source,
}

impl Mount {
    pub fn new(at: impl Into<PathBuf>, source: Source) -> Mount {
        Mount { at: at.into(), source }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file or folder that is kept for the task, with what is mounted below it. It is opened with
    /// all rights, so nobody else may be able to give a folder on the way another name. The path
    /// leads through no link.
    Folder {
        path: PathBuf,
        write: bool,
    },
    /// The same of a path that somebody has named: opened with no more rights than `by` has, so
    /// that they are judged by what is mounted, and not by what was there before.
    Named {
        path: PathBuf,
        write: bool,
        by: Opener,
    },
    /// The same, left out where it is not there.
    System {
        path: PathBuf,
    },
    /// A device node of the machine.
    Device {
        path: PathBuf,
    },
    /// An empty file system in memory that everybody may write to.
    Memory,
    /// An empty folder that hides what is below it.
    Nothing,
    /// A read-only file.
    Text {
        text: String,
    },
    Link {
        to: PathBuf,
    },
    /// The processes of this sandbox.
    Processes,
    /// Terminals of this sandbox.
    Terminals,
}

impl Source {
    pub fn read(path: &Path) -> Source {
        Source::Folder { path: path.to_owned(), write: false }
    }

    pub fn write(path: &Path) -> Source {
        Source::Folder { path: path.to_owned(), write: true }
    }
}

/// Whose rights open a path that somebody has named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// The account of the sandbox, as the kernel judges.
    Account,
    /// Everybody, below a folder that is for everybody whatever lies above it.
    Everybody { below: PathBuf },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// That of the machine.
    #[default]
    Machine,
    /// Nothing can be reached.
    None,
}

/// The account that processes run as. Without one they keep that of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}
