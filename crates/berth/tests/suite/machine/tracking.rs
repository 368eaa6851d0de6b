//! Experiments, runs and models over MLflow's routes: the real client of MLflow, teams that see or do
//! not see each other's, and a server that is killed while many write.

use super::http::{Answer, Request};
use super::people::People;
use super::server::{Server, until};
use berth_testbed::Postgres;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: &str = include_str!("../../../../../docs/tracking.md");

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter of the environment that `.ci/mlflow-tools` makes.
pub fn python() -> PathBuf {
    let made = Command::new(root().join(".ci/mlflow-tools")).output().expect("a shell");
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Path::new(said.trim()).join("bin/python")
}

/// Runs a script with the client of MLflow, and gives what it prints.
fn mlflow(server: &Server, script: &Path, args: &[&str]) -> String {
    let ran = Command::new(python())
        .arg(script)
        .args(args)
        .env("MLFLOW_TRACKING_URI", &server.url)
        .env("MLFLOW_TRACKING_TOKEN", server.token())
        .env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        .env("MLFLOW_DISABLE_TELEMETRY", "true")
        .env("GIT_PYTHON_REFRESH", "quiet")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(server.work.path())
        .output()
        .expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}\n{}", server.log());
    out
}

#[test]
fn the_client_of_mlflow_tracks_searches_and_registers() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let scenario = root().join("tools/mlflow/scenario.py");
    let said = mlflow(&server, &scenario, &[&server.url]);
    assert!(said.contains("everything is as it should be"), "{said}");
    let metrics = server.run_ok(&["audit", "list", "-o", "json"]);
    assert!(metrics.contains("create_registered_model"), "{metrics}");
    assert!(!metrics.contains("log_batch"), "{metrics}");
}

#[test]
fn the_client_of_mlflow_does_the_same_on_postgresql() {
    let postgres = Postgres::start();
    let server = Server::start(&["--gpus", "1xL4", "--database", &postgres.database()]);
    let scenario = root().join("tools/mlflow/scenario.py");
    let said = mlflow(&server, &scenario, &[&server.url]);
    assert!(said.contains("everything is as it should be"), "{said}");
}

#[test]
fn the_example_of_the_page_prints_what_the_page_says() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let script = PAGE.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let file = server.work.path().join("train.py");
    std::fs::write(&file, script.expect("a script")).expect("the folder is ours");
    mlflow(&server, &file, &[]);
    let expected = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let args = ["--sort", "metrics.loss", "--columns", "name,status,metrics.loss"];
    let said = server.run_ok(&[&["runs", "--experiment", "digits"], &args[..]].concat());
    assert_eq!(Some(said.as_str()), expected);
    let filter = "metrics.loss < 0.5 AND params.lr = '0.1'";
    let found = server.json(&["runs", "--experiment", "digits", "--filter", filter]);
    assert_eq!(found[0]["info"]["run_name"], "first");
    let names = server.run_ok(&["experiments", "list", "-o", "name"]);
    assert!(names.lines().any(|name| name == "digits"), "{names}");
}

impl People {
    pub(super) fn track(&self, token: &str, path: &str, fields: &Value) -> Answer {
        self.ask(token, "POST", &format!("/api/2.0/mlflow/{path}"), fields)
    }

    pub(super) fn tracked(&self, token: &str, path: &str, fields: &Value) -> Value {
        let answer = self.track(token, path, fields);
        assert_eq!(answer.status, 200, "{path} {fields}: {answer:?}");
        answer.json()
    }

    pub(super) fn seen(&self, token: &str, path: &str) -> Answer {
        self.get(token, &format!("/api/2.0/mlflow/{path}"))
    }
}

