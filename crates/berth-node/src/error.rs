//! What can go wrong, one variant per operation.

use crate::folder::folder_name;
use crate::isolation::NoSandbox;
use crate::trouble::Trouble;
use berth_model::LeaseId;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use {} as the folder of the node driver", path.display())]
    Root { path: PathBuf, source: io::Error },
    #[error(
        "{} is in use by another Berth server; stop that one, or choose another folder",
        path.display()
    )]
    InUse { path: PathBuf },
    #[error(
        "jobs cannot be isolated on this machine: {why}; make that possible, or start with \
         --isolation none if every user may reach what the server reaches"
    )]
    NoIsolation { why: NoSandbox },
    #[error(
        "cannot find out whether jobs can be isolated on this machine: {why}; see what the machine \
         lacks, or start with --isolation none if every user may reach what the server reaches"
    )]
    IsolationUntried { why: NoSandbox },
    #[error("cannot make the folder of lease {lease} at {}", path.display())]
    MakeFolder { lease: LeaseId, path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} does not say what it should", path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("{}, which no job may see, is not there to be hidden", path.display())]
    Hidden { path: PathBuf, source: io::Error },
    #[error("cannot start the supervisor {} of lease {lease}", exe.display())]
    Launch { lease: LeaseId, exe: PathBuf, source: io::Error },
    #[error("no task can be started on this machine")]
    Trouble { source: Trouble },
    #[error("the task of lease {lease} cannot be started: {what}")]
    Invalid { lease: LeaseId, what: String },
    #[error("there is no task for lease {lease} (folder {})", folder_name(*lease))]
    Unknown { lease: LeaseId },
    #[error("the task of lease {lease} does not run")]
    NotRunning { lease: LeaseId },
    #[error("the task of lease {lease} has not ended; only an ended task can be acknowledged")]
    NotEnded { lease: LeaseId },
    #[error("cannot open a terminal for lease {lease}")]
    Terminal { lease: LeaseId, source: io::Error },
    #[error("cannot wait for news of the tasks")]
    Wait { source: io::Error },
    #[error("there is no log of rank {rank} in {}", path.display())]
    NoLog { rank: u32, path: PathBuf, source: io::Error },
}

impl Error {
    /// The trouble of the machine that it comes from, if it does: what was asked for may go well
    /// later.
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Error::Trouble { source } => Some(source.clone()),
            Error::Root { source, .. }
            | Error::MakeFolder { source, .. }
            | Error::Read { source, .. }
            | Error::Write { source, .. }
            | Error::Hidden { source, .. }
            | Error::Launch { source, .. }
            | Error::Terminal { source, .. }
            | Error::Wait { source }
            | Error::NoLog { source, .. } => Trouble::of(source),
            Error::InUse { .. }
            | Error::NoIsolation { .. }
            | Error::IsolationUntried { .. }
            | Error::Malformed { .. }
            | Error::Invalid { .. }
            | Error::Unknown { .. }
            | Error::NotRunning { .. }
            | Error::NotEnded { .. } => None,
        }
    }

    /// The error with what it comes from, in one line.
    pub fn in_full(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}
