//! The helper alone, for tests; in Berth it is a hidden command of the one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let word = std::env::args_os().nth(1).unwrap_or_default();
    berth_sandbox::helper(&word).unwrap_or(ExitCode::from(2))
}