pub(super) fn refused(answer: &Answer, status: u16, code: &str) {
    let found = answer.json()["error_code"].as_str().map(str::to_owned);
    assert_eq!((answer.status, found.as_deref()), (status, Some(code)), "{answer:?}");
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

#[test]
fn what_a_team_tracks_does_not_exist_for_another_until_it_is_shared() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let viv = people.join("viv", "vision", "viewer");
    let made = people.tracked(&people.kim, "experiments/create", &json!({ "name": "digits" }));
    let id = text(&made["experiment_id"]);
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": id }));
    let run = text(&run["run"]["info"]["run_id"]);
    let (by_id, by_run) =
        (format!("experiments/get?experiment_id={id}"), format!("runs/get?run_id={run}"));
    for path in [&by_id, &by_run] {
        refused(&people.seen(&mia, path), 404, "RESOURCE_DOES_NOT_EXIST");
        assert_eq!(people.seen(&viv, path).status, 200);
    }
    // The same name in another team is another experiment.
    let other = people.tracked(&mia, "experiments/create", &json!({ "name": "digits" }));
    assert_ne!(text(&other["experiment_id"]), id);
    // A viewer reads, and changes nothing.
    let tag = json!({ "run_id": run, "key": "a", "value": "b" });
    refused(&people.track(&viv, "runs/set-tag", &tag), 403, "PERMISSION_DENIED");
    refused(&people.track(&mia, "runs/set-tag", &tag), 404, "RESOURCE_DOES_NOT_EXIST");
    // Shared, it can be read by its whole name, and still not be changed.
    let share = json!({ "experiment_id": id, "team": "audio" });
    refused(&people.track(&viv, "experiments/share", &share), 403, "PERMISSION_DENIED");
    people.tracked(&people.lea, "experiments/share", &share);
    let named = people.seen(&mia, "experiments/get-by-name?experiment_name=vision%2Fdigits");
    assert_eq!(text(&named.json()["experiment"]["experiment_id"]), id, "{named:?}");
    assert_eq!(people.seen(&mia, &by_run).status, 200);
    refused(&people.track(&mia, "runs/set-tag", &tag), 403, "PERMISSION_DENIED");
    let listed = people.tracked(&mia, "experiments/search", &json!({}));
    let names: Vec<String> = listed["experiments"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["name"]))
        .collect();
    assert!(names.contains(&"vision/digits".to_owned()), "{names:?}");
    people.tracked(&people.lea, "experiments/unshare", &share);
    refused(&people.seen(&mia, &by_id), 404, "RESOURCE_DOES_NOT_EXIST");
    let audit = people.server.run_ok(&["audit", "list", "-o", "json"]);
    assert!(audit.contains("share_experiment") && audit.contains("unshare_experiment"), "{audit}");
}

#[test]
fn an_experiment_is_shared_over_the_api_and_on_the_command_line() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    people.tracked(&people.kim, "experiments/create", &json!({ "name": "a/b" }));
    let path = "/v1/experiments/vision/a%2Fb/shares";
    let named = "experiments/get-by-name?experiment_name=vision%2Fa%2Fb";
    refused(&people.seen(&mia, named), 404, "RESOURCE_DOES_NOT_EXIST");
    let none = json!({});
    let shared = people.ask(&people.kim, "PUT", &format!("{path}/audio"), &none);
    assert_eq!((shared.status, shared.json()), (200, json!({ "teams": ["audio"] })));
    assert_eq!(people.seen(&mia, named).status, 200);
    // The other team can read it, but cannot list or change its shares.
    assert_eq!(people.get(&mia, path).status, 404);
    assert_eq!(people.ask(&mia, "PUT", &format!("{path}/*"), &none).status, 404);
    let unknown = people.ask(&people.kim, "PUT", &format!("{path}/nobody"), &none);
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let ended = people.ask(&people.kim, "DELETE", &format!("{path}/audio"), &none);
    assert_eq!((ended.status, ended.json()), (200, json!({ "teams": [] })));
    refused(&people.seen(&mia, named), 404, "RESOURCE_DOES_NOT_EXIST");
    // On the command line, by the admin of the server.
    let server = &people.server;
    let of = ["a/b", "--team", "vision"];
    server.run_ok(&[&["experiments", "share"], &of[..], &["--with", "audio"]].concat());
    let listed = server.json(&[&["experiments", "shares"], &of[..]].concat());
    assert_eq!(listed, json!({ "teams": ["audio"] }));
    assert_eq!(people.seen(&mia, named).status, 200);
    server.run_ok(&[&["experiments", "delete"], &of[..], &["-y"]].concat());
    server.run_ok(&[&["experiments", "restore"], &of[..]].concat());
}

#[test]
fn a_deleted_run_is_restored_by_its_name() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let token = server.token();
    let run = json!({ "run_name": "first" });
    let made = Request::new("POST", "/api/2.0/mlflow/runs/create").token(Some(&token)).json(&run);
    assert_eq!(made.send(&server.url).status, 200);
    let listed = || server.run_ok(&["runs", "-o", "name"]).lines().count();
    assert_eq!(listed(), 1);
    server.run_ok(&["runs", "delete", "first", "-y"]);
    assert_eq!(listed(), 0);
    server.run_ok(&["runs", "restore", "first"]);
    assert_eq!(listed(), 1);
}

