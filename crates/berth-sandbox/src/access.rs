//! Whether an account may use a path, decided as the kernel does by owner, group and others.
//!
//! A mount would lead around the folders above it, which may be closed to the account; so they are
//! asked here, one by one. Access control lists that grant more are not read: what they alone
//! allow is refused.

use crate::spec::Account;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

const READ: u32 = 4;
const WRITE: u32 = 2;
const PASS: u32 = 1;

/// Whether the account may do that with a path without links.
pub fn may_access(account: &Account, path: &Path, access: Access) -> io::Result<bool> {
    for above in path.ancestors().skip(1) {
        if !allows(account, above, PASS)? {
            return Ok(false);
        }
    }
    let is_folder = std::fs::symlink_metadata(path)?.is_dir();
    allows(account, path, wanted(is_folder, access))
}

/// Whether everybody may do that with a path without links, whatever is above `below`, which it
/// lies in. Owner and group count for nothing: in a user namespace the kernel has one number for
/// all accounts that are not in it.
pub fn everybody_may(path: &Path, below: &Path, access: Access) -> io::Result<bool> {
    let between = path.ancestors().skip(1).take_while(|above| above.starts_with(below));
    for above in between {
        if !lets_everybody_pass(std::fs::symlink_metadata(above)?.mode()) {
            return Ok(false);
        }
    }
    let found = std::fs::symlink_metadata(path)?;
    Ok(lets_everybody(found.mode(), found.is_dir(), access))
}

/// Whether a mode lets everybody use what has it.
pub(crate) fn lets_everybody(mode: u32, is_folder: bool, access: Access) -> bool {
    let wanted = wanted(is_folder, access);
    mode & wanted == wanted
}

/// Whether a mode lets everybody pass through the folder that has it.
pub(crate) fn lets_everybody_pass(mode: u32) -> bool {
    mode & PASS == PASS
}

fn wanted(is_folder: bool, access: Access) -> u32 {
    let pass = if is_folder { PASS } else { 0 };
    match access {
        Access::Read => READ | pass,
        Access::Write => READ | WRITE | pass,
    }
}

fn allows(account: &Account, path: &Path, wanted: u32) -> io::Result<bool> {
    let found = std::fs::symlink_metadata(path)?;
    let mode = found.mode();
    let granted = if found.uid() == account.uid {
        mode >> 6
    } else if found.gid() == account.gid || account.groups.contains(&found.gid()) {
        mode >> 3
    } else {
        mode
    };
    Ok(granted & wanted == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_closed_folder_above_closes_what_is_open_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (closed, open) = (dir.join("closed"), dir.join("closed/open"));
        fs::create_dir_all(&open).unwrap();
        for path in [&dir, &closed, &open] {
            set(path, 0o755);
        }
        let owner = fs::metadata(&open).unwrap();
        let stranger = Account { uid: owner.uid() + 1, gid: owner.gid() + 1, groups: vec![] };
        let mate = Account { groups: vec![owner.gid()], ..stranger.clone() };
        assert!(may_access(&stranger, &open, Access::Read).unwrap());
        assert!(!may_access(&stranger, &open, Access::Write).unwrap());
        set(&open, 0o770);
        assert!(!may_access(&stranger, &open, Access::Read).unwrap());
        assert!(may_access(&mate, &open, Access::Write).unwrap());
        set(&closed, 0o700);
        assert!(!may_access(&mate, &open, Access::Read).unwrap());
        let own = Account { uid: owner.uid(), gid: owner.gid(), groups: vec![] };
        assert!(may_access(&own, &open, Access::Write).unwrap());
    }
}
