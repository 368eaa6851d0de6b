//! Attempts over HTTP by a researcher of another team. The matrix tries every route for every role;
//! here are the ways around it.

use super::stage::{As, SECRET, Stage};
use crate::machine::http::Request;
use serde_json::{Value, json};

/// What mallory asks for.
struct Attempt {
    method: &'static str,
    path: String,
    kind: &'static str,
    body: String,
    headers: Vec<(&'static str, String)>,
}

fn ask(method: &'static str, path: &str) -> Attempt {
    let (path, body, headers) = (path.to_owned(), String::new(), Vec::new());
    Attempt { method, path, kind: "application/json", body, headers }
}

impl Attempt {
    fn json(self, body: &Value) -> Attempt {
        Attempt { body: body.to_string(), ..self }
    }

    fn yaml(self, body: &str) -> Attempt {
        Attempt { kind: "application/yaml", body: body.to_owned(), ..self }
    }

    fn header(mut self, name: &'static str, value: &str) -> Attempt {
        self.headers.push((name, value.to_owned()));
        self
    }
}

fn submit(lines: &str) -> Attempt {
    ask("POST", "/v1/jobs").yaml(&format!("name: sly\n{lines}run: 'true'\n"))
}

fn attempts(stage: &Stage) -> Vec<Attempt> {
    let job = format!("/v1/jobs/{}", stage.victim);
    let at_job = |rest: &str| format!("{job}{rest}");
    vec![
        // Another team's job.
        ask("GET", &job),
        ask("GET", "/v1/jobs/victim"),
        ask("GET", &at_job("/file")),
        ask("GET", &at_job("/logs")),
        ask("GET", &at_job("/logs?follow=true")),
        ask("GET", &at_job("/why")),
        ask("GET", &at_job("/attempts")),
        ask("GET", &at_job("/figures")),
        ask("GET", &at_job("/shell"))
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ask("POST", &at_job("/stop")).json(&json!({ "now": true })),
        ask("POST", &at_job("/pause")).json(&json!({})),
        ask("PATCH", &job).json(&json!({ "team": "red" })),
        ask("PATCH", &job).json(&json!({ "priority": "low" })),
        ask("POST", &at_job("/clone")).json(&json!({ "file": "team: red\n" })),
        ask("POST", &at_job("/clone")).json(&json!({ "resume": true })),
        ask("GET", &at_job("%2Ffile")),
        ask("GET", &format!("/v1/./jobs/../jobs/{}/file", stage.victim)),
        ask("GET", &format!("//v1/jobs/{}", stage.victim)),
        // More than one's share.
        submit("team: red\npriority: 2147483647\n"),
        submit("team: red\npriority: critical\n"),
        submit("team: red\npriority: system\n"),
        submit("team: blue\n"),
        submit("team: red\nuser: bob\n"),
        submit("team: red\nafter: [victim]\n"),
        submit(&format!("team: red\nafter: [{}]\n", stage.victim)),
        submit("team: red\nsecrets: {KEY: key}\n"),
        submit("team: red\nsecrets: {KEY: blue/key}\n"),
        submit("team: red\nenv: {BERTH_TOKEN: x, LD_PRELOAD: /x}\nranks: 0\n"),
        // More rights.
        ask("POST", "/v1/tokens").json(&json!({ "name": "x", "user": "bob", "scope": "all" })),
        ask("POST", "/v1/tokens").json(&json!({ "name": "x", "user": "ada", "scope": "all" })),
        ask("POST", "/v1/users").json(&json!({ "name": "eve", "cluster_role": "admin" })),
        ask("PUT", "/v1/teams/red/members/mallory").json(&json!({ "role": "team_lead" })),
        ask("PUT", "/v1/teams/blue/members/mallory").json(&json!({ "role": "viewer" })),
        ask("DELETE", "/v1/teams/blue/members/bob"),
        ask("GET", "/v1/teams/blue/members"),
        ask("PUT", "/v1/secrets/blue/key").json(&json!({ "value": "x" })),
        ask("DELETE", "/v1/secrets/blue/key"),
        ask("PUT", "/v1/secrets/..%2Fblue/key").json(&json!({ "value": "x" })),
        ask("PUT", "/v1/budgets/red").json(&json!({
            "limit_micros": 9_000_000_000_i64, "per": "month", "action": "notify",
        })),
        ask("POST", "/v1/apply").yaml("kind: team\nname: red\nquota: {gpus: 64}\n"),
        ask("POST", "/v1/nodes/box/drain").json(&json!({})),
        ask("GET", "/v1/audit"),
        ask("POST", "/v1/audit/rotate-key").json(&json!({})),
        ask("GET", "/v1/world"),
        ask("POST", "/v1/backup").json(&json!({})),
        ask("PUT", "/v1/templates/sly").json(&json!({ "team": "blue", "file": "run: x" })),
        // What a proxy in front of others believes.
        ask("GET", &job).header("x-forwarded-user", "ada"),
        ask("GET", &job).header("x-original-url", "/v1/jobs"),
        ask("GET", &job).header("x-http-method-override", "DELETE"),
        ask("GET", &job).header("x-remote-user", "ada"),
    ]
}

fn attack(who: As) {
    let Some(stage) = Stage::set(who, &[]) else { return };
    let admin = stage.server.token();
    let state = || {
        let get = |path: &str| stage.server.get(path);
        let head = get("/v1/audit?limit=1&refused=false")["rows"][0]["hash"].clone();
        (head, get(&format!("/v1/jobs/{}", stage.victim))["state"].clone())
    };
    let before = state();
    let all = attempts(&stage);
    assert!(all.len() >= 40, "{} attempts", all.len());
    for attempt in all {
        let Attempt { method, path, kind, body, headers } = attempt;
        let told = format!("{method} {path} {headers:?} {body}");
        let mut request = Request::new(method, path).token(Some(&stage.token)).body(kind, body);
        request.headers.extend(headers);
        let answer = request.send(&stage.server.url);
        assert!((400..500).contains(&answer.status), "{told}: {answer:?}");
        for kept in [SECRET, &admin, "sleep 10000", stage.home().to_str().unwrap()] {
            assert!(!answer.body.contains(kept), "{told} shows {kept}: {answer:?}");
        }
        assert_eq!(state(), before, "{told} changed something");
    }
    // A list leaves out what one may not see, and says nothing of it.
    let lists = ["jobs", "jobs?name=victim", "secrets", "cost?by=job", "tokens", "users"];
    for list in lists {
        let request = Request::new("GET", format!("/v1/{list}")).token(Some(&stage.token));
        let answer = request.send(&stage.server.url);
        for kept in ["victim", "\"key\"", "\"bob\""] {
            assert!(!answer.body.contains(kept), "{list} shows {kept}: {answer:?}");
        }
    }
}

#[test]
fn no_request_of_a_researcher_reaches_another_teams_things_or_more_rights() {
    attack(As::Us);
}

#[test]
fn no_request_reaches_them_where_the_server_is_an_ordinary_user() {
    attack(As::Ordinary);
}
