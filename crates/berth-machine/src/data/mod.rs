//! Versions of data on this machine: fetched before the first task starts that has them, and there for
//! the next. Tasks see the folder of a version, read-only.
//!
//! Where jobs are isolated and the store is a folder of the same file system, the files of a version
//! are links to those of the store, and nothing is copied. Otherwise they are links to copies, which
//! take up to a limit: the versions that no task has used for longest go first.

mod copies;
mod tree;

use crate::recovery::Seen;
use berth_blobs::{BlobId, Error as BlobError, Room};
use berth_engine::{Handle, Inlet};
use berth_model::{Bytes, DataRef, Name, RunSpec};
use berth_service::data_tree::{self, TreeError, TreeFile};
use berth_service::{BlobBook, Home};
use berth_store::Store;
use copies::Copies;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// Files that are copied at once.
const AT_ONCE: usize = 4;
/// A version that no task has used for so long goes, whether or not there is room.
const KEPT: Duration = Duration::from_secs(14 * 86_400);
const USED: &str = "used";

#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("its data {data}: {source}")]
    Tree { data: String, source: TreeError },
    #[error(
        "its data {data} takes {needed} bytes, and all data on this machine may take {most}; start \
         the server with a larger --data-cache"
    )]
    TooLarge { data: String, needed: u64, most: u64 },
    #[error("its data {data} cannot be fetched: {source}")]
    Fetch { data: String, source: BlobError },
    #[error("its data {data}: cannot make {}: {source}", path.display())]
    Io { data: String, path: PathBuf, source: io::Error },
    #[error("its data {data}: what was fetched is not {id}")]
    Changed { data: String, id: BlobId },
}

impl DataError {
    /// Whether it may go well later.
    pub fn is_passing(&self) -> bool {
        match self {
            DataError::Tree { source, .. } => {
                matches!(source, TreeError::Store(_) | TreeError::Blobs(_))
            }
            DataError::TooLarge { .. } => false,
            _ => true,
        }
    }
}

/// Since the start of the server.
#[derive(Debug, Default)]
pub struct DataCounts {
    /// Versions that were there already, and those that were not.
    pub found: AtomicU64,
    pub fetched: AtomicU64,
    pub copied_bytes: AtomicU64,
    pub removed: AtomicU64,
}

/// How data is kept on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataOptions {
    /// What copies may take.
    pub most: u64,
    /// What stays free on the disk.
    pub reserve: u64,
    /// Jobs see what they get and can change nothing of it.
    pub isolated: bool,
}

pub struct DataCache {
    root: PathBuf,
    store: Store,
    book: Arc<BlobBook>,
    options: DataOptions,
    copies: Copies,
    /// Each version is made by one at a time.
    making: Mutex<BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
    /// What makes room does so alone.
    room: tokio::sync::Mutex<()>,
    engine: OnceLock<Handle>,
    /// What the core was last told, if it was told anything.
    told: tokio::sync::Mutex<Option<BTreeMap<Name, Bytes>>>,
    pub counts: DataCounts,
}

/// The folder of a version, if its name says which one it is.
pub fn folder_of(home: &Home, team: &str, data: &DataRef) -> Option<PathBuf> {
    Some(home.data().join("trees").join(team).join(data.folder()?))
}

fn references(run: &RunSpec) -> impl Iterator<Item = DataRef> {
    run.versions().map(|(_, data)| data)
}

impl DataCache {
    pub fn open(
        home: &Home,
        store: Store,
        book: Arc<BlobBook>,
        options: DataOptions,
    ) -> io::Result<DataCache> {
        let root = home.data();
        let copies = Copies::open(root.join("copies"))?;
        tree::private(&root.join("trees"))?;
        Ok(DataCache {
            root,
            store,
            book,
            options,
            copies,
            making: Mutex::default(),
            room: tokio::sync::Mutex::default(),
            engine: OnceLock::new(),
            told: tokio::sync::Mutex::default(),
            counts: DataCounts::default(),
        })
    }

    /// From now on what running tasks have is known.
    pub fn attend(&self, engine: Handle) {
        let _ = self.engine.set(engine);
    }

