//! Packed snapshots of code on this machine: files of the store of objects or, if that is a bucket, copies
//! that jobs with the same code share.

use berth_code::{Hasher, UnpackError};
use berth_model::CodeId;
use berth_service::code::kept::{self, Kept, KeptError};
use berth_service::home::private;
use berth_service::{BlobBook, Home};
use berth_store::Store;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A copy stays this long after its last use. A job that is about to start needs it no longer than that.
const KEPT: Duration = Duration::from_secs(3_600);

#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    #[error("the snapshot {id} is not kept any more; submit the job from its folder again")]
    Gone { id: CodeId },
    #[error("the snapshot {id} cannot be fetched: {source}")]
    Fetch { id: CodeId, source: KeptError },
    #[error("the snapshot {id} cannot be unpacked: {source}")]
    Unpack { id: CodeId, source: UnpackError },
    #[error("the snapshot {id} cannot be placed: {source}")]
    Place { id: CodeId, source: io::Error },
    #[error("the store has other bytes under the name of the snapshot {id}")]
    Changed { id: CodeId },
}

impl CodeError {
    /// Whether a later attempt can succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            CodeError::Fetch { .. } | CodeError::Place { .. } => true,
            CodeError::Gone { .. } | CodeError::Unpack { .. } | CodeError::Changed { .. } => false,
        }
    }
}

pub struct Snapshots {
    home: Home,
    store: Store,
    book: Arc<BlobBook>,
    /// The server fetches one at a time: many tasks start with the same one.
    fetching: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("folder", &self.folder()).finish_non_exhaustive()
    }
}

impl Snapshots {
    pub fn new(home: Home, store: Store, book: Arc<BlobBook>) -> Snapshots {
        Snapshots { home, store, book, fetching: tokio::sync::Mutex::default() }
    }

    fn folder(&self) -> PathBuf {
        self.home.packed()
    }

    fn copy_of(&self, id: &CodeId) -> PathBuf {
        self.folder().join(id.digits())
    }

    /// Sees that the snapshot of a team is on this machine.
    pub async fn provide(&self, team: &str, id: &CodeId) -> Result<(), CodeError> {
        let fetch = |source| CodeError::Fetch { id: id.clone(), source };
        let found = kept::find(&self.store, &self.home, team, id).await.map_err(fetch)?;
        let kept = found.ok_or_else(|| CodeError::Gone { id: id.clone() })?;
        if kept.file(&self.book.blobs).is_some() {
            return Ok(());
        }
        let _fetching = self.fetching.lock().await;
        let (place, folder) = (self.copy_of(id), self.folder());
        let is_here = tokio::task::spawn_blocking(move || {
            private(&folder)?;
            tidy(&folder)?;
            note_use(&place)
        });
        let placed = |source| CodeError::Place { id: id.clone(), source };
        let is_here = is_here.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        match is_here.map_err(placed)? {
            true => Ok(()),
            false => self.copy(id, &kept).await,
        }
    }

    async fn copy(&self, id: &CodeId, kept: &Kept) -> Result<(), CodeError> {
        let reader = kept.reader(&self.book.blobs).await.map_err(|source| match &source {
            missing if missing.is_missing() => CodeError::Gone { id: id.clone() },
            _ => CodeError::Fetch { id: id.clone(), source },
        })?;
        let (mut reader, place) = (reader, self.copy_of(id));
        let part = place.with_extension("part");
        let copied = tokio::task::spawn_blocking(move || {
            let mut hasher = Hasher::new(File::create(&part)?);
            io::copy(&mut reader, &mut hasher)?;
            hasher.flush()?;
            Ok::<_, io::Error>((hasher.finish().1, part))
        });
        let copied = copied.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        let failed = |source| {
            let path = self.copy_of(id);
            CodeError::Fetch { id: id.clone(), source: KeptError::Io { path, source } }
        };
        let (found, part) = copied.map_err(failed)?;
        if found != *id {
            return Err(CodeError::Changed { id: id.clone() });
        }
        let moved = tokio::task::spawn_blocking(move || fs::rename(part, place)).await;
        moved.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(failed)
    }

    /// A snapshot that was provided. The caller has the right to it.
    pub fn open(&self, team: &str, id: &CodeId) -> io::Result<File> {
        let stored = id.digits().parse().ok().and_then(|blob| self.book.blobs.file(&blob));
        let places = [Some(self.copy_of(id)), stored, Some(self.home.snapshot(team, id))];
        for place in places.into_iter().flatten() {
            match File::open(place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Notes the use of a copy. Returns whether it is there.
fn note_use(place: &Path) -> io::Result<bool> {
    match OpenOptions::new().append(true).open(place) {
        Ok(file) => file.set_modified(SystemTime::now()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes copies that no job has used for long, and what a killed server left.
fn tidy(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let modified = entry.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        if age > KEPT {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_no_job_uses_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for (name, seconds) in [("old", 3_700), ("used", 3_700), ("new", 10)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        }
        assert!(note_use(&folder.path().join("used")).unwrap());
        assert!(!note_use(&folder.path().join("nowhere")).unwrap());
        tidy(folder.path()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["new", "used"]);
    }
}
