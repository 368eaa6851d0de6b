//! Tracked runs of jobs: their status, cost and inputs, also after crashes of the server; and scripts that
//! log to the run of their job.

use super::http::Request;
use super::people::People;
use super::server::{Server, until};
use berth_testbed::Postgres;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A script that talks to the tracking server in its environment.
const ASK: &str = r#"
import json, os, urllib.error, urllib.request

def ask(path, body=None, base=None, token=None):
    url = (base or os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/") + path
    data = None if body is None else json.dumps(body).encode()
    head = {"Authorization": "Bearer " + (token or os.environ["MLFLOW_TRACKING_TOKEN"])}
    request = urllib.request.Request(url, data, head | {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))

run = os.environ["MLFLOW_RUN_ID"]
"#;

/// Waits for the run of a job.
fn run_of(server: &Server, job: &str) -> Option<Value> {
    let id = server.job(job)["run"].as_str()?.to_owned();
    let path = format!("/api/2.0/mlflow/runs/get?run_id={id}");
    let token = server.token();
    let answer = Request::new("GET", path).token(Some(&token)).send(&server.url);
    (answer.status == 200).then(|| answer.json()["run"].clone())
}

/// Waits until the run of a job has this status, and until the run of an ended job is complete.
fn until_status(server: &Server, job: &str, wanted: &str) -> Value {
    let is_final = !matches!(wanted, "RUNNING" | "SCHEDULED");
    let is_whole = |run: &Value| {
        let told = value(run, "tags", "berth.end").is_some() && metric(run, "berth.cost").is_some();
        run["info"]["status"] == wanted && (told || !is_final)
    };
    until(&format!("the run of {job} is {wanted}"), || {
        run_of(server, job).is_some_and(|run| is_whole(&run))
    });
    run_of(server, job).expect("it was just there")
}

/// A tag or a param by its key.
fn value<'a>(run: &'a Value, kind: &str, key: &str) -> Option<&'a str> {
    let all = run["data"][kind].as_array()?;
    all.iter().find(|one| one["key"] == key)?["value"].as_str()
}

fn metric(run: &Value, key: &str) -> Option<f64> {
    let all = run["data"]["metrics"].as_array()?;
    all.iter().find(|one| one["key"] == key)?["value"].as_f64()
}

fn experiment_of(server: &Server, run: &Value) -> String {
    let id = run["info"]["experiment_id"].as_str().expect("an id");
    let found = server.get(&format!("/api/2.0/mlflow/experiments/get?experiment_id={id}"));
    found["experiment"]["name"].as_str().expect("a name").to_owned()
}

fn start(server: &Server, name: &str, args: &[&str], script: &str) {
    let first = ["run", "-d", "-y", "--name", name, "-g", "1"];
    server.run_ok(&[&first[..], args, &["--", "bash", "-c", script]].concat());
}

