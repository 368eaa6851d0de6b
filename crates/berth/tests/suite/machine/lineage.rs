//! Lineage of a model, and how to repeat its job.

use super::http::Request;
use super::server::{Server, until};
use berth_file::job;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../../docs/lineage.md");

const JOB: &str =
    "name: train\ngpus: 1\ncode: .\ndata: {/data: 'dvc:c4'}\nrun: cat /data/a.txt main\n";

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn git(folder: &Path, args: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=kim", "-c", "user.email=kim@example.com"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("git runs");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

fn post(server: &Server, path: &str, body: &Value) -> Value {
    let token = server.token();
    let path = format!("/api/2.0/mlflow/{path}");
    let answer = Request::new("POST", path).token(Some(&token)).json(body).send(&server.url);
    assert!(answer.is_good(), "{answer:?}");
    answer.json()
}

fn until_done(server: &Server, job: &str) {
    until(&format!("job {job} is done"), || server.job(job)["state"] == "done");
}

/// A job with data and committed code that has run, and version 1 of a model from its run.
fn trained() -> (Server, String, String) {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    write(folder, "corpus/a.txt", "alpha\n");
    write(folder, "project/main", "the code\n");
    write(folder, "project/job.yaml", JOB);
    let project = folder.join("project");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "Begin"]);
    let commit = git(&project, &["rev-parse", "HEAD"]);
    server.run_ok(&["data", "push", "corpus", "c4@v1"]);
    server.run_ok(&["run", "-d", "-y", "-f", "project/job.yaml"]);
    until_done(&server, "train");
    let run = server.job("train")["run"].as_str().expect("it is tracked").to_owned();
    until("the run is tracked as finished", || {
        // Berth makes the run of a job that logs nothing a moment after the job has begun.
        let path = format!("/api/2.0/mlflow/runs/get?run_id={run}");
        let found = Request::new("GET", path).token(Some(&server.token())).send(&server.url);
        found.status == 200 && found.json()["run"]["info"]["status"] == "FINISHED"
    });
    post(&server, "registered-models/create", &json!({ "name": "chat" }));
    let version = json!({ "name": "chat", "source": format!("runs:/{run}/model"), "run_id": run });
    post(&server, "model-versions/create", &version);
    (server, run, commit)
}

