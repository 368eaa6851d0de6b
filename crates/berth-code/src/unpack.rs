//! From an archive to a folder.

use crate::{MOST_BYTES, MOST_FILES};
use flate2::read::GzDecoder;
use std::io::{self, Read};
use std::path::{Component, Path};
use tar::{Archive, EntryType};

#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("the archive cannot be read: {0}")]
    Read(io::Error),
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: io::Error },
    #[error("the archive has {path}, which is no plain file, folder or link")]
    Strange { path: String },
    #[error("the archive has {path}, which leads out of its folder")]
    Outside { path: String },
    #[error("the archive has more than {MOST_FILES} files, or more than {MOST_BYTES} bytes")]
    TooLarge,
}

/// Unpacks into a folder that is empty, and that nobody else can reach meanwhile. Whoever packed
/// chose what is in the archive: nothing is written outside the folder, through no link, and no
/// file gets more rights than to be run.
pub fn unpack(archive: impl Read, folder: &Path) -> Result<(), UnpackError> {
    // A few bytes can stand for a great many.
    let mut archive = Archive::new(GzDecoder::new(archive).take(MOST_BYTES + (1 << 30)));
    archive.set_preserve_mtime(false);
    archive.set_preserve_permissions(false);
    archive.set_overwrite(false);
    let (mut files, mut bytes) = (0, 0u64);
    for entry in archive.entries().map_err(UnpackError::Read)? {
        let mut entry = entry.map_err(UnpackError::Read)?;
        let path = entry.path().map_err(UnpackError::Read)?.into_owned();
        let named = || path.display().to_string();
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Directory | EntryType::Symlink) {
            return Err(UnpackError::Strange { path: named() });
        }
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(UnpackError::Outside { path: named() });
        }
        files += 1;
        bytes = bytes.saturating_add(entry.size());
        if files > MOST_FILES || bytes > MOST_BYTES {
            return Err(UnpackError::TooLarge);
        }
        entry.set_mask(0o7022);
        let written = entry.unpack_in(folder);
        match written.map_err(|source| UnpackError::Write { path: named(), source })? {
            true => {}
            false => return Err(UnpackError::Outside { path: named() }),
        }
    }
    Ok(())
}