#[test]
fn the_run_of_a_job_shows_how_it_went_what_it_cost_and_what_it_ran_on() {
    let server = Server::start(&["--gpus", "3xL4"]);
    start(&server, "long", &[], "sleep 1000");
    start(&server, "good", &[], "sleep 1");
    start(&server, "bad", &["--experiment", "trials"], "exit 3");
    let good = until_status(&server, "good", "FINISHED");
    for (key, wanted) in [
        ("berth.attempts", "1"),
        ("berth.end", "done"),
        ("berth.gpus", "1xL4-24GB"),
        ("berth.leases", "1"),
        ("mlflow.source.type", "JOB"),
        ("mlflow.source.name", "bash -c sleep 1"),
    ] {
        assert_eq!(value(&good, "tags", key), Some(wanted), "{key}: {good}");
    }
    let job = server.job("good");
    assert_eq!(value(&good, "tags", "berth.job"), job["id"].as_str());
    assert_eq!(good["info"]["run_name"], "good");
    assert_eq!(experiment_of(&server, &good), "Default");
    until("the cost is that of the job", || {
        let run = run_of(&server, "good").unwrap_or_default();
        let micros = server.job("good")["cost_micros"].as_f64().expect("a number");
        metric(&run, "berth.cost").is_some_and(|cost| (cost * 1e6 - micros).abs() < 1.0)
    });
    assert!(metric(&good, "berth.gpu_hours").is_some_and(|hours| hours > 0.0), "{good}");
    let bad = until_status(&server, "bad", "FAILED");
    assert_eq!(value(&bad, "tags", "berth.end"), Some("failed"));
    assert_eq!(experiment_of(&server, &bad), "trials");
    until_status(&server, "long", "RUNNING");
    server.run_ok(&["stop", "--now", "long"]);
    until_status(&server, "long", "KILLED");
    // A search finds the run by its cost, like by any metric.
    let search = ["runs", "--experiment", "Default", "--filter", "metrics.berth.cost < 50"];
    let found = server.run_ok(&[&search[..], &["-o", "json"]].concat());
    assert!(found.contains("\"good\"") && !found.contains("\"bad\""), "{found}");
    let described = server.run_ok(&["describe", "good"]);
    let id = good["info"]["run_id"].as_str().expect("an id");
    assert!(described.contains(id), "{described}");
    until("its job file is among its artifacts", || {
        let path = format!("/api/2.0/mlflow/artifacts/list?run_id={id}&path=berth");
        server.get(&path).to_string().contains("berth/job.yaml")
    });
}

#[test]
fn a_run_that_was_deleted_while_its_job_ran_shows_the_end_of_the_job_once_it_is_restored() {
    let server = Server::start(&["--gpus", "2xL4"]);
    for name in ["alone", "whole"] {
        start(&server, name, &["--experiment", name], "sleep 1000");
        until_status(&server, name, "RUNNING");
    }
    server.run_ok(&["runs", "delete", "alone", "-y"]);
    server.run_ok(&["experiments", "delete", "whole", "-y"]);
    for name in ["alone", "whole"] {
        server.run_ok(&["stop", "--now", name]);
        until("the job has ended", || server.job(name)["state"] == "cancelled");
    }
    server.run_ok(&["runs", "restore", "alone"]);
    let run = run_of(&server, "alone").expect("it is restored");
    assert_eq!(run["info"]["status"], "KILLED", "{run}");
    assert_eq!(value(&run, "tags", "berth.end"), Some("cancelled"));
    server.run_ok(&["experiments", "restore", "whole"]);
    until_status(&server, "alone", "KILLED");
    until_status(&server, "whole", "KILLED");
}

#[test]
fn each_element_of_a_sweep_has_a_run_with_its_values() {
    let people = People::start("1xL4");
    let file = "name: study\nteam: vision\nsweep: {lr: [1e-4, 3e-4]}\nrun: exit 0\n";
    let job = people.job(&people.kim, file);
    for (element, lr) in [(0, "1e-4"), (1, "3e-4")] {
        let element = format!("{job}_{element}");
        let run = until_status(&people.server, &element, "FINISHED");
        assert_eq!(value(&run, "params", "lr"), Some(lr));
        assert_eq!(value(&run, "tags", "berth.job"), Some(&*element));
        assert_eq!(value(&run, "tags", "mlflow.user"), Some("kim"));
    }
    assert_eq!(people.server.job(&job)["run"], Value::Null, "each element has its own");
}

