//! Named volumes on one machine: who sees, makes and deletes which.

use super::http::Answer;
use super::people::People;
use super::server::{Server, until};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../../docs/volumes.md");

impl People {
    fn volume(&self, token: &str, method: &str, path: &str) -> Answer {
        self.ask(token, method, &format!("/v1/volumes/{path}"), &json!({}))
    }

    fn volumes(&self, token: &str) -> Vec<Value> {
        let answer = self.get(token, "/v1/volumes");
        assert!(answer.is_good(), "{answer:?}");
        answer.json()["items"].as_array().expect("a list").clone()
    }

    fn names(&self, token: &str) -> Vec<String> {
        let name = |one: &Value| format!("{}/{}", text(&one["team"]), text(&one["name"]));
        self.volumes(token).iter().map(name).collect()
    }

    fn folder(&self, team: &str, name: &str) -> PathBuf {
        self.server.home.path().join("team-volumes").join(team).join(name)
    }

    fn metrics(&self) -> String {
        self.get(&self.admin, "/metrics").body
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn refused(answer: &Answer, status: u16, code: &str) {
    let found = (answer.status, answer.code());
    assert_eq!(found, (status, Some(code.to_owned())), "{answer:?}");
}

/// A job of team vision that uses the volume `data`.
fn uses(run: &str) -> String {
    format!("team: vision\nvolumes: {{/data: data}}\n{run}\n")
}

#[test]
fn a_lead_makes_and_deletes_a_volume_which_its_team_sees_and_no_other() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let viv = people.join("viv", "vision", "viewer");
    let made = people.volume(&people.lea, "PUT", "vision/data");
    assert_eq!((made.status, made.json()["files"].as_u64()), (200, Some(0)), "{made:?}");
    let again = people.volume(&people.lea, "PUT", "vision/data");
    assert_eq!(again.json(), made.json(), "making it twice makes it once");
    for token in [&people.kim, &people.lea, &viv, &people.admin] {
        assert_eq!(people.names(token), ["vision/data"]);
    }
    for token in [&people.kim, &viv] {
        refused(&people.volume(token, "PUT", "vision/more"), 403, "BRT0006");
        refused(&people.volume(token, "DELETE", "vision/data"), 403, "BRT0006");
    }
    // Somebody of another team sees nothing, and cannot tell what is there from what is not.
    assert_eq!(people.names(&mia), [""; 0]);
    assert_eq!(people.get(&mia, "/v1/volumes?team=vision").json(), json!({ "items": [] }));
    let (there, not) = (
        people.volume(&mia, "DELETE", "vision/data"),
        people.volume(&mia, "DELETE", "vision/nothing"),
    );
    refused(&there, 403, "BRT0006");
    refused(&not, 403, "BRT0006");
    assert_eq!(there.json()["detail"], not.json()["detail"]);
    refused(&people.volume(&people.lea, "PUT", "audio/data"), 403, "BRT0006");
    refused(&people.volume(&people.lea, "PUT", "nobody/data"), 404, "BRT0009");
    refused(&people.volume(&people.lea, "DELETE", "vision/nothing"), 404, "BRT0009");
    assert_eq!(people.volume(&people.lea, "DELETE", "vision/data").status, 204);
    assert_eq!(people.names(&people.admin), [""; 0]);
    let audit = people.get(&people.admin, "/v1/audit?limit=100&refused=false").json();
    let rows = audit["rows"].as_array().expect("rows").iter();
    let told: Vec<(&str, &str)> = rows
        .filter(|row| text(&row["what"]).ends_with("_volume"))
        .map(|row| (text(&row["what"]), text(&row["target"])))
        .collect();
    let target = "volume data of vision";
    assert_eq!(told, [("delete_volume", target), ("create_volume", target)]);
}

#[test]
fn names_that_are_no_folder_of_the_team_are_refused() {
    let people = People::start("1xL4");
    people.volume(&people.admin, "PUT", "audio/data");
    let long = "x".repeat(300);
    for name in ["%2e%2e%2fx", "..%2faudio%2fdata", "%2e%2e", ".x", ".removed", "a%20b", &long] {
        for method in ["PUT", "DELETE"] {
            let answer = people.volume(&people.admin, method, &format!("vision/{name}"));
            refused(&answer, 400, "BRT0003");
        }
    }
    refused(&people.volume(&people.admin, "PUT", "vision/"), 404, "BRT0010");
    for team in ["..", "%2e%2e", "..%2fjobs", ".removed"] {
        for method in ["PUT", "DELETE"] {
            let answer = people.volume(&people.admin, method, &format!("{team}/data"));
            assert_eq!(answer.status, 404, "{team}: {answer:?}");
        }
    }
    assert_eq!(people.names(&people.admin), ["audio/data"]);
}

#[test]
fn a_volume_that_a_job_uses_is_not_deleted_and_one_that_runs_never_loses_it() {
    let people = People::start("1xL4");
    let runs = people.job(&people.kim, &uses("gpus: 1\nrun: 'echo mine > /data/x; sleep 1000'"));
    people.until_is(&runs, "running");
    until("the job has written", || people.folder("vision", "data").join("x").exists());
    let waits = people.job(&people.kim, &uses("gpus: 1\nrun: 'ls /data | wc -l'"));
    let listed = &people.volumes(&people.kim)[0];
    assert_eq!((&listed["jobs"], &listed["job_count"]), (&json!([runs, waits]), &json!(2)));
    assert_eq!((&listed["files"], &listed["partial"]), (&json!(1), &json!(false)));
    assert!(listed["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{listed}");
    for path in ["vision/data", "vision/data?force=true"] {
        let answer = people.volume(&people.lea, "DELETE", path);
        refused(&answer, 409, "BRT0013");
        assert!(answer.body.contains(&format!("job {runs}")), "{answer:?}");
    }
    refused(&people.ask(&people.admin, "DELETE", "/v1/teams/vision", &json!({})), 409, "BRT0013");
    // The one that waits keeps its volume too, unless somebody insists.
    people.admin("POST", &format!("/v1/jobs/{waits}/pause"), &json!({}));
    people.admin("POST", &format!("/v1/jobs/{runs}/stop"), &json!({ "now": true }));
    people.until_is(&runs, "cancelled");
    refused(&people.volume(&people.lea, "DELETE", "vision/data"), 409, "BRT0013");
    assert!(people.folder("vision", "data").join("x").exists());
    assert_eq!(people.volume(&people.lea, "DELETE", "vision/data?force=true").status, 204);
    assert_eq!(people.names(&people.lea), [""; 0]);
    people.admin("POST", &format!("/v1/jobs/{waits}/resume"), &json!({}));
    people.until_is(&waits, "done");
    assert_eq!(people.server.run_ok(&["logs", &waits]).trim(), "0", "it found an empty one");
    assert_eq!(people.names(&people.lea), ["vision/data"]);
}

#[test]
fn links_that_a_job_put_into_a_volume_are_followed_by_nobody() {
    let people = People::start("1xL4");
    let outside = tempfile::tempdir().expect("a folder");
    let large = outside.path().join("large");
    std::fs::write(&large, vec![b'x'; 1 << 20]).expect("it can be written");
    let line = format!(
        "cd /data; ln -s {0} folder; ln -s {0}/large file; mkdir deep; ln -s / deep/root",
        outside.path().display()
    );
    let job = people.job(&people.kim, &uses(&format!("run: '{line}'")));
    people.until_is(&job, "done");
    let listed = &people.volumes(&people.kim)[0];
    assert_eq!((&listed["files"], &listed["job_count"]), (&json!(3), &json!(0)));
    assert!(listed["bytes"].as_u64().is_some_and(|bytes| bytes < 1 << 20), "{listed}");
    assert_eq!(people.volume(&people.lea, "DELETE", "vision/data").status, 204);
    let removed = people.folder("vision", ".removed");
    until("all of it is gone", || !removed.exists() && !people.folder("vision", "data").exists());
    assert_eq!(std::fs::read(&large).expect("it is there").len(), 1 << 20);
}

#[test]
fn a_team_with_volumes_stays_and_volumes_of_a_team_that_is_gone_are_an_admins() {
    let people = People::start("1xL4");
    people.volume(&people.lea, "PUT", "vision/data");
    let answer = people.ask(&people.admin, "DELETE", "/v1/teams/vision", &json!({}));
    refused(&answer, 409, "BRT0013");
    assert!(answer.body.contains("has volumes: data"), "{answer:?}");
    people.volume(&people.lea, "DELETE", "vision/data");
    people.admin("DELETE", "/v1/teams/vision", &json!({}));
    // As an earlier version left it.
    std::fs::create_dir_all(people.folder("vision", "old")).expect("it can be made");
    symlink("/", people.folder("vision", "link")).expect("it can be made");
    assert_eq!(people.names(&people.admin), ["vision/link", "vision/old"]);
    assert_eq!(people.names(&people.lea), [""; 0]);
    refused(&people.volume(&people.lea, "DELETE", "vision/old"), 404, "BRT0009");
    for name in ["vision/old", "vision/link"] {
        assert_eq!(people.volume(&people.admin, "DELETE", name).status, 204);
    }
    assert_eq!(people.names(&people.admin), [""; 0]);
    assert!(Path::new("/usr").exists());
}

#[test]
fn figures_tell_how_many_volumes_a_team_has_and_what_each_takes() {
    let mut people = People::start("1xL4");
    people.volume(&people.lea, "PUT", "vision/data");
    let file = people.folder("vision", "data").join("file");
    std::fs::write(file, vec![b'x'; 1 << 20]).expect("it can be written");
    // They are looked at once a minute, and soon after the start.
    people.server.stop();
    people.server.start_again();
    until("the volume was measured", || {
        let metrics = people.metrics();
        let figure = |name: &str| {
            let line = metrics.lines().find(|line| line.starts_with(name))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        figure("berth_volumes{team=\"vision\"}") == Some(1.0)
            && figure("berth_volume_bytes{team=\"vision\",volume=\"data\"}")
                .is_some_and(|bytes| bytes >= f64::from(1 << 20))
    });
}

/// The commands of a block of the page, a line each.
fn commands(nth: usize) -> impl Iterator<Item = Vec<&'static str>> {
    let block = PAGE.split("```sh\n").nth(nth + 1).expect("a block of commands");
    let lines = block.split("```").next().expect("a block ends").lines();
    let lines = lines.filter_map(|line| line.strip_prefix("berth "));
    lines.map(|line| line.split('#').next().unwrap_or(line).split_whitespace().collect())
}

#[test]
fn the_example_of_the_page_does_what_it_says() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["team", "add", "nlp"]);
    let job = PAGE.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    std::fs::write(server.work.path().join("prepare.yaml"), job.expect("a job file")).unwrap();
    let mut printed = Vec::new();
    for command in commands(0) {
        printed.push(server.run_ok(&command));
    }
    let said = printed.join("");
    let expect = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    for line in expect.expect("what it prints").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_said = |shown: &str| shown.split_whitespace().collect::<Vec<_>>() == words;
        assert!(said.lines().any(is_said), "no {line:?} in:\n{said}");
    }
    let listed = server.json(&["volume", "list"]);
    assert_eq!(listed["items"], json!([]));
}
