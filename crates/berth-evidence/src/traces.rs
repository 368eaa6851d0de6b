//! Trace files as text. The simulator itself opens nothing.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// The text of `name` in `folder`, as `name.csv` or `name.csv.gz`. What is compressed is read by
/// gzip, which is wherever traces are.
pub fn read(folder: &Path, name: &str) -> Result<String> {
    let plain = folder.join(format!("{name}.csv"));
    if plain.is_file() {
        return std::fs::read_to_string(&plain)
            .with_context(|| format!("reading {}", plain.display()));
    }
    let packed = folder.join(format!("{name}.csv.gz"));
    ensure!(packed.is_file(), "there is no {} and no {}", plain.display(), packed.display());
    let output = Command::new("gzip")
        .args(["-dc", "--"])
        .arg(&packed)
        .output()
        .context("starting gzip, which reads compressed traces")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "gzip failed on {}: {complaint}", packed.display());
    String::from_utf8(output.stdout).with_context(|| format!("{} is no text", packed.display()))
}
