//! What the disk takes for the least that can be durable, beside which a submission is held.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A page of a database: what a commit writes at the least.
const PAGE: [u8; 4_096] = [7; 4_096];
/// Pages of the file, which are written over again and again.
const PAGES: u64 = 1_000;

/// A file that has its full length from the start. A database writes its log in place too: a file
/// that grows would have its length made durable besides.
pub struct SyncFile {
    file: File,
    written: u64,
}

impl SyncFile {
    pub fn new(folder: &Path) -> Result<SyncFile> {
        let path = folder.join("floor");
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        for page in 0..PAGES {
            file.write_all_at(&PAGE, page * PAGE.len() as u64).context("writing a page")?;
        }
        file.sync_all().context("waiting for the disk")?;
        Ok(SyncFile { file, written: 0 })
    }

    /// How long it takes now to write a page and wait until it is on disk.
    pub fn sample(&mut self) -> Result<Duration> {
        let at = self.written % PAGES * PAGE.len() as u64;
        self.written += 1;
        let clock = Instant::now();
        self.file.write_all_at(&PAGE, at).context("writing a page")?;
        self.file.sync_all().context("waiting for the disk")?;
        Ok(clock.elapsed())
    }
}
