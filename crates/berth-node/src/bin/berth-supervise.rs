//! The helper alone, for tests; in Berth it is a hidden command of the one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    berth_node::helper(std::env::args_os().skip(1))
}
