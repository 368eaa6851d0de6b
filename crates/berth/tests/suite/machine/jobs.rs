//! Jobs on one machine, from the command line to the process and back.

use super::server::{Server, until};
use berth_testbed::Bill;

fn state(server: &Server, job: &str) -> String {
    server.job(job)["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_job_runs_to_its_end_and_its_output_is_kept() {
    let server = Server::start(&["--gpus", "8xH100"]);
    let ran = server.berth(&["run", "--name", "hello", "-g", "2", "--", "echo", "from the job"]);
    assert!(ran.status.success(), "{ran:?}");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(printed.contains("from the job"), "{printed}");
    assert!(server.run_ok(&["logs", "hello"]).contains("from the job"));
    assert_eq!(state(&server, "hello"), "done");
}

#[test]
fn run_ends_with_the_exit_code_of_its_job() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let ran = server.berth(&["run", "--name", "bad", "--", "bash", "-c", "exit 7"]);
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    let job = server.json(&["ps", "--all", "bad"]);
    assert_eq!(job["jobs"][0]["exit"]["code"], 7, "{job}");
    let why = server.run_ok(&["why", "bad"]);
    assert!(why.contains("FAILED") && why.contains("reason  failed with exit code 7"), "{why}");
}

#[test]
fn jobs_wait_for_gpus_and_are_told_why() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "-d", "--name", "long", "-g", "1", "--", "sleep", "600"]);
    until("the first job runs", || state(&server, "long") == "running");
    server.run_ok(&["run", "-d", "--name", "next", "-g", "1", "--", "true"]);
    let why = server.json(&["why", "next"]);
    assert_eq!(why["position"], 1, "{why}");
    assert_eq!(why["blockers"][0]["code"], "no-fit", "{why}");
    server.run_ok(&["stop", "long"]);
    until("the next job is done", || state(&server, "next") == "done");
}

#[test]
fn a_paused_job_gives_its_gpus_back_and_goes_on_when_it_is_resumed() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "-d", "--name", "long", "-g", "1", "--", "sleep", "600"]);
    until("it runs", || state(&server, "long") == "running");
    server.run_ok(&["pause", "long"]);
    until("it is paused", || state(&server, "long") == "paused");
    assert_eq!(server.json(&["gpus"])["items"][0]["free_milli"], 1000);
    server.run_ok(&["resume", "long"]);
    until("it runs again", || state(&server, "long") == "running");
    let attempts = server.json(&["ps", "--all", "long"]);
    assert_eq!(attempts["jobs"][0]["attempts"], 2, "{attempts}");
}

#[test]
fn a_job_is_tried_again_as_often_as_its_file_says() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let file = server.home.path().join("flaky.yaml");
    let text = "name: flaky\nretry: {error: 2, wait: 1s}\nrun: '[ $BERTH_ATTEMPT = 2 ]'\n";
    std::fs::write(&file, text).unwrap();
    server.run_ok(&["run", "-d", "-f", file.to_str().unwrap()]);
    until("it is done", || state(&server, "flaky") == "done");
    let job = server.json(&["ps", "--all", "flaky"]);
    assert_eq!(job["jobs"][0]["attempts"], 3, "{job}");
}

