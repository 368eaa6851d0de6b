//! The folder of a version: links to the files that its objects are.

use berth_blobs::BlobId;
use berth_model::{Bytes, Name};
use berth_service::data_tree::TreeFile;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Each change of the versions is an event with all of them, so the log would grow fast with more.
const MOST_TOLD: usize = 1_000;

/// Makes a folder that only its owner can read.
pub fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub fn is_same_file_system(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(one).is_some() && device(one) == device(other)
}

/// Makes it beside its place, and puts it there when it is whole. Nobody may write to its folders.
pub fn make(
    folder: &Path,
    name: &str,
    files: &[TreeFile],
    sources: &BTreeMap<BlobId, PathBuf>,
) -> io::Result<()> {
    let above = folder.parent().unwrap_or(Path::new("/"));
    private(above)?;
    let own = folder.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.with_file_name(format!(".new-{own}"));
    remove(&new)?;
    let mut folders = BTreeSet::from([new.clone()]);
    DirBuilder::new().mode(0o755).create(&new)?;
    for file in files {
        let place = new.join(file.path.as_deref().unwrap_or(name));
        let inside = place.parent().unwrap_or(&new);
        if folders.insert(inside.to_owned()) {
            DirBuilder::new().recursive(true).mode(0o755).create(inside)?;
            let between = inside.ancestors().take_while(|path| *path != new);
            folders.extend(between.map(Path::to_owned));
        }
        let missing = || io::Error::new(io::ErrorKind::NotFound, "an object has no file");
        link(sources.get(&file.id).ok_or_else(missing)?, &place)?;
    }
    // The deepest first: a folder that is closed takes no others.
    for folder in folders.iter().rev() {
        fs::set_permissions(folder, Permissions::from_mode(0o555))?;
    }
    fs::rename(&new, folder)
}

/// A file can have only so many links; then there is another copy of it.
fn link(source: &Path, place: &Path) -> io::Result<()> {
    match fs::hard_link(source, place) {
        Err(error) if error.kind() == io::ErrorKind::TooManyLinks => {
            fs::copy(source, place)?;
            fs::set_permissions(place, Permissions::from_mode(0o444))
        }
        linked => linked,
    }
}

/// Removes one, whose folders are closed even to their owner.
pub fn remove(folder: &Path) -> io::Result<()> {
    match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    open_up(folder)?;
    fs::remove_dir_all(folder)
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// The version that was not used for longest, and at least so long, of those that are not in use.
pub fn oldest(
    trees: &Path,
    in_use: &BTreeSet<PathBuf>,
    least: Duration,
    mark: &str,
) -> Option<PathBuf> {
    let mut oldest: Option<(SystemTime, PathBuf)> = None;
    for team in fs::read_dir(trees).into_iter().flatten().flatten() {
        for entry in fs::read_dir(team.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != mark) {
                continue;
            }
            let folder = path.with_extension("");
            let Ok(short) = folder.strip_prefix(trees) else { continue };
            let used = entry.metadata().and_then(|found| found.modified());
            let Ok(used) = used else { continue };
            let age = used.elapsed().unwrap_or_default();
            if in_use.contains(short) || age < least {
                continue;
            }
            if oldest.as_ref().is_none_or(|(before, _)| used < *before) {
                oldest = Some((used, folder));
            }
        }
    }
    oldest.map(|(_, folder)| folder)
}

/// The bytes of all files of a version.
pub fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0u64;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { size(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}

/// The versions that are here with their sizes, by their hashes; of many, those that were used last. Versions
/// of several teams with one hash are one. A mark without a size is left out until the next use.
pub fn kept(trees: &Path, mark: &str) -> BTreeMap<Name, Bytes> {
    let mut kept = Vec::new();
    for team in fs::read_dir(trees).into_iter().flatten().flatten() {
        for entry in fs::read_dir(team.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != mark) || !path.with_extension("").is_dir() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(hash) = hash_of(&name) else { continue };
            let text = fs::read_to_string(&path).unwrap_or_default();
            let Ok(bytes) = text.parse::<i64>() else { continue };
            let used = entry.metadata().and_then(|found| found.modified());
            kept.push((used.unwrap_or(SystemTime::UNIX_EPOCH), Name::new(hash), Bytes(bytes)));
        }
    }
    kept.sort_by_key(|(used, ..)| Reverse(*used));
    kept.into_iter().take(MOST_TOLD).map(|(_, name, bytes)| (name, bytes)).collect()
}

