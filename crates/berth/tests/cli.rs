//! The real binary on real files.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn berth(arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the binary runs");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of its own for each test.
fn file(name: &str, text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli");
    std::fs::create_dir_all(&folder).expect("a folder for the tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path.to_str().expect("a plain path").to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let ran = berth(arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

const RECLAIM: &str = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
queues: [{name: owner, quota: {gpu: 1}}, {name: guest}]
jobs:
  - {name: old, queue: guest, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: train, queue: owner, groups: [{name: worker, gpus: 1}]}
";

#[test]
fn settle_stops_the_guest_in_the_first_round_and_starts_the_owner_in_the_second() {
    let world = file("reclaim.yaml", RECLAIM);
    let report = json(&["sim", "settle", &world, "-o", "json"]);
    assert_eq!(report["rounds"], 2);
    let stop = &report["decisions"][0];
    assert_eq!(
        (&stop["round"], &stop["kind"], &stop["job"], &stop["task"], &stop["cause"], &stop["for"]),
        (&1.into(), &"stop".into(), &"old".into(), &0.into(), &"reclaim".into(), &"train".into())
    );
    let task = report["tasks"].as_array().unwrap().iter().find(|t| t["job"] == "train").unwrap();
    assert_eq!(
        *task,
        serde_json::json!({
            "job": "train", "group": "worker", "task": 0, "state": "running", "node": "a",
            "gpus": [{"index": 0, "milli": 1000}], "before": {"state": "waiting"},
        })
    );
    assert_eq!(report["cost"]["per_hour"]["queues"]["owner"], 2.5);
}

#[test]
fn once_plans_and_carries_nothing_out() {
    let world = file("once.yaml", RECLAIM);
    let report = json(&["sim", "once", &world, "-o", "json"]);
    assert_eq!(report["rounds"], 1);
    let old = report["tasks"].as_array().unwrap().iter().find(|t| t["job"] == "old").unwrap();
    assert_eq!((&old["state"], &old["before"]["state"]), (&"stopping".into(), &"running".into()));
}

#[test]
fn a_world_may_come_from_standard_input_as_json() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["sim", "once", "-", "-o", "json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let world = br#"{"nodes": [{"name": "a", "gpus": 1, "model": "L4-24GB"}],
        "jobs": [{"name": "j", "groups": [{"gpus": 1}]}]}"#;
    std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), world).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["decisions"][0]["kind"], "start");
}

#[test]
fn a_bad_world_is_refused_with_file_and_line_and_exit_code_2() {
    let world = file("bad.yaml", "nodes:\n  - {name: a, gpsu: 8}\n");
    let ran = berth(&["sim", "once", &world]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("bad.yaml:2:15: unknown key `gpsu`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `gpus`?"), "{}", ran.err);
}

#[test]
fn what_only_the_core_can_refuse_has_its_line_too() {
    let text =
        "nodes: []\nqueues:\n  - {name: up}\n  - {name: low, parent: up, quota: {gpu: 40%}}\n";
    let ran = berth(&["sim", "once", &file("core.yaml", text)]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("core.yaml:4:5: queues[1]: "), "{}", ran.err);
}

