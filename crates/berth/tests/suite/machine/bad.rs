//! What goes wrong: each a clear error with what to do next, or a bounded effect, and nothing lost.

use super::http::{Answer, Request};
use super::server::{BERTH, Server, until};
use serde_json::{Value, json};
use std::io::{BufRead, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn submit(server: &Server, file: &str) -> Answer {
    let token = server.token();
    let request = Request::new("POST", "/v1/jobs").token(Some(&token));
    request.body("application/yaml", file).send(&server.url)
}

fn get(server: &Server, path: &str) -> Value {
    let token = server.token();
    Request::new("GET", path).token(Some(&token)).send(&server.url).json()
}

fn state(server: &Server, job: &str) -> String {
    let job = get(server, &format!("/v1/jobs/{job}"));
    job["state"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned()
}

/// A job file, the code of its refusal, the line of the mistake and words of the message.
const FILES: &[(&str, &str, u64, &str)] = &[
    ("name: a\nrun: [unclosed\n", "BRT0001", 2, "this is not YAML"),
    ("name: a\n\tgpus: 1\nrun: x\n", "BRT0001", 2, "this is not YAML"),
    ("name: a\ngpu: 1\nrun: x\n", "BRT0001", 2, "did you mean `gpus`?"),
    ("name: a\nrun: x\nretry: {eror: 2}\n", "BRT0001", 3, "did you mean `error`?"),
    ("name: a\ntime: soon\nrun: x\n", "BRT0001", 2, "`soon`"),
    ("name: a\nname: b\nrun: x\n", "BRT0001", 2, "twice"),
];

#[test]
fn a_job_file_with_a_mistake_is_refused_with_its_line_and_what_was_meant() {
    let server = Server::start(&["--gpus", "1xL4"]);
    for (file, code, line, says) in FILES {
        let answer = submit(&server, file);
        let problem = answer.json();
        assert_eq!(problem["code"], *code, "{file}: {problem}");
        assert_eq!(problem["errors"][0]["line"], *line, "{file}: {problem}");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{file}: {message}");
    }
    assert_eq!(get(&server, "/v1/jobs")["jobs"], json!([]));
}

#[test]
fn what_could_never_start_is_refused_with_what_is_too_large() {
    let server = Server::start(&["--gpus", "2xL4"]);
    for (asks, says) in [("gpus: 3", "3"), ("gpus: H100:1", "H100"), ("nodes: 2\ngpus: 2", "2")] {
        let problem = submit(&server, &format!("name: big\n{asks}\nrun: 'true'\n")).json();
        let code = problem["code"].as_str().unwrap_or_default();
        assert!(["BRT0002", "BRT0019"].contains(&code), "{asks}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{asks}: {problem}");
        assert_ne!(problem["next"], "", "{problem}");
    }
    assert_eq!(get(&server, "/v1/jobs")["jobs"], json!([]));
}

#[test]
fn text_that_no_database_keeps_is_refused_and_the_server_goes_on() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let token = server.token();
    let answer = submit(&server, "name: \"a\\0b\"\nrun: 'true'\n");
    assert_eq!(answer.status / 100, 4, "{answer:?}");
    let template = json!({ "file": "comment: \"a\\0b\"\nrun: x" });
    let odd = json!({ "name": "odd", "team": "a\u{0}b" });
    for (method, path, body) in [
        ("PUT", "/v1/templates/odd", &template),
        ("POST", "/v1/projects", &odd),
        ("GET", "/v1/jobs?name=%00", &json!({})),
        ("GET", "/v1/nodes/%00", &json!({})),
    ] {
        let answer = Request::new(method, path).token(Some(&token)).json(body).send(&server.url);
        assert!(answer.status < 500, "{method} {path}: {answer:?}");
    }
    assert_eq!(submit(&server, "name: fine\nrun: 'true'\n").status, 201);
}

fn up(home: &Path, listen: &str) -> Output {
    Command::new(BERTH)
        .args(["up", "--home", &home.display().to_string(), "--listen", listen, "--gpus", "1xL4"])
        .env("USER", "ada")
        .stdin(Stdio::null())
        .output()
        .expect("berth runs")
}

#[test]
fn a_port_in_use_is_told_with_what_to_do_and_changes_nothing() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let home = tempfile::tempdir().unwrap();
    let ended = up(home.path(), server.url.trim_start_matches("http://"));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("is in use") && said.contains("--listen"), "{said}");
    assert!(!home.path().join("berth.db").exists());
}

