//! Building the view of the file system.
//!
//! Everything of the machine is opened first, then the new root becomes the root, and only then the
//! pieces are put in their places. Folders of the machine are in the view by then and can still be
//! written to, so no place is reached through a link: a job could have put it there.

use crate::named::{self, acting_as};
use crate::point;
use crate::protect::{Placed, mount_id, protect, remount};
use crate::spec::{Account, Mount, Sandbox, Source};
use crate::tree_error::TreeError;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2,
    statat,
};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount,
    mount_change, move_mount, open_tree, unmount,
};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where files that are made up lie before they are put in their places.
const TEXTS: &str = "/run/berth";

fn step<T>(step: &'static str, done: rustix::io::Result<T>) -> Result<T, TreeError> {
    done.map_err(|error| TreeError::Step { step, error: error.into() })
}

/// Makes the view the root of this process, which has a mount namespace of its own.
pub(crate) fn build(sandbox: &Sandbox) -> Result<(), TreeError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step("closing the machine's mounts", mount_change("/", private))?;
    let mut mounts: Vec<&Mount> = sandbox.mounts.iter().collect();
    // By way of `/proc` a mount is changed that is known by its descriptor.
    mounts.sort_by(|a, b| (!is_processes(a), &a.at).cmp(&(!is_processes(b), &b.at)));
    let account = sandbox.account.as_ref();
    let opened: Vec<Option<Opened>> =
        mounts.iter().map(|mount| open(&mount.source, account)).collect::<Result<_, _>>()?;
    become_root(&sandbox.scratch)?;
    let mut placed = Placed::new();
    for (nth, (mount, opened)) in mounts.iter().zip(opened).enumerate() {
        let maker = account.filter(|_| is_in_what_jobs_write(mount, &mounts[..nth]));
        let fail = |error| TreeError::Place { at: mount.at.clone(), error };
        if let Some(tree) = place(mount, opened, maker).map_err(fail)? {
            placed.insert(mount_id(&tree).map_err(fail)?, &mount.source);
        }
    }
    protect(&placed)
}

fn is_processes(mount: &Mount) -> bool {
    mount.source == Source::Processes
}

/// Whether the place of a mount lies in a folder of the machine that the job can write to. What is
/// missing there is made with no more rights than the job has: it may be a folder of somebody else.
fn is_in_what_jobs_write(mount: &Mount, before: &[&Mount]) -> bool {
    let above = before.iter().rev().find(|above| mount.at.starts_with(&above.at));
    above.is_some_and(|above| {
        matches!(
            above.source,
            Source::Folder { write: true, .. } | Source::Named { write: true, .. }
        )
    })
}

struct Opened {
    tree: OwnedFd,
    is_folder: bool,
}

/// A copy of the mounts at a path, detached. Nothing for what is not of the machine.
fn open(source: &Source, account: Option<&Account>) -> Result<Option<Opened>, TreeError> {
    let (path, resolve, optional) = match source {
        Source::Processes => return processes().map(Some),
        Source::Named { path, write, by } => {
            let found = named::open(path, *write, by, account);
            let cloned = found.and_then(|found| Ok(copy(&found)?));
            let fail = |error| TreeError::Open { path: path.clone(), error };
            return cloned.map(Some).map_err(fail);
        }
        Source::Folder { path, .. } => (path, ResolveFlags::NO_SYMLINKS, false),
        Source::System { path } => (path, ResolveFlags::empty(), true),
        Source::Device { path } => (path, ResolveFlags::NO_SYMLINKS, true),
        _ => return Ok(None),
    };
    let opened = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    let found = match opened {
        Err(rustix::io::Errno::NOENT) if optional => return Ok(None),
        opened => opened,
    };
    let fail =
        |error: rustix::io::Errno| TreeError::Open { path: path.clone(), error: error.into() };
    found.and_then(|found| copy(&found)).map(Some).map_err(fail)
}

fn copy(found: &OwnedFd) -> rustix::io::Result<Opened> {
    let stat = statat(found, "", AtFlags::EMPTY_PATH)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    Ok(Opened { tree: open_tree(found, "", flags)?, is_folder })
}