#[test]
fn a_researcher_deletes_own_runs_and_a_lead_all_of_the_team() {
    let people = People::start("1xL4");
    let kit = people.join("kit", "vision", "researcher");
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
    let run = json!({ "run_id": run["run"]["info"]["run_id"] });
    refused(&people.track(&kit, "runs/delete", &run), 403, "PERMISSION_DENIED");
    people.tracked(&people.kim, "runs/delete", &run);
    people.tracked(&people.lea, "runs/restore", &run);
    people.tracked(&people.lea, "runs/delete", &run);
}

#[test]
fn without_a_good_token_nothing_is_told_and_a_revoked_one_ends_at_once() {
    let people = People::start("1xL4");
    let path = "/api/2.0/mlflow/experiments/get?experiment_id=0";
    let none = Request::new("GET", path).send(&people.server.url);
    refused(&none, 401, "UNAUTHENTICATED");
    let (id, token) = people.new_token("kim", "read", None);
    assert_eq!(people.get(&token, path).status, 200);
    let create = people.track(&token, "experiments/create", &json!({ "name": "x" }));
    refused(&create, 403, "PERMISSION_DENIED");
    people.revoke(&id);
    refused(&people.get(&token, path), 401, "UNAUTHENTICATED");
    // What a client asks before it knows a token names nothing of any team.
    let info = Request::new("GET", "/api/3.0/mlflow/server-info").send(&people.server.url);
    assert_eq!((info.status, info.json()["workspaces_enabled"].clone()), (200, json!(false)));
    let version = Request::new("GET", "/version").send(&people.server.url);
    assert!(version.body.starts_with("3."), "{version:?}");
    let health = Request::new("GET", "/health").send(&people.server.url);
    assert_eq!((health.status, health.body.as_str()), (200, "OK"));
}

#[test]
fn the_header_names_the_team_of_somebody_who_is_in_several() {
    let people = People::start("1xL4");
    people.give("kim", "audio", "researcher");
    let create = |team: &str| {
        let mut request = Request::new("POST", "/api/2.0/mlflow/experiments/create")
            .token(Some(&people.kim))
            .json(&json!({ "name": "of-a-team" }));
        request.headers.push(("x-berth-team", team.to_owned()));
        request.send(&people.server.url)
    };
    for team in ["vision", "audio"] {
        let made = create(team);
        assert_eq!(made.status, 200, "{made:?}");
        let id = text(&made.json()["experiment_id"]);
        let found = people.seen(&people.kim, &format!("experiments/get?experiment_id={id}"));
        let place = text(&found.json()["experiment"]["artifact_location"]);
        assert_eq!(place, format!("mlflow-artifacts:/{team}/{id}"));
    }
    refused(&create("nothing"), 403, "PERMISSION_DENIED");
}

#[test]
fn what_is_wrong_with_a_request_is_said_in_the_words_that_clients_know() {
    let people = People::start("1xL4");
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
    let run = text(&run["run"]["info"]["run_id"]);
    let point = |value: Value| json!({ "key": "a", "value": value, "timestamp": 1, "step": 1 });
    let batch = |metrics: Vec<Value>| json!({ "run_id": run, "metrics": metrics });
    for (path, fields, says) in [
        ("experiments/create", json!({}), "Missing value for required parameter 'name'"),
        ("experiments/create", json!({ "name": 123 }), "Invalid value 123 for parameter 'name'"),
        ("runs/log-batch", batch(vec![point(json!("x"))]), "metrics[0].value"),
        ("runs/log-batch", batch(vec![point(Value::Null)]), "'metrics[0].value'"),
        ("runs/log-batch", batch(vec![point(json!(1)); 1001]), "at most 1000 metrics"),
        (
            "runs/log-metric",
            json!({ "run_id": run, "key": "../a", "value": 1, "timestamp": 1 }),
            "must not resolve to other names",
        ),
        (
            "runs/search",
            json!({ "experiment_ids": ["0"], "filter": "metrics.a >" }),
            "at character 12",
        ),
        ("runs/search", json!({ "experiment_ids": ["0"], "max_results": 50_001 }), "at most 50000"),
        ("runs/search", json!({ "experiment_ids": ["x"] }), "must be a valid integer"),
    ] {
        let answer = people.track(&people.kim, path, &fields);
        refused(&answer, 400, "INVALID_PARAMETER_VALUE");
        let said = text(&answer.json()["message"]);
        assert!(said.contains(says), "{path}: {said}");
    }
    // Nothing of a refused batch is there.
    let there = people.seen(&people.kim, &format!("runs/get?run_id={run}")).json();
    assert_eq!(there["run"]["data"]["metrics"], json!([]));
    let traces = people.ask(&people.kim, "POST", "/api/3.0/mlflow/traces", &json!({}));
    refused(&traces, 501, "NOT_IMPLEMENTED");
    let nothing = people.seen(&people.kim, "runs/nothing");
    refused(&nothing, 404, "ENDPOINT_NOT_FOUND");
}