    /// Tells which versions are here, if that has changed since.
    pub async fn tell(&self, inlet: &Inlet<Seen>) {
        let mut told = self.told.lock().await;
        let trees = self.root.join("trees");
        let kept = tokio::task::spawn_blocking(move || tree::kept(&trees, USED)).await;
        let Ok(kept) = kept else { return };
        if told.as_ref() != Some(&kept) {
            inlet.site(Seen::Data { kept: kept.clone() }).await;
            *told = Some(kept);
        }
    }

    pub fn copied_now(&self) -> u64 {
        self.copies.bytes()
    }

    /// Whether a task needs any of it.
    pub fn is_needed(run: &RunSpec) -> bool {
        references(run).next().is_some()
    }

    /// Sees that everything a task needs is here.
    pub async fn provide(&self, home: &Home, team: &str, run: &RunSpec) -> Result<(), DataError> {
        let all: BTreeSet<DataRef> = references(run).collect();
        for data in all {
            if let Some(folder) = folder_of(home, team, &data) {
                self.provide_one(team, &data, &folder).await?;
            }
        }
        Ok(())
    }

    async fn provide_one(
        &self,
        team: &str,
        data: &DataRef,
        folder: &Path,
    ) -> Result<(), DataError> {
        let making = {
            let mut all = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
            all.entry(folder.to_owned()).or_default().clone()
        };
        let _making = making.lock().await;
        let failed = |source| DataError::Io {
            data: data.version.to_string(),
            path: folder.to_owned(),
            source,
        };
        if folder.is_dir() {
            self.counts.found.fetch_add(1, Ordering::Relaxed);
            let found = folder.to_owned();
            let noted = tokio::task::spawn_blocking(move || note_use(&found, None)).await;
            return noted.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(failed);
        }
        let hash = data.hash.as_ref().map(ToString::to_string).unwrap_or_default();
        let read = data_tree::read(&self.store, &self.book.blobs, team, &hash).await;
        let tree =
            read.map_err(|source| DataError::Tree { data: data.version.to_string(), source })?;
        let sources = self.sources(data, &tree.files).await?;
        let (target, name) = (folder.to_owned(), data.version.name.clone());
        let made = tokio::task::spawn_blocking(move || {
            tree::make(&target, &name, &tree.files, &sources)?;
            note_use(&target, Some(tree.bytes()))
        });
        made.await.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(failed)?;
        self.counts.fetched.fetch_add(1, Ordering::Relaxed);
        self.tidy().await;
        Ok(())
    }

    /// The file of each object: that of the store where links to it do no harm, or a copy.
    async fn sources(
        &self,
        data: &DataRef,
        files: &[TreeFile],
    ) -> Result<BTreeMap<BlobId, PathBuf>, DataError> {
        let all: BTreeMap<&BlobId, u64> = files.iter().map(|file| (&file.id, file.bytes)).collect();
        if let Some(sources) = self.linkable(&all) {
            return Ok(sources);
        }
        let name = data.version.to_string();
        let missing: Vec<(BlobId, u64)> = all
            .iter()
            .filter(|(id, _)| !self.copies.has(id))
            .map(|(id, bytes)| ((*id).clone(), *bytes))
            .collect();
        let needed = missing.iter().map(|(_, bytes)| bytes).sum();
        let _room = self.room.lock().await;
        self.make_room(&name, needed).await?;
        let copied = stream::iter(missing).map(|(id, bytes)| {
            let name = name.clone();
            async move { self.copy(&name, id, bytes).await }
        });
        copied.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(all.into_keys().map(|id| (id.clone(), self.copies.path(id))).collect())
    }

    /// Nothing where links would be to another file system, or let jobs change what the store has.
    fn linkable(&self, all: &BTreeMap<&BlobId, u64>) -> Option<BTreeMap<BlobId, PathBuf>> {
        if !self.options.isolated {
            return None;
        }
        let sources: Option<BTreeMap<BlobId, PathBuf>> =
            all.keys().map(|id| Some(((*id).clone(), self.book.blobs.file(id)?))).collect();
        let sources = sources?;
        let one = sources.values().next();
        let is_same = one.is_none_or(|path| tree::is_same_file_system(path, &self.root));
        is_same.then_some(sources)
    }