/// In a user namespace the kernel gives it only to who sees another one, so it is made while the
/// machine's own is there.
fn processes() -> Result<Opened, TreeError> {
    let safe = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let tree = step("listing processes", new_file_system("proc", &[], safe))?;
    Ok(Opened { tree, is_folder: true })
}

/// A file system that is mounted nowhere yet.
fn new_file_system(
    kind: &str,
    options: &[(&str, &str)],
    flags: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let made = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&made, *name, *value)?;
    }
    fsconfig_create(&made)?;
    fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Puts an empty file system in memory over the folder and makes it the root. The machine's own
/// root is gone then.
fn become_root(scratch: &Path) -> Result<(), TreeError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    step("an empty root", mount("berth", scratch, "tmpfs", flags, Some(c"mode=0755,size=16m")))?;
    step("an empty root", rustix::process::chdir(scratch))?;
    step("changing the root", rustix::process::pivot_root(".", "."))?;
    step("leaving the old root", unmount(".", UnmountFlags::DETACH))?;
    step("changing the root", rustix::process::chdir("/"))
}

/// The mount that was put there; nothing for what is none.
fn place(
    what: &Mount,
    opened: Option<Opened>,
    maker: Option<&Account>,
) -> io::Result<Option<OwnedFd>> {
    let at = &what.at;
    let safe = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let tree = match &what.source {
        Source::Folder { .. }
        | Source::Named { .. }
        | Source::System { .. }
        | Source::Device { .. }
        | Source::Processes => {
            // Left out where there is nothing to show.
            let Some(Opened { tree, is_folder }) = opened else { return Ok(None) };
            put(&tree, at, is_folder, maker)?;
            if let Source::Folder { write: false, .. } | Source::Named { write: false, .. } =
                what.source
            {
                make_read_only(&tree)?;
            }
            tree
        }
        Source::Memory => {
            let tree = new_file_system("tmpfs", &[("mode", "1777")], safe)?;
            put(&tree, at, true, maker)?;
            tree
        }
        Source::Nothing => {
            let options = [("mode", "0755"), ("size", "1m")];
            let tree = new_file_system("tmpfs", &options, safe)?;
            cover(&tree, at, true, maker)?;
            tree
        }
        Source::Text { text } => {
            fs::create_dir_all(TEXTS)?;
            let name = at.to_string_lossy().replace('/', "_");
            let kept = Path::new(TEXTS).join(name);
            fs::write(&kept, text)?;
            let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            let tree = open_tree(CWD, &kept, clone)?;
            cover(&tree, at, false, maker)?;
            tree
        }
        Source::Link { to } => {
            acting_as(maker, || point::link(at, to))?;
            return Ok(None);
        }
        Source::Terminals => {
            let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            let options = [("ptmxmode", "0666"), ("mode", "620")];
            let tree = new_file_system("devpts", &options, flags)?;
            put(&tree, at, true, maker)?;
            tree
        }
    };
    Ok(Some(tree))
}

/// What hides something is put there even where the job itself cannot go.
fn cover(tree: &OwnedFd, at: &Path, is_folder: bool, maker: Option<&Account>) -> io::Result<()> {
    match put(tree, at, is_folder, maker) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && maker.is_some() => {
            put(tree, at, is_folder, None)
        }
        done => done,
    }
}

fn put(tree: &OwnedFd, at: &Path, is_folder: bool, maker: Option<&Account>) -> io::Result<()> {
    let point = acting_as(maker, || point::open(at, is_folder))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", &point, "", flags)?)
}

/// At once, so that there is no moment in which somebody could write to it. What is mounted below
/// it comes with [`protect`].
fn make_read_only(tree: &OwnedFd) -> io::Result<()> {
    let has = fstatvfs(tree)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.iter().filter(|(flag, _)| has.contains(*flag));
    let flags = kept.fold(MountFlags::empty(), |all, (_, flag)| all | *flag);
    Ok(remount(tree, flags | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV)?)
}
