//! Whole logs in the bucket of the server, so that a replica that leads later has the output of
//! tasks that ended before. Without a bucket they are in the home of the replica that led.
//!
//! A log is one object: a line of JSON for each of its files, with its name and size, and its bytes
//! behind that line.

use berth_model::{JobId, LeaseId, Time};
use berth_service::{BlobBook, home};
use berth_store::Store;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;

/// The folder of logs in the bucket.
const FOLDER: &str = "output";
/// In the folder of a log that has all there will be.
pub(super) const WHOLE: &str = "whole";
/// In the folder of a log that is in the bucket.
const KEPT: &str = "kept";
/// In the folder of a log, while it is sent or fetched.
const PACKED: &str = "packed";
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);
/// No line about a file is longer, whatever is in the bucket.
const MAX_LINE: u64 = 4_096;

/// Whole logs, once it is known where they are kept.
#[derive(Default)]
pub struct Archive(OnceLock<Arc<dyn Shelf>>);

/// What a shelf answers; the error is its text.
type Answer<'a, T> = BoxFuture<'a, Result<T, String>>;

/// Where replicas keep files under names.
pub trait Shelf: Send + Sync {
    fn put<'a>(&'a self, name: &'a str, bytes: u64, file: &'a Path) -> Answer<'a, ()>;

    /// Writes what has that name into a file. Returns whether there is any.
    fn get<'a>(&'a self, name: &'a str, file: &'a Path) -> Answer<'a, bool>;

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;

    /// What is in a folder, and since when.
    fn list<'a>(&'a self, folder: &'a str) -> Answer<'a, Vec<(String, SystemTime)>>;
}

/// The bucket of a server.
struct Bucket(Arc<BlobBook>);

impl Shelf for Bucket {
    fn put<'a>(&'a self, name: &'a str, bytes: u64, file: &'a Path) -> Answer<'a, ()> {
        let put = async move { self.0.blobs.put_named(name, bytes, file).await };
        put.map(|put| put.map(drop).map_err(|error| error.to_string())).boxed()
    }

    fn get<'a>(&'a self, name: &'a str, file: &'a Path) -> Answer<'a, bool> {
        let get = async move {
            let found = self.0.blobs.read_named(name).await.map_err(|error| error.to_string())?;
            let Some(mut found) = found else { return Ok(false) };
            let failed = |error: io::Error| error.to_string();
            let mut file = tokio::fs::File::create(file).await.map_err(failed)?;
            while let Some(piece) = found.try_next().await.map_err(failed)? {
                file.write_all(&piece).await.map_err(failed)?;
            }
            file.flush().await.map_err(failed)?;
            Ok(true)
        };
        get.boxed()
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let remove = async move { self.0.blobs.remove_named(name).await };
        remove.map(|removed| removed.map_err(|error| error.to_string())).boxed()
    }

    fn list<'a>(&'a self, folder: &'a str) -> Answer<'a, Vec<(String, SystemTime)>> {
        let list = async move { self.0.blobs.list_named(folder).await };
        list.map(|listed| listed.map_err(|error| error.to_string())).boxed()
    }
}

/// A file of a log.
#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    name: String,
    bytes: u64,
}

/// Why a log was not kept or not found.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Bucket(String),
}

impl Archive {
    /// From now on logs are kept in this store, if that is a bucket.
    pub fn keep_in(&self, book: Arc<BlobBook>) {
        if book.blobs.is_shared() {
            self.keep_on(Arc::new(Bucket(book)));
        }
    }

    fn keep_on(&self, shelf: Arc<dyn Shelf>) {
        let _ = self.0.set(shelf);
    }

