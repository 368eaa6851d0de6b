//! What a job did over time: measured, kept through a kill, and shown to those who may see the job.

use super::audit::sql;
use super::people::People;
use super::server::{Server, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use berth_figures::{Chunk, Figure, Level, Points, Sample};
use berth_model::{Span, Time};
use serde_json::{Value, json};

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
    assert_eq!(task["gpus"][0]["figures"], json!([]));
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
    people.admin("POST", &format!("/v1/jobs/{job}/stop"), &json!({ "now": true }));
    people.until_is(&job, "cancelled");
    until("the end is told", || !read(&people)["tasks"][0]["to"].is_null());
    let ended = points(&read(&people), "cpu").0;
    people.server.stop();
    people.server.start_again();
    assert!(points(&read(&people), "cpu").0 >= ended.min(kept), "what ended is kept too");
}

/// When a job held its GPU.
fn held(people: &People, job: &str) -> (Time, Time) {
    let attempts = people.get(&people.admin, &format!("/v1/jobs/{job}/attempts")).json();
    let lease = &attempts["items"][0]["leases"][0];
    let time = |key: &str| lease[key].as_str().expect("a time").parse().expect("a time");
    (time("opened"), time("closed"))
}

/// What a GPU would have told, ten times a second, while it was busier for the second of two jobs.
fn told(first: (Time, Time), second: (Time, Time)) -> Points {
    let mut points = Points::default();
    let (mut at, end) = (first.0 - Span::secs(5), second.1 + Span::secs(5));
    while at < end {
        let busy = if at < first.1 { 500 } else { 900 };
        let energy = (at - first.0).0 * 600;
        let values = [
            (Figure::SmActive, busy),
            (Figure::TensorActive, busy),
            (Figure::SmClock, 990),
            (Figure::SmClockMax, 1_980),
            (Figure::Energy, 1_000_000_000 + energy),
        ];
        points.push(&Sample { at, values: values.into() });
        at = at + Span::ms(100);
    }
    points
}

#[test]
fn a_job_has_of_a_gpu_the_time_in_which_it_held_it_and_no_more() {
    let mut people = People::start_with(&["--gpus", "1xL4"]);
    let run = |people: &People| {
        let job = people.job(&people.kim, "team: vision\ngpus: 1\nrun: sleep 2\n");
        people.until_is(&job, "done");
        (held(people, &job), job)
    };
    let (first, one) = run(&people);
    let (second, other) = run(&people);
    assert!(first.1 <= second.0);
    people.server.stop();
    let points = told(first, second);
    let (start, end) = (Level::Raw.chunk_start(points.times[0]), points.end().expect("some"));
    let data = STANDARD_NO_PAD.encode(Chunk::encode(&points).0);
    let bytes = data.len();
    let row = format!("'gpu/box/0', 0, {}, {}, {bytes}, '{data}'", start.0, end.0);
    sql(&people.server, &format!("INSERT INTO figures VALUES ({row})"));
    people.server.start_again();

    for (job, (from, to), busy) in [(&one, first, 500), (&other, second, 900)] {
        let answer = people.get(&people.kim, &format!("/v1/jobs/{job}/figures?step=1s")).json();
        let gpu = &answer["tasks"][0]["gpus"][0];
        let line = line(gpu, "sm_active").expect("a line");
        assert_eq!((&line["mean"], &line["max"]), (&json!(busy), &json!(busy)), "{answer}");
        let summary = &gpu["summary"];
        assert_eq!(summary["mfu"], json!(busy / 2), "at half of the clock: {answer}");
        assert_eq!((&summary["idle_ms"], &answer["summary"]), (&json!(0), summary));
        // 600 W for as long as it was held, but for the ends.
        let joules = summary["energy_joules"].as_i64().expect("energy");
        let all = (to - from).0 * 600 / 1_000;
        assert!((all - 180..=all).contains(&joules), "{joules} of {all}: {answer}");
        assert!(answer["notes"].to_string().contains("mfu is an estimate"), "{answer}");
        let shown = people.server.run_ok(&["metrics", job]);
        assert!(shown.contains("gpu 0 L4-24GB") && shown.contains("MFU about"), "{shown}");
    }
    let node = people.get(&people.kim, "/v1/nodes/box/figures?figure=sm_active").json();
    let line = line(&node["gpus"][0], "sm_active").expect("a line");
    assert_eq!(line["max"], json!(900), "everybody sees what the GPU did: {node}");
    assert_eq!(node["gpus"][0]["figures"].as_array().map(Vec::len), Some(1), "{node}");
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
