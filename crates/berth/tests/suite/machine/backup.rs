//! A database that is lost comes back from a backup.

use super::http::Request;
use super::server::{Server, until};

fn remove_database(server: &Server) {
    for entry in std::fs::read_dir(server.home.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("berth.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn what_was_backed_up_is_there_again_after_the_database_is_lost() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "--name", "kept", "-g", "1", "--", "true"]);
    let cost = server.json(&["cost", "--by", "job"]);
    let backup = server.run_ok(&["backup"]).trim().to_owned();
    server.run_ok(&["run", "--name", "later", "--", "true"]);

    let home = server.home.path().display().to_string();
    let restore = ["restore", backup.as_str(), "--home", home.as_str()];
    server.kill();
    let refused = server.berth(&restore);
    assert!(!refused.status.success(), "a database with something in it is not written over");

    remove_database(&server);
    let restored = server.berth(&restore);
    assert!(restored.status.success(), "{restored:?}");
    server.start_again();

    let jobs = server.json(&["ps", "--all"]);
    let names: Vec<&str> =
        jobs["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kept"], "{jobs}");
    assert_eq!(server.json(&["cost", "--by", "job"])["rows"], cost["rows"]);
    assert!(server.berth(&["audit", "verify"]).status.success());
    let audit = server.json(&["audit", "list"]);
    let what = |row: &serde_json::Value| row["what"].as_str().unwrap_or_default().to_owned();
    let restores = audit["rows"].as_array().unwrap().iter().filter(|row| what(row) == "restore");
    assert_eq!(restores.count(), 1, "{audit}");
    server.run_ok(&["run", "--name", "next", "-g", "1", "--", "true"]);
    let next = server.json(&["ps", "--all", "next"]);
    assert_eq!(next["jobs"][0]["id"], "3", "the number of what came after the backup is used up");
}

/// Experiments and runs are in another file, but in the same backup.
#[test]
fn experiments_and_runs_come_back_with_the_backup() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let ask = |server: &Server, path: &str, body: &serde_json::Value| {
        let path = format!("/api/2.0/mlflow/{path}");
        let token = server.token();
        let request = Request::new("POST", path).token(Some(&token)).json(body);
        let answer = request.send(&server.url);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let run = ask(&server, "runs/create", &serde_json::json!({ "run_name": "kept" }));
    let id = run["run"]["info"]["run_id"].clone();
    let point = serde_json::json!({ "run_id": id, "key": "loss", "value": 0.5, "timestamp": 1 });
    ask(&server, "runs/log-metric", &point);
    let backup = server.run_ok(&["backup"]).trim().to_owned();
    ask(&server, "runs/create", &serde_json::json!({ "run_name": "later" }));

    server.kill();
    remove_database(&server);
    for name in ["tracking.db", "tracking.db-wal", "tracking.db-shm"] {
        let _ = std::fs::remove_file(server.home.path().join(name));
    }
    let home = server.home.path().display().to_string();
    let restored = server.berth(&["restore", backup.as_str(), "--home", home.as_str()]);
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success() && said.contains("experiments, runs and models"), "{said}");
    server.start_again();

    let all = serde_json::json!({ "experiment_ids": ["0"] });
    let found = ask(&server, "runs/search", &all);
    let runs = found["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{found}");
    assert_eq!(runs[0]["info"]["run_name"], "kept");
    assert_eq!(runs[0]["data"]["metrics"][0]["value"], 0.5);
}

/// The lines that a job wrote into a file of its folder.
fn lines(server: &Server, job: &str, file: &str) -> Vec<String> {
    let path = server.home.path().join("jobs").join(job).join(file);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

fn is(server: &Server, job: &str, state: &str) -> bool {
    server.job(job)["state"] == state
}

/// What the node knows of a lease may be newer than the backup: it ran since, or runs still.
#[test]
fn a_backup_restored_into_the_same_home_agrees_with_what_the_node_has_run_since() {
    // Without a sandbox a process has the number that the test looks for.
    let mut server = Server::start(&["--gpus", "1xL4", "--isolation", "none"]);
    let run = |name: &str, gpus: &str, script: &str| {
        let args = ["run", "-d", "--name", name, "-g", gpus, "--", "bash", "-c", script];
        let mut command = server.command(&args);
        // Each job then works in a folder of its own.
        assert!(command.current_dir(server.home.path()).status().unwrap().success());
    };
    run("first", "1", "until [ -e go ]; do sleep 0.02; done");
    until("the first job runs", || is(&server, "first", "running"));
    run("second", "1", "echo ran >> ran");
    run("third", "1", "echo $$ >> pids; exec sleep 600");
    run("stays", "0", "echo $$ >> pids; exec sleep 600");
    until("the job without a GPU runs", || lines(&server, "4", "pids").len() == 1);
    let backup = server.run_ok(&["backup"]).trim().to_owned();

    // After the backup the second job comes to its end, and the third begins.
    std::fs::write(server.home.path().join("jobs/1/go"), "").unwrap();
    until("the second job is done", || is(&server, "second", "done"));
    until("the third job runs", || lines(&server, "3", "pids").len() == 1);
    let home = server.home.path().display().to_string();
    let restore = ["restore", backup.as_str(), "--home", home.as_str()];
    let refused = server.berth(&restore);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("a server runs on"), "{said}");
    server.kill();
    remove_database(&server);
    let restored = server.berth(&restore);
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success() && said.contains("2 tasks still run here"), "{said}");
    server.start_again();

    until("the first job is done", || is(&server, "first", "done"));
    until("the second job is done", || is(&server, "second", "done"));
    assert_eq!(lines(&server, "2", "ran"), ["ran"], "it was not run twice");
    until("the third job runs again", || lines(&server, "3", "pids").len() == 2);
    until("it is told to run", || is(&server, "third", "running"));
    let third = lines(&server, "3", "pids");
    assert!(!lives(&third[0]) && lives(&third[1]), "only its new process has the GPU");
    assert_eq!(server.job("third")["attempts"], 2);
    let stays = lines(&server, "4", "pids");
    assert!(stays.len() == 1 && lives(&stays[0]), "what the backup knew as running goes on");
    assert!(is(&server, "stays", "running"));
    assert_eq!(server.job("stays")["attempts"], 1);
}