    /// Sends a whole log to the bucket, unless it is there.
    pub async fn put(&self, lease: LeaseId, folder: &Path) {
        if self.0.get().is_none() || folder.join(KEPT).exists() || !folder.join("logs").exists() {
            return;
        }
        for tried in 1..=TRIES {
            let Err(error) = self.try_put(lease, folder).await else { return };
            tracing::warn!(%error, %lease, "a log could not be put into the bucket");
            if tried < TRIES {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn try_put(&self, lease: LeaseId, folder: &Path) -> Result<(), Error> {
        let Some(shelf) = self.0.get() else { return Ok(()) };
        let packed = folder.join(PACKED);
        let (from, to) = (folder.join("logs"), packed.clone());
        let bytes = on_disk(move || pack(&from, &to)).await?;
        let put = shelf.put(&name(lease), bytes, &packed).await;
        let _ = tokio::fs::remove_file(&packed).await;
        put.map_err(Error::Bucket)?;
        tokio::fs::write(folder.join(KEPT), "").await?;
        Ok(())
    }

    /// Fetches a whole log from the bucket. Returns whether it is here now.
    pub async fn get(&self, lease: LeaseId, folder: &Path) -> bool {
        match self.try_get(lease, folder).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, %lease, "a log could not be fetched from the bucket");
                false
            }
        }
    }

    async fn try_get(&self, lease: LeaseId, folder: &Path) -> Result<bool, Error> {
        let Some(shelf) = self.0.get() else { return Ok(false) };
        home::private(folder)?;
        let packed = folder.join(PACKED);
        if !shelf.get(&name(lease), &packed).await.map_err(Error::Bucket)? {
            return Ok(false);
        }
        let (from, to) = (packed.clone(), folder.join("logs"));
        let unpacked = on_disk(move || unpack(&from, &to)).await;
        let _ = tokio::fs::remove_file(&packed).await;
        unpacked?;
        tokio::fs::write(folder.join(KEPT), "").await?;
        tokio::fs::write(folder.join(WHOLE), "").await?;
        Ok(true)
    }

    /// Removes logs that were put there before then, of leases that are in no row any more.
    pub async fn delete_old(&self, store: &Store, before: Time) -> Result<(), String> {
        let Some(shelf) = self.0.get() else { return Ok(()) };
        let all = shelf.list(FOLDER).await?;
        let is_old = |at: &SystemTime| {
            let since = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
            i64::try_from(since).unwrap_or(i64::MAX) < before.0
        };
        let old = all.into_iter().filter(|(_, at)| is_old(at));
        let mut old: Vec<(LeaseId, String)> =
            old.filter_map(|(name, _)| Some((lease_of(&name)?, name))).collect();
        old.sort();
        let mut of: Option<JobId> = None;
        let mut known = BTreeSet::new();
        for (lease, file) in old {
            if of != Some(lease.job) {
                let rows = store.leases_of(lease.job).await.map_err(|error| error.to_string())?;
                known = rows.into_iter().map(|row| row.id).collect();
                of = Some(lease.job);
            }
            if !known.contains(&lease) {
                shelf.remove(&format!("{FOLDER}/{file}")).await?;
            }
        }
        Ok(())
    }
}

/// Which lease a folder is of.
pub(super) fn lease_of(folder: &str) -> Option<LeaseId> {
    let mut parts = folder.split('.');
    let mut next = || parts.next();
    let (job, task, attempt) = (next()?, next()?, next()?);
    let is_all = next().is_none();
    let (job, task, attempt) = (job.parse().ok()?, task.parse().ok()?, attempt.parse().ok()?);
    is_all.then_some(LeaseId { job, task, attempt })
}

fn name(lease: LeaseId) -> String {
    format!("{FOLDER}/{}.{}.{}", lease.job, lease.task, lease.attempt)
}

async fn on_disk<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(io::Error::other)?
}

/// Writes the files of a folder into one. Returns its size.
fn pack(from: &Path, to: &Path) -> io::Result<u64> {
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.path());
        }
    }
    names.sort();
    let mut all = io::BufWriter::new(File::create(to)?);
    for path in names {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let mut file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        let line = serde_json::to_string(&Packed { name: name.to_owned(), bytes })?;
        writeln!(all, "{line}")?;
        let copied = io::copy(&mut (&mut file).take(bytes), &mut all)?;
        if copied != bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a log became shorter"));
        }
    }
    all.flush()?;
    Ok(all.get_ref().metadata()?.len())
}

