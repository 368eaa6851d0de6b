//! Keys of the server that lie outside of its home, such as that of its certificate.
//!
//! Whoever renews a certificate puts another file in the place of the key. A cover over the old one
//! is gone then, in jobs that run already too. So where jobs have the server's account and could
//! read the new one, the folder of the key is covered.

use berth_node::{is_of_system, other_names};
use std::fs;
use std::path::{Path, PathBuf};

/// A link that leads to a link, and so on, leads nowhere at some point.
const MOST_LINKS: usize = 16;

/// Why a key cannot be kept from jobs.
#[derive(Debug, thiserror::Error)]
#[error(
    "the key {} lies in {}, which jobs use; without root all jobs have the account that runs Berth \
     and could read it, so put it into a folder of its own, such as /etc/berth",
    key.display(),
    folder.display()
)]
pub struct KeyError {
    key: PathBuf,
    folder: PathBuf,
}

/// Refuses a key whose folder cannot be covered.
pub fn check(keys: &[PathBuf], shares: &[PathBuf]) -> Result<(), KeyError> {
    for key in keys {
        if let Some(folder) = folders(key).into_iter().find(|folder| is_needed(folder, shares)) {
            return Err(KeyError { key: key.clone(), folder });
        }
    }
    Ok(())
}

/// What is hidden of a key: the folders in which it is renewed.
pub fn hidden(key: &Path, shares: &[PathBuf]) -> Vec<PathBuf> {
    let mut hidden = folders(key);
    hidden.retain(|folder| !is_needed(folder, shares));
    // Since the start it may have moved to where a folder cannot be covered.
    let file = key.canonicalize().ok();
    let is_covered = |file: &PathBuf| hidden.iter().any(|folder| file.starts_with(folder));
    hidden.extend(file.filter(|file| !is_covered(file)));
    hidden
}

/// The folders of a key, and of each link on the way to it.
fn folders(key: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut path = key.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(folder) = path.parent().and_then(|folder| folder.canonicalize().ok()) else {
            break;
        };
        let next = fs::read_link(&path).map(|to| folder.join(to));
        if !folders.contains(&folder) {
            folders.push(folder);
        }
        let Ok(next) = next else { break };
        path = next;
    }
    folders
}

/// Whether jobs see a folder and would miss more than the key if it was covered, or could move it.
fn is_needed(folder: &Path, shares: &[PathBuf]) -> bool {
    let mut names = other_names(folder);
    names.push(folder.to_owned());
    names.iter().any(|name| {
        let is_shared = shares.iter().any(|share| name.starts_with(share));
        is_shared || is_of_system(name) && has_folders(name)
    })
}

/// Those whose name begins with a dot are versions of what is in the folder, as Kubernetes has them.
fn has_folders(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    entries.filter(is_folder).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_folders_of_a_key_are_hidden_wherever_it_is_renewed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (live, archive) = (dir.join("live"), dir.join("archive"));
        for folder in [&live, &archive] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(archive.join("key1.pem"), "key").unwrap();
        symlink("../archive/key1.pem", live.join("key.pem")).unwrap();
        let key = live.join("key.pem");
        assert_eq!(hidden(&key, &[]), [live.clone(), archive.clone()]);
        // A new key has another name, and the link leads to it.
        fs::write(archive.join("key2.pem"), "key").unwrap();
        fs::remove_file(&key).unwrap();
        symlink("../archive/key2.pem", &key).unwrap();
        assert_eq!(hidden(&key, &[]), [live.clone(), archive.clone()]);
        // It has moved into a share: what can be covered is.
        let shares = std::slice::from_ref(&archive);
        assert_eq!(hidden(&key, shares), [live, archive.join("key2.pem")]);
    }

    #[test]
    fn a_key_lies_in_a_folder_that_jobs_can_do_without() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (share, own) = (dir.join("share"), dir.join("share/own"));
        fs::create_dir_all(&own).unwrap();
        let check = |key: &Path, shares: &[&PathBuf]| {
            let shares: Vec<PathBuf> = shares.iter().map(|share| (*share).clone()).collect();
            check(&[key.to_owned()], &shares).map_err(|error| error.folder)
        };
        assert_eq!(check(&dir.join("key"), &[&share]), Ok(()), "nobody sees it");
        assert_eq!(check(&share.join("key"), &[&share]), Err(share.clone()));
        assert_eq!(check(&own.join("key"), &[&share]), Err(own), "a job could move the folder");
        assert_eq!(check(Path::new("/etc/key"), &[]), Err(PathBuf::from("/etc")));
    }
}
