//! Whether the files of a SQLite database are still the ones that were opened.
//!
//! SQLite goes on writing to a file that was deleted, moved away or replaced: its commits succeed,
//! and nobody finds them again. Three calls of `stat` tell, so they are made around every commit.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file as it was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    device: u64,
    inode: u64,
    bytes: u64,
}

/// The database and the files beside it.
#[derive(Debug)]
pub(crate) struct Files {
    database: PathBuf,
    /// SQLite follows links and keeps these beside the file itself.
    wal: PathBuf,
    shm: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    database: Option<Seen>,
    /// Known only while a writer is connected: SQLite deletes them with the last connection.
    wal: Option<Seen>,
    shm: Option<Seen>,
    /// What was found wrong once. It stays so, whatever the files look like later.
    fault: Option<String>,
}

impl Files {
    /// Remembers the file as it is now.
    pub fn of(database: &Path) -> Files {
        let real = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        let beside = |suffix: &str| {
            let mut path = real.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        let known = Known { database: see(database).ok().flatten(), ..Known::default() };
        Files {
            database: database.to_owned(),
            wal: beside("-wal"),
            shm: beside("-shm"),
            known: Mutex::new(known),
        }
    }

    /// Remembers the files beside the database, where that has not been done.
    pub fn note_beside(&self) {
        let mut known = self.known();
        let Known { wal, shm, .. } = &mut *known;
        for (path, seen) in [(&self.wal, wal), (&self.shm, shm)] {
            if seen.is_none() {
                *seen = see(path).ok().flatten();
            }
        }
    }

    /// A connection is about to close, and may take the files beside the database with it.
    pub fn forget_beside(&self) {
        let mut known = self.known();
        (known.wal, known.shm) = (None, None);
    }

    /// What is wrong with the files, if anything is.
    pub fn fault(&self) -> Option<String> {
        let mut known = self.known();
        let Known { database, wal, shm, fault } = &mut *known;
        if fault.is_some() {
            return fault.clone();
        }
        // The index in shared memory is made anew by whoever opens it first; its size means nothing.
        let files = [
            (&self.database, "its file", database, true),
            (&self.wal, "its write-ahead log", wal, true),
            (&self.shm, "its shared index", shm, false),
        ];
        let mut faults = files.into_iter();
        *fault = faults.find_map(|(path, name, seen, grows)| compare(path, name, seen, grows));
        fault.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares a file with what is known of it. Neither file of a database ever shrinks while it is
/// open: pages that are not needed are kept for later.
fn compare(path: &Path, name: &str, seen: &mut Option<Seen>, grows: bool) -> Option<String> {
    let before = (*seen)?;
    let now = match see(path) {
        Ok(Some(now)) => now,
        Ok(None) => return Some(format!("{name} was deleted or moved away")),
        // The folder cannot be read for a moment. Statements will tell if that lasts.
        Err(_) => return None,
    };
    if (now.device, now.inode) != (before.device, before.inode) {
        return Some(format!("{name} was replaced by another one"));
    }
    if grows && now.bytes < before.bytes {
        let (from, to) = (before.bytes, now.bytes);
        return Some(format!("{name} was cut from {from} to {to} bytes"));
    }
    *seen = Some(now);
    None
}

fn see(path: &Path) -> io::Result<Option<Seen>> {
    match fs::metadata(path) {
        Ok(file) => Ok(Some(Seen { device: file.dev(), inode: file.ino(), bytes: file.len() })),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    struct Case {
        folder: tempfile::TempDir,
        files: Files,
    }

    impl Case {
        fn new() -> Case {
            let folder = tempfile::tempdir().unwrap();
            for name in ["berth.db", "berth.db-wal", "berth.db-shm"] {
                fs::write(folder.path().join(name), [1; 100]).unwrap();
            }
            let files = Files::of(&folder.path().join("berth.db"));
            files.note_beside();
            assert_eq!(files.fault(), None);
            Case { folder, files }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }
    }

    #[test]
    fn a_file_that_is_gone_is_missed_whichever_it_is() {
        for name in ["berth.db", "berth.db-wal", "berth.db-shm"] {
            let case = Case::new();
            fs::remove_file(case.path(name)).unwrap();
            let fault = case.files.fault().unwrap();
            assert!(fault.contains("deleted or moved away"), "{name}: {fault}");
        }
    }

    #[test]
    fn another_file_in_the_same_place_is_told_from_the_first() {
        let case = Case::new();
        fs::write(case.path("other"), [1; 100]).unwrap();
        fs::rename(case.path("other"), case.path("berth.db")).unwrap();
        assert_eq!(case.files.fault().unwrap(), "its file was replaced by another one");
    }

    #[test]
    fn a_file_may_grow_and_not_shrink() {
        for name in ["berth.db", "berth.db-wal"] {
            let case = Case::new();
            let file = File::options().write(true).open(case.path(name)).unwrap();
            file.set_len(5_000).unwrap();
            assert_eq!(case.files.fault(), None);
            file.set_len(4_999).unwrap();
            let fault = case.files.fault().unwrap();
            assert!(fault.contains("cut from 5000 to 4999 bytes"), "{name}: {fault}");
            file.set_len(6_000).unwrap();
            assert_eq!(case.files.fault(), Some(fault), "growing again brings nothing back");
        }
    }

    #[test]
    fn a_folder_that_was_renamed_has_no_database_any_more() {
        let parent = tempfile::tempdir().unwrap();
        let home = parent.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("berth.db"), "x").unwrap();
        let files = Files::of(&home.join("berth.db"));
        fs::rename(&home, parent.path().join("moved")).unwrap();
        assert_eq!(files.fault().unwrap(), "its file was deleted or moved away");
    }

    #[test]
    fn what_sqlite_deletes_itself_is_no_loss() {
        let case = Case::new();
        case.files.forget_beside();
        fs::remove_file(case.path("berth.db-wal")).unwrap();
        fs::remove_file(case.path("berth.db-shm")).unwrap();
        assert_eq!(case.files.fault(), None);
    }
}
