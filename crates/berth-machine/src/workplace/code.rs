//! The snapshot of files that a job runs with, unpacked into its own folder before it starts.

use super::snapshots::{CodeError, Snapshots};
use berth_code::unpack;
use berth_model::CodeId;
use berth_node::Account;
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
use std::fs;
use std::io;
use std::path::Path;

/// Its place in the folder of a job.
pub const FOLDER: &str = "code";

/// Unpacks it into a folder that nobody but the server reaches, and hands all of it to the account.
pub fn place(
    snapshots: &Snapshots,
    team: &str,
    id: &CodeId,
    own: &Path,
    account: Option<&Account>,
) -> Result<(), CodeError> {
    let failed = |source| CodeError::Place { id: id.clone(), source };
    let archive = match snapshots.open(team, id) {
        Ok(archive) => archive,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CodeError::Gone { id: id.clone() });
        }
        Err(error) => return Err(failed(error)),
    };
    let folder = own.join(FOLDER);
    fs::create_dir(&folder).map_err(failed)?;
    unpack(archive, &folder).map_err(|source| CodeError::Unpack { id: id.clone(), source })?;
    match account {
        Some(account) => give_all(&folder, account).map_err(failed),
        None => Ok(()),
    }
}

/// Links are handed over themselves, and not what they lead to.
fn give_all(path: &Path, account: &Account) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    if !path.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        give_all(&entry?.path(), account)?;
    }
    Ok(())
}
