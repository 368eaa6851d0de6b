//! The Grafana boards and the alert rules: they ask for what a server tells, and the rules fire when
//! they should.

use crate::machine::people::People;
use crate::machine::server::until;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn boards() -> BTreeMap<PathBuf, String> {
    let files = fs::read_dir(Path::new(ROOT).join("deploy/grafana")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let boards = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    boards.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn rules() -> PathBuf {
    Path::new(ROOT).join("deploy/prometheus/berth.rules.yaml")
}

/// Every query of a board, those of its variables included.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("expr" | "query", Value::String(text)) => found.push(text.clone()),
                    _ => queries(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

fn metrics_in(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\b(berth_[a-z_]+|DCGM_[A-Z0-9_]+)\b").unwrap();
    name.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

/// The names of all series of a page of `/metrics`.
fn exposed(page: &str) -> BTreeSet<String> {
    let series = page.lines().filter(|line| !line.starts_with('#'));
    series.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// A server on which something of everything happens.
fn busy_server(folder: &Path) -> People {
    let recording = folder.join("gpus.json");
    let told = json!([{
        "utilization_percent": 90, "sm_active": 800, "tensor_active": 400, "dram_active": 300,
        "memory_used_mib": 40_000, "power_watts": 500, "sm_clock_mhz": 1_980,
        "sm_clock_max_mhz": 1_980, "temperature_celsius": 60
    }]);
    fs::write(&recording, told.to_string()).unwrap();
    let path = recording.display().to_string();
    let flags = ["--gpus", "1xH100", "--gpu-recording", &path, "--figures-every", "1s"];
    let people = People::start_with(&flags);
    people.server.run_ok(&["budget", "set", "vision", "5000", "--per", "month"]);
    people.job(&people.kim, "team: vision\ngpus: 1\nrun: while :; do :; done\n");
    people.job(&people.kim, "team: vision\ngpus: 1\nrun: sleep 1\n");
    people
}

#[test]
fn every_query_of_the_boards_and_rules_names_a_metric_that_the_server_has() {
    let mut asked: BTreeSet<String> = metrics_in(&fs::read_to_string(rules()).unwrap());
    let boards = boards();
    assert_eq!(boards.len(), 4, "cluster, queue, cost and job");
    for (path, text) in &boards {
        let board: Value = serde_json::from_str(text).unwrap();
        let mut found = Vec::new();
        queries(&board, &mut found);
        assert!(found.len() > 10, "{}: {found:?}", path.display());
        asked.extend(found.iter().flat_map(|query| metrics_in(query)));
    }
    let folder = tempfile::tempdir().unwrap();
    let people = busy_server(folder.path());
    let mut missing = Vec::new();
    until("all of them are there", || {
        let page = people.get(&people.admin, "/metrics").body;
        let exposed = exposed(&page);
        missing = asked.iter().filter(|name| !exposed.contains(*name)).cloned().collect();
        missing.is_empty()
    });
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_boards_are_those_that_their_script_makes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("make-boards");
    fs::copy(Path::new(ROOT).join("deploy/grafana/make-boards"), &script).unwrap();
    let made = Command::new("python3").arg(&script).status().expect("python3 runs");
    assert!(made.success());
    for (path, text) in boards() {
        let again = fs::read_to_string(folder.path().join(path.file_name().unwrap())).unwrap();
        assert_eq!(text, again, "{}: run deploy/grafana/make-boards", path.display());
    }
}

/// The page without figures whose names and labels NVIDIA's exporter has chosen.
fn our_own(page: &str) -> String {
    let lines =
        page.lines().filter(|line| !line.trim_start_matches("# HELP ").starts_with("DCGM_"));
    let lines = lines.filter(|line| !line.starts_with("# TYPE DCGM_"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn prometheus_has_no_complaint_about_the_names_and_types_of_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let people = busy_server(folder.path());
    people.get(&people.admin, "/v1/jobs/nosuch");
    people.job(&people.kim, "team: vision\nrun: 'true'\n");
    let mut page = String::new();
    until("a job has run", || {
        page = people.get(&people.admin, "/metrics").body;
        page.contains("berth_jobs_ended_total")
    });
    let mut lint = Command::new("promtool");
    lint.args(["check", "metrics"]);
    lint.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut ran = lint.stderr(std::process::Stdio::piped()).spawn().expect("promtool runs");
    let mut told = ran.stdin.take().unwrap();
    std::io::Write::write_all(&mut told, our_own(&page).as_bytes()).unwrap();
    drop(told);
    let ran = ran.wait_with_output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}\n{page}", String::from_utf8_lossy(&said));
}

/// Labels of the series of a metric.
fn labels<'a>(page: &'a str, metric: &str) -> Vec<&'a str> {
    let series = page.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{'));
    series.filter_map(|rest| Some(rest.split_once('}')?.0)).collect()
}

#[test]
fn what_belongs_to_a_team_has_the_same_labels_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let people = busy_server(folder.path());
    let metrics = [
        "berth_jobs",
        "berth_cost_rate_dollars_per_hour",
        "berth_queue_used_gpus",
        "berth_queue_waiting_jobs",
        "berth_budget_dollars",
        "berth_jobs_submitted_total",
        "berth_job_wait_seconds_count",
        "berth_preemptions_total",
        "berth_reclaims_total",
    ];
    let of_team = r#"team="vision",queue="vision""#;
    let mut missing = Vec::new();
    until("all of them are there", || {
        let page = people.get(&people.admin, "/metrics").body;
        let has = |metric: &&str| labels(&page, metric).iter().any(|all| all.contains(of_team));
        missing = metrics.into_iter().filter(|metric| !has(metric)).collect();
        missing.is_empty()
    });
    assert_eq!(missing, Vec::<&str>::new());
    let page = people.get(&people.admin, "/metrics").body;
    for name in ["process_cpu_seconds_total", "process_open_fds", "berth_build_info"] {
        assert!(exposed(&page).contains(name), "{name}: {page}");
    }
    let routes = labels(&page, "berth_http_request_duration_seconds_count");
    assert!(routes.iter().any(|all| all.contains(r#"route="/v1/jobs""#)), "{routes:?}");
}

fn promtool(args: &[&str], file: &Path) {
    let ran = Command::new("promtool").args(args).arg(file).output();
    let ran = ran.expect("promtool runs: `make test` installs it");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn prometheus_reads_the_alert_rules_and_they_fire_when_they_should() {
    promtool(&["check", "rules"], &rules());
    promtool(&["test", "rules"], &rules().with_file_name("berth.rules.test.yaml"));
}

#[test]
fn the_page_on_boards_says_what_to_do_about_each_alert() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/operate/boards.md")).unwrap();
    let name = Regex::new(r"alert: (\w+)").unwrap();
    let text = fs::read_to_string(rules()).unwrap();
    for found in name.captures_iter(&text) {
        assert!(page.contains(&format!("### {}", &found[1])), "{} is missing", &found[1]);
    }
}
