//! Import from MLflow's own database and server, and export to it. `make test-long` runs these.

use super::server::Server;
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server of MLflow may take minutes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter of the environment that has the whole of MLflow.
fn python() -> Command {
    let made = Command::new(root().join(".ci/mlflow-large-tools")).output().expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let folder = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let mut command = Command::new(Path::new(&folder).join("bin/python"));
    command
        .env("MLFLOW_DISABLE_TELEMETRY", "true")
        .env("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
        .env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        .env("GIT_PYTHON_REFRESH", "quiet")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// Fills a place, or prints its contents.
fn client(what: &str, place: &str, token: &str, work: &Path) -> String {
    let mut command = python();
    command.arg(root().join("tools/mlflow/file_store.py")).args([what, place]).current_dir(work);
    if !token.is_empty() {
        command.env("MLFLOW_TRACKING_TOKEN", token);
    }
    let ran = command.output().expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{what} {place}: {out}{err}");
    out
}

fn told(place: &str, token: &str, work: &Path) -> Value {
    serde_json::from_str(&client("read", place, token, work)).expect("it prints JSON")
}

/// A server of MLflow on a database.
struct Mlflow {
    child: Child,
    url: String,
}

impl Mlflow {
    fn start(work: &Path, database: &str) -> Mlflow {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a free port");
        let mut command = python();
        command
            .args([
                "-m",
                "mlflow",
                "server",
                "--host",
                "127.0.0.1",
                "--port",
                &address.port().to_string(),
            ])
            .args(["--backend-store-uri", database, "--workers", "1"])
            .args(["--artifacts-destination", "mlartifacts"])
            .current_dir(work)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("mlflow runs");
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "MLflow's server has not started");
            std::thread::sleep(Duration::from_millis(500));
        }
        Mlflow { child, url: format!("http://{address}") }
    }
}

impl Drop for Mlflow {
    fn drop(&mut self) {
        // SIGTERM also ends its workers.
        let process = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "installs the whole of MLflow; make test-long runs it"]
fn what_is_in_a_database_of_mlflow_is_the_same_in_berth() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let work = server.work.path();
    client("make", "sqlite:///mlflow.db", "", work);
    let before = told("sqlite:///mlflow.db", "", work);
    let done = server.json(&["import", "mlflow", "sqlite:///mlflow.db"]);
    assert_eq!(done["complete"], true, "{done:#}");
    assert_eq!(told(&server.url, &server.token(), work), before);
}

#[test]
#[ignore = "installs the whole of MLflow; make test-long runs it"]
fn what_mlflows_server_has_is_imported_and_exported_again() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let work = server.work.path();
    let mlflow = Mlflow::start(work, "sqlite:///served.db");
    client("make", &mlflow.url, "", work);
    let before = told(&mlflow.url, "", work);
    let done = server.json(&["import", "mlflow", &mlflow.url]);
    assert_eq!(done["complete"], true, "{done:#}");
    assert_eq!(told(&server.url, &server.token(), work), before);
    let done = server.json(&["export", "mlflow", &mlflow.url, "--prefix", "back-"]);
    assert_eq!(done["complete"], true, "{done:#}");
    let after = told(&mlflow.url, "", work);
    for name in ["digits", "old"] {
        let (first, back) =
            (&before["experiments"][name], &after["experiments"][format!("back-{name}")]);
        assert!(first.is_object() && first == back, "{name}: {back:#}");
    }
    assert_eq!(before["models"]["chat"], after["models"]["back-chat"]);
}