#[test]
fn a_secret_reaches_the_job_and_nothing_else() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let mut set = server.command(&["secret", "set", "api-key"]);
    let mut child = set.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"hunter2hunter2").unwrap();
    assert!(child.wait().unwrap().success());
    let file = server.home.path().join("secret.yaml");
    let text = "name: s\nsecrets: {KEY: api-key}\nrun: 'echo ${#KEY}'\n";
    std::fs::write(&file, text).unwrap();
    let ran = server.berth(&["run", "-f", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("14"), "{ran:?}");
    let found = std::process::Command::new("grep")
        .args(["-rl", "hunter2hunter2", server.home.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
}

#[test]
fn an_array_runs_all_its_elements() {
    let server = Server::start(&["--gpus", "2xL4"]);
    let file = server.home.path().join("sweep.yaml");
    let text = "name: sweep\ngpus: 1\nsweep: {lr: [1, 2, 3]}\nrun: 'echo lr is $lr'\n";
    std::fs::write(&file, text).unwrap();
    server.run_ok(&["run", "-d", "-f", file.to_str().unwrap()]);
    until("all are done", || {
        let jobs = server.json(&["ps", "--all"]);
        let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
        jobs.len() == 3 && jobs.iter().all(|job| job["state"] == "done")
    });
    assert!(server.run_ok(&["logs", "1_2"]).contains("lr is 3"));
}

#[test]
fn what_was_spent_is_price_times_time_to_the_millionth() {
    let server = Server::start(&["--gpus", "2xH100"]);
    server.berth(&["run", "--name", "paid", "-g", "2", "--", "sleep", "1"]);
    let cost = server.json(&["cost", "--by", "job"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bills = runtime.block_on(Bill::of(&server.client(), "paid")).unwrap();
    let sum: i64 = bills.iter().map(|bill| bill.cost).sum();
    assert!(sum > 0);
    assert_eq!(cost["total_micros"], sum, "{cost}");
    assert!(bills.iter().all(Bill::is_exact), "{bills:?}");
}

#[test]
fn an_array_is_stayed_with_until_its_last_element_ends() {
    let server = Server::start(&["--gpus", "2xL4"]);
    let line = ["run", "--name", "many", "--array", "0-3", "-g", "1", "--", "true"];
    let ran = server.berth(&line);
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("many done"), "{ran:?}");
    let broken = ["run", "--array", "0-1", "--", "bash", "-c", "exit $SLURM_ARRAY_TASK_ID"];
    assert_eq!(server.berth(&broken).status.code(), Some(1));
}

#[test]
fn a_notebook_needs_no_command() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let planned = server.json(&["plan", "--kind", "notebook", "-g", "1"]);
    assert_eq!(planned["starts_now"], true, "{planned}");
}

#[test]
fn a_job_that_waits_for_its_next_try_can_be_paused_and_let_go_on_at_once() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let file = server.home.path().join("flaky.yaml");
    let text = "name: flaky\nretry: {error: 2, wait: 1h}\nrun: '[ $BERTH_ATTEMPT = 1 ]'\n";
    std::fs::write(&file, text).unwrap();
    server.run_ok(&["run", "-d", "-f", file.to_str().unwrap()]);
    let waits = || server.job("flaky")["reason_code"] == "retry";
    until("it waits for its next try", waits);
    server.run_ok(&["pause", "flaky"]);
    until("it is paused", || state(&server, "flaky") == "paused");
    server.run_ok(&["resume", "flaky"]);
    until("it is done", || state(&server, "flaky") == "done");
    server.run_ok(&["run", "--name", "other", "--", "true"]);
}

#[test]
fn tasks_that_fail_together_are_one_try() {
    let server = Server::start(&["--gpus", "2xL4"]);
    let file = server.home.path().join("gang.yaml");
    let text = "name: gang\nnodes: 2\ngpus: 1\nretry: {error: 1, wait: 1s}\n\
                run: '[ $BERTH_ATTEMPT = 1 ]'\n";
    std::fs::write(&file, text).unwrap();
    server.run_ok(&["run", "-d", "-f", file.to_str().unwrap()]);
    until("it is done", || state(&server, "gang") == "done");
}

#[test]
fn a_schedule_that_is_sent_twice_under_one_key_is_made_once() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let file = "name: nightly\nschedule: '0 3 * * *'\nrun: 'true'\n";
    let client = server.client();
    let query = berth_api::wire::SubmitQuery::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (first, again) = runtime.block_on(async {
        let send = || client.submit_as(file, &query, "one-key".to_owned());
        // At the same moment, and then once more.
        let (first, second) = tokio::join!(send(), send());
        assert_eq!(first.as_ref().unwrap().schedule, second.unwrap().schedule);
        (first.unwrap(), send().await.unwrap())
    });
    assert_eq!(again.schedule, first.schedule);
    assert!(again.repeated, "{again:?}");
    let schedules = runtime.block_on(client.schedules()).unwrap();
    assert_eq!(schedules.items.len(), 1, "{schedules:?}");
}