/// The other way round. The folder is replaced as a whole or not at all.
fn unpack(from: &Path, to: &Path) -> io::Result<()> {
    let new = to.with_extension("new");
    clear(&new)?;
    home::private(&new)?;
    let mut all = BufReader::new(File::open(from)?);
    loop {
        let mut line = String::new();
        if (&mut all).take(MAX_LINE).read_line(&mut line)? == 0 {
            break;
        }
        let Packed { name, bytes } = serde_json::from_str(&line)?;
        // The bucket is not ours alone.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a log has an odd file name"));
        }
        let mut file = File::create(new.join(&name))?;
        if io::copy(&mut (&mut all).take(bytes), &mut file)? != bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a log is cut off"));
        }
    }
    clear(to)?;
    std::fs::rename(&new, to)
}

fn clear(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_node::{LogLimits, LogWriter};

    #[test]
    fn a_log_is_the_same_after_it_was_packed_and_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        home::private(&here).unwrap();
        let mut writer = LogWriter::new(&here, 0, LogLimits::default());
        writer.write(b"epoch 1\n", Time(1));
        writer.write(b"epoch 2\n", Time(2));
        drop(writer);
        let packed = folder.path().join("packed");
        let bytes = pack(&here, &packed).unwrap();
        assert_eq!(bytes, packed.metadata().unwrap().len());
        unpack(&packed, &there).unwrap();
        let names = |folder: &Path| -> BTreeSet<String> {
            let entries = std::fs::read_dir(folder).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names(&here), names(&there));
        for name in names(&here) {
            let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
            assert_eq!(read(&here), read(&there), "{name}");
        }
    }

    /// Files that replicas share.
    struct Folder(PathBuf);

    impl Folder {
        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name.replace('/', "_"))
        }
    }

    impl Shelf for Folder {
        fn put<'a>(&'a self, name: &'a str, _: u64, file: &'a Path) -> Answer<'a, ()> {
            let put = std::fs::copy(file, self.at(name)).map(drop);
            std::future::ready(put.map_err(|error| error.to_string())).boxed()
        }

        fn get<'a>(&'a self, name: &'a str, file: &'a Path) -> Answer<'a, bool> {
            let is_there = self.at(name).exists();
            if is_there {
                std::fs::copy(self.at(name), file).unwrap();
            }
            std::future::ready(Ok(is_there)).boxed()
        }

        fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
            std::fs::remove_file(self.at(name)).unwrap();
            std::future::ready(Ok(())).boxed()
        }

        fn list<'a>(&'a self, _: &'a str) -> Answer<'a, Vec<(String, SystemTime)>> {
            std::future::ready(Ok(Vec::new())).boxed()
        }
    }

    #[tokio::test]
    async fn a_replica_reads_the_output_of_a_task_that_ended_under_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        let replica = || {
            let archive = Archive::default();
            archive.keep_on(Arc::new(Folder(shared.clone())));
            archive
        };
        let lease = lease_of("17.0.1").unwrap();
        let (one, other) = (folder.path().join("one/17.0.1"), folder.path().join("other/17.0.1"));
        home::private(&one.join("logs")).unwrap();
        let mut writer = LogWriter::new(&one.join("logs"), 0, LogLimits::default());
        writer.write(b"accuracy 0.9\n", Time(1));
        drop(writer);
        assert!(!replica().get(lease, &other).await, "nothing is kept yet");
        replica().put(lease, &one).await;
        assert!(replica().get(lease, &other).await);
        assert!(other.join(WHOLE).exists() && other.join("logs").exists());
        let read = |folder: &Path| {
            let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("logs"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            files.sort();
            files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(read(&one), read(&other));
        let without = Archive::default();
        without.put(lease, &one).await;
        assert!(!without.get(lease, &other).await, "without a bucket nothing is shared");
    }

    #[test]
    fn what_is_no_log_leaves_the_log_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (packed, log) = (folder.path().join("packed"), folder.path().join("logs"));
        home::private(&log).unwrap();
        std::fs::write(log.join("0.log"), "as before").unwrap();
        for bad in [
            "{\"name\":\"../../escaped\",\"bytes\":1}\nx",
            "{\"name\":\"0.log\",\"bytes\":10}\nshort",
            "no JSON at all\n",
        ] {
            std::fs::write(&packed, bad).unwrap();
            assert!(unpack(&packed, &log).is_err(), "{bad}");
            assert_eq!(std::fs::read_to_string(log.join("0.log")).unwrap(), "as before");
        }
        assert!(!folder.path().join("escaped").exists());
    }
}
