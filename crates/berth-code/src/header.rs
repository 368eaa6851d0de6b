//! Headers of an archive. They omit owners and times, which differ between machines.

use tar::{EntryType, Header};

pub fn plain(kind: EntryType, bytes: u64, is_open: bool) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(if is_open { 0o755 } else { 0o644 });
    header
}
