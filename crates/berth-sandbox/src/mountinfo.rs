//! What is mounted, as the kernel lists it.

use rustix::mount::MountFlags;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub at: PathBuf,
    /// What it must keep when it is changed: in a user namespace the kernel refuses to take away
    /// what the machine has set.
    pub flags: MountFlags,
}

pub(crate) fn parse(text: &str) -> Vec<Mounted> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mounted> {
    let mut fields = line.split(' ').skip(4);
    let at = PathBuf::from(unescape(fields.next()?));
    let words = fields.next()?.split(',');
    let flags = words.filter_map(flag).fold(MountFlags::empty(), |all, flag| all | flag);
    Some(Mounted { at, flags })
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
}
