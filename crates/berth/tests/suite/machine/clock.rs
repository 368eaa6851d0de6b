//! A machine whose clock is set while jobs run. The library faketime sets it for the server alone;
//! the clock of the machine that runs this test is left as it is.

use super::server::{BERTH, until};
use berth_testbed::Server;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// The program, whose clock on the wall is off by what the file says.
fn program_with_a_clock(folder: &Path) -> PathBuf {
    let (path, clock) = (folder.join("berth"), folder.join("clock"));
    set(folder, "+0");
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = up ] || exec {BERTH} \"$@\"\n\
         export LD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1\n\
         export FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1\n\
         exec {BERTH} \"$@\"\n",
        clock.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn set(folder: &Path, by: &str) {
    let beside = folder.join("clock.new");
    std::fs::write(&beside, format!("{by}\n")).unwrap();
    std::fs::rename(beside, folder.join("clock")).unwrap();
}

fn jumps(server: &Server) -> Vec<String> {
    let list = server.json(&["audit", "list"]);
    let rows = list["rows"].as_array().unwrap_or_else(|| panic!("no rows: {list}"));
    let jumps = rows.iter().filter(|row| row["what"] == "clock_set");
    jumps.map(|row| row["target"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs libfaketime"]
fn setting_the_clock_ends_no_job_and_changes_no_bill() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_with_a_clock(folder.path());
    let mut server = Server::start(&program, &["--gpus", "8xH100"]);
    let args = ["run", "-d", "--name", "long", "-g", "8", "--time", "1h", "--", "sleep", "1000"];
    server.run_ok(&args);
    until("it runs", || server.job("long")["state"] == "running");
    let began = std::time::Instant::now();

    set(folder.path(), "+2d");
    // Whatever is written next knows of it.
    server.run_ok(&["run", "--name", "ahead", "--", "true"]);
    until("it is recorded", || jumps(&server).iter().any(|jump| jump.ends_with("ahead")));
    assert_eq!(server.job("long")["state"], "running");

    set(folder.path(), "-2d");
    server.run_ok(&["run", "--name", "back", "--", "true"]);
    until("it is recorded", || jumps(&server).iter().any(|jump| jump.ends_with("back")));
    assert_eq!(server.job("long")["state"], "running");

    // The next server goes on where this one stood.
    server.kill();
    server.start_again();
    until("it still runs", || server.job("long")["state"] == "running");
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.run_ok(&["stop", "--now", "long"]);
    until("it is stopped", || server.job("long")["state"] == "cancelled");
    let held = i64::try_from(began.elapsed().as_millis()).unwrap() + 5_000;
    let gpus = server.json(&["gpus"]);
    let gpus = gpus["items"].as_array().unwrap().iter();
    let price: i64 = gpus.map(|gpu| gpu["price_micros_per_hour"].as_i64().unwrap()).sum();
    let job = server.job("long");
    let cost = job["cost_micros"].as_i64().unwrap();
    let most = price * held / 3_600_000;
    assert!(cost > price / 3_600 && cost <= most, "{cost} of at most {most}: {job}");
}
