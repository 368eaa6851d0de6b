//! The files of a folder that go along with a job, and what prepares its environment.

use super::audit::sql;
use super::http::Request;
use super::people::People;
use super::server::{Server, until};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn state(server: &Server, job: &str) -> String {
    server.job(job)["state"].as_str().unwrap_or_default().to_owned()
}

/// Runs a job from the files of the server's working folder, and returns what it printed.
fn run(server: &Server, name: &str, args: &[&str]) -> String {
    let args = [&["run", "-y", "--name", name, "--code", "."], args].concat();
    let ran = server.berth(&args);
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn a_queued_job_runs_the_files_of_its_submission_however_they_change() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    for (path, text) in [
        ("train.sh", "echo first; ls data 2>&1; cat conf/a"),
        ("conf/a", "alpha"),
        ("data/big", "left out"),
        (".gitignore", "data\n"),
    ] {
        write(folder, path, text);
    }
    let job = ["run", "-d", "-y", "--name", "held", "--hold", "--code", "."];
    server.run_ok(&[&job[..], &["--", "bash", "train.sh"]].concat());
    write(folder, "train.sh", "echo second");
    write(folder, "conf/a", "beta");
    server.run_ok(&["resume", "held"]);
    until("the held job ends", || state(&server, "held") == "done");
    let printed = server.run_ok(&["logs", "held"]);
    assert!(printed.contains("first") && printed.contains("alpha"), "{printed}");
    assert!(printed.contains("No such file"), "what git ignores stays at home: {printed}");
    let printed = run(&server, "next", &["--workdir", "conf", "--", "bash", "-c", "cat a; pwd"]);
    assert!(printed.contains("beta") && printed.contains("/code/conf"), "{printed}");

    let back = server.berth(&["code", "held", "back"]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!(fs::read_to_string(folder.join("back/conf/a")).unwrap(), "alpha");
    server.run_ok(&["clone", "next"]);
    until("its clone ends", || server.all_jobs().iter().all(|job| job["state"] == "done"));
    assert_eq!(snapshots(&server).len(), 2, "the same files are kept once");
    assert!(!server.home.path().join("code").exists(), "snapshots are in the store of objects");
}

/// The snapshots in the store of objects: the other objects are not packed.
fn snapshots(server: &Server) -> Vec<PathBuf> {
    let folders = fs::read_dir(server.home.path().join("blobs/sha256")).into_iter().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|file| fs::read(file).unwrap().starts_with(&[0x1f, 0x8b])).collect()
}

#[test]
fn a_server_moves_the_snapshots_of_an_earlier_version_and_their_jobs_still_run() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path().to_owned();
    write(&folder, "train.sh", "echo from the old home");
    let job = ["run", "-d", "-y", "--name", "held", "--hold", "--code", "."];
    server.run_ok(&[&job[..], &["--", "bash", "train.sh"]].concat());
    server.stop();
    // An earlier version kept it in the home and had no row for it.
    let object = snapshots(&server).remove(0);
    let digits = format!(
        "{}{}",
        object.parent().unwrap().file_name().unwrap().to_str().unwrap(),
        object.file_name().unwrap().to_str().unwrap()
    );
    let old = server.home.path().join("code/default");
    fs::create_dir_all(&old).unwrap();
    let old = old.join(format!("{digits}.tar.gz"));
    fs::rename(&object, &old).unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o600)).unwrap();
    let forget = format!(
        "DELETE FROM blob_names WHERE kind = 'code'; DELETE FROM blobs WHERE sha256 = '{digits}'"
    );
    sql(&server, &forget);
    server.start_again();
    until("it is moved", || !old.exists() && snapshots(&server).len() == 1);
    server.run_ok(&["resume", "held"]);
    until("the held job ends", || state(&server, "held") == "done");
    let printed = server.run_ok(&["logs", "held"]);
    assert!(printed.contains("from the old home"), "{printed}");
    write(&folder, "train.sh", "echo from the old home");
    run(&server, "again", &["--", "bash", "train.sh"]);
    assert_eq!(snapshots(&server).len(), 1, "the command line sends nothing again");
}

#[test]
fn a_job_file_takes_the_folder_beside_it() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    write(folder, "project/job.yaml", "name: beside\ncode: src\nrun: cat main\n");
    write(folder, "project/src/main", "from the project");
    let ran = server.berth(&["run", "-y", "-f", "project/job.yaml"]);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("from the project"), "{ran:?}");
    let file = server.run_ok(&["ps", "beside", "--all", "-o", "json"]);
    assert!(!file.contains("project/src"), "{file}");
    let token = server.token();
    let sent = Request::new("POST", "/v1/jobs").token(Some(&token));
    let refused = sent.body("application/yaml", "code: src\nrun: cat main\n").send(&server.url);
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("a folder is sent by the command line"), "{refused:?}");
    let nowhere = server.berth(&["run", "-y", "--code", "nowhere", "--", "true"]);
    assert_eq!(nowhere.status.code(), Some(125), "{nowhere:?}");
    let out = server.berth(&["run", "-y", "--code", ".", "--workdir", "../up", "--", "true"]);
    assert_eq!(out.status.code(), Some(125), "{out:?}");
}

