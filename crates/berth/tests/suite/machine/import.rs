//! Import and export: folders of MLflow's client, databases, and between servers.

use super::people::People;
use super::server::Server;
use super::tracking::{python, root};
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection, raw_sql};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PAGE: &str = include_str!("../../../../../docs/import.md");
const TABLES: &str = include_str!("../../../../berth-import/src/sqlite/tables.sql");
const ROWS: &str = include_str!("../../../../berth-import/src/sqlite/rows.sql");

/// Runs the script that makes and reads file stores with MLflow's client.
fn client(what: &str, place: &str, token: &str) -> String {
    let ran = Command::new(python())
        .arg(root().join("tools/mlflow/file_store.py"))
        .args([what, place])
        .env("MLFLOW_TRACKING_TOKEN", token)
        .env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        .env("GIT_PYTHON_REFRESH", "quiet")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{what} {place}: {out}{err}");
    out
}

fn told(place: &str, token: &str) -> Value {
    serde_json::from_str(&client("read", place, token)).expect("it prints JSON")
}

fn report(output: &Output) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {err}"))
}

/// Makes a file store with `runs` small runs, with MLflow's client.
fn store(folder: &Path, runs: u32) {
    let experiment = folder.join("7");
    let write = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
    };
    write(
        &experiment.join("meta.yaml"),
        "experiment_id: '7'\nlifecycle_stage: active\nname: many\n",
    );
    for number in 0..runs {
        let run = experiment.join(format!("{number:032x}"));
        let meta = format!(
            "end_time: {}\nlifecycle_stage: active\nrun_id: {number:032x}\nrun_name: r{number}\n\
             start_time: {}\nstatus: 3\nuser_id: kim\n",
            2000 + number,
            1000 + number
        );
        write(&run.join("meta.yaml"), &meta);
        write(&run.join("params/lr"), &format!("0.{number}"));
        write(&run.join("artifacts/out.txt"), &format!("{number}"));
        let points: String = (0..50).map(|step| format!("{step} 0.{step} {step}\n")).collect();
        write(&run.join("metrics/loss"), &points);
    }
}

#[test]
fn what_mlflows_client_wrote_is_the_same_in_berth_and_in_a_folder_again() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let token = server.token();
    let source = server.work.path().join("mlruns");
    let source = source.to_str().expect("a path of ours");
    client("make", source, &token);
    let before = told(source, &token);
    let said = server.run_ok(&["import", "mlflow", "mlruns"]);
    let expected = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(Some(said.as_str()), expected);
    let at_server = told(&server.url, &token);
    assert_eq!(before, at_server);
    // A second import needs `--resume`, and moves nothing.
    let again = server.berth(&["import", "mlflow", source]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("--resume"), "{said}");
    let again = server.json(&["import", "mlflow", source, "--resume"]);
    assert_eq!(again["complete"], true, "{again:#}");
    let moved: Vec<&Value> =
        again["experiments"].as_array().into_iter().flatten().map(|of| &of["runs"]).collect();
    assert!(moved.iter().all(|runs| **runs == 0), "{again:#}");
    assert_eq!(again["registered"]["versions"], 0);
    assert_eq!(told(&server.url, &token), at_server);
    // Export again.
    let to = server.work.path().join("out");
    let to = to.to_str().expect("a path of ours");
    let would = server.json(&["export", "mlflow", to, "--dry-run"]);
    assert!(would["dry_run"] == true && !Path::new(to).exists(), "{would:#}");
    let done = server.json(&["export", "mlflow", to]);
    assert_eq!(done["complete"], true, "{done:#}");
    assert_eq!(told(to, &token), before);
}

#[test]
fn one_server_of_berth_takes_what_another_has() {
    let (one, other) = (Server::start(&["--gpus", "1xL4"]), Server::start(&["--gpus", "1xL4"]));
    let source = one.work.path().join("mlruns");
    let source = source.to_str().expect("a path of ours");
    client("make", source, &one.token());
    one.json(&["import", "mlflow", source]);
    let expected = told(&one.url, &one.token());
    // The destination imports from the source.
    let fetched = other
        .command(&["import", "mlflow", &one.url, "-o", "json"])
        .env("MLFLOW_TRACKING_TOKEN", one.token())
        .output()
        .expect("berth runs");
    assert_eq!(report(&fetched)["complete"], true, "{:#}", report(&fetched));
    assert_eq!(told(&other.url, &other.token()), expected);
    // The source exports to the destination, under another prefix.
    let sent = one
        .command(&["export", "mlflow", &other.url, "--prefix", "sent-", "-o", "json"])
        .env("MLFLOW_TRACKING_TOKEN", other.token())
        .output()
        .expect("berth runs");
    assert_eq!(report(&sent)["complete"], true, "{:#}", report(&sent));
    let there = told(&other.url, &other.token());
    let (old, new) = (&there["experiments"]["digits"], &there["experiments"]["sent-digits"]);
    assert!(old.is_object() && old == new, "{new:#}");
    assert_eq!(there["models"]["chat"], there["models"]["sent-chat"]);
    // With a wrong token, the import fails.
    let stranger = other.berth(&["import", "mlflow", &one.url]);
    assert_eq!(stranger.status.code(), Some(3), "{stranger:?}");
}

