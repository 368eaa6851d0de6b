//! Writing files whole or not at all: a file is written beside its place and then renamed.
//!
//! A rename puts a regular file in the place of whatever was there. So it is for regular files only:
//! a device, a pipe or a socket is written into, and stays what it is.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Symbolic links that are followed, one after another. The kernel follows as many.
const MOST_LINKS: usize = 40;

/// Writes a file that a user named. If the program is stopped, the file is the old one or the new
/// one, never a part. A symbolic link is followed and stays; a file keeps its permissions and its
/// owner. What is no regular file is written into.
pub fn write_output(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Place { path, existing } = place(path)?;
    match existing {
        Existing::Special => write_into(&path, bytes),
        Existing::Nothing => replace(&path, bytes, Mode::Usual),
        Existing::Regular(old) => replace(&path, bytes, Mode::Of(&old)),
    }
}

/// Writes a file of the server that only its owner may read, and has it on disk before this returns.
/// A symbolic link is not followed: whoever could put one there would choose what is overwritten.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() && !found.is_symlink() => return Err(not_regular(path)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    replace(path, bytes, Mode::Private)?;
    // The new name is on disk only when its folder is.
    File::open(folder(path))?.sync_all()
}

/// Makes a private file that is not there yet, in one piece. If there is one, it stays, and this is
/// an error of the kind `AlreadyExists`.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = write_beside(path, bytes, Mode::Private)?;
    // A link fails where a rename would overwrite.
    let linked = fs::hard_link(&beside, path);
    let _ = fs::remove_file(&beside);
    linked?;
    File::open(folder(path))?.sync_all()
}

/// Where something is to be written, with all links followed.
struct Place {
    path: PathBuf,
    existing: Existing,
}

enum Existing {
    Nothing,
    Regular(fs::Metadata),
    /// A device, a pipe, a socket, or an open file of a process.
    Special,
}

fn place(path: &Path) -> io::Result<Place> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place { path, existing: Existing::Nothing });
            }
            Err(error) => return Err(error),
        };
        if found.is_file() {
            return Ok(Place { path, existing: Existing::Regular(found) });
        }
        if !found.is_symlink() {
            return Ok(Place { path, existing: Existing::Special });
        }
        // `/dev/stdout` and its kin lead to a file that a process has open. What it prints later
        // would be lost if another file took its place.
        if folder(&path).canonicalize()?.starts_with("/proc") {
            return Ok(Place { path, existing: Existing::Special });
        }
        path = folder(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other(format!("{}: too many symbolic links", path.display())))
}

fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(bytes)
}

#[derive(Clone, Copy)]
enum Mode<'a> {
    /// As the process makes files.
    Usual,
    Private,
    /// As those of the file whose place it takes.
    Of(&'a fs::Metadata),
}

fn replace(path: &Path, bytes: &[u8], mode: Mode<'_>) -> io::Result<()> {
    let beside = write_beside(path, bytes, mode)?;
    fs::rename(&beside, path).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// Nothing is left of it after an error.
fn write_beside(path: &Path, bytes: &[u8], mode: Mode<'_>) -> io::Result<PathBuf> {
    let beside = beside(path)?;
    let written = fill(&beside, bytes, mode);
    written.map(|()| beside.clone()).inspect_err(|error| {
        // One that was there before is not ours.
        if error.kind() != io::ErrorKind::AlreadyExists {
            let _ = fs::remove_file(&beside);
        }
    })
}

fn fill(beside: &Path, bytes: &[u8], mode: Mode<'_>) -> io::Result<()> {
    let bits = if matches!(mode, Mode::Usual) { 0o666 } else { 0o600 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(bits).open(beside)?;
    file.write_all(bytes)?;
    if let Mode::Of(old) = mode {
        // Only root may give a file away. Whoever may not keeps the new one.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    }
    file.sync_all()
}

/// A name in the same folder that nothing has: hidden, and told apart from that of other processes
/// and threads.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else { return Err(not_regular(path)) };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    hidden.push(format!(".{}.{count}.part", std::process::id()));
    let beside = path.with_file_name(hidden);
    // A process of the same number may have been killed here.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(beside),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) => Path::new("."),
        None => path,
    }
}

fn not_regular(path: &Path) -> io::Error {
    io::Error::other(format!("{} is no regular file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn left_over(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().to_string_lossy().ends_with(".part"))
            .count()
    }

    #[test]
    fn a_new_file_is_there_whole_and_an_old_one_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report");
        write_output(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_output(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(left_over(dir.path()), 0);
    }

    #[test]
    fn a_pipe_is_written_into_and_stays_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = path.clone();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::open(reader).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        write_output(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        assert!(write_private(&path, b"x").is_err());
    }

    #[test]
    fn a_device_is_written_into_also_through_a_link_and_stays_a_device() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            write_output(path, b"gone").unwrap();
        }
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_link_is_followed_and_stays_also_where_its_file_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, link) = (dir.path().join("far"), dir.path().join("link"));
        fs::create_dir(&folder).unwrap();
        symlink("far/report", &link).unwrap();
        for text in [b"one", b"two"] {
            write_output(&link, text).unwrap();
            assert_eq!(fs::read(folder.join("report")).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(write_output(&dir.path().join("loop"), b"x").is_err());
    }

    #[test]
    fn a_file_that_a_process_has_open_is_written_into() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let file = File::create(&path).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        write_output(Path::new(&open), b"text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }

    #[test]
    fn a_private_file_takes_the_place_of_a_link_and_leaves_what_the_link_names() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("token"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        write_private(&link, b"secret").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        let found = fs::symlink_metadata(&link).unwrap();
        assert!(found.is_file() && found.mode() & 0o777 == 0o600);
        let exists = create_private(&link, b"other").unwrap_err();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&link).unwrap(), b"secret");
        assert_eq!(left_over(dir.path()), 0);
    }

    #[test]
    fn a_folder_is_no_place_for_a_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write_output(dir.path(), b"x").is_err());
        assert!(write_private(dir.path(), b"x").is_err());
    }
}