/// A server that was started by hand, which ends with its test.
struct Unread(Child);

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_whose_greeting_nobody_reads_serves_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let server = Command::new(BERTH)
        .args(["up", "--home", &home.path().display().to_string(), "--listen", "127.0.0.1:0"])
        .args(["--gpus", "1xL4"])
        .env("USER", "ada")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Unread(server.expect("berth up starts"));
    drop(server.0.stdout.take());
    until("the server says where it is", || home.path().join("server.json").exists());
    let ps = || {
        let mut ps = Command::new(BERTH);
        ps.arg("ps").env("BERTH_HOME", home.path()).output().expect("berth runs")
    };
    until("the server answers", || ps().status.success());
    let ended = Command::new("kill").arg(server.0.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert!(server.0.wait().unwrap().success(), "it ended when it was asked to, and not before");
}

#[test]
fn a_damaged_database_is_told_at_the_start_with_how_to_restore_it() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    for number in 0..20 {
        submit(&server, &format!("name: j{number}\nhold: true\nrun: 'true'\n"));
    }
    server.kill();
    let file = server.home.path().join("berth.db");
    let whole = std::fs::read(&file).unwrap();
    // The header is spared in one case, and hit in the other.
    for (from, says) in [(4096, "is damaged"), (0, "is not a database")] {
        let mut damaged = whole.clone();
        let to = damaged.len().min(from + 40_960);
        damaged[from..to].fill(0xa5);
        std::fs::write(&file, &damaged).unwrap();
        for beside in ["berth.db-wal", "berth.db-shm"] {
            let _ = std::fs::remove_file(server.home.path().join(beside));
        }
        let ended = up(server.home.path(), "127.0.0.1:0");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.to_lowercase().contains("restore"), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), damaged, "it was not made worse");
    }
}

#[test]
fn streams_end_when_their_token_is_revoked() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&[
        "run",
        "-d",
        "--name",
        "talks",
        "--",
        "bash",
        "-c",
        "while :; do date; sleep 1; done",
    ]);
    until("it runs", || state(&server, "talks") == "running");
    let admin = server.token();
    let wish = json!({ "name": "listener", "scope": "read" });
    let made = Request::new("POST", "/v1/tokens").token(Some(&admin)).json(&wish).send(&server.url);
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    let streams = ["/v1/events", "/v1/jobs/talks/logs?follow=true"].map(|path| {
        let mut request = Request::new("GET", path).token(Some(&secret));
        // So that the end of the stream is the end of the connection.
        request.headers.push(("connection", "close".to_owned()));
        let (status, stream) = request.stream(&server.url);
        assert_eq!(status, 200, "{path}");
        stream
    });
    let revoke = Request::new("DELETE", "/v1/tokens/listener").token(Some(&admin));
    assert_eq!(revoke.send(&server.url).status, 204);
    for mut stream in streams {
        // The socket has a timeout, so a stream that goes on fails here.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the server ends it");
    }
}

#[test]
fn a_flood_of_output_is_kept_in_bounds_and_the_server_answers_meanwhile() {
    let server = Server::start(&["--gpus", "1xL4"]);
    // More than is kept, as fast as the machine can, and a last line.
    let flood = "head -c 200000000 /dev/zero | tr '\\0' x | fold -w 99; echo the last line";
    server.run_ok(&["run", "-d", "--name", "flood", "--", "bash", "-c", flood]);
    until("it is done", || {
        assert_eq!(Request::new("GET", "/readyz").send(&server.url).status, 200);
        state(&server, "flood") == "done"
    });
    assert!(server.run_ok(&["logs", "flood", "--tail", "1"]).contains("the last line"));
    let kept = bytes_below(&server.home.path().join("node"));
    // Eight files of 16 MiB, and what belongs to them.
    assert!(kept < 140_000_000, "{kept} bytes were kept");
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
            _ => entry.metadata().map_or(0, |file| file.len()),
        })
        .sum()
}

/// A process that leaves its group, its session and its parent.
const RUNS_AWAY: &str = "setsid bash -c 'echo $$ > away.pid; trap \"\" TERM HUP; \
                         while :; do sleep 1; done' >/dev/null 2>&1 & \
                         until [ -s away.pid ]; do sleep 0.05; done; ";