#[test]
fn an_import_that_is_killed_goes_on_and_writes_nothing_twice() {
    const RUNS: u32 = 60;
    let server = Server::start(&["--gpus", "1xL4"]);
    let source = server.work.path().join("mlruns");
    store(&source, RUNS);
    // After a crash at any point, the next import resumes.
    for after_ms in [100, 300, 600] {
        let mut cut = server.command(&["import", "mlflow", "mlruns", "--resume"]);
        let mut cut = cut.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("berth runs");
        std::thread::sleep(Duration::from_millis(after_ms));
        let _ = cut.kill();
        let _ = cut.wait();
    }
    let done = server.json(&["import", "mlflow", "mlruns", "--resume"]);
    assert_eq!(done["complete"], true, "{done:#}");
    let of = &done["experiments"][0];
    assert_eq!(of["at_target"]["runs"], RUNS, "{done:#}");
    assert_eq!(of["at_target"]["points"], RUNS * 50, "{done:#}");
    let runs = server.json(&["runs", "--experiment", "many", "-n", "1000"]);
    assert_eq!(runs.as_array().map(Vec::len), Some(RUNS as usize));
}

#[test]
fn what_is_broken_is_named_and_the_rest_goes_on() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let source = server.work.path().join("mlruns");
    store(&source, 3);
    let run = |number: u32| source.join("7").join(format!("{number:032x}"));
    fs::write(run(1).join("meta.yaml"), "status: [3\n").expect("the folder is ours");
    fs::write(run(2).join("metrics/loss"), "1 0.5 1\nnonsense\n").expect("the folder is ours");
    // A name that servers refuse.
    fs::write(run(2).join("params/a$b"), "x").expect("the folder is ours");
    let strict = server.berth(&["import", "mlflow", "mlruns", "--strict"]);
    let said = String::from_utf8_lossy(&strict.stderr).into_owned();
    assert_eq!(strict.status.code(), Some(1), "{said}");
    assert!(said.contains("next: Mend it"), "{said}");
    let output = server.berth(&["import", "mlflow", "mlruns", "--resume", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let told = report(&output);
    let problems = told["problems"].to_string();
    let broken = format!("run {:032x}", 1);
    for named in [broken.as_str(), "line 2", "param a$b"] {
        assert!(problems.contains(named), "{named}: {problems}");
    }
    assert_eq!(
        (&told["complete"], &told["experiments"][0]["at_target"]["runs"]),
        (&Value::from(false), &Value::from(2))
    );
    // The comparison reports the param that could not be moved.
    assert!(told["differences"].to_string().contains("params"), "{told:#}");
    let runs = server.json(&["runs", "--experiment", "many", "--filter", "metrics.loss = 0.5"]);
    assert_eq!(runs[0]["info"]["run_name"], "r2");
}

#[test]
fn a_database_of_mlflow_is_imported_with_the_files_beside_it() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let work = server.work.path();
    let database = work.join("mlflow.db");
    let files = work.join("mlartifacts/1/r1/artifacts");
    fs::create_dir_all(&files).expect("the folder is ours");
    fs::write(files.join("a.bin"), "abc").expect("the folder is ours");
    let options = SqliteConnectOptions::new().filename(&database).create_if_missing(true);
    let made = async {
        let mut connection = SqliteConnection::connect_with(&options).await?;
        raw_sql(TABLES).execute(&mut connection).await?;
        raw_sql(ROWS).execute(&mut connection).await?;
        connection.close().await
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(made).expect("a database");
    let done = server.json(&["import", "mlflow", "sqlite:///mlflow.db"]);
    assert_eq!(done["complete"], true, "{done:#}");
    let digits = &done["experiments"][1];
    assert_eq!(
        (&digits["at_target"]["runs"], &digits["at_target"]["files"]),
        (&2.into(), &1.into())
    );
    let runs = server.json(&["runs", "--experiment", "digits", "--filter", "params.lr = '0.1'"]);
    let info = &runs[0]["info"];
    assert_eq!((&info["user_id"], &info["end_time"]), (&Value::from("kim"), &Value::from(9)));
    let versions = server.json(&["models", "versions", "chat"]);
    let numbers: Vec<&str> = versions
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["version"].as_str())
        .collect();
    assert_eq!(numbers, ["3", "1"]);
    let none = server.berth(&["import", "mlflow", "sqlite:///nothing.db"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}

#[test]
fn an_import_has_the_rights_of_the_user_who_asks_for_it() {
    let people = People::start("1xL4");
    let viv = people.join("viv", "vision", "viewer");
    let kit = people.join("kit", "vision", "researcher");
    let server = &people.server;
    store(&server.work.path().join("mlruns"), 2);
    let import = |token: &str, args: &[&str]| {
        let mut command =
            server.command(&[&["import", "mlflow", "mlruns", "-o", "json"], args].concat());
        command
            .env("BERTH_TOKEN", token)
            .env("BERTH_URL", &server.url)
            .output()
            .expect("berth runs")
    };
    let refused = import(&viv, &["--team", "vision"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let done = import(&kit, &["--team", "vision"]);
    assert_eq!(report(&done)["complete"], true, "{:#}", report(&done));
    // A viewer of the team can read it, and another team cannot.
    let mia = people.join("mia", "audio", "researcher");
    let path = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=many";
    assert_eq!(people.get(&viv, path).status, 200);
    assert_eq!(people.get(&mia, path).status, 404);
    let only = import(&kit, &["--team", "vision", "--experiment", "none such"]);
    assert_eq!(only.status.code(), Some(4), "{only:?}");
}
