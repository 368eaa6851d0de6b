//! Versions of data: pushed by Berth's own command, compared, removed, and given to jobs.

use super::http::{Answer, Request};
use super::people::People;
use super::server::{Server, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../../docs/data.md");

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn put(server: &Server, token: &str, path: &str, body: &str) -> Answer {
    let request = Request::new("PUT", format!("/v1/dvc/{path}")).token(Some(token));
    request.body("application/octet-stream", body).send(&server.url)
}

fn said(server: &Server, args: &[&str]) -> String {
    let ran = server.berth(args);
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    format!("{out}{err}")
}

fn metric(server: &Server, name: &str) -> u64 {
    let token = server.token();
    let page = Request::new("GET", "/metrics").token(Some(&token)).send(&server.url).body;
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {page}")).trim().parse().unwrap()
}

#[test]
fn a_version_is_pushed_compared_fetched_and_removed() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    for (path, text) in
        [("corpus/a.txt", "alpha"), ("corpus/sub/b.txt", "beta"), ("corpus/same", "alpha")]
    {
        write(folder, path, text);
    }
    let pushed = said(&server, &["data", "push", "corpus", "c4@v1", "--note", "raw"]);
    assert!(
        pushed.contains("Sending 2 of 3 files") && pushed.contains("c4@v1: 3 files"),
        "{pushed}"
    );
    let again = said(&server, &["data", "push", "corpus", "c4@v1"]);
    assert!(!again.contains("Sending"), "what is there is not sent again: {again}");
    write(folder, "corpus/a.txt", "alpha, changed");
    fs::remove_file(folder.join("corpus/same")).unwrap();
    write(folder, "corpus/new", "gamma");
    let other = server.berth(&["data", "push", "corpus", "c4@v1"]);
    assert!(!other.status.success(), "a version never changes");
    let named: Value =
        serde_json::from_str(&server.run_ok(&["data", "push", "corpus", "c4", "-o", "json"]))
            .unwrap();
    assert_eq!((&named["version"], &named["parent"]), (&json!(2), &json!(1)), "{named}");
    let diff: Value =
        serde_json::from_str(&server.run_ok(&["data", "diff", "c4@v1", "c4@v2", "-o", "json"]))
            .unwrap();
    assert_eq!(diff["added"]["paths"], json!(["new"]));
    assert_eq!(diff["removed"]["paths"], json!(["same"]));
    assert_eq!(diff["changed"]["paths"], json!(["a.txt"]));
    assert_eq!(server.run_ok(&["data", "ls", "-o", "name"]), "c4@v2\nc4@v1\n");
    let shown = server.run_ok(&["data", "show", "c4@v1", "--files"]);
    assert!(shown.contains("sub/b.txt") && shown.contains("raw"), "{shown}");
    server.run_ok(&["data", "get", "c4@v1", "back"]);
    assert_eq!(fs::read_to_string(folder.join("back/a.txt")).unwrap(), "alpha");
    assert_eq!(fs::read_to_string(folder.join("back/sub/b.txt")).unwrap(), "beta");
    // Without `dvc:` it is a volume, which would be empty.
    let slip = said(&server, &["run", "-d", "--data", "/data=c4", "--", "true"]);
    assert!(slip.contains("write `dvc:c4` for the data"), "{slip}");
    server.run_ok(&["data", "rm", "c4@v1", "-y"]);
    let gone = server.berth(&["data", "show", "c4@v1"]);
    assert_eq!(gone.status.code(), Some(4), "{gone:?}");
    let dry = server.run_ok(&["data", "clean", "--older-than", "0s", "--dry-run"]);
    // The list of version 1, and `alpha`.
    assert!(dry.contains("Would delete 2 objects"), "{dry}");
}

