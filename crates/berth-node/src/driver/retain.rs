//! What is kept of tasks that have ended, and letting go of it.

use super::Driver;
use crate::error::Error;
use crate::folder::{folder_name, parse_folder_name};
use crate::home::{self, Home};
use crate::owner::remove_tree;
use crate::task::TaskSpec;
use berth_model::{LeaseId, Name, Time};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is kept of an ended task: its files and its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub lease: LeaseId,
    pub team: Name,
    pub ended: Time,
    /// What it takes on the disk.
    pub bytes: u64,
}

impl Driver {
    /// The acknowledged tasks of which something is kept.
    pub fn kept_leases(&self) -> Result<BTreeSet<LeaseId>, Error> {
        let fail = |source| Error::Read { path: self.ended.clone(), source };
        let entries = fs::read_dir(&self.ended).map_err(fail)?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.filter_map(|name| parse_folder_name(name.to_str()?)).collect())
    }

    /// What is kept of an acknowledged task; nothing where nothing is.
    pub fn kept(&self, lease: LeaseId) -> Option<Kept> {
        let home = Home::new(self.ended.join(folder_name(lease)));
        let found = fs::metadata(&home.dir).ok()?;
        let spec: Option<TaskSpec> = home::read_json(&home.file("task.json")).unwrap_or_default();
        let ended = home.ended().ok().flatten().map(|ended| ended.at);
        Some(Kept {
            lease,
            team: spec.map(|spec| spec.team).unwrap_or_default(),
            // One that cannot be read is as old as its folder.
            ended: ended.unwrap_or(Time(found.mtime() * 1_000)),
            bytes: size(&home.dir),
        })
    }

    /// Whether anything is kept of a task, running or ended.
    pub fn has_output(&self, lease: LeaseId) -> bool {
        self.folder(lease).is_ok()
    }

    /// Deletes what is left of an acknowledged task, its log included.
    pub fn forget(&self, lease: LeaseId) -> Result<(), Error> {
        self.note_number(lease.job.number)?;
        let path = self.ended.join(folder_name(lease));
        remove_tree(&path).map_err(|source| Error::Write { path, source })
    }

    /// The highest number of a job that has left anything here; 0 if none has.
    pub fn last_job(&self) -> u64 {
        let names = [&self.tasks, &self.ended].into_iter().filter_map(|dir| fs::read_dir(dir).ok());
        let names = names.flatten().flatten().map(|entry| entry.file_name());
        let numbers = names.filter_map(|name| {
            let name = name.to_str()?;
            name.split(['.', '_']).next()?.parse().ok()
        });
        numbers.max().unwrap_or(0).max(self.noted_number())
    }

    /// A number whose last folder is deleted must not be given to another job either.
    fn note_number(&self, number: u64) -> Result<(), Error> {
        if number <= self.noted_number() {
            return Ok(());
        }
        home::write_json(&self.root.join("last-job.json"), &number)
    }

    fn noted_number(&self) -> u64 {
        home::read_json(&self.root.join("last-job.json")).unwrap_or_default().unwrap_or(0)
    }
}

/// What a folder takes on the disk. Links are not followed.
fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()) + found.blocks() * 512,
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}