    async fn copy(&self, data: &str, id: BlobId, bytes: u64) -> Result<(), DataError> {
        let fetch = |source| DataError::Fetch { data: data.to_owned(), source };
        let mut content = self.book.blobs.read(&id, 0..bytes).await.map_err(fetch)?;
        let failed =
            |source| DataError::Io { data: data.to_owned(), path: self.copies.path(&id), source };
        let mut copy = self.copies.begin(&id).map_err(failed)?;
        while let Some(piece) = content.next().await {
            let piece = piece.map_err(failed)?;
            let written = tokio::task::spawn_blocking(move || {
                copy.write(&piece)?;
                Ok::<_, io::Error>(copy)
            });
            let written = written.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
            copy = written.map_err(failed)?;
        }
        let copies = self.copies.clone();
        let finished = tokio::task::spawn_blocking(move || copies.finish(copy));
        let finished = finished.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        match finished.map_err(failed)? {
            true => {
                self.counts.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            }
            false => Err(DataError::Changed { data: data.to_owned(), id }),
        }
    }

    /// Lets versions go until there is room for so much more.
    async fn make_room(&self, data: &str, needed: u64) -> Result<(), DataError> {
        let most = self.options.most;
        let too_large = || DataError::TooLarge { data: data.to_owned(), needed, most };
        if needed > most {
            return Err(too_large());
        }
        let room = Room::new(&self.root, self.options.reserve);
        loop {
            let fits = self.copies.bytes().saturating_add(needed) <= most;
            let full = room.check(needed).err();
            if fits && full.is_none() {
                return Ok(());
            }
            if !self.remove_oldest(Duration::ZERO).await {
                return match full {
                    Some(source) => Err(DataError::Fetch { data: data.to_owned(), source }),
                    None => Err(too_large()),
                };
            }
        }
    }

    /// Lets go of what no task has used for long.
    async fn tidy(&self) {
        while self.remove_oldest(KEPT).await {}
    }

    /// Removes the version that was not used for longest, if that is so long and no task has it.
    async fn remove_oldest(&self, least: Duration) -> bool {
        let Some(in_use) = self.in_use() else { return false };
        let (trees, copies) = (self.root.join("trees"), self.copies.clone());
        let removed = tokio::task::spawn_blocking(move || {
            let Some(oldest) = tree::oldest(&trees, &in_use, least, USED) else {
                return Ok(false);
            };
            tree::remove(&oldest)?;
            fs::remove_file(mark_of(&oldest))?;
            copies.remove_unused()?;
            Ok::<_, io::Error>(true)
        });
        match removed.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            Ok(true) => {
                self.counts.removed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(%error, "data that no task uses cannot be removed");
                false
            }
        }
    }

    /// What tasks have that run or are about to: `TEAM/HASH`. Nothing while that is not known.
    fn in_use(&self) -> Option<BTreeSet<PathBuf>> {
        let core = self.engine.get()?.core();
        let mut used = BTreeSet::new();
        for job in core.jobs.values().filter(|job| !job.leases.is_empty()) {
            let Some(run) = job.detail.workload.run() else { continue };
            for data in references(run) {
                used.extend(data.folder().map(|name| Path::new(&job.row.team).join(name)));
            }
        }
        Some(used)
    }
}

fn mark_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.{USED}"))
}

/// The time of a mark beside the folder is that of its last use, and its text the size of the version.
/// Earlier versions of Berth wrote no size.
fn note_use(folder: &Path, bytes: Option<u64>) -> io::Result<()> {
    let mut mark: File =
        OpenOptions::new().create(true).truncate(false).write(true).open(mark_of(folder))?;
    let bytes = match mark.metadata()?.len() {
        0 => Some(bytes.map_or_else(|| tree::size(folder), Ok)?),
        _ => bytes,
    };
    if let Some(bytes) = bytes {
        mark.set_len(0)?;
        mark.write_all(bytes.to_string().as_bytes())?;
    }
    mark.set_modified(SystemTime::now())
}

#[cfg(test)]
mod tests;
