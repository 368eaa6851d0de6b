//! Trouble of the machine: a full disk, no descriptors, a server that is away, a folder that is
//! gone. No job fails for it, and nobody pays for it.

use super::server::{BERTH, Server, until};
use berth_testbed::{Account, Server as Testbed, fill};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// The program, with a file system of a few megabytes where the server's driver keeps tasks. It is
/// in a mount namespace of the server's own, so nothing has to be unmounted.
fn program_on_a_small_disk(folder: &Path) -> PathBuf {
    let path = folder.join("berth");
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = up ] || exec {BERTH} \"$@\"\n\
         mkdir -p \"$3/node\"\n\
         exec unshare --user --map-root-user --mount sh -c '\n\
         mount -t tmpfs -o size=24m berth-test \"$3/node\" && exec {BERTH} \"$@\"' sh \"$@\"\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn state(server: &Testbed, job: &str) -> String {
    server.job(job)["state"].as_str().unwrap_or_default().to_owned()
}

fn node(server: &Testbed) -> Value {
    server.get("/v1/nodes/box")
}

#[test]
fn a_full_disk_fails_no_job_and_the_machine_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_on_a_small_disk(folder.path());
    let server = Testbed::start(&program, &["--gpus", "8xH100"]);
    server.run_ok(&["run", "--name", "before", "--", "true"]);
    server.run_ok(&["run", "-d", "--name", "runs", "-g", "1", "--", "sleep", "1000"]);
    until("it runs", || state(&server, "runs") == "running");
    let home = server.home.path().strip_prefix("/").unwrap();
    let seen = PathBuf::from(format!("/proc/{}/root", server.process())).join(home);
    let filler = seen.join("node/filler");
    fill(&filler);

    // Acknowledged before the server has noticed: all that can happen to it is to wait.
    let args = ["run", "-d", "--name", "acknowledged", "-g", "1", "--retry", "0", "--", "true"];
    let taken = server.berth(&args).status.success();
    until("the machine takes no work", || node(&server)["state"] == "troubled");
    let trouble = node(&server)["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("No space left on device (os error 28)"), "{trouble}");
    assert!(server.run_ok(&["nodes"]).contains("in trouble"));
    if taken {
        until("it waits", || {
            let reason = server.job("acknowledged")["reason"].to_string();
            state(&server, "acknowledged") == "pending" && !reason.is_empty()
        });
        let why = server.run_ok(&["why", "acknowledged"]);
        assert!(why.contains("No space left on device"), "{why}");
    }
    let refused = server.berth(&["run", "-d", "--name", "more", "--", "true"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("BRT0025"), "{told}");
    assert!(told.contains("No space left on device"), "{told}");
    // Whoever has filled the disk can be stopped on it.
    server.run_ok(&["stop", "--now", "runs"]);
    until("it is stopped", || state(&server, "runs") == "cancelled");

    std::fs::remove_file(&filler).unwrap();
    until("the machine takes work", || node(&server)["state"] == "ready");
    assert_eq!(node(&server)["trouble"], Value::Null);
    if taken {
        until("it is done", || state(&server, "acknowledged") == "done");
    }
    server.run_ok(&["run", "--name", "after", "--", "true"]);
    let audit = server.run_ok(&["audit", "list"]);
    assert!(audit.contains("node_changed"), "{audit}");
}

#[test]
fn a_server_without_descriptors_fails_no_job_and_answers_all_the_same() {
    let server = Server::start(&["--gpus", "8xH100"]);
    server.limit_descriptors(10);
    for job in 0..3 {
        let name = format!("job-{job}");
        server.run_ok(&["run", "-d", "--name", &name, "--retry", "0", "--", "true"]);
    }
    until("the machine takes no work", || node(&server)["state"] == "troubled");
    let trouble = node(&server)["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("file descriptors"), "{trouble}");
    server.set_descriptors(1024);
    for job in 0..3 {
        let name = format!("job-{job}");
        until("they are done", || state(&server, &name) == "done");
    }
    assert_eq!(node(&server)["state"], "ready");
}

/// How many processes and threads the account of a server may have in the test below: far more
/// than the server needs.
const MOST_PROCESSES: usize = 300;

/// Processes of an account that do nothing, and end with this.
struct Crowd(Vec<Child>);

impl Crowd {
    /// They come from outside, so the limit of the server does not hold for them.
    fn of(account: Account, count: usize) -> Crowd {
        let sleeper = || account.run(Command::new("sleep").arg("1000")).spawn().expect("it starts");
        Crowd((0..count).map(|_| sleeper()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

#[test]
fn a_machine_without_processes_fails_no_job_and_goes_on_when_there_are_some() {
    let Some(account) = Account::of_its_own() else {
        eprintln!("not tried: only root starts a server as an account of its own");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("berth");
    let script = format!("#!/bin/bash\nulimit -u {MOST_PROCESSES} && exec {BERTH} \"$@\"\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Testbed::start_as(account, &program, &["--gpus", "8xH100"]);
    server.run_ok(&["run", "--name", "before", "--", "true"]);
    server.run_ok(&["run", "-d", "--name", "runs", "-g", "1", "--", "sleep", "1000"]);
    until("it runs", || state(&server, "runs") == "running");

    let crowd = Crowd::of(account, MOST_PROCESSES);
    for job in 0..3 {
        let name = format!("job-{job}");
        server.run_ok(&["run", "-d", "--name", &name, "-g", "1", "--retry", "0", "--", "true"]);
    }
    until("the machine takes no work", || node(&server)["state"] == "troubled");
    let trouble = node(&server)["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("no more processes can be started"), "{trouble}");
    assert!(trouble.contains("Resource temporarily unavailable (os error 11)"), "{trouble}");
    // There is room to note what is submitted, so it waits as the others do.
    server.run_ok(&["run", "-d", "--name", "job-3", "-g", "1", "--retry", "0", "--", "true"]);
    assert_eq!(state(&server, "job-3"), "pending");
    assert_eq!(state(&server, "runs"), "running");

    drop(crowd);
    for job in 0..4 {
        let name = format!("job-{job}");
        until("they are done", || state(&server, &name) == "done");
    }
    assert_eq!(node(&server)["state"], "ready");
    assert_eq!(state(&server, "runs"), "running");
}

/// Milliseconds since 1970 of a time as the API and files write it.
fn ms(time: &Value) -> i64 {
    let time: berth_model::Time = serde_json::from_value(time.clone()).unwrap();
    time.0
}

fn exit_of(server: &Testbed, folder: &str) -> Option<Value> {
    let text =
        std::fs::read(server.home.path().join("node").join(folder).join("exit.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

#[test]
fn a_job_that_reaches_its_limit_while_the_server_is_away_ends_then_and_is_billed_up_to_then() {
    let mut server = Server::start(&["--gpus", "1xH100"]);
    let args = ["run", "-d", "--name", "long", "-g", "1", "--time", "2s", "--", "sleep", "1000"];
    server.run_ok(&args);
    until("it runs", || state(&server, "long") == "running");
    server.kill();
    let mut exit = None;
    until("its supervisor ends it", || {
        exit = exit_of(&server, "tasks/1.0.0");
        exit.is_some()
    });
    // What comes now is nobody's.
    std::thread::sleep(Duration::from_secs(3));
    server.start_again();
    until("the server knows", || state(&server, "long") == "failed");
    let job = server.job("long");
    assert_eq!(job["exit"]["kind"], "timeout", "{job}");
    let ended = ms(&exit.unwrap()["at"]);
    assert!((ms(&job["ended"]) - ended).abs() < 1_500, "{job}, ended at {ended}");
    let attempts = server.get("/v1/jobs/1/attempts");
    let lease = &attempts["items"][0];
    let held = ended - ms(&job["started"]) + 1_500;
    let price = server.json(&["gpus"])["items"][0]["price_micros_per_hour"].as_i64().unwrap();
    let most = price * held / 3_600_000;
    let cost = job["cost_micros"].as_i64().unwrap();
    assert!(cost > 0 && cost <= most, "{cost} of {most}: {job} {lease}");
}

#[test]
fn a_job_that_deletes_its_task_folder_is_ended_and_said_to_be_lost() {
    // In a sandbox no job can.
    let server = Server::start(&["--gpus", "1xL4", "--isolation", "none"]);
    let script = "rm -rf ${BERTH_TASK_DIR%/job}; exec sleep 1000";
    let file = server.home.path().join("job.yaml");
    let text = format!("name: gone\ngpus: 1\nretry: {{infra: 0}}\nrun: {script}\n");
    std::fs::write(&file, text).unwrap();
    server.run_ok(&["run", "-d", "-f", file.to_str().unwrap()]);
    until("it has failed", || state(&server, "gone") == "failed");
    let why = server.run_ok(&["why", "gone"]);
    assert!(why.contains("folder of the task was deleted"), "{why}");
    server.run_ok(&["run", "--name", "next", "-g", "1", "--", "true"]);
}

#[test]
fn output_that_was_kept_long_enough_is_deleted_and_berth_logs_says_so() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    for name in ["old", "young"] {
        server.run_ok(&["run", "--name", name, "--", "echo", "from the job"]);
    }
    let folder = server.home.path().join("node/ended/1.0.0");
    until("it is put away", || folder.join("exit.json").exists());
    server.kill();
    // As if it had ended long ago.
    let mut exit: Value =
        serde_json::from_slice(&std::fs::read(folder.join("exit.json")).unwrap()).unwrap();
    exit["at"] = "2025-01-01T00:00:00Z".into();
    exit.as_object_mut().unwrap().remove("uptime_ms");
    std::fs::write(folder.join("exit.json"), exit.to_string()).unwrap();
    server.start_again();
    until("it is deleted", || !folder.exists());
    let told = server.berth(&["logs", "old"]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("the output of job 1 was deleted"), "{told}");
    assert!(server.run_ok(&["logs", "young"]).contains("from the job"));
    until("what is kept is shown", || node(&server)["output_bytes"].as_i64() > Some(0));
    let config = server.run_ok(&["config", "server"]);
    assert!(config.contains("keep-output"), "{config}");
}
