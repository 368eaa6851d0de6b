//! A job's token of its own: what `berth` can do inside a job, and what nobody can do with it.

use super::people::People;
use super::server::{Server, certificate_and_key, until};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Waits, and leaves its token where the test finds it. It has no other way to the server.
const SHOWS_ITS_TOKEN: &str = "cp $BERTH_TOKEN_FILE token; echo $BERTH_TOKEN > first; sleep 600";

/// The home of whoever started the server is not there for the jobs of these tests.
const NOWHERE: &str = "env: {HOME: /nowhere}\n";

fn folder(people: &People, job: &str) -> PathBuf {
    people.server.home.path().join("jobs").join(job)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Files in which the server keeps the token of a job.
fn kept(people: &People, job: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(people, job)).expect("the folder of the job");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_token = |path: &PathBuf| path.display().to_string().contains(".berth-token-");
    paths.filter(is_token).collect()
}

/// A job of a team that runs, and its token.
fn job_with_token(people: &People, user: &str, team: &str) -> (String, String) {
    let file = format!("team: {team}\n{NOWHERE}run: |\n  {SHOWS_ITS_TOKEN}\n");
    let job = people.job(user, &file);
    let first = folder(people, &job).join("first");
    until("the job shows its token", || !read(&first).is_empty());
    let token = read(&folder(people, &job).join("token"));
    assert!(token.starts_with("brj_"), "{token}");
    (job, token)
}

#[test]
fn berth_works_inside_a_job_without_anybody_s_token() {
    let people = People::start("1xL4");
    let script = "set -ex\n  berth whoami -o json\n  berth ps -o json > seen.json\n  \
         berth run -d --name child -- sleep 600\n  \
         until berth ps child | grep -qi running; do sleep 0.1; done\n  \
         berth stop child\n  berth wait child || true\n  \
         if berth token list; then exit 9; fi\n  if berth secret list; then exit 8; fi";
    let file = format!("team: vision\nname: parent\n{NOWHERE}run: |\n  {script}\n");
    let job = people.job(&people.kim, &file);
    until("the job is over", || people.server.job(&job)["ended"] != json!(null));
    let log = people.server.run_ok(&["logs", &job]);
    assert_eq!(people.server.job(&job)["state"], "done", "{log}");
    let child = people.server.job("child");
    assert_eq!((&child["user"], &child["team"]), (&json!("kim"), &json!("vision")), "{child}");
    assert_eq!(child["labels"]["berth.dev/parent"], job, "{child}");
    assert!(read(&folder(&people, &job).join("seen.json")).contains("parent"));
    // Nobody's list fills with them, and none is left.
    let tokens = people.get(&people.admin, "/v1/tokens").body;
    assert!(!tokens.contains("job"), "{tokens}");
    until("its token is gone", || kept(&people, &job).is_empty());
    // What it did is on record as its own doing.
    let rows = people.get(&people.admin, "/v1/audit?what=submit_job&who=kim").json();
    assert_eq!(rows["rows"][0]["token"], format!("job-{job}"), "{rows}");
}

