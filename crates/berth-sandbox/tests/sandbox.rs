//! A real sandbox, as root and as an ordinary user, whichever runs the tests. What tasks see in
//! theirs is tested with the driver that makes them.

use berth_sandbox::{Account, Helper, probe};
use std::path::PathBuf;

#[test]
fn this_machine_makes_sandboxes() {
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_berth-sandbox-helper"));
    let dir = tempfile::tempdir().unwrap();
    let account = rustix::process::geteuid().is_root().then_some(Account {
        uid: 1_900_000_000,
        gid: 1_900_000_000,
        groups: vec![],
    });
    probe(&Helper { exe, args: Vec::new() }, dir.path(), account).unwrap();
}
