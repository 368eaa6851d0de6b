//! Checks the free space of the disk before a write.

use crate::error::{Error, Result};
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};

/// Bytes between two checks of the free space.
pub const LOOK_EVERY: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Room {
    folder: PathBuf,
    reserve: u64,
}

impl Room {
    pub fn new(folder: &Path, reserve: u64) -> Room {
        Room { folder: folder.to_owned(), reserve }
    }

    /// Refuses a write that would leave less than the reserve. If the free space is unknown, it allows the
    /// write, which then fails by itself on a full disk.
    pub fn check(&self, needed: u64) -> Result<()> {
        let Ok(found) = statvfs(&self.folder) else { return Ok(()) };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if free >= needed.saturating_add(self.reserve) {
            return Ok(());
        }
        Err(Error::Full { free, needed, reserve: self.reserve })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_leave_too_little_free_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Room::new(folder.path(), 0).check(1).is_ok());
        assert!(Room::new(folder.path(), 0).check(u64::MAX).unwrap_err().is_full());
        assert!(Room::new(folder.path(), u64::MAX).check(0).unwrap_err().is_full());
    }
}
