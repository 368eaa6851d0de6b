//! Trace files as text. The simulator itself opens nothing.

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The text of `name` in `folder`, as `name.csv` or `name.csv.gz`.
pub fn read(folder: &Path, name: &str) -> Result<String> {
    let plain = folder.join(format!("{name}.csv"));
    if plain.is_file() {
        return std::fs::read_to_string(&plain)
            .with_context(|| format!("reading {}", plain.display()));
    }
    let packed = folder.join(format!("{name}.csv.gz"));
    let file = File::open(&packed).with_context(|| {
        format!("there is no {} and no readable {}", plain.display(), packed.display())
    })?;
    let mut text = String::new();
    let read = GzDecoder::new(file).read_to_string(&mut text);
    read.with_context(|| format!("unpacking {}", packed.display()))?;
    Ok(text)
}
