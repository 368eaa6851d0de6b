//! A mount namespace for the measurement: the small disk is mounted in it and goes with it.

use anyhow::{Context, Result, bail};
use std::env;
use std::process::Command;

/// Set for the process inside.
const INSIDE: &str = "BERTH_EVIDENCE_INSIDE";

/// Whether small disks can be mounted. That takes root: an ordinary user can mount them only in
/// a user namespace, in which PostgreSQL does not start.
pub fn has_mounts() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Starts this program again with the same arguments and mounts of its own. False where that is
/// not needed or not possible, and we go on.
pub fn enter() -> Result<bool> {
    if has_mounts() || !rustix::process::geteuid().is_root() {
        return Ok(false);
    }
    let status = Command::new("unshare")
        .arg("--mount")
        .arg(env::current_exe().context("finding myself")?)
        .args(env::args_os().skip(1))
        .env(INSIDE, "1")
        .status()
        .context("unshare, which is part of util-linux")?;
    if !status.success() {
        bail!("the measurement ended with {status}");
    }
    Ok(true)
}
