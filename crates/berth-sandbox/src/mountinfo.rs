//! What is mounted, as the kernel lists it.

use rustix::mount::MountFlags;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The number that it has as long as it is there.
    pub id: u64,
    /// That of the mount in which its place is.
    pub parent: u64,
    /// The file system, by its numbers.
    pub device: String,
    /// What of the file system is mounted.
    pub root: PathBuf,
    pub at: PathBuf,
    /// What it must keep when it is changed: in a user namespace the kernel refuses to take away
    /// what the machine has set.
    pub flags: MountFlags,
}

impl Mounted {
    pub(crate) fn parent<'a>(&self, all: &'a [Mounted]) -> Option<&'a Mounted> {
        // The first mount of a machine is in itself.
        all.iter().find(|mount| mount.id == self.parent && mount.id != self.id)
    }

    /// Whether something is mounted over it, or over a folder on the way to it.
    pub(crate) fn is_covered(&self, all: &[Mounted]) -> bool {
        let is_on_it = |other: &Mounted| other.parent == self.id && other.at == self.at;
        let is_another = |other: &&Mounted| other.id != self.id;
        self.is_out_of_reach(all) || all.iter().filter(is_another).any(is_on_it)
    }

    fn is_out_of_reach(&self, all: &[Mounted]) -> bool {
        let is_in_the_way = |other: &Mounted| {
            let is_beside = other.parent == self.parent && other.id != self.parent;
            is_beside && other.at != self.at && self.at.starts_with(&other.at)
        };
        let parent = self.parent(all);
        all.iter().any(is_in_the_way) || parent.is_some_and(|above| above.is_out_of_reach(all))
    }
}

/// The mounts of this thread, which are those of its process but in a test.
pub(crate) fn listed() -> io::Result<Vec<Mounted>> {
    fs::read_to_string("/proc/thread-self/mountinfo").map(|text| parse(&text))
}

pub(crate) fn parse(text: &str) -> Vec<Mounted> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mounted> {
    let mut fields = line.split(' ');
    let id = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let device = fields.next()?.to_owned();
    let root = PathBuf::from(unescape(fields.next()?));
    let at = PathBuf::from(unescape(fields.next()?));
    let words = fields.next()?.split(',');
    let flags = words.filter_map(flag).fold(MountFlags::empty(), |all, flag| all | flag);
    Some(Mounted { id, parent, device, root, at, flags })
}

/// Other paths by which the machine has the same file or folder, where it or a folder above it is
/// mounted in two places. The path leads through no link.
pub fn other_names(path: &Path) -> Vec<PathBuf> {
    let mounts = listed().unwrap_or_default();
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let own = identity(path);
    let mut names = names(&mounts, path);
    // Something else may be mounted over such a place.
    names.retain(|name| own.is_some() && identity(name) == own);
    names
}

fn names(mounts: &[Mounted], path: &Path) -> Vec<PathBuf> {
    // What was mounted last covers the others.
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    let Some(own) = around.max_by_key(|mount| mount.at.as_os_str().len()) else {
        return Vec::new();
    };
    let Ok(rest) = path.strip_prefix(&own.at) else { return Vec::new() };
    let inside = own.root.join(rest);
    let others = mounts.iter().filter(|mount| mount.device == own.device);
    let names = others.filter_map(|mount| {
        let rest = inside.strip_prefix(&mount.root).ok()?;
        Some(if rest.as_os_str().is_empty() { mount.at.clone() } else { mount.at.join(rest) })
    });
    names.filter(|name| name != path).collect()
}

fn flag(word: &str) -> Option<MountFlags> {
    Some(match word {
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        _ => return None,
    })
}

/// Spaces and the like are written as a backslash and three octal digits.
fn unescape(text: &str) -> OsString {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let value = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match value {
            Some(value) => {
                plain.push(value);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_has_its_place_and_the_flags_it_must_keep() {
        let text = "36 35 98:0 / /mnt/a\\040b rw,nosuid,nodev,relatime shared:1 - ext4 /dev/vda rw\n\
                    37 35 98:0 / /x ro,noatime - ext4 /dev/vda rw\n\
                    cut short";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].at, PathBuf::from("/mnt/a b"));
        let kept = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RELATIME;
        assert_eq!(found[0].flags, kept);
        assert_eq!(found[1].flags, MountFlags::RDONLY | MountFlags::NOATIME);
    }

    #[test]
    fn what_something_else_is_mounted_over_is_known() {
        let all = parse(
            "1 1 0:1 / / rw - tmpfs t rw\n\
             2 1 0:2 / /z rw - tmpfs t rw\n\
             3 2 0:3 / /z/a/disk rw - tmpfs t rw\n\
             4 3 0:4 / /z/a/disk/below rw - tmpfs t rw\n\
             5 2 0:5 / /z/a rw - tmpfs t rw\n\
             6 5 0:6 / /z/a/disk rw - tmpfs t rw\n\
             7 1 0:7 / /y rw - tmpfs t rw\n\
             8 7 0:8 / /y rw - tmpfs t rw\n",
        );
        let covered = all.iter().filter(|mount| mount.is_covered(&all));
        assert_eq!(covered.map(|mount| mount.id).collect::<Vec<_>>(), [3, 4, 7]);
    }

    #[test]
    fn a_folder_has_a_name_for_each_mount_that_it_is_in() {
        let mounts = parse(
            "1 0 8:1 / / rw - ext4 /dev/a rw\n\
             2 1 8:2 / /home rw - ext4 /dev/b rw\n\
             3 1 8:2 /op /mnt/op rw - ext4 /dev/b rw\n\
             4 1 8:2 /op/data /data rw - ext4 /dev/b rw\n\
             5 1 8:2 / /mnt/all rw - ext4 /dev/b rw\n\
             6 1 8:1 /home/op /mnt/old rw - ext4 /dev/a rw\n",
        );
        let of = |path: &str| names(&mounts, Path::new(path));
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of("/home/op"), paths(&["/mnt/op", "/mnt/all/op"]));
        assert_eq!(
            of("/home/op/data/x"),
            paths(&["/mnt/op/data/x", "/data/x", "/mnt/all/op/data/x"])
        );
        assert_eq!(of("/mnt/old"), paths(&["/home/op"]));
        assert_eq!(of("/srv"), paths(&[]));
    }
}
