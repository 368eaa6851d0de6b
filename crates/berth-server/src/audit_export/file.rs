//! A file that lines are added to. Whoever rotates it renames it; the next line makes a new one.

use berth_api::wire::AuditRow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub struct FileSink {
    path: PathBuf,
    /// It goes to a thread that may block and comes back.
    open: Option<File>,
}

impl FileSink {
    pub fn new(path: &Path) -> FileSink {
        FileSink { path: path.to_owned(), open: None }
    }

    /// How many rows are on disk: all or none.
    pub async fn take(&mut self, rows: &[AuditRow]) -> (usize, io::Result<()>) {
        let mut text = String::new();
        for row in rows {
            text.push_str(&serde_json::to_string(row).expect("rows are plain data"));
            text.push('\n');
        }
        let (path, open) = (self.path.clone(), self.open.take());
        let write = move || append(&path, open, &text);
        match tokio::task::spawn_blocking(write).await.map_err(io::Error::other) {
            Ok(Ok(file)) => {
                self.open = Some(file);
                (rows.len(), Ok(()))
            }
            // The file is opened anew: what is wrong with it may have passed.
            Ok(Err(error)) | Err(error) => (0, Err(error)),
        }
    }
}

/// Adds lines to the file that has this name now, and has them on disk before this returns.
fn append(path: &Path, open: Option<File>, text: &str) -> io::Result<File> {
    let mut file = match open {
        Some(file) if is_still(path, &file)? => file,
        _ => reopen(path)?,
    };
    let length = file.metadata()?.len();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    if let Err(error) = written {
        // Half a line would be taken for a whole one with the next.
        let _ = file.set_len(length);
        return Err(error);
    }
    Ok(file)
}

/// Whether the open file still has the name.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn reopen(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    // A server that was killed, or a full disk, may have left half a line behind.
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_file_that_was_renamed_is_left_and_a_new_one_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("audit"), dir.path().join("audit.1"));
        let file = append(&path, None, "one\n").unwrap();
        let file = append(&path, Some(file), "two\n").unwrap();
        fs::rename(&path, &old).unwrap();
        append(&path, Some(file), "three\n").unwrap();
        assert_eq!(
            (lines(&old), lines(&path)),
            (vec!["one".into(), "two".into()], vec!["three".into()])
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn half_a_line_of_a_killed_server_spoils_no_other_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit");
        fs::write(&path, "whole\nha").unwrap();
        append(&path, None, "next\n").unwrap();
        assert_eq!(lines(&path), ["whole", "ha", "next"]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        assert!(append(Path::new("/dev/null"), None, "x\n").is_err());
        assert!(append(Path::new("/dev/full"), None, "x\n").is_err());
        let dir = tempfile::tempdir().unwrap();
        assert!(append(dir.path(), None, "x\n").is_err());
    }
}
