//! The store of objects with what the server has to know of it: what teams may keep and do keep, what
//! is on its way in, and what came of it.

use berth_blobs::{Blobs, Whole};
use berth_model::{Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::RwLock;

/// What teams may keep, and how long what nobody names is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobLimits {
    /// For a team that has no quota of its own.
    pub quota: u64,
    /// After the last name of an object is gone.
    pub grace: Span,
}

pub struct BlobBook {
    pub blobs: Blobs,
    pub limits: BlobLimits,
    /// Held for reading by what gives an object its place and its name, and for writing by what
    /// removes one: nothing is removed between the two.
    pub(crate) placing: RwLock<()>,
    /// What teams keep, as far as that was asked for.
    used: Mutex<BTreeMap<String, u64>>,
    pub(crate) multipart: Mutex<BTreeMap<String, Multipart>>,
    /// The files of folders that were fetched last: each of their files is asked for by itself.
    listed: Mutex<VecDeque<(String, Sums)>>,
    pub counts: BlobCounts,
}

/// The MD5 sums of the files of a folder.
pub(crate) type Sums = Arc<BTreeSet<String>>;

/// Folders whose files are remembered.
const MOST_LISTED: usize = 4;

/// An artifact that comes in parts.
pub(crate) struct Multipart {
    pub team: String,
    pub name: String,
    pub by: String,
    pub begun: Time,
    /// Who sends parts says this: the requests for parts have no token.
    pub secret_hash: String,
    pub count: u32,
    pub parts: BTreeMap<u32, Whole>,
}

/// Since the start of the server.
#[derive(Debug, Default)]
pub struct BlobCounts {
    pub taken: AtomicU64,
    pub taken_bytes: AtomicU64,
    /// Of those, what was there before.
    pub same_bytes: AtomicU64,
    pub refused: AtomicU64,
    pub removed: AtomicU64,
    pub removed_bytes: AtomicU64,
}

impl BlobBook {
    /// For a service that takes no uploads.
    pub fn closed(folder: PathBuf) -> berth_blobs::Result<BlobBook> {
        let options = berth_blobs::Options { folder, bucket: None, reserve: 0, most: 0 };
        let limits = BlobLimits { quota: 0, grace: Span::ZERO };
        Ok(BlobBook::new(Blobs::open(&options)?, limits))
    }

    pub fn new(blobs: Blobs, limits: BlobLimits) -> BlobBook {
        BlobBook {
            blobs,
            limits,
            placing: RwLock::new(()),
            used: Mutex::default(),
            multipart: Mutex::default(),
            listed: Mutex::default(),
            counts: BlobCounts::default(),
        }
    }

    fn used_now(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn multipart_now(&self) -> MutexGuard<'_, BTreeMap<String, Multipart>> {
        self.multipart.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a team keeps, if that is known.
    pub(crate) fn known_use(&self, team: &str) -> Option<u64> {
        self.used_now().get(team).copied()
    }

    /// All that is known.
    pub fn known_uses(&self) -> BTreeMap<String, u64> {
        self.used_now().clone()
    }

    /// Notes what the database says, unless something was noted meanwhile.
    pub(crate) fn note_use(&self, team: &str, bytes: u64) -> u64 {
        *self.used_now().entry(team.to_owned()).or_insert(bytes)
    }

    /// Adds what is about to be kept if that is within the quota; otherwise what is kept now.
    pub(crate) fn add_use(&self, team: &str, bytes: u64, quota: u64) -> Result<(), u64> {
        let mut used = self.used_now();
        let now = used.entry(team.to_owned()).or_default();
        let then = now.saturating_add(bytes);
        if bytes > 0 && then > quota {
            return Err(*now);
        }
        *now = then;
        Ok(())
    }

    pub(crate) fn less_use(&self, team: &str, bytes: u64) {
        if let Some(now) = self.used_now().get_mut(team) {
            *now = now.saturating_sub(bytes);
        }
    }

    /// Has the database asked again: a team may be gone, or what was noted have drifted.
    pub(crate) fn forget_uses(&self) {
        self.used_now().clear();
    }

    /// What is in a folder of a team, if it was asked for of late.
    pub(crate) fn listed(&self, folder: &str) -> Option<Sums> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.iter().find(|(known, _)| known == folder).map(|(_, sums)| sums.clone())
    }

    pub(crate) fn note_listed(&self, folder: String, sums: Sums) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.push_front((folder, sums));
        listed.truncate(MOST_LISTED);
    }

    pub(crate) fn count_taken(&self, bytes: u64, is_new: bool) {
        self.counts.taken.fetch_add(1, Ordering::Relaxed);
        self.counts.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
        if !is_new {
            self.counts.same_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_removed(&self, bytes: u64) {
        self.counts.removed.fetch_add(1, Ordering::Relaxed);
        self.counts.removed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_blobs::Options;

    #[test]
    fn what_is_on_its_way_counts_against_the_quota_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let options =
            Options { folder: folder.path().to_owned(), bucket: None, reserve: 0, most: 100 };
        let limits = BlobLimits { quota: 100, grace: Span::ZERO };
        let book = BlobBook::new(Blobs::open(&options).unwrap(), limits);
        assert_eq!(book.note_use("nlp", 40), 40);
        assert_eq!(book.add_use("nlp", 60, 100), Ok(()));
        assert_eq!(book.add_use("nlp", 1, 100), Err(100));
        assert_eq!(book.add_use("nlp", 0, 100), Ok(()), "what takes nothing is always kept");
        book.less_use("nlp", 60);
        assert_eq!((book.known_use("nlp"), book.note_use("nlp", 7)), (Some(40), 40));
        assert_eq!(book.known_use("vision"), None);
    }
}
