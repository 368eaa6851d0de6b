//! Servers and databases that are killed: no job is lost, none runs twice at once, and the bill is
//! exact. `make evidence-machine` does the same at full size.

use super::server::{Server, until};
use berth_api::Code;
use berth_testbed::{Load, Postgres, Stop, run_through_faults};
use std::time::Duration;

#[test]
fn a_server_that_is_killed_again_and_again_loses_no_job_and_runs_none_twice() {
    let mut server = Server::start(&["--gpus", "8xH100"]);
    let report = run_through_faults(&mut server, Load { jobs: 200, faults: 20 }, |server| {
        server.kill();
        server.start_again();
    });
    assert_eq!(report.violations(), Vec::<String>::new(), "{report:?}");
    assert_eq!(report.ran_again_unrecorded, 0, "{report:?}");
    assert!(report.acknowledged_before_last_fault >= 190, "{report:?}");
    assert!(report.ran_through_a_fault > 0, "{report:?}");
}

/// What a job did is lost with its supervisor, and so it is done anew.
#[test]
fn a_server_that_is_killed_with_all_supervisors_runs_every_job_to_its_end_and_none_twice_at_once() {
    let mut server = Server::start(&["--gpus", "8xH100"]);
    let mut killed = 0;
    let report = run_through_faults(&mut server, Load { jobs: 60, faults: 6 }, |server| {
        server.kill();
        killed += server.kill_supervisors();
        server.start_again();
    });
    assert_eq!(report.violations(), Vec::<String>::new(), "{report:?}");
    assert!(killed > 0, "{report:?}");
}

#[test]
fn a_database_that_crashes_again_and_again_costs_no_job_and_the_server_goes_on_by_itself() {
    let mut postgres = Postgres::start();
    let url = postgres.database();
    let mut server = Server::start(&["--gpus", "8xH100", "--database", &url]);
    let report = run_through_faults(&mut server, Load { jobs: 60, faults: 3 }, |server| {
        postgres.stop(Stop::Immediate);
        assert_eq!(refusal(server), Some(Code::StoreDown));
        postgres.resume();
    });
    assert_eq!(report.violations(), Vec::<String>::new(), "{report:?}");
    assert!(server.is_running());
    assert!(report.acknowledged_before_last_fault >= 40, "{report:?}");
    assert!(report.ran_through_a_fault > 0, "{report:?}");
}

/// What is said to somebody who does not try again.
fn refusal(server: &berth_testbed::Server) -> Option<Code> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = server.client_with(Duration::ZERO);
    let refused = runtime.block_on(client.jobs(&Default::default())).unwrap_err();
    refused.problem().unwrap_or_else(|| panic!("{refused}")).known_code()
}

#[test]
fn running_processes_are_found_again_by_the_next_server() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let script = "sleep 3; echo end";
    server.run_ok(&["run", "-d", "--name", "long", "-g", "1", "--", "bash", "-c", script]);
    until("it runs", || server.job("long")["state"] == "running");
    server.kill();
    server.start_again();
    until("it is done", || server.job("long")["state"] == "done");
    let job = server.json(&["ps", "--all", "long"]);
    assert_eq!(job["jobs"][0]["attempts"], 1, "{job}");
    assert!(server.run_ok(&["logs", "long"]).contains("end"));
}

/// Its GPU would otherwise go to the next job while its processes still use it.
#[test]
fn a_running_task_whose_lease_is_damaged_is_stopped_before_its_gpu_goes_to_another_job() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let mut server = Server::start(&["--gpus", "1xL4", "--database", &url]);
    server.run_ok(&["run", "-d", "--name", "long", "-g", "1", "--", "sleep", "1000"]);
    until("it runs", || server.job("long")["state"] == "running");
    let started = server.home.path().join("node/tasks/1.0.0/started.json");
    let started: serde_json::Value =
        serde_json::from_slice(&std::fs::read(started).unwrap()).unwrap();
    let process = started["pids"][0].to_string();
    server.run_ok(&["run", "-d", "--name", "next", "-g", "1", "--", "sleep", "1000"]);
    server.kill();
    let name = url.rsplit_once('/').unwrap().1;
    postgres.sql(name, "UPDATE leases SET slices = '{' WHERE closed IS NULL");
    server.start_again();

    until("the next job runs", || server.job("next")["state"] == "running");
    assert!(!std::path::Path::new("/proc").join(&process).exists(), "{process} still runs");
    // It is no fault of the job's: it waits for another attempt.
    assert_eq!(server.job("long")["state"], "pending", "{}", server.job("long"));
    assert!(server.log().contains("its lease is damaged"), "{}", server.log());
}
