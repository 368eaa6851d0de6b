//! From a folder to an archive.

use crate::digest::Hasher;
use crate::header::plain;
use crate::origin::Origin;
use crate::{MOST_BYTES, MOST_FILES, MOST_PACKED};
use berth_model::CodeId;
use flate2::{Compression, GzBuilder};
use ignore::WalkBuilder;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Left out whatever git says: what belongs to a machine, or to git itself.
const NEVER: [&str; 6] =
    [".git", ".venv", "venv", "__pycache__", "node_modules", ".ipynb_checkpoints"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub packed: u64,
    pub bytes: u64,
    pub files: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { packed: MOST_PACKED, bytes: MOST_BYTES, files: MOST_FILES }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub id: CodeId,
    pub files: u64,
    /// Of the files, and of the archive.
    pub bytes: u64,
    pub packed: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot list the folder: {0}")]
    List(ignore::Error),
    #[error("cannot write the archive: {0}")]
    Write(io::Error),
    #[error("the folder has more than {most} files that git does not ignore")]
    TooMany { most: u64 },
    #[error(
        "the folder has more than {} MB of files that git does not ignore; the largest is {} \
         with {} MB",
        most / 1_000_000,
        largest.display(),
        size / 1_000_000
    )]
    TooLarge { most: u64, largest: PathBuf, size: u64 },
}

struct Found {
    /// Below the folder.
    path: PathBuf,
    kind: EntryType,
    bytes: u64,
    executable: bool,
}

/// Packs what git does not ignore. `.berthignore` leaves out more, in the words of `.gitignore`.
pub fn pack(folder: &Path, limits: Limits, to: impl Write) -> Result<Packed, PackError> {
    pack_with_origin(folder, None, limits, to)
}

/// The same, with the origin of the folder.
pub fn pack_with_origin(
    folder: &Path,
    origin: Option<&Origin>,
    limits: Limits,
    to: impl Write,
) -> Result<Packed, PackError> {
    let mut found = list(folder, limits)?;
    let bytes = found.iter().map(|one| one.bytes).sum();
    // No name and no time: they would make another archive of the same files.
    let zipped = GzBuilder::new().mtime(0).write(Hasher::new(to), Compression::new(6));
    let mut archive = Builder::new(zipped);
    if let Some(origin) = origin {
        found.retain(|one| !Origin::is_its_own(&one.path));
        origin.add(&mut archive).map_err(PackError::Write)?;
    }
    for one in &found {
        let header = header(one);
        add(&mut archive, folder, one, header)?;
        let packed = archive.get_ref().get_ref().bytes();
        if packed > limits.packed {
            return Err(too_large(limits.packed, &found));
        }
    }
    let zipped = archive.into_inner().map_err(PackError::Write)?;
    let (mut to, id, packed) = zipped.finish().map_err(PackError::Write)?.finish();
    to.flush().map_err(PackError::Write)?;
    if packed > limits.packed {
        return Err(too_large(limits.packed, &found));
    }
    let files = found.iter().filter(|one| one.kind != EntryType::Directory).count() as u64;
    Ok(Packed { id, files, bytes, packed })
}

/// In the order of their paths.
fn list(folder: &Path, limits: Limits) -> Result<Vec<Found>, PackError> {
    if !folder.is_dir() {
        return Err(PackError::NotAFolder(folder.to_owned()));
    }
    let mut walk = WalkBuilder::new(folder);
    walk.hidden(false)
        .require_git(false)
        .git_global(false)
        .ignore(false)
        .follow_links(false)
        .add_custom_ignore_filename(".berthignore")
        .filter_entry(|entry| !NEVER.iter().any(|name| entry.file_name() == *name));
    let mut found = Vec::new();
    let mut bytes = 0u64;
    for entry in walk.build() {
        let entry = entry.map_err(PackError::List)?;
        let Ok(path) = entry.path().strip_prefix(folder) else { continue };
        if path.as_os_str().is_empty() {
            continue;
        }
        let failed = |source| PackError::Read { path: entry.path().to_owned(), source };
        let facts = entry.path().symlink_metadata().map_err(failed)?;
        let kind = match facts.file_type() {
            kind if kind.is_dir() => EntryType::Directory,
            kind if kind.is_symlink() => EntryType::Symlink,
            kind if kind.is_file() => EntryType::Regular,
            // A socket or a pipe is no code.
            _ => continue,
        };
        let size = if kind == EntryType::Regular { facts.len() } else { 0 };
        bytes = bytes.saturating_add(size);
        let executable = facts.permissions().mode() & 0o100 != 0;
        found.push(Found { path: path.to_owned(), kind, bytes: size, executable });
        if found.len() as u64 > limits.files {
            return Err(PackError::TooMany { most: limits.files });
        }
        if bytes > limits.bytes {
            return Err(too_large(limits.bytes, &found));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn too_large(most: u64, found: &[Found]) -> PackError {
    let largest = found.iter().max_by_key(|one| one.bytes);
    let (largest, size) =
        largest.map_or_else(Default::default, |one| (one.path.clone(), one.bytes));
    PackError::TooLarge { most, largest, size }
}

/// Nothing but what makes a file what it is: owners and times differ between machines.
fn header(one: &Found) -> Header {
    let is_open = one.executable || one.kind != EntryType::Regular;
    plain(one.kind, one.bytes, is_open)
}

fn add(
    archive: &mut Builder<impl Write>,
    folder: &Path,
    one: &Found,
    mut header: Header,
) -> Result<(), PackError> {
    let path = folder.join(&one.path);
    let failed = |source| PackError::Read { path: path.clone(), source };
    let added = match one.kind {
        EntryType::Directory => archive.append_data(&mut header, &one.path, io::empty()),
        EntryType::Symlink => {
            let target = std::fs::read_link(&path).map_err(failed)?;
            archive.append_link(&mut header, &one.path, target)
        }
        _ => {
            let file = File::open(&path).map_err(failed)?;
            // One that grows meanwhile stays as long as its header says, and one that shrinks is
            // filled up: the archive would make no sense otherwise.
            let whole = file.take(one.bytes).chain(io::repeat(0)).take(one.bytes);
            archive.append_data(&mut header, &one.path, whole)
        }
    };
    added.map_err(PackError::Write)
}
