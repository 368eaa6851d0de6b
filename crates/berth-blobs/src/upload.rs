//! An upload: written to a temporary file, and moved to its place when it is complete.

use crate::error::{Error, Result, on_disk};
use crate::id::BlobId;
use crate::room::{LOOK_EVERY, Room};
use crate::sums::Sums;
use bytes::Bytes;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes to buffer before a write.
const GATHERED: usize = 1 << 20;

/// A file that is removed on drop.
#[derive(Debug)]
pub(crate) struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Part {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Dropping it removes the temporary file.
pub struct Upload {
    part: Part,
    file: File,
    sums: Sums,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    bytes: u64,
    /// The announced size, if known.
    said: Option<u64>,
    most: u64,
    room: Room,
    looked: u64,
}

/// A complete upload that is not yet in its place.
#[derive(Debug)]
pub struct Whole {
    pub id: BlobId,
    pub md5: String,
    pub bytes: u64,
    pub(crate) part: Part,
}

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub id: BlobId,
    pub md5: String,
    pub bytes: u64,
    /// The store did not have it before.
    pub is_new: bool,
}

impl Whole {
    /// Streams its bytes.
    pub fn open(&self) -> Result<File> {
        let path = self.part.path();
        File::open(path).map_err(|error| Error::io("read", path, error))
    }
}

impl Upload {
    pub(crate) async fn begin(
        folder: &Path,
        room: Room,
        said: Option<u64>,
        most: u64,
    ) -> Result<Upload> {
        if said.is_some_and(|said| said > most) {
            return Err(Error::TooLarge { most });
        }
        room.check(said.unwrap_or(0))?;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}.part", std::process::id()));
        on_disk(move || {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let file = opened.map_err(|error| Error::io("make", &path, error))?;
            Ok(Upload {
                part: Part(path),
                file,
                sums: Sums::default(),
                gathered: Vec::new(),
                gathered_bytes: 0,
                bytes: 0,
                said,
                most,
                room,
                looked: 0,
            })
        })
        .await
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a piece.
    pub async fn write(mut self, piece: Bytes) -> Result<Upload> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.most {
            return Err(Error::TooLarge { most: self.most });
        }
        self.gathered_bytes += piece.len();
        self.gathered.push(piece);
        if self.gathered_bytes < GATHERED {
            return Ok(self);
        }
        on_disk(move || self.flush()).await
    }

    fn flush(mut self) -> Result<Upload> {
        if self.bytes - self.looked >= LOOK_EVERY {
            let more = self.said.map_or(0, |said| said.saturating_sub(self.bytes));
            self.room.check(more)?;
            self.looked = self.bytes;
        }
        for piece in self.gathered.drain(..) {
            self.sums.update(&piece);
            let written = self.file.write_all(&piece);
            written.map_err(|error| Error::io("write", &self.part.0, error))?;
        }
        self.gathered_bytes = 0;
        Ok(self)
    }

    /// Completes the upload. The bytes are durable when this returns.
    pub async fn finish(self) -> Result<Whole> {
        on_disk(move || {
            let Upload { part, file, sums, bytes, said, .. } = self.flush()?;
            if let Some(said) = said.filter(|said| *said != bytes) {
                return Err(Error::CutOff { said, came: bytes });
            }
            file.sync_all().map_err(|error| Error::io("write", &part.0, error))?;
            let (id, md5) = sums.finish();
            Ok(Whole { id, md5, bytes, part })
        })
        .await
    }
}
