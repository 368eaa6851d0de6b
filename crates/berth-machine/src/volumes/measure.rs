//! What a volume takes on the disk. Jobs write in it while it is looked at, and may put a link in
//! the place of a folder at any moment: every folder is opened from the one above it, and no link is
//! followed.

use berth_service::host::VolumeSize;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::path::Arg;
use std::path::Path;

/// Levels of folders that are looked at, each with a descriptor that is open.
const DEPTH: usize = 64;

pub fn measure(volume: &Path, most_entries: u64) -> VolumeSize {
    let mut size = VolumeSize::default();
    let mut open: Vec<Dir> = below(CWD, volume).into_iter().collect();
    size.partial = open.is_empty();
    while let Some(folder) = open.last_mut() {
        let entry = match folder.read() {
            Some(Ok(entry)) => entry,
            ended => {
                size.partial |= ended.is_some();
                open.pop();
                continue;
            }
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if size.entries == most_entries {
            size.partial = true;
            return size;
        }
        size.entries += 1;
        let Ok(at) = folder.fd() else { continue };
        // One that is gone meanwhile takes nothing.
        let Ok(found) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        size.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * 512;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            size.files += 1;
            continue;
        }
        let deeper = below(at, name).filter(|_| open.len() < DEPTH);
        size.partial |= deeper.is_none();
        open.extend(deeper);
    }
    size
}

/// A folder that is really there.
fn below(at: impl AsFd, name: impl Arg) -> Option<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(openat(at, name, flags, Mode::empty()).ok()?).ok()
}