#[test]
fn a_job_logs_with_the_tokens_of_its_own_and_only_to_its_team() {
    let people = People::start("1xL4");
    let made = people.tracked(&people.kim, "experiments/create", &json!({ "name": "of-jobs" }));
    let id = text(&made["experiment_id"]);
    let mia = people.join("mia", "audio", "researcher");
    let other = people.tracked(&mia, "experiments/create", &json!({ "name": "others" }));
    let other = text(&other["experiment_id"]);
    // What else the user of the job may do is not for the job.
    people.give("kim", "audio", "researcher");
    let file = "team: vision\nrun: |\n  cp $BERTH_TOKEN_FILE token\n  \
                echo $MLFLOW_TRACKING_TOKEN > track; echo > first; sleep 600\n";
    let job = people.job(&people.kim, file);
    let folder = people.server.home.path().join("jobs").join(&job);
    until("the job shows its tokens", || folder.join("first").exists());
    let tokens = ["token", "track"].map(|name| {
        let token = std::fs::read_to_string(folder.join(name)).expect("the job wrote it");
        token.trim().to_owned()
    });
    let create = |token: &str, experiment: &str| {
        people.track(token, "runs/create", &json!({ "experiment_id": experiment }))
    };
    for token in &tokens {
        let run = create(token, &id);
        assert_eq!(run.status, 200, "{run:?}");
        refused(&create(token, &other), 404, "RESOURCE_DOES_NOT_EXIST");
        // Experiment 0 is the default one of the job's team.
        let own = create(token, "0").json();
        let place = text(&own["run"]["info"]["artifact_uri"]);
        assert!(place.starts_with("mlflow-artifacts:/vision/"), "{place}");
    }
    people.admin("POST", &format!("/v1/jobs/{job}/stop"), &json!({ "now": true }));
    for token in &tokens {
        until("the token has ended", || create(token, &id).status == 401);
    }
}

/// Fifty writers, and a server that is killed among them: what was acknowledged is there, once.
#[test]
fn every_point_that_was_acknowledged_is_there_once_after_a_server_was_killed() {
    const WRITERS: usize = 50;
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let token = server.token();
    let ask = |url: &str, token: &str, path: &str, body: &Value| {
        let path = format!("/api/2.0/mlflow/{path}");
        // A server that is killed answers with nothing, which a client of a test may panic about.
        std::panic::catch_unwind(|| {
            Request::new("POST", path).token(Some(token)).json(body).send(url)
        })
        .ok()
        .filter(|answer| answer.status == 200)
    };
    let runs: Vec<String> = (0..WRITERS)
        .map(|_| {
            let made = ask(&server.url, &token, "runs/create", &json!({ "experiment_id": "0" }));
            text(&made.expect("a run").json()["run"]["info"]["run_id"])
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = runs
        .iter()
        .map(|run| {
            let (url, token, run, stop) =
                (server.url.clone(), token.clone(), run.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut acknowledged = Vec::new();
                let mut step = 0;
                while !stop.load(Ordering::Relaxed) {
                    let points: Vec<Value> = (0..10)
                        .map(|n| json!({ "key": "m", "value": step + n, "timestamp": 1, "step": step + n }))
                        .collect();
                    let body = json!({ "run_id": run, "metrics": points });
                    // A batch that was not acknowledged is sent again.
                    if ask(&url, &token, "runs/log-batch", &body).is_some() {
                        acknowledged.extend(step..step + 10);
                        step += 10;
                    }
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        server.kill();
        server.start_again();
    }
    until("the writers go on", || {
        let path = format!("/api/2.0/mlflow/runs/get?run_id={}", runs[0]);
        let there = Request::new("GET", path).token(Some(&token)).send(&server.url);
        there.status == 200
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    stop.store(true, Ordering::Relaxed);
    let mut all = 0;
    for (run, writer) in runs.iter().zip(writers) {
        let acknowledged: Vec<i64> = writer.join().expect("a writer ends");
        let path = format!("/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=m");
        let found = Request::new("GET", path).token(Some(&token)).send(&server.url).json();
        let steps: Vec<i64> = found["metrics"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|point| point["step"].as_i64().expect("a step"))
            .collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "a point is there twice");
        assert!(acknowledged.iter().all(|step| steps.contains(step)), "{run}: a point is gone");
        all += acknowledged.len();
    }
    assert!(all > WRITERS * 10, "{all}");
}
