//! Places for mounts, made and opened one part of the path after another.
//!
//! The folders on the way may belong to a job that runs now, and `init` has more rights than any
//! job. So no link is followed, neither in the middle of a path nor at its end.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, statat, symlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

const FOLDER: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a place for a mount. Makes what is not there.
pub(crate) fn open(at: &Path, is_folder: bool) -> io::Result<OwnedFd> {
    let (above, name) = above(at)?;
    match is_folder {
        true => enter(&above, name),
        false => file(&above, name),
    }
}

/// Puts a link at a place, unless something is there.
pub(crate) fn link(at: &Path, to: &Path) -> io::Result<()> {
    let (above, name) = above(at)?;
    match symlinkat(to, &above, name) {
        Err(Errno::EXIST) => Ok(()),
        made => Ok(made?),
    }
}

/// The folder that a place is in, and its name there.
fn above(at: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let mut folder = openat(CWD, "/", FOLDER, Mode::empty())?;
    let mut names = at.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut last = names.next().ok_or(io::ErrorKind::InvalidInput)?;
    for name in names {
        folder = enter(&folder, last)?;
        last = name;
    }
    Ok((folder, last))
}

fn enter(above: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    loop {
        match openat(above, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => match mkdirat(above, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(in_the_way(above, name)),
            opened => return Ok(opened?),
        }
    }
}

fn file(above: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let make = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(above, name, make, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(above, name, flags, Mode::empty())?;
    let stat = statat(&found, "", AtFlags::EMPTY_PATH)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink | FileType::Directory => Err(in_the_way(above, name)),
        _ => Ok(found),
    }
}

fn in_the_way(above: &impl AsFd, name: &OsStr) -> io::Error {
    let found = statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
    let kind = found.map(|stat| FileType::from_raw_mode(stat.st_mode));
    let what = match kind {
        Ok(FileType::Symlink) => "a link",
        Ok(FileType::Directory) => "a folder",
        _ => "a file",
    };
    io::Error::other(format!("{what} named {} is in the way", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_not_there_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        open(&dir.join("a/b"), true).unwrap();
        open(&dir.join("a/b"), true).unwrap();
        open(&dir.join("a/c/file"), false).unwrap();
        open(&dir.join("a/c/file"), false).unwrap();
        assert!(dir.join("a/b").is_dir() && dir.join("a/c/file").is_file());
        link(&dir.join("l"), Path::new("a")).unwrap();
        link(&dir.join("l"), Path::new("b")).unwrap();
        assert_eq!(fs::read_link(dir.join("l")).unwrap(), Path::new("a"));
    }

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir(dir.join("machine")).unwrap();
        fs::create_dir(dir.join("volume")).unwrap();
        symlink(dir.join("machine"), dir.join("volume/a")).unwrap();
        symlink(dir.join("machine/made"), dir.join("volume/b")).unwrap();
        for (at, is_folder) in
            [("a/nologin", false), ("a/folder", true), ("a", true), ("b", false), ("b", true)]
        {
            let error = open(&dir.join("volume").join(at), is_folder).unwrap_err();
            assert!(error.to_string().starts_with("a link named "), "{at}: {error}");
        }
        assert_eq!(fs::read_dir(dir.join("machine")).unwrap().count(), 0);
    }
}
