//! Trainings with PyTorch, Lightning and scikit-learn that MLflow's client logs automatically. `make
//! test-long` runs them.

use super::server::Server;
use berth_testbed::Postgres;
use std::path::Path;
use std::process::Command;

/// Runs all trainings in a folder of their own, against that server.
fn train(server: &Server) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = Command::new(root.join(".ci/mlflow-large-tools")).output().expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let folder = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let ran = Command::new(Path::new(&folder).join("bin/python"))
        .arg(root.join("tools/mlflow/training.py"))
        .arg(&server.url)
        .env("MLFLOW_TRACKING_TOKEN", server.token())
        .env("MLFLOW_DISABLE_TELEMETRY", "true")
        .env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        .env("GIT_PYTHON_REFRESH", "quiet")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("MLFLOW_RUN_ID")
        .env_remove("MLFLOW_EXPERIMENT_ID")
        .current_dir(server.work.path())
        .output()
        .expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}\n{}", server.log());
    assert!(out.contains("everything is as it should be"), "{out}{err}");
}

#[test]
#[ignore = "installs PyTorch; make test-long runs it"]
fn what_frameworks_log_by_themselves_is_found_and_their_models_load_back() {
    let server = Server::start(&["--gpus", "1xL4"]);
    train(&server);
    // `berth runs` finds the same.
    let runs = server.run_ok(&["runs", "--experiment", "frameworks", "-o", "json"]);
    for name in ["grid", "net", "lightning", "background"] {
        assert!(runs.contains(&format!("\"{name}\"")), "{name}: {runs}");
    }
}

#[test]
#[ignore = "installs PyTorch; make test-long runs it"]
fn frameworks_log_the_same_on_postgresql() {
    let postgres = Postgres::start();
    let server = Server::start(&["--gpus", "1xL4", "--database", &postgres.database()]);
    train(&server);
}
