//! The programs that `make kube-tools` builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of a program.
///
/// # Panics
///
/// If it has not been built.
pub(super) fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let program = FOLDER.get_or_init(folder).join(name);
    assert!(program.exists(), "{name} has not been built: run `make kube-tools`");
    program
}

/// The script alone knows what the folder's name is made of.
fn folder() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/kube-tools");
    let output = Command::new(&script).arg("where").output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} where: {errors}", script.display());
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
