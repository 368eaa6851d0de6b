//! A machine whose clock is set while jobs run. The library faketime sets it for the server alone;
//! the clock of the machine that runs this test is left as it is.

use super::server::{BERTH, until};
use berth_testbed::{Server, Surroundings};
use std::path::Path;

fn jumps(server: &Server) -> Vec<String> {
    let list = server.json(&["audit", "list"]);
    let rows = list["rows"].as_array().unwrap_or_else(|| panic!("no rows: {list}"));
    let jumps = rows.iter().filter(|row| row["what"] == "clock_set");
    jumps.map(|row| row["target"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn setting_the_clock_ends_no_job_and_changes_no_bill() {
    let around = Surroundings::with_clock(Path::new(BERTH));
    let mut server = Server::start(&around.program(), &["--gpus", "8xH100"]);
    let args = ["run", "-d", "--name", "long", "-g", "8", "--time", "1h", "--", "sleep", "1000"];
    server.run_ok(&args);
    until("it runs", || server.job("long")["state"] == "running");
    let began = std::time::Instant::now();

    around.set_clock("+2d");
    // Whatever is written next knows of it.
    server.run_ok(&["run", "--name", "ahead", "--", "true"]);
    until("it is recorded", || jumps(&server).iter().any(|jump| jump.ends_with("ahead")));
    assert_eq!(server.job("long")["state"], "running");

    around.set_clock("-2d");
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
