//! Whose a folder is.

use berth_sandbox::Account;
use rustix::fs::{Gid, Uid};
use std::io;
use std::path::Path;

/// Hands a folder to the account that works in it.
pub fn give(path: &Path, account: Option<&Account>) -> io::Result<()> {
    let Some(account) = account else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    Ok(rustix::fs::chown(path, Some(uid), Some(gid))?)
}
