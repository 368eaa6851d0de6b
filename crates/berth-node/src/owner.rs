//! Whose a folder is, and what becomes of folders that jobs wrote to.

use berth_sandbox::Account;
use rustix::fs::{Gid, Uid};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Hands a folder to the account that works in it.
pub fn give(path: &Path, account: Option<&Account>) -> io::Result<()> {
    let Some(account) = account else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    Ok(rustix::fs::chown(path, Some(uid), Some(gid))?)
}

/// Removes a folder with all that is in it, if it is there. Links are removed and not followed. A
/// job can close its folders to its own account, which does not keep them.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Lets the owner into all folders. The removal reports what cannot be opened.
fn open_up(path: &Path) {
    let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // That of the entry itself: a link is none.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_its_owner_closed_is_removed_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, other) = (dir.path().join("tree"), dir.path().join("other"));
        let inner = tree.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "kept").unwrap();
        fs::write(inner.join("file"), "gone").unwrap();
        std::os::unix::fs::symlink(&other, inner.join("link")).unwrap();
        for closed in [&inner, &tree.join("a")] {
            fs::set_permissions(closed, Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.join("file").exists());
    }
}
