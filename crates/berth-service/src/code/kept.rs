//! The place of a team's snapshot: the store of objects, or the home if an earlier version of Berth has
//! kept it there and this one has not moved it yet.

use crate::blobs::CODE;
use crate::home::Home;
use berth_blobs::{BlobId, Blobs, Content, Reader, of_file};
use berth_model::CodeId;
use berth_store::{BlobNameRow, Store};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    #[error("the database cannot be read: {0}")]
    Store(berth_store::Error),
    #[error("{0}")]
    Blobs(berth_blobs::Error),
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl KeptError {
    /// The bytes are gone.
    pub fn is_missing(&self) -> bool {
        match self {
            KeptError::Store(_) => false,
            KeptError::Blobs(error) => matches!(error, berth_blobs::Error::Missing(_)),
            KeptError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// A snapshot that a team has.
#[derive(Debug, Clone)]
pub struct Kept {
    pub bytes: u64,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Store(BlobId),
    Home(PathBuf),
}

/// The snapshot, if the team has it.
pub async fn find(
    store: &Store,
    home: &Home,
    team: &str,
    id: &CodeId,
) -> Result<Option<Kept>, KeptError> {
    if let Some(kept) = in_store(store, team, id).await? {
        return Ok(Some(kept));
    }
    let path = home.snapshot(team, id);
    let found = on_disk(&path, |path| match fs::metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    match found.await? {
        Some(bytes) => Ok(Some(Kept { bytes, place: Place::Home(path) })),
        // It may have moved between the two looks.
        None => in_store(store, team, id).await,
    }
}

async fn in_store(store: &Store, team: &str, id: &CodeId) -> Result<Option<Kept>, KeptError> {
    let name = id.to_string();
    let row = store.get::<BlobNameRow>((team, CODE, &name)).await.map_err(KeptError::Store)?;
    let kept = row.and_then(|row| {
        let id = row.sha256.parse().ok()?;
        Some(Kept { bytes: row.bytes, place: Place::Store(id) })
    });
    Ok(kept)
}

impl Kept {
    pub async fn is_there(&self, blobs: &Blobs) -> Result<bool, KeptError> {
        match &self.place {
            Place::Store(id) => blobs.has(id, self.bytes).await.map_err(KeptError::Blobs),
            Place::Home(_) => Ok(true),
        }
    }

    /// Streams it.
    pub async fn read(&self, blobs: &Blobs) -> Result<Content, KeptError> {
        match &self.place {
            Place::Store(id) => blobs.read(id, 0..self.bytes).await.map_err(KeptError::Blobs),
            Place::Home(path) => {
                let file = on_disk(path, |path| File::open(path)).await?;
                Ok(of_file(file, 0..self.bytes))
            }
        }
    }

    /// Reads it in blocking code.
    pub async fn reader(&self, blobs: &Blobs) -> Result<Reader, KeptError> {
        self.read(blobs).await.map(Reader::new)
    }

    /// Its file, if the store of objects is a folder and has it.
    pub fn file(&self, blobs: &Blobs) -> Option<PathBuf> {
        match &self.place {
            Place::Store(id) => blobs.file(id),
            Place::Home(_) => None,
        }
    }
}

/// Notes the use of a snapshot in the home, if there is one.
pub(super) async fn note_use(home: &Home, team: &str, id: &CodeId) -> Result<(), KeptError> {
    let path = home.snapshot(team, id);
    let noted = on_disk(&path, |path| match OpenOptions::new().append(true).open(path) {
        Ok(file) => file.set_modified(SystemTime::now()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    });
    noted.await
}

async fn on_disk<T: Send + 'static>(
    path: &Path,
    ask: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, KeptError> {
    let asked = path.to_owned();
    let asked = tokio::task::spawn_blocking(move || ask(&asked)).await;
    let asked = asked.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    asked.map_err(|source| KeptError::Io { path: path.to_owned(), source })
}
