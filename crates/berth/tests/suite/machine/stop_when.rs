//! Jobs that end because of a metric of their run.

use super::http::Request;
use super::people::People;
use super::server::{Server, until};
use serde_json::{Value, json};

/// Logs one value per step to the run in the job's environment.
const LOG: &str = r#"
import json, os, sys, time, urllib.request

for step, value in enumerate(sys.argv[1:], 1):
    fields = {
        "run_id": os.environ["MLFLOW_RUN_ID"],
        "key": "val_loss",
        "value": float(value),
        "step": step,
        "timestamp": int(time.time() * 1000),
    }
    request = urllib.request.Request(
        os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric",
        json.dumps(fields).encode(),
        {
            "Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    urllib.request.urlopen(request).read()
print("logged", flush=True)
"#;

const RULE: &str = "val_loss not better for 3 evaluations";

/// A job that logs these values and then continues to run.
fn submit(server: &Server, name: &str, keys: &str, values: &str) -> String {
    // The script is in the job file, because jobs cannot read the folder of this test.
    let script: String = LOG.trim().lines().map(|line| format!("  {line}\n")).collect();
    let run = format!("|\n  python3 - {values} <<'END'\n{script}  END\n  exec sleep 600");
    let file = server.work.path().join(format!("{name}.yaml"));
    let text = format!("name: {name}\n{keys}\nrun: {run}\n");
    std::fs::write(&file, text).expect("the folder is ours");
    server.run_ok(&["run", "-d", "-f", file.to_str().expect("a plain path")]);
    server.job(name)["id"].as_str().expect("a number").to_owned()
}

fn is(server: &Server, job: &str, state: &str) -> bool {
    server.job(job)["state"] == state
}

/// Waits for the run of a job.
fn run_of(server: &Server, job: &str) -> Value {
    let filter = format!("tags.`berth.job` = '{job}'");
    until("its run is there", || {
        server.json(&["runs", "--filter", &filter])[0]["info"]["run_id"].is_string()
    });
    server.json(&["runs", "show", job])
}

fn tag(run: &Value, key: &str) -> Option<String> {
    let tags = run["data"]["tags"].as_array().expect("a list");
    let found = tags.iter().find(|tag| tag["key"] == key)?;
    found["value"].as_str().map(ToOwned::to_owned)
}

#[test]
fn a_job_whose_metric_gets_no_better_is_ended_by_its_rule_and_counts_as_done() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let keys = format!("gpus: 1\ntime: 2h\nstop_when: {RULE}");
    let job = submit(&server, "fits", &keys, "0.9 0.31 0.4 0.5 0.6");
    server.run_ok(&["run", "-d", "--name", "next", "--after", "fits", "-g", "1", "--", "true"]);
    until("its rule has ended it", || is(&server, &job, "done"));
    let reason = server.job(&job)["reason"].as_str().expect("a reason").to_owned();
    let says = format!("stopped by its rule: {RULE} (best 0.31 at step 2); that freed 1 GPU");
    assert!(reason.starts_with(&says), "{reason}");
    assert!(
        reason.contains("and saved up to ") && reason.contains("GPU-hours of its time limit"),
        "{reason}"
    );
    for command in [&["ps", "--all", "-o", "json"][..], &["describe", &job], &["why", &job]] {
        let said = server.run_ok(command);
        assert!(said.contains(&says), "berth {command:?}\n{said}");
    }
    let events = server.run_ok(&["events", &job]);
    assert!(events.contains(RULE), "{events}");
    until("what waited for it is done", || is(&server, "next", "done"));
    until("the run says so", || {
        tag(&run_of(&server, &job), "berth.stopped_by").as_deref() == Some(RULE)
    });
    let audit = server.get("/v1/audit?what=stop_rule");
    assert_eq!(audit["rows"][0]["target"], format!("job {job}"), "{audit}");
    // The cost until a run reached the goal, and the number of runs that reached it.
    let by = ["experiments", "--by", "cost-per-result", "--metric", "val_loss", "--goal", "0.35"];
    let found = server.json(&by);
    let row = found["rows"].as_array().expect("rows").iter().find(|row| row["reached"] == 1);
    let row = row.unwrap_or_else(|| panic!("no row has a result: {found}"));
    assert_eq!(row["best"], 0.31, "{found}");
    assert!(row["until_goal_micros"].as_i64() <= row["spent_micros"].as_i64(), "{found}");
}

#[test]
fn a_rule_goes_on_where_it_was_when_the_server_was_killed() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let keys = format!("stop_when: [{RULE}, val_loss is nan]");
    let job = submit(&server, "slow", &keys, "0.5 0.6 0.7");
    let run = run_of(&server, &job)["info"]["run_id"].as_str().expect("an id").to_owned();
    until("it has logged", || server.run_ok(&["logs", &job]).contains("logged"));
    server.kill();
    server.start_again();
    assert!(is(&server, &job, "running"), "two evaluations are not three");
    let fields = json!({
        "run_id": run, "key": "val_loss", "value": 0.5, "step": 4, "timestamp": 4,
    });
    let logged = Request::new("POST", "/api/2.0/mlflow/runs/log-metric")
        .token(Some(&server.token()))
        .json(&fields)
        .send(&server.url);
    assert_eq!(logged.status, 200, "{logged:?}");
    until("its rule has ended it", || is(&server, &job, "done"));
    let reason = server.job(&job)["reason"].to_string();
    assert!(reason.contains("(best 0.5 at step 1)"), "{reason}");
}