#[test]
fn a_model_leads_back_to_its_job_and_data_and_the_job_can_be_run_again_until_the_data_changes() {
    let (server, run, commit) = trained();
    let tree = server.run_ok(&["lineage", "model:chat@1"]);
    for part in ["chat version 1", "job 1 train", "c4@v1", &commit[..12], "GPU-hours"] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    let found = server.json(&["lineage", "data:c4@v1", "--down"]);
    let ids: Vec<&str> =
        found["nodes"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["data:c4@v1", &format!("run:{run}"), "model:chat@1"]);
    let found = server.json(&["lineage", "model:chat@1"]);
    let edge = json!({ "from": format!("run:{run}"), "to": "data:c4@v1", "kind": "read" });
    assert!(found["edges"].as_array().unwrap().contains(&edge), "{found}");
    assert!(found["gpu_ms"].as_i64().unwrap() > 0, "{found}");
    let events = server.run_ok(&["lineage", "model:chat@1", "-o", "openlineage"]);
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let kinds: Vec<&Value> = events.iter().map(|event| &event["eventType"]).collect();
    assert_eq!(kinds, ["START", "COMPLETE"]);
    assert_eq!(events[1]["inputs"][0]["name"], "data/c4");
    assert_eq!(events[1]["outputs"][0]["name"], "models/chat");
    assert_eq!(events[1]["job"]["facets"]["sourceCodeLocation"]["version"], commit.as_str());

    let hash = server.json(&["data", "show", "c4@v1"])["hash"].as_str().unwrap().to_owned();
    let first = server.json(&["reproduce", &format!("run:{run}")]);
    assert_eq!(first["data"][0]["hash"], hash.as_str());
    assert_eq!((&first["code"]["commit"], &first["code"]["kept"]), (&json!(commit), &json!(true)));
    let differs = first["differs"].as_array().unwrap();
    assert!(differs.is_empty(), "nothing has changed: {first}");
    let printed = server.run_ok(&["reproduce", &run]);
    let file = job::read(&printed).expect("what is printed is a job file").file;
    assert_eq!(file.data["/data"], format!("dvc:c4@v1#{hash}"));
    server.run_ok(&["reproduce", "1", "--submit"]);
    until_done(&server, "2");
    let again = server.json(&["reproduce", "job:2"]);
    for same in ["file", "job_file", "data", "code", "team"] {
        assert_eq!(first[same], again[same], "{same}");
    }

    server.run_ok(&["data", "rm", "c4@v1", "-y"]);
    let removed = server.json(&["reproduce", "job:1"]);
    assert_eq!(removed["differs"][0]["now"], "removed", "{removed}");
    write(server.work.path(), "corpus/a.txt", "beta\n");
    server.run_ok(&["data", "push", "corpus", "c4@v1"]);
    let changed = server.json(&["reproduce", "job:1"]);
    let difference = &changed["differs"][0];
    assert_eq!((&difference["what"], &difference["then"]), (&json!("data c4@v1"), &json!(hash)));
    assert_eq!(
        (&difference["now"], &difference["blocks"]),
        (&changed["data"][0]["now"], &json!(true))
    );
    let refused = server.berth(&["reproduce", "job:1", "--submit"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("data c4@v1"), "{refused:?}");
    let token = server.token();
    let sent = Request::new("POST", "/v1/jobs").token(Some(&token));
    let sent = sent.body("application/yaml", first["file"].as_str().unwrap()).send(&server.url);
    assert_eq!(sent.status, 422, "a file with a hash is never run with other data: {sent:?}");
    assert!(sent.body.contains(&hash), "{sent:?}");
    server.run_ok(&["reproduce", "job:1", "--submit", "--anyway"]);
    until_done(&server, "3");
    assert!(server.run_ok(&["logs", "3"]).contains("beta"));
    let old = server.json(&["lineage", &format!("run:{run}"), "--up"]);
    let gone = old["nodes"].as_array().unwrap().iter().find(|node| node["kind"] == "data").unwrap();
    assert_eq!((&gone["gone"], &gone["details"]["hash"]), (&json!(true), &json!(hash)), "{old}");
}

#[test]
fn what_is_not_there_and_what_was_not_run_by_a_job_is_said() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let code = |args: &[&str]| {
        let ran = server.berth(args);
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    for of in ["model:nothing@1", "run:nothing", "job:7", "data:nothing@v1"] {
        let (status, said) = code(&["lineage", of]);
        assert_eq!(status, Some(4), "{of}: {said}");
    }
    let (status, said) = code(&["lineage", "nothing"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("model:NAME@VERSION"), "{said}");
    let (status, said) = code(&["ps", "-o", "openlineage"]);
    assert_eq!(status, Some(2), "{said}");
    let made =
        post(&server, "runs/create", &json!({ "experiment_id": "0", "run_name": "by hand" }));
    let run = made["run"]["info"]["run_id"].as_str().unwrap();
    let (status, said) = code(&["reproduce", run]);
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains("has no job"), "{said}");
    assert!(server.run_ok(&["lineage", &format!("run:{run}")]).contains("run by hand"));
}

#[test]
fn a_run_without_its_job_is_repeated_from_its_artifacts_after_somebody_has_read_them() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let made = post(&server, "runs/create", &json!({ "experiment_id": "0" }));
    let info = &made["run"]["info"];
    let run = info["run_id"].as_str().unwrap();
    let place = info["artifact_uri"].as_str().unwrap().strip_prefix("mlflow-artifacts:/").unwrap();
    let token = server.token();
    let path = format!("/api/2.0/mlflow-artifacts/artifacts/{place}/berth/job.yaml");
    let file = "name: imported\ndata: {/data: 'dvc:c4'}\nrun: cat /data/a.txt\n";
    let sent = Request::new("PUT", path).token(Some(&token)).body("text/plain", file);
    assert!(sent.send(&server.url).is_good());
    write(server.work.path(), "corpus/a.txt", "alpha\n");
    server.run_ok(&["data", "push", "corpus", "c4@v1"]);
    let hash = server.json(&["data", "show", "c4@v1"])["hash"].as_str().unwrap().to_owned();
    let source = json!({ "path": "/data", "data": "dvc:c4@v1" }).to_string();
    let dataset =
        json!({ "name": "c4@v1", "digest": hash, "source_type": "berth", "source": source });
    let inputs = json!({ "run_id": run, "datasets": [{ "dataset": dataset }] });
    post(&server, "runs/log-inputs", &inputs);
    let recipe = server.json(&["reproduce", run]);
    assert_eq!((&recipe["source"], &recipe["job"]), (&json!("artifact"), &Value::Null));
    assert_eq!(recipe["data"][0]["now"], hash.as_str(), "{recipe}");
    let file = job::read(recipe["file"].as_str().unwrap()).unwrap().file;
    assert_eq!(file.data["/data"], format!("dvc:c4@v1#{hash}"), "and not the newest");
    let refused = server.berth(&["reproduce", run, "--submit"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    server.run_ok(&["reproduce", run, "--submit", "--anyway"]);
    until_done(&server, "1");
    assert!(server.run_ok(&["logs", "1"]).contains("alpha"));
}

#[test]
fn the_example_of_the_page_works() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    write(folder, "corpus/train.txt", "hello\n");
    let block = |kind: &str| {
        PAGE.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap()
    };
    write(folder, "train.yaml", block("yaml"));
    let mut printed = String::new();
    for line in block("sh").lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        printed.push_str(&server.run_ok(&words));
    }
    for line in block("text").lines() {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
