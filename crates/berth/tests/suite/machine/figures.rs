//! What a job did over time: measured, kept through a kill, and shown to those who may see the job.

use super::people::People;
use super::server::{Server, until};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../../docs/figures.md");

/// Computes until it is stopped.
const BURN: &str = "while :; do :; done";

fn line<'a>(task: &'a Value, figure: &str) -> Option<&'a Value> {
    task["figures"].as_array()?.iter().find(|line| line["figure"] == figure)
}

/// How many points of a figure there are, and its mean.
fn points(answer: &Value, figure: &str) -> (usize, i64) {
    let found = line(&answer["tasks"][0], figure);
    let values = found.and_then(|line| line["values"].as_array());
    let known = values.map_or(0, |values| values.iter().filter(|value| !value.is_null()).count());
    (known, found.and_then(|line| line["mean"].as_i64()).unwrap_or(0))
}

fn has_blocks(text: &str) -> bool {
    text.contains(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'])
}

#[test]
fn what_a_job_uses_is_measured_kept_through_a_kill_and_seen_by_its_team_alone() {
    let mut people = People::start_with(&["--gpus", "1xL4", "--figures-every", "1s"]);
    let mia = people.join("mia", "audio", "researcher");
    let job = people.job(&people.kim, &format!("team: vision\ngpus: 1\nrun: '{BURN}'\n"));
    people.until_is(&job, "running");
    let path = format!("/v1/jobs/{job}/figures");
    let read = |people: &People| people.get(&people.kim, &path).json();
    until("its CPU was measured a few times", || points(&read(&people), "cpu").0 >= 3);
    let answer = read(&people);
    let (_, mean) = points(&answer, "cpu");
    // A machine under load gives it less than a core; more it cannot take.
    assert!((50..=1_500).contains(&mean), "{answer}");
    assert!(points(&answer, "memory").1 >= 1, "{answer}");
    assert!(points(&answer, "processes").1 >= 1, "{answer}");
    let task = &answer["tasks"][0];
    assert_eq!((&task["node"], &task["to"]), (&"box".into(), &Value::Null));
    assert_eq!(task["gpus"][0]["figures"], serde_json::json!([]));
    assert!(answer["notes"].to_string().contains("declared GPUs have no figures"), "{answer}");

    // Another team's researcher learns nothing, and a viewer of the cluster's figures no job.
    assert_eq!(people.get(&mia, &path).status, 404);
    assert_eq!(people.get(&mia, "/v1/nodes/box/figures").status, 200);
    assert_eq!(people.get(&mia, "/v1/nodes/nowhere/figures").status, 404);
    for bad in ["step=soon", "figure=speed", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"] {
        assert_eq!(people.get(&people.kim, &format!("{path}?{bad}")).status, 400, "{bad}");
    }
    let only = people.get(&people.kim, &format!("{path}?figure=memory&step=2s")).json();
    assert_eq!(only["tasks"][0]["figures"].as_array().map(Vec::len), Some(1), "{only}");

    let metrics = people.get(&people.admin, "/metrics").body;
    let labels = format!("{{job=\"{job}\",team=\"vision\",project=");
    for name in ["berth_job_cpu_cores", "berth_job_memory_bytes"] {
        assert!(metrics.contains(&format!("{name}{labels}")), "{metrics}");
    }

    let shown = people.server.run_ok(&["metrics", &job]);
    assert!(shown.contains("cpu") && has_blocks(&shown), "{shown}");

    // It is written every twelve seconds here, and a kill loses no more.
    let first = |people: &People| read(people)["tasks"][0]["times_ms"][0].as_i64().expect("a time");
    let begun = first(&people);
    until("it has run for a while", || points(&read(&people), "cpu").0 >= 16);
    people.server.kill();
    people.server.start_again();
    let after = read(&people);
    assert!((first(&people) - begun).abs() < 1_000, "{after}");
    let kept = points(&after, "cpu").0;
    assert!(kept >= 3, "{after}");
    until("it goes on", || points(&read(&people), "cpu").0 > kept + 3);
    people.admin("POST", &format!("/v1/jobs/{job}/stop"), &serde_json::json!({ "now": true }));
    people.until_is(&job, "cancelled");
    until("the end is told", || !read(&people)["tasks"][0]["to"].is_null());
    let ended = points(&read(&people), "cpu").0;
    people.server.stop();
    people.server.start_again();
    assert!(points(&read(&people), "cpu").0 >= ended.min(kept), "what ended is kept too");
}

#[test]
fn an_empty_answer_says_why() {
    let server = Server::start(&["--gpus", "1xL4", "--figures-every", "0"]);
    let config = server.run_ok(&["config", "server"]);
    for setting in ["figures-every", "keep-figures", "keep-figures-hours", "keep-figures-size"] {
        assert!(config.contains(setting), "{config}");
    }
    server.run_ok(&["run", "-y", "-n", "waits", "-d", "--begin", "100h", "--", "true"]);
    let told = server.berth(&["metrics", "waits"]);
    let (out, error) =
        (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert_eq!(out.trim(), "No figures.");
    assert!(error.contains("has not run"), "{error}");
    server.run_ok(&["run", "-y", "-n", "ran", "--wait", "--", "true"]);
    let told = server.berth(&["metrics", "ran"]);
    let error = String::from_utf8_lossy(&told.stderr);
    assert!(error.contains("gathers no figures"), "{error}");
}

#[test]
fn the_example_of_the_page_does_what_it_says() {
    let server = Server::start(&["--gpus", "1xL4", "--figures-every", "1s"]);
    let block = |kind: &str| {
        let rest = PAGE.split(&format!("```{kind}\n")).nth(1).expect("a block");
        rest.split("```").next().expect("a block ends")
    };
    std::fs::write(server.work.path().join("burn.yaml"), block("yaml")).expect("it is written");
    let commands = block("sh").lines().filter_map(|line| line.strip_prefix("berth "));
    let printed: Vec<String> =
        commands.map(|line| server.run_ok(&line.split_whitespace().collect::<Vec<_>>())).collect();
    let table = &printed[1];
    assert!(table.starts_with("task 0 attempt 0 on box"), "{table}");
    for figure in ["cpu", "memory"] {
        let row = table.lines().find(|line| line.starts_with(figure));
        assert!(row.is_some_and(has_blocks), "{table}");
    }
    let answer: Value = serde_json::from_str(&printed[2]).expect("JSON");
    let names: Vec<&Value> = answer["tasks"][0]["figures"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| &line["figure"])
        .collect();
    assert_eq!(names, ["cpu", "memory"]);
}
