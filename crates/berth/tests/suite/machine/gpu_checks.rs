//! GPUs that are checked before they take work, played back: declared GPUs tell what a file says of
//! their checks, and helper processes play them.

use super::people::People;
use super::server::{Server, until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const WELL: &str = r#"{"memory_gb_per_s": 3100, "tflops": 600, "correct": true}"#;

/// What the GPUs tell from now on.
fn tell(file: &Path, told: &Value) {
    let beside = file.with_extension("new");
    std::fs::write(&beside, told.to_string()).unwrap();
    std::fs::rename(beside, file).unwrap();
}

fn well() -> Value {
    serde_json::from_str(WELL).unwrap()
}

struct Played {
    people: People,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Played {
    fn start(gpus: &str) -> Played {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gpus.json");
        std::fs::write(&file, "[]").unwrap();
        let path = file.display().to_string();
        let people = People::start_with(&["--gpus", gpus, "--gpu-recording", &path]);
        Played { people, file, _folder: folder }
    }

    fn gpu(&self, index: usize) -> Value {
        self.people.get(&self.people.kim, "/v1/gpus").json()["items"][index].clone()
    }

    /// GPU 0 fails, and somebody has seen to it since: a check will tell this.
    fn fail_and_repair(&self, check: &Value) {
        tell(&self.file, &json!([{ "xid": 79 }]));
        until("it is out of use", || self.gpu(0)["healthy"] == false);
        tell(&self.file, &json!([{ "check": check }]));
    }

    fn resume(&self, how: &Value) -> super::http::Answer {
        self.people.ask(&self.people.admin, "POST", "/v1/nodes/box/gpus/0/resume", how)
    }

    fn audit(&self, what: &str) -> Vec<Value> {
        let path = format!("/v1/audit?what={what}");
        let rows = self.people.get(&self.people.admin, &path).json();
        rows["rows"].as_array().cloned().unwrap_or_default()
    }
}

/// What an audit row says of the change.
fn detail(row: &Value) -> &str {
    row["detail"].as_str().unwrap()
}

#[test]
fn a_gpu_that_comes_back_slow_wrong_or_silent_is_refused_and_a_good_one_is_put_back() {
    let played = Played::start("1xH100");
    let cases = [
        (
            json!({ "memory_gb_per_s": 1500, "tflops": 250, "correct": true }),
            "did not pass its check: it is slow: its memory copies 1500 GB/s, at least",
        ),
        (
            json!({ "memory_gb_per_s": 3100, "tflops": 600, "correct": false }),
            "did not pass its check: it calculates wrongly",
        ),
        // The helper is killed; a real check has 45 s.
        (json!({ "hangs": true, "limit_ms": 300 }), "was killed: playing a driver that hangs"),
        (json!({ "crashes": true }), "did not pass its check: the check ended early"),
    ];
    for (at, (check, expect)) in cases.iter().enumerate() {
        played.fail_and_repair(check);
        let refused = played.resume(&json!({}));
        assert_eq!(refused.status, 409, "{refused:?}");
        let problem = refused.json();
        assert_eq!(problem["code"], "BRT0011");
        assert!(problem["detail"].as_str().unwrap().contains(expect), "{problem}");
        assert!(problem["next"].as_str().unwrap().contains("--no-check"), "{problem}");
        let gpu = played.gpu(0);
        assert_eq!((&gpu["healthy"], &gpu["checked"]["passed"]), (&json!(false), &json!(false)));
        let why = gpu["checked"]["why"].as_str().unwrap();
        assert_eq!(gpu["failed"], why, "what is wrong now is what the check has found");
        assert_eq!(played.audit("gpu_checked").len(), at + 1);
    }
    assert_eq!(played.audit("gpu_checked")[0]["outcome"], "failed");

    // Nothing starts on it meanwhile.
    let people = &played.people;
    let job = people.job(&people.kim, "team: vision\ngpus: 1\nrun: echo hello\n");
    played.fail_and_repair(&well());
    assert_eq!(people.server.job(&job)["state"], "pending");
    let back = played.resume(&json!({})).json();
    assert_eq!((&back["healthy"], &back["checked"]["passed"]), (&json!(true), &json!(true)));
    let memory = &back["checked"]["figures"][0];
    assert_eq!((&memory["of"], &memory["measured"]), (&json!("memory"), &json!(3_100_000)));
    assert!(memory["least"].as_u64().unwrap() < 3_100_000, "{memory}");
    assert_eq!(back["checked"]["correct"], true);
    people.until_is(&job, "done");
    let rows = played.audit("resume_gpu");
    assert!(detail(&rows[0]).contains(r#""check":"passed""#), "{rows:?}");

    let metrics = people.get(&people.admin, "/metrics").body;
    for line in [
        r#"berth_gpu_check_passed{node="box",gpu="0"} 1"#,
        r#"berth_gpu_check_bytes_per_second{node="box",gpu="0",copy="memory"} 3100000000000"#,
        r#"berth_gpu_check_flops{node="box",gpu="0"} 600000000000000"#,
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}

#[test]
fn a_gpu_can_be_put_back_without_a_check_and_the_audit_log_says_so() {
    let played = Played::start("1xH200");
    let page = include_str!("../../../../../docs/operate/gpu-health.md");
    let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let example = blocks.filter(|block| block.contains("\"check\"")).collect::<String>();
    let example: Value = serde_json::from_str(&example).unwrap();
    played.fail_and_repair(&example[0]["check"]);
    let server = &played.people.server;
    let refused = server.berth(&["uncordon", "box", "--gpu", "0"]);
    assert_eq!(refused.status.code(), Some(3));
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(shown.contains("its memory copies 2100 GB/s, at least"), "{shown}");
    let shown = server.run_ok(&["gpus", "-o", "wide"]);
    assert!(shown.contains("failed"), "{shown}");

    let back = server.json(&["uncordon", "box", "--gpu", "0", "--no-check"]);
    assert_eq!(back["healthy"], true);
    let rows = played.audit("resume_gpu");
    assert!(detail(&rows[0]).contains(r#""check":"left out""#), "{rows:?}");

    // With a check, the answer has a table of it.
    played.fail_and_repair(&json!({ "memory_gb_per_s": 4200, "tflops": 600 }));
    let shown = server.run_ok(&["uncordon", "box", "--gpu", "0"]);
    assert!(shown.contains("matrix product") && shown.contains("600 TFLOPS"), "{shown}");
    assert!(shown.contains("The GPU passes."), "{shown}");
}

/// The state of GPU 1.
fn second(server: &Server) -> Value {
    server.get("/v1/gpus")["items"][1].clone()
}

#[test]
fn a_gpu_that_is_new_on_a_machine_is_checked_before_it_takes_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpus.json");
    let good = json!({ "check": well() });
    tell(&file, &json!([good, { "check": { "memory_gb_per_s": 1200 } }]));
    let path = file.display().to_string();
    let mut server = Server::start(&["--gpus", "1xH100", "--gpu-recording", &path]);
    let first = server.get("/v1/gpus")["items"][0].clone();
    assert_eq!((&first["healthy"], &first["checked"]), (&json!(true), &Value::Null));

    // The new one is slow, so it stays out of use; the old one is left alone.
    let two = ["--gpus", "2xH100", "--gpu-recording", &path];
    server.stop();
    server.start_again_with(&two);
    until("it was checked", || second(&server)["checked"]["passed"] == false);
    until("it is said why", || second(&server)["failed"].is_string());
    let gpu = second(&server);
    assert_eq!((&gpu["healthy"], &gpu["checking"]), (&json!(false), &Value::Null));
    assert!(gpu["failed"].as_str().unwrap().starts_with("it is slow"), "{gpu}");
    let first = server.get("/v1/gpus")["items"][0].clone();
    assert_eq!((&first["healthy"], &first["checked"]), (&json!(true), &Value::Null));
    until("it is in the audit log", || {
        let rows = server.get("/v1/audit?what=gpu_checked").to_string();
        rows.contains("gpu 1 of box: GPU 1 did not pass its check: it is slow")
    });

    // It owes a check until it passes one, whatever happens to the server.
    tell(&file, &json!([good, good]));
    server.kill();
    server.start_again_with(&two);
    until("it takes work", || second(&server)["healthy"] == true);
    assert_eq!(second(&server)["checked"]["passed"], true);
    until("it is in the audit log", || {
        server.get("/v1/audit?what=gpu_checked").to_string().contains("gpu 1 of box: passed")
    });

    // And none where that is not wanted.
    tell(&file, &json!([good, good, { "check": { "correct": false } }]));
    server.stop();
    let three = ["--gpus", "3xH100", "--gpu-recording", &path, "--gpu-check", "never"];
    server.start_again_with(&three);
    let third = server.get("/v1/gpus")["items"][2].clone();
    assert_eq!((&third["healthy"], &third["checked"]), (&json!(true), &Value::Null));
}

#[test]
fn a_gpu_that_had_failed_is_checked_when_the_next_server_starts_and_is_out_of_use_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpus.json");
    tell(&file, &json!([{}, { "xid": 79 }]));
    let path = file.display().to_string();
    let args = ["--gpus", "2xH100", "--gpu-recording", &path];
    let mut server = Server::start(&args);
    until("it is out of use", || second(&server)["healthy"] == false);
    // The check waits for something that never comes.
    tell(&file, &json!([{}, { "check": { "hangs": true, "limit_ms": 3_000 } }]));
    server.stop();
    server.start_again_with(&args);
    let gpu = second(&server);
    assert_eq!(gpu["healthy"], false);
    if gpu["checking"].is_string() {
        assert_eq!(gpu["checking"], "XID 79: it has fallen off the bus");
        let shown = server.run_ok(&["gpus"]);
        assert!(shown.contains("1 checking") || shown.contains("1 failed"), "{shown}");
    }
    until("the helper is killed", || second(&server)["failed"].is_string());
    assert!(second(&server)["failed"].as_str().unwrap().contains("was killed"));
}

#[test]
fn a_person_without_a_gpu_is_told_so_by_the_check() {
    let done = std::process::Command::new(super::server::BERTH)
        .args(["gpu-check", "--gpu", "GPU-00000000-0000-0000-0000-000000000000"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{text}");
    assert!(text.contains("on this machine"), "{text}");
}