fn killed_while_jobs_run_and_end(args: &[&str]) {
    let mut server = Server::start(&[&["--gpus", "4xL4"], args].concat());
    start(&server, "ends", &[], "sleep 2; exit 4");
    start(&server, "goes-on", &[], "sleep 1000");
    until("both run", || {
        ["ends", "goes-on"].iter().all(|job| server.job(job)["state"] == "running")
    });
    // The crash may come before or after the run was created.
    start(&server, "last", &[], "sleep 2");
    server.kill();
    // The duration does not matter, as long as one of the jobs ends meanwhile.
    std::thread::sleep(Duration::from_secs(4));
    server.start_again();
    let run = until_status(&server, "ends", "FAILED");
    assert_eq!(value(&run, "tags", "berth.attempts"), Some("1"), "{run}");
    until_status(&server, "last", "FINISHED");
    until_status(&server, "goes-on", "RUNNING");
    server.kill();
    server.start_again();
    server.run_ok(&["stop", "--now", "goes-on"]);
    until_status(&server, "goes-on", "KILLED");
    let all = server.json(&["runs"]);
    assert_eq!(all.as_array().map(Vec::len), Some(3), "one run for each job: {all}");
}

#[test]
fn a_server_that_is_killed_leaves_no_run_of_a_job_that_has_ended_running() {
    killed_while_jobs_run_and_end(&[]);
}

#[test]
fn a_server_that_is_killed_on_postgresql_leaves_no_run_of_a_job_that_has_ended_running() {
    let postgres = Postgres::start();
    killed_while_jobs_run_and_end(&["--database", &postgres.database()]);
}

#[test]
fn a_script_logs_to_the_run_of_its_job_in_the_experiment_that_it_chooses() {
    let people = People::start("1xL4");
    let server = &people.server;
    let script = format!(
        "{ASK}\n\
         made = ask('experiments/create', {{'name': 'digits'}})['experiment_id']\n\
         info = ask('runs/get?run_id=' + run)['run']['info']\n\
         assert info['experiment_id'] == made, (info, made)\n\
         point = {{'run_id': run, 'key': 'loss', 'value': 0.5, 'timestamp': 1, 'step': 1}}\n\
         ask('runs/log-metric', point)\n\
         ask('runs/log-parameter', {{'run_id': run, 'key': 'lr', 'value': '0.0001'}})\n\
         ask('runs/log-parameter', {{'run_id': run, 'key': 'lr', 'value': '0.5'}})\n\
         ask('experiments/create', {{'name': 'later'}})\n\
         info = ask('runs/get?run_id=' + run)['run']['info']\n\
         assert info['experiment_id'] == made, 'what was logged to stays where it is'\n\
         again = ask('runs/create', {{'experiment_id': '0'}})['run']['info']\n\
         assert again['experiment_id'] == made, 'another run lies beside it'\n\
         try:\n    \
             ask('/v1/jobs', base=os.environ['BERTH_URL'])\n    \
             assert False, 'the token is good for tracking alone'\n\
         except urllib.error.HTTPError as error:\n    \
             assert error.code == 403, error.code\n"
    );
    let file = json!({
        "name": "logs",
        "team": "vision",
        "sweep": { "lr": ["1e-4"] },
        "run": format!("python3 - <<'END'\n{script}\nEND\n"),
    });
    let job = format!("{}_0", people.job(&people.kim, &file.to_string()));
    until("it has ended", || server.job(&job)["ended"].is_string());
    let printed = server.run_ok(&["logs", &job]);
    assert_eq!(server.job(&job)["state"], "done", "{printed}");
    let run = until_status(server, &job, "FINISHED");
    assert_eq!(experiment_of(server, &run), "vision/digits");
    assert_eq!(metric(&run, "loss"), Some(0.5));
    assert_eq!(value(&run, "params", "lr"), Some("1e-4"), "the first value stays");
    assert_eq!(value(&run, "tags", "berth.changed.lr"), Some("0.5"));
    until("its files are where it went", || {
        let id = run["info"]["run_id"].as_str().expect("an id");
        let path = format!("/api/2.0/mlflow/artifacts/list?run_id={id}&path=berth");
        server.get(&path).to_string().contains("berth/job.yaml")
    });
}