fn away(server: &Server, id: &str) -> u32 {
    let file = server.home.path().join("jobs").join(id).join("away.pid");
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended; only nobody has asked for it yet.
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn what_a_job_forked_away_ends_with_it() {
    // In a sandbox the kernel sees to it, and the numbers of processes are others.
    let server = Server::start(&["--gpus", "1xL4", "--isolation", "none"]);
    let file = format!("name: ends\nrun: |\n  {RUNS_AWAY}\n");
    let ends = submit(&server, &file).json()["id"].as_str().unwrap().to_owned();
    until("the first job is over", || state(&server, &ends) == "done");
    assert!(!lives(away(&server, &ends)), "it outlived the end of its job");
    let file =
        format!("name: stops\ncheckpoint: {{grace: 1s}}\nrun: |\n  {RUNS_AWAY}\n  sleep 600\n");
    let stops = submit(&server, &file).json()["id"].as_str().unwrap().to_owned();
    let pid = server.home.path().join("jobs").join(&stops).join("away.pid");
    until("the second job has forked", || std::fs::read(&pid).is_ok_and(|text| !text.is_empty()));
    server.run_ok(&["stop", &stops]);
    until("the second job is over", || state(&server, &stops) == "cancelled");
    assert!(!lives(away(&server, &stops)), "it outlived the stop of its job");
}

#[test]
fn a_full_disk_refuses_what_is_new_loses_nothing_and_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::start() else { return };
    let first = disk.submit("first");
    assert_eq!(first.status, 201, "{first:?}");
    disk.fill();
    let mut refused = None;
    until("the disk is full for the database", || {
        let answer = disk.submit("more");
        let full = answer.status != 201;
        refused = full.then_some(answer);
        full
    });
    let refused = refused.expect("just seen");
    assert_eq!((refused.status, refused.code().as_deref()), (507, Some("BRT0025")), "{refused:?}");
    assert!(refused.json()["next"].as_str().unwrap().contains("Free space"), "{refused:?}");
    assert_eq!(disk.get("/v1/jobs/first").status, 200, "it can still be read");
    disk.make_room();
    until("it takes requests again", || disk.get("/readyz").status == 200);
    until("it takes jobs again", || disk.submit("later").status == 201);
    for name in ["first", "later"] {
        assert_eq!(disk.get(&format!("/v1/jobs/{name}")).status, 200, "{name}");
    }
    let verified = disk.get("/v1/audit/verify").json();
    assert_eq!(verified["whole"], true, "{verified}");
}

/// A server whose home is a file system of a few megabytes that nobody else sees.
struct SmallDisk {
    child: std::process::Child,
    home: tempfile::TempDir,
    url: String,
}

impl SmallDisk {
    /// Nothing where this user may not make a file system of their own.
    fn start() -> Option<SmallDisk> {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "bash", "-c"]);
            command
        };
        let home = tempfile::tempdir().unwrap();
        let mount = format!("mount -t tmpfs -o size=8m tmpfs {}", home.path().display());
        if !unshare().arg(&mount).output().is_ok_and(|tried| tried.status.success()) {
            eprintln!("not tried: this user may not mount a small disk");
            return None;
        }
        let start = format!(
            "{mount} && exec {BERTH} up --home {} --listen 127.0.0.1:0 --gpus 1xL4",
            home.path().display()
        );
        let mut child = unshare()
            .arg(start)
            .env("USER", "ada")
            .env("BERTH_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("berth up starts");
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("Berth is ready at ").map(ToOwned::to_owned));
        std::thread::spawn(move || lines.for_each(drop));
        Some(SmallDisk { url: url.expect("it says where it is"), child, home })
    }

    /// A file of its home, as the server sees it.
    fn file(&self, name: &str) -> std::path::PathBuf {
        let home = self.home.path().strip_prefix("/").expect("absolute");
        Path::new("/proc").join(self.child.id().to_string()).join("root").join(home).join(name)
    }

    fn token(&self) -> String {
        std::fs::read_to_string(self.file("admin.token")).expect("a token").trim().to_owned()
    }

    fn submit(&self, name: &str) -> Answer {
        let token = self.token();
        let padding = "x".repeat(20_000);
        let file = format!("name: {name}\nhold: true\ncomment: {padding}\nrun: 'true'\n");
        let request = Request::new("POST", "/v1/jobs").token(Some(&token));
        request.body("application/yaml", file).send(&self.url)
    }

    fn get(&self, path: &str) -> Answer {
        let token = self.token();
        Request::new("GET", path).token(Some(&token)).send(&self.url)
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.file("filler")).unwrap();
        let block = [0xa5; 4096];
        while file.write_all(&block).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.file("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