#[test]
fn what_is_not_what_its_name_says_is_refused_and_nothing_of_it_is_kept() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let good = "vision/files/md5/f5/9dcd306ec32930f1e78a1d82280b48";
    let wrong = put(&people.server, &people.kim, good, "not packed");
    assert_eq!((wrong.status, wrong.code().as_deref()), (400, Some("BRT0003")), "{wrong:?}");
    assert!(wrong.body.contains("has the MD5 sum"), "{wrong:?}");
    let get = |token: &str| people.get(token, &format!("/v1/dvc/{good}")).status;
    assert_eq!(get(&people.kim), 404);
    assert_eq!(put(&people.server, &people.kim, good, "packed").status, 200);
    assert_eq!((get(&people.kim), get(&mia)), (200, 404), "what is another team's is not there");
    assert_eq!(put(&people.server, &mia, good, "packed").status, 404);
    let viv = people.join("viv", "vision", "viewer");
    assert_eq!(put(&people.server, &viv, good, "packed").status, 403);
    for odd in ["vision/files/md5/..", "vision/x", "vision/files/md5/f5/zz"] {
        assert_eq!(put(&people.server, &people.kim, odd, "packed").status, 404, "{odd}");
    }
    // A folder whose files are not there is no version.
    let list = r#"[{"md5": "0cc175b9c0f1b6a831c399e269772661", "relpath": "a"}]"#;
    let path = "vision/files/md5/1f/27c3ca73104c7d89cc2ade3105e8c6.dir";
    let sent = put(&people.server, &people.kim, path, list);
    let hash = match sent.status {
        200 => "1f27c3ca73104c7d89cc2ade3105e8c6.dir".to_owned(),
        _ => {
            // The refusal says what the list really is.
            let sum = sent.body.split("MD5 sum ").nth(1).unwrap()[..32].to_owned();
            let path = format!("vision/files/md5/{}/{}.dir", &sum[..2], &sum[2..]);
            assert_eq!(put(&people.server, &people.kim, &path, list).status, 200);
            format!("{sum}.dir")
        }
    };
    let wish = json!({ "version": "c4@v1", "hash": hash });
    let named = people.ask(&people.kim, "POST", "/v1/data/vision", &wish);
    assert_eq!((named.status, named.code().as_deref()), (409, Some("BRT0011")), "{named:?}");
    assert!(named.body.contains("1 of 1 files"), "{named:?}");
}