#[test]
fn a_snapshot_that_is_not_what_its_name_says_is_not_kept_and_no_other_team_reads_one() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let viv = people.join("viv", "vision", "viewer");
    let id = format!("sha256:{}", "0".repeat(64));
    let put = |token: &str, team: &str, id: &str, body: &str| {
        let request = Request::new("PUT", format!("/v1/code/{team}/{id}")).token(Some(token));
        request.body("application/octet-stream", body).send(&people.server.url)
    };
    let wrong = put(&people.kim, "vision", &id, "something else");
    assert_eq!((wrong.status, wrong.code().as_deref()), (400, Some("BRT0003")), "{wrong:?}");
    assert!(wrong.body.contains("what was sent is sha256:"), "{wrong:?}");
    assert_eq!(people.get(&people.kim, &format!("/v1/code/vision/{id}")).status, 404);
    assert_eq!(put(&people.kim, "vision", "..%2f..%2fadmin.token", "x").status, 400);
    assert_eq!(put(&people.kim, "vision", "sha256:2d711642", "x").status, 400);
    let id = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(put(&people.kim, "vision", id, "x").status, 200);
    let content = format!("/v1/code/vision/{id}/content");
    assert_eq!(people.get(&people.kim, &content).body, "x");
    assert!(people.get(&mia, &content).status >= 403, "no other team reads it");
    for token in [&mia, &viv] {
        assert!(put(token, "vision", id, "x").status >= 403);
    }
    assert_eq!(people.get(&mia, &format!("/v1/code/audio/{id}")).status, 404);
    people.admin("PUT", "/v1/storage/vision", &json!({ "quota": 0 }));
    let foo = "sha256:b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c";
    let full = put(&people.kim, "vision", foo, "foo\n");
    assert_eq!(full.status, 413, "snapshots count against the quota of the team: {full:?}");
    let job = |token: &str, team: &str| {
        let file = format!("team: {team}\ncode: {id}\nrun: 'true'\n");
        let request = Request::new("POST", "/v1/jobs").token(Some(token));
        request.body("application/yaml", file).send(&people.server.url)
    };
    assert_eq!(job(&mia, "audio").status, 404, "the snapshot is vision's");
    assert_eq!(job(&people.kim, "vision").status, 201);
    until("the job fails, because `x` is no archive", || {
        people.server.all_jobs().iter().any(|job| job["state"] == "failed")
    });
    let why = people.server.run_ok(&["why", "1"]);
    assert!(why.contains("cannot be unpacked"), "{why}");
}

#[test]
fn setup_runs_once_for_the_same_script_and_code() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    write(folder, "tool", "echo the tool says $1");
    symlink("tool", folder.join("link")).unwrap();
    let setup = "echo preparing; mkdir -p $BERTH_SETUP_DIR/bin; cp link $BERTH_SETUP_DIR/bin/tool; \
                 chmod +x $BERTH_SETUP_DIR/bin/tool";
    let ask = ["--setup", setup, "--", "bash", "-c", "tool hello"];
    let first = run(&server, "first", &ask);
    assert!(first.contains("preparing") && first.contains("the tool says hello"), "{first}");
    let second = run(&server, "second", &ask);
    assert!(!second.contains("preparing") && second.contains("the tool says hello"), "{second}");
    write(folder, "tool", "echo another tool says $1");
    let third = run(&server, "third", &ask);
    assert!(third.contains("preparing") && third.contains("another tool"), "{third}");
    let ranks = ["--launch", "ranks", "--ranks", "3", "--setup"];
    let script = "echo preparing for all; sleep 0.2";
    let printed = run(&server, "ranks", &[&ranks[..], &[script, "--", "echo", "ran"]].concat());
    let count = |what: &str| printed.matches(what).count();
    assert_eq!((count("preparing for all"), count("ran")), (1, 3), "{printed}");
}

#[test]
fn a_setup_that_fails_fails_its_job_and_is_tried_again_by_the_next() {
    let server = Server::start(&["--gpus", "1xL4"]);
    write(server.work.path(), "file", "");
    let marker = server.work.path().join("may");
    let setup = format!("test -e {} || exit 3; echo done now", marker.display());
    let ran = server.berth(&["run", "-y", "--name", "bad", "--setup", &setup, "--", "echo", "ran"]);
    assert!(!ran.status.success(), "{ran:?}");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(printed.contains("setup failed with exit code 3") && !printed.contains("\nran"));
    assert_eq!(server.job("bad")["exit"]["code"], 3);
    fs::write(&marker, "").unwrap();
    let ran =
        server.berth(&["run", "-y", "--name", "good", "--setup", &setup, "--", "echo", "ran"]);
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("done now"), "{ran:?}");
}

#[test]
fn a_snapshot_that_was_not_used_for_30_days_is_removed_and_that_of_a_held_job_stays() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    let id_of = |job: &str| {
        let file = server.run_ok(&["describe", job, "-o", "json"]);
        let at = file.find("sha256:").expect("the job has a snapshot");
        file[at..at + 71].to_owned()
    };
    write(folder, "train.sh", "echo held");
    let job = ["run", "-d", "-y", "--name", "held", "--hold", "--code", "."];
    server.run_ok(&[&job[..], &["--", "bash", "train.sh"]].concat());
    write(folder, "train.sh", "echo over");
    run(&server, "over", &["--", "bash", "train.sh"]);
    let (held, over) = (id_of("held"), id_of("over"));
    // As if both were from 31 days ago.
    sql(&server, "UPDATE blob_names SET created = created - 2678400000 WHERE kind = 'code'");
    write(folder, "train.sh", "echo third");
    run(&server, "third", &["--", "bash", "train.sh"]);
    let token = server.token();
    let status = |id: &str| {
        let request = Request::new("GET", format!("/v1/code/default/{id}")).token(Some(&token));
        request.send(&server.url).status
    };
    assert_eq!((status(&held), status(&over), status(&id_of("third"))), (200, 404, 200));
    let audit = server.get("/v1/audit?limit=1000").to_string();
    assert!(audit.contains("code_delete"), "{audit}");
    server.run_ok(&["resume", "held"]);
    until("the held job ends", || state(&server, "held") == "done");
}
