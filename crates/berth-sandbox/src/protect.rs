//! Making read-only what is not to be written to, with all that is mounted below it.
//!
//! The kernel lists mounts by path, and a job that runs now may give the folders on such a path other
//! names, or put a link in their place. So what a mount belongs to is told by the numbers of mounts,
//! and it is changed by a descriptor that was seen to be of the very mount.

use crate::mountinfo::{self, Mounted};
use crate::spec::Source;
use crate::tree_error::TreeError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What was put where, by the number of its mount.
pub(crate) type Placed<'a> = BTreeMap<u64, &'a Source>;

/// How often mounts are listed again, because some were not where they had been.
const LOOKS: usize = 16;

pub(crate) fn mount_id(of: impl AsFd) -> io::Result<u64> {
    let found = statx(of, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    is_told.then_some(found.stx_mnt_id).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Gives a mount the flags, which hold all that it must keep.
pub(crate) fn remount(mount: &(impl AsFd + ?Sized), flags: MountFlags) -> rustix::io::Result<()> {
    let path = format!("/proc/self/fd/{}", mount.as_fd().as_raw_fd());
    mount_remount(path, MountFlags::BIND | flags, c"")
}

pub(crate) fn protect(placed: &Placed<'_>) -> Result<(), TreeError> {
    let mut done = BTreeSet::new();
    let mut moved = None;
    for _ in 0..LOOKS {
        let listed = mountinfo::listed();
        let listed =
            listed.map_err(|error| TreeError::Step { step: "listing the mounts", error })?;
        moved = None;
        for mounted in &listed {
            // Nobody reaches what something else is mounted over, nor do we.
            if done.contains(&mounted.id) || mounted.is_covered(&listed) {
                continue;
            }
            let owner = owner(mounted, placed, &listed);
            let is_below = owner.is_some() && !placed.contains_key(&mounted.id);
            let is_done = match more(owner) {
                None => true,
                Some(more) => change(mounted, more, is_below)?,
            };
            if is_done {
                done.insert(mounted.id);
            } else {
                moved = Some(mounted.at.clone());
            }
        }
        if moved.is_none() {
            break;
        }
    }
    moved.map_or(Ok(()), |at| Err(TreeError::Moved { at }))
}

/// What a mount came with.
fn owner<'a>(mounted: &Mounted, placed: &Placed<'a>, all: &[Mounted]) -> Option<&'a Source> {
    let mut above = Some(mounted);
    while let Some(mounted) = above {
        if let Some(source) = placed.get(&mounted.id) {
            return Some(source);
        }
        above = mounted.parent(all);
    }
    None
}

/// The flags that are added; nothing for what stays as it is.
fn more(owner: Option<&Source>) -> Option<MountFlags> {
    match owner {
        Some(Source::Device { .. } | Source::Terminals) => None,
        Some(
            Source::Folder { write: true, .. }
            | Source::Named { write: true, .. }
            | Source::Memory
            | Source::Processes,
        ) => Some(MountFlags::NOSUID | MountFlags::NODEV),
        // The root, and what holds the devices.
        _ => Some(MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY),
    }
}

