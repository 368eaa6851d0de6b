//! The output of commands in everyday cases: budgets, missing programs, arrays, retries, draining nodes,
//! files and quotas.

use super::people::People;
use super::server::{Server, until};
use serde_json::json;

fn err(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is(server: &Server, job: &str, state: &str) -> bool {
    server.job(job)["state"] == state
}

#[test]
fn run_warns_where_a_budget_has_too_little_left_as_plan_does() {
    let people = People::start("1xL4");
    let file = people.server.work.path().join("budget.yaml");
    let text = "kind: budget\nqueue: vision\nlimit: 0.01\n";
    std::fs::write(&file, text).expect("the folder is ours");
    people.server.run_ok(&["apply", "-y", "-f", file.to_str().expect("a plain path")]);
    let of_vision = ["--team", "vision", "--time", "200h", "-g", "1", "--", "sleep", "600"];
    let planned = people.server.berth(&[&["plan"], &of_vision[..]].concat());
    let says = "vision has $0.01 left of its";
    assert!(err(&planned).contains(says), "{}", err(&planned));
    let ran = people.server.berth(&[&["run", "-d"], &of_vision[..]].concat());
    assert!(ran.status.success() && err(&ran).contains(says), "{}", err(&ran));
}

#[test]
fn a_missing_program_is_named_in_the_list_without_the_path() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let ran = server.berth(&["run", "--name", "slip", "--", "pyton", "train.py"]);
    assert!(!ran.status.success());
    let listed = server.run_ok(&["ps", "--all", "--columns", "name,reason"]);
    assert!(listed.contains("no such program: pyton") && !listed.contains("PATH="), "{listed}");
    let shown = server.run_ok(&["describe", "slip"]);
    assert!(shown.contains("PATH="), "{shown}");
}

#[test]
fn why_of_an_array_proposes_commands_for_the_whole_array() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "-d", "--hold", "--name", "many", "-a", "0-3", "--", "sleep", "600"]);
    let why = server.json(&["why", "many"]);
    let id = server.job("many")["id"].as_str().expect("a number").to_owned();
    let commands: Vec<&str> = why["sooner"]
        .as_array()
        .expect("changes")
        .iter()
        .filter_map(|one| one["command"].as_str())
        .collect();
    assert!(commands.contains(&&*format!("berth resume {id}")), "{commands:?}");
    assert!(commands.iter().all(|command| !command.contains('_')), "{commands:?}");
}

#[test]
fn an_array_costs_an_hour_what_its_running_elements_do() {
    let server = Server::start(&["--gpus", "4xL4"]);
    let script = "[ $SLURM_ARRAY_TASK_ID = 0 ] || sleep 600";
    server.run_ok(&["run", "-d", "-n", "many", "-g", "1", "-a", "0-2", "--", "bash", "-c", script]);
    until("the first element is done", || is(&server, "1_0", "done"));
    until("the others run", || is(&server, "1_1", "running") && is(&server, "1_2", "running"));
    let price = |job: &str| server.job(job)["price_micros_per_hour"].as_i64();
    let (one, whole) = (price("1_1").expect("a price"), server.job("many"));
    assert!(one > 0);
    assert_eq!(whole["price_micros_per_hour"], 2 * one, "{whole}");
    assert_eq!(whole["on"], json!(["box"]), "{whole}");
}

#[test]
fn a_failure_that_is_tried_again_is_no_lost_lease() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let file = server.work.path().join("flaky.yaml");
    let text = "name: flaky\ngpus: 1\nretry: {error: 1, wait: 1s}\nrun: '[ $BERTH_ATTEMPT = 1 ]'\n";
    std::fs::write(&file, text).expect("the folder is ours");
    server.run_ok(&["run", "-d", "-f", file.to_str().expect("a plain path")]);
    until("it is done", || is(&server, "flaky", "done"));
    let leases = server.get("/v1/leases?job=flaky");
    let mut ends: Vec<&str> = leases["leases"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|lease| lease["end_reason"].as_str())
        .collect();
    ends.sort_unstable();
    assert_eq!(ends, ["done", "failed"], "{leases}");
}

#[test]
fn gpus_of_a_cordoned_node_do_not_look_free() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["cordon", "box"]);
    let gpus = server.json(&["gpus"]);
    assert_eq!(gpus["items"][0]["closed"], "cordoned", "{gpus}");
    let shown = server.run_ok(&["gpus"]);
    assert!(shown.contains("cordoned"), "{shown}");
    server.run_ok(&["uncordon", "box"]);
    assert_eq!(server.json(&["gpus"])["items"][0]["closed"], json!(null));
}

#[test]
fn files_of_a_job_that_started_elsewhere_say_where_its_results_are() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "--name", "here", "--", "true"]);
    let listed = server.berth(&["files", "here"]);
    let work = server.work.path().to_string_lossy().into_owned();
    let workdir = server.json(&["files", "here"])["workdir"].clone();
    if workdir.is_null() {
        // Jobs cannot read the folder of this test, so the job starts in its own folder.
        assert!(!err(&listed).contains("ran in"), "{}", err(&listed));
    } else {
        assert!(err(&listed).contains(&format!("ran in {work}")), "{}", err(&listed));
    }
}

#[test]
fn quotas_beyond_those_of_the_queue_above_are_told() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let file = server.work.path().join("queues.yaml");
    let text = "kind: queue\nname: lab\nquota: {gpu: 4}\n---\nkind: queue\nname: a\nparent: lab\n\
                quota: {gpu: 3}\n---\nkind: queue\nname: b\nparent: lab\nquota: {gpu: 2}\n";
    std::fs::write(&file, text).expect("the folder is ours");
    let applied = server.berth(&["apply", "-f", file.to_str().expect("a plain path")]);
    assert!(applied.status.success(), "{}", err(&applied));
    assert!(err(&applied).contains("the quotas of a, b add up to 5 GPUs"), "{}", err(&applied));
}
