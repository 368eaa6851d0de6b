//! Opening what somebody has named.
//!
//! The server judges a path when a job starts, and `init`, which has more rights than any job, opens
//! it a moment later. In between, whoever may write to a folder on the way can put another one in
//! its place. So rights are judged once more, by what is opened.

use crate::access::{Access, lets_everybody, lets_everybody_pass};
use crate::spec::{Account, Opener};
use rustix::fs::{
    Access as Wanted, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, accessat, openat,
    openat2, statat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

const FOUND: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Opens a path with no more rights than the opener has, or fails.
pub(crate) fn open(
    path: &Path,
    write: bool,
    by: &Opener,
    account: Option<&Account>,
) -> io::Result<OwnedFd> {
    match by {
        Opener::Account => acting_as(account, || open_as_we_are(path, write)),
        Opener::Everybody { below } => open_for_everybody(path, write, below),
    }
}

fn open_as_we_are(path: &Path, write: bool) -> io::Result<OwnedFd> {
    let found = openat2(CWD, path, FOUND, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let mut wanted = Wanted::READ_OK;
    wanted.set(Wanted::EXEC_OK, is_folder(&found)?);
    wanted.set(Wanted::WRITE_OK, write);
    // The kernel asks by path alone.
    let known = format!("/proc/self/fd/{}", found.as_raw_fd());
    accessat(CWD, known, wanted, AtFlags::EACCESS)?;
    Ok(found)
}

/// There is no account of everybody that this process could act as, so it looks at each folder
/// that it has opened.
fn open_for_everybody(path: &Path, write: bool, below: &Path) -> io::Result<OwnedFd> {
    let rest = path.strip_prefix(below).map_err(io::Error::other)?;
    let mut found = openat2(CWD, below, FOUND, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    for name in rest.iter() {
        if !lets_everybody_pass(statat(&found, "", AtFlags::EMPTY_PATH)?.st_mode) {
            return Err(Errno::ACCESS.into());
        }
        found = enter(&found, name)?;
    }
    let stat = statat(&found, "", AtFlags::EMPTY_PATH)?;
    let access = if write { Access::Write } else { Access::Read };
    match lets_everybody(stat.st_mode, is_folder(&found)?, access) {
        true => Ok(found),
        false => Err(Errno::ACCESS.into()),
    }
}

fn enter(above: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let found = openat(above, name, FOUND | OFlags::NOFOLLOW, Mode::empty())?;
    let stat = statat(&found, "", AtFlags::EMPTY_PATH)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Ok(found),
    }
}

fn is_folder(found: &impl AsFd) -> io::Result<bool> {
    let stat = statat(found, "", AtFlags::EMPTY_PATH)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Does something with the rights that the account has to files, and no more. Only root can take
/// another account; without root the account is our own.
///
/// The process keeps its real and saved numbers, so that the account can neither look into it nor
/// signal it. It is not told of its parent's death any more and has to ask for that again.
pub(crate) fn acting_as<T>(
    account: Option<&Account>,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let Some(account) = account.filter(|_| getuid().is_root()) else {
        return act();
    };
    let (had, groups) = (capabilities(None)?, getgroups()?);
    let (uid, gid) = (geteuid(), getegid());
    let theirs: Vec<Gid> = account.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    take(Uid::from_raw(account.uid), Gid::from_raw(account.gid), &theirs)?;
    // Taking another account does the same, and the operator's is root.
    set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..had })?;
    let done = act();
    set_capabilities(None, had)?;
    take(uid, gid, &groups)?;
    set_capabilities(None, had)?;
    done
}

/// Takes numbers for whatever is opened. There is one thread, so what holds for it holds for the
/// process.
fn take(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    set_thread_groups(groups)?;
    set_thread_res_gid(None, gid, None)?;
    Ok(set_thread_res_uid(None, uid, None)?)
}
