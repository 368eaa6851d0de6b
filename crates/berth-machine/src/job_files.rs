//! The folder that a job worked in, for whoever may read what it printed.
//!
//! Its files belong to the job, which may change them at any moment and in any way. So every path is
//! opened below the folder by the kernel, in one step and without following a link; what comes of
//! that is looked at by its descriptor and never again by its name.

use berth_engine::clock;
use berth_model::Time;
use berth_service::host::{JobFileFacts, JobFileKind, OpenJobFile};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Names of Berth's own in the folder: the job's token, and the server's certificate.
const OURS: &str = ".berth-";
/// Entries that are looked at to find the first ones by name.
const MOST_LOOKED_AT: usize = 100_000;

/// The first entries of a folder by name, and whether there are more.
pub fn list(root: &Path, path: &str, most: usize) -> io::Result<(Vec<JobFileFacts>, bool)> {
    let folder = below(root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut names: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut more = false;
    for entry in Dir::read_from(&folder)?.take(MOST_LOOKED_AT + 2) {
        let name = entry?.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." || name.starts_with(OURS.as_bytes()) {
            continue;
        }
        names.insert(name);
        if names.len() > most {
            names.pop_last();
            more = true;
        }
    }
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        // One that has gone meanwhile is not there.
        let Ok(stat) = statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        entries.push(JobFileFacts {
            // A name that is no text could not be asked for.
            name: match String::from_utf8(name) {
                Ok(name) => name,
                Err(_) => continue,
            },
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => JobFileKind::File,
                FileType::Directory => JobFileKind::Folder,
                FileType::Symlink => JobFileKind::Link,
                _ => JobFileKind::Other,
            },
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: modified(&stat),
        });
    }
    Ok((entries, more))
}

/// A plain file in the folder.
pub fn open(root: &Path, path: &str) -> io::Result<OpenJobFile> {
    // Opening a pipe would wait for who writes to it.
    let file = below(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(OpenJobFile { bytes, modified: modified(&stat), file: File::from(file) })
}

fn below(root: &Path, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let path = path.trim_matches('/');
    if path.split('/').any(|part| part.starts_with(OURS)) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let path = if path.is_empty() { "." } else { path };
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat2(CWD, root, folder, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    match openat2(&root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Ok(opened) => Ok(opened),
        // A link, or a way out: there is no such file in the folder.
        Err(Errno::LOOP | Errno::XDEV) => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(error.into()),
    }
}

/// In the server's time.
fn modified(stat: &Stat) -> Option<Time> {
    let millis = i64::try_from(stat.st_mtime_nsec).ok()? / 1_000_000;
    let wall = Time(stat.st_mtime.checked_mul(1_000)?.checked_add(millis)?);
    let now = clock::now();
    Some(wall - (clock::to_wall(now) - now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn folder() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("own");
        std::fs::create_dir_all(own.join("out/deep")).unwrap();
        std::fs::write(own.join("out/model.bin"), "weights").unwrap();
        std::fs::write(own.join(".berth-token-0-0"), "brj_secret").unwrap();
        std::fs::write(home.path().join("secret"), "secret").unwrap();
        symlink(home.path().join("secret"), own.join("link")).unwrap();
        symlink(home.path(), own.join("up")).unwrap();
        symlink("out", own.join("in")).unwrap();
        rustix::fs::mknodat(CWD, own.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        home
    }

    fn read(root: &Path, path: &str) -> Result<String, io::ErrorKind> {
        let mut opened = open(root, path).map_err(|error| error.kind())?;
        let mut text = String::new();
        opened.file.read_to_string(&mut text).unwrap();
        assert_eq!(opened.bytes, text.len() as u64);
        Ok(text)
    }

    #[test]
    fn a_folder_is_told_in_the_order_of_names_without_what_is_berths() {
        let home = folder();
        let own = home.path().join("own");
        let told = |path: &str, most| {
            let (entries, more) = list(&own, path, most).unwrap();
            let each = entries.iter().map(|entry| format!("{} {:?}", entry.name, entry.kind));
            (each.collect::<Vec<_>>(), more)
        };
        let all = ["in Link", "link Link", "out Folder", "pipe Other", "up Link"];
        assert_eq!(told("", 100), (all.map(str::to_owned).to_vec(), false));
        assert_eq!(told("/", 2), (all[..2].iter().map(|one| (*one).to_owned()).collect(), true));
        assert_eq!(told("out", 9).0, ["deep Folder", "model.bin File"]);
        assert!(list(&own, "out/model.bin", 9).is_err());
    }

    #[test]
    fn no_path_leads_out_and_nothing_but_a_plain_file_is_read() {
        let home = folder();
        let own = home.path().join("own");
        assert_eq!(read(&own, "out/model.bin").unwrap(), "weights");
        assert_eq!(read(&own, "/out//model.bin").unwrap(), "weights");
        for path in [
            "link",
            "up/secret",
            "in/model.bin",
            "../secret",
            "out/../../secret",
            "out",
            "pipe",
            "",
            ".berth-token-0-0",
            "nothing",
            "/etc/passwd",
            "out/deep/../../../secret",
        ] {
            assert!(read(&own, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_folder_that_became_a_link_is_not_followed() {
        let home = folder();
        symlink(home.path().join("own"), home.path().join("other")).unwrap();
        assert!(list(&home.path().join("other"), "", 9).is_err());
    }
}