#[test]
fn a_rule_with_a_mistake_is_refused_where_it_is_wrong() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let ran =
        server.berth(&["run", "--stop-when", "val_acc not better for 5 evaluations", "--", "true"]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success() && said.contains("--stop-when: is a higher or lower"), "{said}");
    let shown = server.run_ok(&["run", "--dry-run", "--stop-when", "loss is nan", "--", "true"]);
    assert!(!shown.is_empty());
}

#[test]
fn runs_of_jobs_are_shown_with_their_cost_and_compared() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let mut jobs = Vec::new();
    for (name, values) in [("one", "0.9 0.5"), ("two", "0.9 0.4")] {
        let job = submit(&server, name, "gpus: 1\nstop_when: val_loss below 0.6", values);
        until("its rule has ended it", || is(&server, &job, "done"));
        jobs.push(job);
    }
    let filter = "cost >= 0";
    until("both say what they have cost", || {
        let found = server.json(&["runs", "--filter", filter, "--sort", "-cost"]);
        found.as_array().expect("runs").len() == 2
    });
    let shown = server.run_ok(&["runs", "--columns", "job,cost,gpu-hours,metrics.val_loss"]);
    assert!(shown.starts_with("JOB") && shown.contains('$') && shown.contains("0.5"), "{shown}");
    let compared = server.json(&["runs", "compare", &jobs[0], &jobs[1]]);
    let differs = compared["differences"].as_array().expect("a list");
    let loss = differs.iter().find(|one| one["key"] == "val_loss").expect("they differ in it");
    assert_eq!((&loss["kind"], &loss["values"]), (&json!("metrics"), &json!(["0.5", "0.4"])));
    let groups =
        server.json(&["runs", "--group-by", "tags.mlflow.user", "--sort", "metrics.val_loss"]);
    assert_eq!((&groups[0]["runs"], &groups[0]["best"]), (&json!(2), &json!("0.4")), "{groups}");
}

#[test]
fn what_money_brought_is_told_to_those_who_may_read_what_a_team_logs_and_spends() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
    let run = run["run"]["info"]["run_id"].clone();
    for (step, value) in [(1, 0.5), (2, 0.93), (3, 0.7)] {
        let point =
            json!({ "run_id": run, "key": "acc", "value": value, "step": step, "timestamp": step });
        people.tracked(&people.kim, "runs/log-metric", &point);
    }
    let path = "/v1/experiments/returns?team=vision&metric=acc&goal=0.9";
    let found = people.get(&people.kim, path).json();
    let row = &found["rows"][0];
    assert_eq!((&row["best"], &row["best_run"], &row["reached"]), (&json!(0.93), &run, &json!(1)));
    assert_eq!((&row["without_cost"], &found["better"]), (&json!(1), &json!("higher")));
    assert!(found["notes"][0].as_str().is_some_and(|note| note.contains("no cost")), "{found}");
    for (token, path, status) in [
        (&mia, path, 403),
        (&people.kim, "/v1/experiments/returns?team=vision&goal=0.9", 400),
        (&people.kim, "/v1/experiments/returns?team=vision&metric=acc&goal=NaN", 400),
        (&people.kim, "/v1/experiments/returns?team=vision&experiment=none", 404),
    ] {
        assert_eq!(people.get(token, path).status, status, "{path}");
    }
}
