//! Objects in a folder of this machine. The files are world-readable and read-only, so that jobs can use
//! links to them. Only the server may open the folder itself.

use crate::error::{Error, Result};
use crate::id::BlobId;
use crate::listed::Listed;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    pub fn open(root: PathBuf) -> Result<Folder> {
        private(&root)?;
        Ok(Folder { root })
    }

    pub fn path(&self, id: &BlobId) -> PathBuf {
        let (first, rest) = id.parts();
        self.root.join(first).join(rest)
    }

    /// Moves a file to its place. Returns whether the object is new.
    pub fn place(&self, id: &BlobId, bytes: u64, part: &Path) -> Result<bool> {
        let place = self.path(id);
        let above = place.parent().unwrap_or(&self.root);
        match fs::metadata(&place) {
            Ok(found) if found.len() == bytes => {
                // The clean-up of unnamed objects uses this time.
                touch(&place)?;
                return Ok(false);
            }
            // The existing file is truncated, so replace it with the complete one.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => private(above)?,
            Err(error) => return Err(Error::io("look at", &place, error)),
        }
        let failed = |error| Error::io("place", &place, error);
        fs::set_permissions(part, Permissions::from_mode(0o444)).map_err(failed)?;
        fs::rename(part, &place).map_err(failed)?;
        File::open(above).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(true)
    }

    pub fn size(&self, id: &BlobId) -> Result<Option<u64>> {
        let path = self.path(id);
        match fs::metadata(&path) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("look at", &path, error)),
        }
    }

    pub fn open_file(&self, id: &BlobId) -> Result<File> {
        let path = self.path(id);
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing(id.clone()),
            _ => Error::io("read", &path, error),
        })
    }

    pub fn remove(&self, id: &BlobId) -> Result<()> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// The objects whose names have this prefix of two digits.
    pub fn list(&self, first: &str) -> Result<Vec<Listed>> {
        let folder = self.root.join(first);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("read", &folder, error)),
        };
        let mut listed = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let id = name.to_str().and_then(|rest| format!("{first}{rest}").parse().ok());
            let (Some(id), Ok(found)) = (id, entry.metadata()) else { continue };
            let modified = found.modified().unwrap_or_else(|_| SystemTime::now());
            listed.push(Listed { id, bytes: found.len(), modified });
        }
        Ok(listed)
    }
}

/// The owner may set the time of a read-only file.
fn touch(path: &Path) -> Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
    utimensat(CWD, path, &times, AtFlags::empty())
        .map_err(|error| Error::io("touch", path, error.into()))
}

/// Makes a folder that only its owner can read.
pub fn private(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Error::io("make the folder", path, error))
}
