//! Copies of objects, each checked as it was written. Versions have links to them.

use berth_blobs::{BlobId, Sums};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
pub struct Copies {
    root: PathBuf,
    bytes: Arc<AtomicU64>,
}

/// A copy on its way. What is left of it is removed unless it is finished.
pub struct Copy {
    id: BlobId,
    part: PathBuf,
    file: File,
    sums: Sums,
    bytes: u64,
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

impl Copy {
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.sums.update(piece);
        self.bytes += piece.len() as u64;
        self.file.write_all(piece)
    }
}

impl Copies {
    pub fn open(root: PathBuf) -> io::Result<Copies> {
        super::tree::private(&root)?;
        let copies = Copies { root, bytes: Arc::default() };
        let mut bytes = 0;
        copies.each(|path, found| {
            if path.extension().is_some() {
                // A server was killed while it copied.
                return fs::remove_file(&path);
            }
            bytes += found.len();
            Ok(())
        })?;
        copies.bytes.store(bytes, Ordering::Relaxed);
        Ok(copies)
    }

    /// What all of them take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn path(&self, id: &BlobId) -> PathBuf {
        self.root.join(id.as_str())
    }

    pub fn has(&self, id: &BlobId) -> bool {
        self.path(id).is_file()
    }

    pub fn begin(&self, id: &BlobId) -> io::Result<Copy> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = self.root.join(format!("{id}-{number}.part"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(Copy { id: id.clone(), part, file, sums: Sums::default(), bytes: 0 })
    }

    /// Keeps a copy, if it is what it should be.
    pub fn finish(&self, copy: Copy) -> io::Result<bool> {
        if copy.sums.clone().finish().0 != copy.id {
            return Ok(false);
        }
        copy.file.set_permissions(Permissions::from_mode(0o444))?;
        let place = self.path(&copy.id);
        if !place.exists() {
            fs::rename(&copy.part, &place)?;
            self.bytes.fetch_add(copy.bytes, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Removes those that no version has a link to.
    pub fn remove_unused(&self) -> io::Result<()> {
        self.each(|path, found| {
            if found.nlink() == 1 && path.extension().is_none() {
                fs::remove_file(&path)?;
                self.bytes.fetch_sub(found.len(), Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn each(
        &self,
        mut what: impl FnMut(PathBuf, fs::Metadata) -> io::Result<()>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            what(entry.path(), entry.metadata()?)?;
        }
        Ok(())
    }
}