/// Whether the mount was found where it was listed.
fn change(mounted: &Mounted, more: MountFlags, is_below: bool) -> Result<bool, TreeError> {
    let fail = |error| TreeError::Place { at: mounted.at.clone(), error };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = match openat2(CWD, &mounted.at, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(found) => found,
        // A mount of somebody else in a system folder that is closed to us is closed to the job.
        Err(Errno::ACCESS) if is_below => return Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        Err(error) => return Err(fail(error.into())),
    };
    if mount_id(&found).map_err(fail)? != mounted.id {
        return Ok(false);
    }
    match remount(&found, mounted.flags | more) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS) if is_below => Ok(true),
        // Something in the mount instead of the mount.
        Err(Errno::INVAL) => Ok(false),
        Err(error) => Err(fail(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::CloneFlags;
    use rustix::fs::{StatVfsMountFlags, statvfs};
    use rustix::mount::{MountPropagationFlags, mount, mount_change};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Does something in a mount namespace of its own; nothing where that cannot be had.
    fn in_own_mounts(act: impl FnOnce(&Path) + Send + 'static) {
        // Outside, so that nothing is mounted in it when it goes.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let thread = std::thread::spawn(move || {
            // A thread may leave the mounts of its process, as far as root goes.
            if nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_err() {
                return;
            }
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).unwrap();
            act(&path);
        });
        thread.join().unwrap();
    }

    fn in_memory(at: &Path, flags: MountFlags) -> Mounted {
        fs::create_dir_all(at).unwrap();
        mount("test", at, "tmpfs", flags, None).unwrap();
        let listed = mountinfo::listed().unwrap();
        listed.into_iter().rfind(|mounted| mounted.at == at).unwrap()
    }

    fn is_read_only(path: &Path) -> bool {
        statvfs(path).unwrap().f_flag.contains(StatVfsMountFlags::RDONLY)
    }

    #[test]
    fn a_mount_that_is_not_where_it_was_is_not_taken_for_what_is_there_now() {
        in_own_mounts(|dir| {
            let [closed, open, link, inside] =
                ["closed", "open", "link", "open/folder"].map(|name| dir.join(name));
            in_memory(&closed, MountFlags::RDONLY);
            let opened = in_memory(&open, MountFlags::empty());
            std::os::unix::fs::symlink(&closed, &link).unwrap();
            fs::create_dir(&inside).unwrap();
            for now in [&link, &closed, &inside, &dir.join("missing")] {
                let moved = Mounted { at: now.clone(), ..opened.clone() };
                assert!(!change(&moved, MountFlags::NOSUID, false).unwrap(), "{}", now.display());
                assert!(is_read_only(&closed), "{}", now.display());
            }
            assert!(change(&opened, MountFlags::RDONLY, false).unwrap());
            assert!(is_read_only(&open));
        });
    }

    #[test]
    fn what_is_mounted_below_something_read_only_is_read_only_by_whatever_name() {
        in_own_mounts(|dir| {
            let (data, disk) = (dir.join("data"), dir.join("data/a/disk"));
            let source = |write| Source::Folder { path: PathBuf::from("/from"), write };
            let outer = in_memory(&data, MountFlags::empty());
            let inner = in_memory(&data.join("a"), MountFlags::empty());
            in_memory(&disk, MountFlags::empty());
            let mut placed = Placed::new();
            let (written, read) = (source(true), source(false));
            placed.insert(outer.id, &written);
            placed.insert(inner.id, &read);
            let root = mountinfo::listed().unwrap();
            let others = root.iter().filter(|mounted| !mounted.at.starts_with(dir));
            let keep = Source::Terminals;
            placed.extend(others.map(|mounted| (mounted.id, &keep)));
            protect(&placed).unwrap();
            assert_eq!(
                [&data, &data.join("a"), &disk].map(|path| is_read_only(path)),
                [false, true, true]
            );
        });
    }

    #[test]
    fn a_mount_belongs_to_what_it_came_with_whatever_its_path() {
        let all = mountinfo::parse(
            "10 1 0:1 / / rw - tmpfs t rw\n\
             11 10 0:2 / /z rw - ext4 /dev/a rw\n\
             12 11 0:3 / /z/moved/m ro - ext4 /dev/b rw\n\
             13 12 0:4 / /z/moved/m/disk rw - ext4 /dev/c rw\n",
        );
        let (written, read) = (Source::write(Path::new("/v")), Source::read(Path::new("/w")));
        let placed = Placed::from([(11, &written), (12, &read)]);
        let owners = all.iter().map(|mounted| owner(mounted, &placed, &all));
        let expected = [None, Some(&written), Some(&read), Some(&read)];
        assert_eq!(owners.collect::<Vec<_>>(), expected);
    }
}
