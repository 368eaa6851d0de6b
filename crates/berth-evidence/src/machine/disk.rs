//! What the disk takes for the least that can be durable, beside which a submission is held.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A page of a database: what a commit writes at the least.
const PAGE: [u8; 4_096] = [7; 4_096];

/// Times of writing a page at the end of a file and waiting until it is on disk, sorted.
pub fn floor(folder: &Path, times: u32) -> Result<Vec<Duration>> {
    let path = folder.join("floor");
    let mut file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut taken = Vec::new();
    for _ in 0..times {
        let clock = Instant::now();
        file.write_all(&PAGE).context("writing a page")?;
        file.sync_data().context("waiting for the disk")?;
        taken.push(clock.elapsed());
    }
    taken.sort_unstable();
    Ok(taken)
}