#[test]
fn a_job_may_do_less_than_its_user_and_nothing_outside_its_team() {
    let people = People::start("2xL4");
    let other = people.job(&people.admin, "team: audio\nname: other\nhold: true\nrun: 'true'\n");
    let sibling = people.job(&people.admin, "team: vision\nhold: true\nrun: 'true'\n");
    // Even the job of an admin.
    let (job, token) = job_with_token(&people, &people.admin, "vision");
    let status = |method: &str, path: &str, body: serde_json::Value| {
        people.ask(&token, method, path, &body).status
    };
    assert_eq!(people.get(&token, &format!("/v1/jobs/{job}")).status, 200);
    assert_eq!(people.get(&token, &format!("/v1/jobs/{sibling}")).status, 200);
    assert_eq!(people.get(&token, &format!("/v1/jobs/{other}")).status, 404);
    let seen = people.get(&token, "/v1/jobs").json();
    assert_eq!(seen["jobs"].as_array().unwrap().len(), 2, "{seen}");
    for (method, path, body) in [
        ("GET", "/v1/tokens".to_owned(), json!({})),
        ("POST", "/v1/tokens".to_owned(), json!({ "name": "more", "scope": "read" })),
        ("GET", "/v1/secrets".to_owned(), json!({})),
        ("PUT", "/v1/secrets/vision/key".to_owned(), json!({ "value": "hush" })),
        ("GET", "/v1/users".to_owned(), json!({})),
        ("GET", "/v1/audit".to_owned(), json!({})),
        ("PUT", "/v1/teams/vision/members/kim".to_owned(), json!({ "role": "admin" })),
        ("POST", "/v1/nodes/box/drain".to_owned(), json!({})),
        ("POST", "/v1/apply".to_owned(), json!({ "documents": "{kind: queue, name: q}" })),
        ("POST", format!("/v1/jobs/{sibling}/stop"), json!({})),
        ("PATCH", format!("/v1/jobs/{sibling}"), json!({ "priority": "low" })),
        ("PATCH", format!("/v1/jobs/{job}"), json!({ "priority": "critical" })),
        ("GET", format!("/v1/jobs/{job}/shell"), json!({})),
        ("PUT", "/v1/templates/mine".to_owned(), json!({ "team": "vision", "file": "run: x" })),
    ] {
        assert_eq!(status(method, &path, body), 403, "{method} {path}");
    }
    for file in [
        "team: audio\nrun: 'true'\n",
        "priority: critical\nrun: 'true'\n",
        "schedule: '@daily'\nrun: 'true'\n",
    ] {
        assert_eq!(people.submit(&token, file).status, 403, "{file}");
    }
    // Nobody says of a job that it is another's child.
    let forged = format!("team: vision\nlabels: {{berth.dev/parent: '{job}'}}\nrun: x\n");
    assert_eq!(people.submit(&people.admin, &forged).status, 400);
    let child = people.job(&token, "hold: true\nrun: 'true'\n");
    assert_eq!(status("POST", &format!("/v1/jobs/{child}/stop"), json!({})), 200);
    assert_eq!(status("POST", &format!("/v1/jobs/{job}/stop"), json!({ "now": true })), 200);
    people.until_is(&job, "cancelled");
    let ended = people.get(&token, "/v1/me");
    assert_eq!((ended.status, ended.code().as_deref()), (401, Some("BRT0005")), "{ended:?}");
}

#[test]
fn a_job_s_token_ends_with_what_its_user_may_do() {
    let people = People::start("1xL4");
    let (_, token) = job_with_token(&people, &people.kim, "vision");
    let submit = || people.submit(&token, "hold: true\nrun: 'true'\n").status;
    assert_eq!(submit(), 201);
    people.give("kim", "vision", "viewer");
    assert_eq!((submit(), people.get(&token, "/v1/jobs").status), (403, 200));
    people.take("kim", "vision");
    assert_eq!((submit(), people.get(&token, "/v1/jobs").status), (401, 401));
    people.give("kim", "vision", "researcher");
    assert_eq!(submit(), 201);
    people.admin("DELETE", "/v1/users/kim?force=true", &json!({}));
    assert_eq!(submit(), 401);
}

#[test]
fn the_token_of_a_job_is_renewed_in_its_file_and_kept_nowhere_else() {
    let mut people = People::start("1xL4");
    let (job, token) = job_with_token(&people, &people.kim, "vision");
    let file = kept(&people, &job).pop().expect("the file with its token");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let signature = token.rsplit_once('_').expect("a signature").1;
    let home = people.server.home.path().to_owned();
    let found = std::process::Command::new("grep")
        .args(["-rl", "--exclude-dir=jobs", signature, home.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    // A server that starts looks after the jobs it finds. A link in place of the file is not followed.
    people.server.kill();
    let elsewhere = home.join("elsewhere");
    std::fs::write(&elsewhere, "as it was").unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    people.server.start_again();
    until("the token is renewed", || read(&file).starts_with("brj_") && read(&file) != token);
    assert_eq!(read(&elsewhere), "as it was");
    for token in [&token, &read(&file)] {
        assert_eq!(people.get(token, "/v1/me").status, 200);
    }
}

#[test]
fn a_server_whose_certificate_and_key_are_one_file_gives_jobs_the_certificate_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate_and_key(folder.path()) else { return };
    let both = folder.path().join("both.pem").display().to_string();
    std::fs::write(&both, [read(key.as_ref()), read(certificate.as_ref())].join("\n")).unwrap();
    let server = Server::start(&["--gpus", "1xL4", "--tls-cert", &both, "--tls-key", &both]);
    server.run_ok(&["run", "--name", "looks", "--", "bash", "-c", "cat $BERTH_CA"]);
    let log = server.run_ok(&["logs", "looks"]);
    assert!(log.contains("BEGIN CERTIFICATE") && !log.contains("PRIVATE KEY"), "{log}");
    let jobs = server.home.path().join("jobs");
    let found = std::process::Command::new("grep").args(["-rl", "PRIVATE KEY"]).arg(jobs).output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
}
