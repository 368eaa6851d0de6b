//! What a task needs on the disk only while it runs: its `/tmp`, and the folder its view is built
//! on.

use crate::folder::folder_name;
use crate::owner::{give, remove_tree};
use berth_model::LeaseId;
use berth_sandbox::Account;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    dir: PathBuf,
}

impl Room {
    pub fn of(rooms: &Path, lease: LeaseId) -> Room {
        Room { dir: rooms.join(folder_name(lease)) }
    }

    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub fn scratch(&self) -> PathBuf {
        self.dir.join("view")
    }

    pub fn make(&self, account: Option<&Account>) -> io::Result<()> {
        for dir in [self.scratch(), self.tmp()] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        give(&self.tmp(), account)
    }

    pub fn exists(&self) -> bool {
        self.dir.exists()
    }

    /// Removes it; a link in there is removed and not followed.
    pub fn remove(&self) -> io::Result<()> {
        remove_tree(&self.dir)
    }
}
