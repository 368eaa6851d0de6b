//! A folder of MLflow's file store, such as `mlruns`.

pub mod disk;
mod layout;
mod lines;
mod models;
mod read;
mod registry;
mod runs;
mod write;
mod write_models;
mod yaml;

use crate::error::{Error, Result};
use crate::report::Problems;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub struct FileStore {
    root: PathBuf,
    name: String,
    problems: Rc<Problems>,
}

impl FileStore {
    /// An existing folder.
    pub fn open(root: &Path, problems: Rc<Problems>) -> Result<FileStore> {
        let place = || root.display().to_string();
        if !root.is_dir() {
            let why = "there is no such folder".to_owned();
            return Err(Error::NotASource { place: place(), why });
        }
        let is_store = layout::folders(root)?
            .iter()
            .chain(&layout::folders(&root.join(layout::TRASH)).unwrap_or_default())
            .any(|folder| folder.join(layout::META).is_file());
        if !is_store && !root.join(layout::MODELS).is_dir() {
            let why = "it is no file store of MLflow: no folder in it has a meta.yaml".to_owned();
            return Err(Error::NotASource { place: place(), why });
        }
        FileStore::at(root, problems)
    }

    /// An existing or new folder. A dry run does not create it.
    pub fn create(root: &Path, dry_run: bool, problems: Rc<Problems>) -> Result<FileStore> {
        let trash = root.join(layout::TRASH);
        let is_empty = std::fs::read_dir(root).map_or(true, |mut inside| inside.next().is_none());
        if !is_empty && !trash.is_dir() {
            // Refuse, because runs would mix with the other files in the folder.
            return FileStore::open(root, problems);
        }
        if dry_run && !root.is_dir() {
            let name = root.display().to_string();
            return Ok(FileStore { root: root.to_owned(), name, problems });
        }
        std::fs::create_dir_all(&trash).map_err(Error::file("making", &trash))?;
        FileStore::at(root, problems)
    }

    fn at(root: &Path, problems: Rc<Problems>) -> Result<FileStore> {
        let root = root.canonicalize().map_err(Error::file("finding", root))?;
        let name = root.display().to_string();
        Ok(FileStore { root, name, problems })
    }
}