#[test]
fn a_missing_file_and_a_wrong_option_end_with_exit_code_2() {
    let missing = berth(&["sim", "once", "nowhere.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("reading nowhere.yaml"), "{}", missing.err);
    assert_eq!(berth(&["sim", "settle", "--tick", "often", "x.yaml"]).code, 2);
    assert_eq!(berth(&["sim", "check"]).code, 2);
}

#[test]
fn check_prints_a_line_per_scenario_and_what_was_there_instead() {
    let good = file("good.yaml", &format!("{RECLAIM}expect: [{{at: 5m, running: [train]}}]\n"));
    let wrong = file("wrong.yaml", &format!("{RECLAIM}expect: [{{at: 1m, running: [train]}}]\n"));
    let passed = berth(&["sim", "check", &good]);
    assert_eq!(passed.code, 0, "{}{}", passed.out, passed.err);
    assert!(passed.out.starts_with("ok"), "{}", passed.out);
    let both = berth(&["sim", "check", &good, &wrong]);
    assert_eq!(both.code, 1);
    assert!(both.out.contains("FAIL"), "{}", both.out);
    assert!(
        both.out.contains(
            "line 8, at 1m (2026-11-15T09:01:00Z): expected train with at least 1 running; train waits"
        ),
        "{}",
        both.out
    );
}

#[test]
fn check_goes_on_after_a_bad_file_and_ends_with_exit_code_2() {
    let good = file("good2.yaml", &format!("{RECLAIM}expect: [{{at: 5m, running: [train]}}]\n"));
    let bad = file("bad2.yaml", "jobs: 5\n");
    let ran = berth(&["sim", "check", &bad, &good]);
    assert_eq!(ran.code, 2);
    assert!(ran.out.contains("BAD") && ran.out.contains("\nok"), "{}", ran.out);
    let report: Value =
        serde_json::from_str(&berth(&["sim", "check", "-o", "json", &bad, &good]).out).unwrap();
    assert_eq!((&report[0]["passed"], &report[1]["passed"]), (&false.into(), &true.into()));
}

#[test]
fn the_demo_shows_plan_reasons_and_cost_and_what_to_try_next() {
    let ran = berth(&["sim", "demo"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in ["Decisions", "Placement", "Waiting", "Cost", "reclaim", "finetune", "Try next"] {
        assert!(ran.out.contains(part), "{part} is missing in\n{}", ran.out);
    }
}

#[test]
fn why_tells_reasons_position_forecast_and_what_would_start_it() {
    let world = file(
        "why-not.yaml",
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
jobs:
  - {name: runs, time_limit: 2h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: waits, groups: [{gpus: 1}]}
",
    );
    let report = json(&["sim", "once", &world, "--why", "waits", "-o", "json"]);
    let why = &report["why"];
    assert_eq!(why["job"], "waits");
    assert!(why["reasons"].as_array().unwrap().iter().any(|r| r["code"] == "no-fit"), "{why}");
    assert_eq!(why["position"]["ahead"], 0);
    assert!(why["forecast"]["p50"].is_string(), "{why}");
    assert!(!why["would_start"].as_array().unwrap().is_empty(), "{why}");
    let table = berth(&["sim", "once", &world, "--why", "waits"]);
    assert!(table.out.contains("Forecast: it starts"), "{}", table.out);
    assert!(table.out.contains("What would start it:"), "{}", table.out);
}

#[test]
fn why_of_an_unknown_job_says_so() {
    let world = file("why.yaml", RECLAIM);
    let ran = berth(&["sim", "once", &world, "--why", "nobody"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is no job `nobody`"), "{}", ran.err);
}

#[test]
fn the_examples_are_worlds() {
    for example in ["examples/first-world.yaml", "examples/every-key.yaml"] {
        let ran = berth(&["sim", "once", example, "-o", "json"]);
        assert_eq!(ran.code, 0, "{example}: {}", ran.err);
    }
}

#[test]
fn a_trace_runs_under_the_core_and_its_peers_side_by_side() {
    let report = json(&["sim", "trace", "--policy", "fifo,berth,berth-sharing", "-o", "json"]);
    let rows = report["policies"].as_array().expect("a row for each policy");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["report"]["unfinished"], 0, "{}", row["policy"]);
        assert_eq!(row["report"]["all"]["jobs"], report["jobs"]);
    }
    let text = berth(&["sim", "trace", "--policy", "fifo,berth"]).out;
    assert!(text.contains("mean wait") && text.contains("berth"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let run = |seed| berth(&["sim", "trace", "--policy", "berth", "--seed", seed, "-o", "json"]);
    assert_eq!(run("3").out, run("3").out);
    assert_ne!(run("3").out, run("4").out);
}

#[test]
fn a_malformed_row_names_file_line_column_and_what_was_expected() {
    let jobs = file("bad.csv", "job_id,submit_s,duration_s,gpus\na,0,10,1\nb,5,soon,1\n");
    let ran = berth(&["sim", "trace", "--jobs", &jobs, "--cluster", "2x8xA100"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let wanted = format!("{jobs}, line 3, column 3 (duration_s): found `soon`, expected seconds");
    assert!(ran.err.contains(&wanted), "{}", ran.err);
}

#[test]
fn a_trace_without_a_cluster_and_a_policy_that_is_none_are_refused_with_what_to_give() {
    let jobs = file("fine.csv", "job_id,submit_s,duration_s,gpus\na,0,10,1\n");
    let ran = berth(&["sim", "trace", "--jobs", &jobs]);
    assert!(ran.code == 2 && ran.err.contains("give --cluster or --nodes"), "{}", ran.err);
    let ran = berth(&["sim", "trace", "--policy", "fastest"]);
    assert!(ran.code == 2 && ran.err.contains("fair-share"), "{}", ran.err);
}