#[test]
fn a_job_has_the_data_that_it_was_submitted_with_and_the_next_copies_nothing() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let folder = server.work.path();
    write(folder, "corpus/a.txt", "alpha");
    write(folder, "corpus/sub/b.txt", "beta");
    server.run_ok(&["data", "push", "corpus", "c4@v1"]);
    let run = |name: &str, data: &str, command: &str| {
        let file = format!("name: {name}\ndata: {{/data: '{data}'}}\nrun: |\n  {command}\n");
        write(folder, "job.yaml", &file);
        let ran = server.berth(&["run", "-y", "-f", "job.yaml"]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let command = "cat /data/a.txt /data/sub/b.txt; echo x > /data/a.txt || exit 7";
    let (code, out, _) = run("first", "dvc:c4", command);
    assert!(out.contains("alphabeta"), "{out}");
    assert_eq!(code, Some(7), "nobody writes to data");
    assert_eq!(metric(&server, "berth_data_fetched_total"), 1);
    let copied = metric(&server, "berth_data_copied_bytes_total");
    write(folder, "corpus/a.txt", "another alpha");
    server.run_ok(&["data", "push", "corpus", "c4@v2"]);
    let (_, out, _) = run("second", "dvc:c4@v1", "cat /data/a.txt");
    assert!(out.contains("alpha") && !out.contains("another"), "{out}");
    assert_eq!(metric(&server, "berth_data_fetched_total"), 1, "it was there");
    assert_eq!(metric(&server, "berth_data_found_total"), 1);
    assert_eq!(metric(&server, "berth_data_copied_bytes_total"), copied);
    // `corpus` has two files with 5 and 4 bytes.
    write(folder, "held.yaml", "name: held\ndata: {/data: 'dvc:c4@v1'}\nrun: 'true'\n");
    server.run_ok(&["run", "-y", "-d", "--hold", "-f", "held.yaml"]);
    let why = server.run_ok(&["why", "held"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("among equal places it prefers nodes with its data:"), "{why}");
    assert!(why.contains("has 9 B of its data"), "{why}");
    let (_, out, _) = run("newest", "dvc:c4", "cat /data/a.txt");
    assert!(out.contains("another alpha"), "{out}");
    let (code, _, why) = run("third", "dvc:c5@v1", "true");
    assert_eq!(code, Some(125), "{why}");
    assert!(why.contains("did you mean `c4`?") && why.contains("berth data"), "{why}");
    let (_, _, why) = run("fourth", "dvc:c4@v9", "true");
    assert!(why.contains("the newest is 2"), "{why}");
    let (_, _, why) = run("fifth", "dvc:C4", "true");
    assert!(why.contains("data is named like"), "{why}");
}

#[test]
fn data_that_a_job_uses_is_not_removed() {
    let people = People::start("1xL4");
    let path = "vision/files/md5/f5/9dcd306ec32930f1e78a1d82280b48";
    assert_eq!(put(&people.server, &people.kim, path, "packed").status, 200);
    let wish = json!({ "version": "w@v1", "hash": "f59dcd306ec32930f1e78a1d82280b48" });
    assert_eq!(people.ask(&people.kim, "POST", "/v1/data/vision", &wish).status, 201);
    let file = "team: vision\ndata: {/data: 'dvc:w@v1'}\nrun: cat /data/w; sleep 600\n";
    let job = people.job(&people.kim, file);
    people.until_is(&job, "running");
    until("it has printed what the file has", || {
        people.server.run_ok(&["logs", &job]).contains("packed")
    });
    let refused = people.ask(&people.kim, "DELETE", "/v1/data/vision/w@v1", &json!({}));
    assert_eq!((refused.status, refused.code().as_deref()), (409, Some("BRT0013")), "{refused:?}");
    people.server.run_ok(&["stop", &job, "--now", "-y"]);
    people.until_is(&job, "cancelled");
    let removed = people.ask(&people.kim, "DELETE", "/v1/data/vision/w@v1", &json!({}));
    assert_eq!(removed.status, 204, "{removed:?}");
}

#[test]
fn a_team_stays_while_it_has_data() {
    let people = People::start("1xL4");
    let path = "vision/files/md5/f5/9dcd306ec32930f1e78a1d82280b48";
    assert_eq!(put(&people.server, &people.kim, path, "packed").status, 200);
    let wish = json!({ "version": "w@v1", "hash": "f59dcd306ec32930f1e78a1d82280b48" });
    assert_eq!(people.ask(&people.kim, "POST", "/v1/data/vision", &wish).status, 201);
    let refused = people.ask(&people.admin, "DELETE", "/v1/teams/vision", &json!({}));
    assert_eq!((refused.status, refused.code().as_deref()), (409, Some("BRT0013")), "{refused:?}");
    assert!(refused.body.contains("has data: w"), "{refused:?}");
    let removed = people.ask(&people.kim, "DELETE", "/v1/data/vision/w@v1", &json!({}));
    assert_eq!(removed.status, 204, "{removed:?}");
    people.admin("DELETE", "/v1/teams/vision", &json!({}));
}

#[test]
fn the_example_of_the_page_works() {
    let people = People::start("1xL4");
    people.admin("POST", "/v1/teams", &json!({ "name": "nlp" }));
    let folder = people.server.work.path();
    write(folder, "corpus/train.txt", "hello\n");
    let block = |kind: &str, at: usize| {
        PAGE.split(&format!("```{kind}\n")).nth(at).unwrap().split("```").next().unwrap()
    };
    write(folder, "train.yaml", block("yaml", 1));
    let mut printed = String::new();
    for line in block("sh", 1).lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        printed.push_str(&people.server.run_ok(&words));
    }
    for line in block("text", 1).lines() {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