#[test]
fn a_job_that_names_a_tracking_server_is_told_of_no_other() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let names = ["-e", "MLFLOW_TRACKING_URI=http://elsewhere:5000"];
    let script = "echo \"at $MLFLOW_TRACKING_URI run ${MLFLOW_RUN_ID-none}\"";
    start(&server, "elsewhere", &names, script);
    until("it has ended", || server.job("elsewhere")["state"] == "done");
    let printed = server.run_ok(&["logs", "elsewhere"]);
    assert!(printed.contains("at http://elsewhere:5000 run none"), "{printed}");
    until_status(&server, "elsewhere", "FINISHED");
}

#[test]
fn the_code_of_a_job_has_its_commit_and_its_changes_in_the_run() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path().join("project");
    fs::create_dir(&folder).expect("the folder is ours");
    fs::write(folder.join("train.sh"), "echo first\n").expect("the folder is ours");
    let git = |args: &[&str]| {
        let ran = Command::new("git")
            .args(["-c", "user.name=kim", "-c", "user.email=kim@example.com"])
            .args(args)
            .current_dir(&folder)
            .output()
            .expect("git runs");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Begin"]);
    let commit = git(&["rev-parse", "HEAD"]);
    fs::write(folder.join("train.sh"), "echo second\n").expect("the folder is ours");
    let code = ["run", "-d", "-y", "--name", "coded", "--code", "project", "--"];
    server.run_ok(&[&code[..], &["bash", "train.sh"]].concat());
    let run = until_status(&server, "coded", "FINISHED");
    assert_eq!(value(&run, "tags", "mlflow.source.git.commit"), Some(&*commit));
    assert_eq!(value(&run, "tags", "berth.code.dirty"), Some("true"));
    let (id, place) = (run["info"]["run_id"].clone(), run["info"]["artifact_uri"].clone());
    let (id, place) = (id.as_str().expect("an id"), place.as_str().expect("a place"));
    let below = place.trim_start_matches("mlflow-artifacts:/");
    let path = format!("/api/2.0/mlflow-artifacts/artifacts/{below}/berth/code.diff");
    let token = server.token();
    let diff = || Request::new("GET", &*path).token(Some(&token)).send(&server.url);
    until(&format!("the diff of run {id} is there"), || diff().status == 200);
    assert!(diff().body.contains("+echo second"), "{:?}", diff());
}

/// An unmodified script in a job that requeues itself: both attempts log to one run.
#[test]
fn the_client_of_mlflow_resumes_the_run_of_its_job_over_attempts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = Command::new(root.join(".ci/mlflow-tools")).output().expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let python = Path::new(said.trim()).join("bin/python").display().to_string();
    let script = root.join("tools/mlflow/in_a_job.py").display().to_string();
    // The client is in the home of the user who runs the tests.
    let server = Server::start(&["--gpus", "1xL4", "--isolation", "none"]);
    let command = ["run", "-d", "-y", "--name", "real", "-e", "GIT_PYTHON_REFRESH=quiet"];
    let more = ["-e", "MLFLOW_DISABLE_TELEMETRY=true", "--", &*python, &*script];
    server.run_ok(&[&command[..], &more[..]].concat());
    until("it has ended", || server.job("real")["ended"].is_string());
    let printed = server.run_ok(&["logs", "real"]);
    assert_eq!(server.job("real")["state"], "done", "{printed}\n{}", server.log());
    let run = until_status(&server, "real", "FINISHED");
    assert_eq!(experiment_of(&server, &run), "digits");
    assert_eq!(value(&run, "tags", "berth.attempts"), Some("2"));
    assert_eq!(metric(&run, "loss"), Some(0.25), "of the second attempt");
    assert_eq!(value(&run, "params", "lr"), Some("0.1"));
    assert_eq!(value(&run, "params", "start"), Some("first"));
    assert_eq!(value(&run, "tags", "berth.changed.start"), Some("second"));
    // Further runs of the script are separate runs.
    let all = server.json(&["runs", "--experiment", "digits"]);
    let mut names: Vec<String> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["info"]["run_name"].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["inner", "real", "second"], "{all}");
}