/// The name of a mark begins with the hash: 32 digits, and `.dir` for a folder.
fn hash_of(mark: &str) -> Option<&str> {
    let digits = mark.get(..32)?;
    match mark.get(..36) {
        Some(folder) if folder.ends_with(".dir") => Some(folder),
        _ => Some(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_blobs::Sums;
    use std::fs::File;

    fn source(folder: &Path, text: &str) -> (BlobId, PathBuf) {
        let (id, _) = Sums::of(text.as_bytes());
        let path = folder.join(id.as_str());
        fs::write(&path, text).unwrap();
        (id, path)
    }

    fn file(path: &str, id: &BlobId) -> TreeFile {
        TreeFile { path: Some(path.to_owned()), md5: String::new(), id: id.clone(), bytes: 0 }
    }

    #[test]
    fn a_version_is_links_in_folders_that_nobody_writes_to() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (source(root.path(), "one"), source(root.path(), "two"));
        let files = [file("a/b/c", &one.0), file("a/d", &two.0), file("e", &one.0)];
        let sources = BTreeMap::from([one.clone(), two]);
        let folder = root.path().join("trees/nlp/x.dir");
        make(&folder, "c4", &files, &sources).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a/b/c")).unwrap(), "one");
        assert_eq!(fs::metadata(&one.1).unwrap().nlink(), 3);
        for inside in ["", "a", "a/b"] {
            let mode = fs::metadata(folder.join(inside)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o555, "{inside}");
        }
        remove(&folder).unwrap();
        assert_eq!(fs::metadata(&one.1).unwrap().nlink(), 1);
    }

    #[test]
    fn the_oldest_goes_first_and_what_a_task_has_stays() {
        let root = tempfile::tempdir().unwrap();
        let age = |name: &str, days: u64| {
            let folder = root.path().join("nlp").join(name);
            fs::create_dir_all(&folder).unwrap();
            let mark = File::create(folder.with_file_name(format!("{name}.used"))).unwrap();
            mark.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        };
        for (name, days) in [("old.dir", 9), ("older.dir", 10), ("oldest.dir", 11)] {
            age(name, days);
        }
        let in_use = BTreeSet::from([PathBuf::from("nlp/oldest.dir")]);
        let day = Duration::from_secs(86_400);
        let found = |least| oldest(root.path(), &in_use, least, "used");
        assert_eq!(found(Duration::ZERO), Some(root.path().join("nlp/older.dir")));
        assert_eq!(found(20 * day), None);
    }

    #[test]
    fn the_versions_that_are_here_are_told_with_their_sizes() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = ("0a".repeat(16), "0b".repeat(16));
        let make = |name: &str, size: &str| {
            fs::create_dir_all(root.path().join("nlp").join(name)).unwrap();
            fs::write(root.path().join("nlp").join(format!("{name}.used")), size).unwrap();
        };
        make(&format!("{one}.dir"), "120");
        make(&format!("{two}.c4"), "7");
        make(&format!("{}.dir", "0c".repeat(16)), "");
        fs::write(root.path().join("nlp").join(format!("{}.dir.used", "0d".repeat(16))), "9")
            .unwrap();
        let expect = [(format!("{one}.dir"), 120), (two, 7)];
        let expect = expect.map(|(name, bytes)| (Name::from(name), Bytes(bytes)));
        assert_eq!(kept(root.path(), "used"), BTreeMap::from(expect));
        fs::write(root.path().join("nlp").join(format!("{one}.dir/file")), "12345").unwrap();
        assert_eq!(size(&root.path().join("nlp")).unwrap(), 5 + 3 + 1 + 1);
    }
}
