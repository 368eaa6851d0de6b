//! What people may do, and that it ends when they may not any more.

use super::http::{Answer, Request};
use super::people::People;
use super::server::until;
use serde_json::{Value, json};

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code().as_deref()), (status, Some(code)), "{answer:?}");
    assert_ne!(answer.json()["next"], "", "{answer:?}");
}

#[test]
fn a_priority_above_ones_right_is_refused_wherever_it_can_be_asked_for() {
    let people = People::start("1xL4");
    let file = |priority: &str| format!("priority: {priority}\nhold: true\nrun: 'true'\n");
    for priority in ["critical", "2147483647", "1000"] {
        for token in [&people.kim, &people.lea] {
            refused(&people.submit(token, &file(priority)), 403, "BRT0029");
            for path in ["/v1/jobs?dry_run=true", "/v1/plan"] {
                let request = Request::new("POST", path).token(Some(token));
                let answer = request.body("application/yaml", file(priority));
                refused(&answer.send(&people.server.url), 403, "BRT0029");
            }
        }
        people.job(&people.admin, &file(priority));
    }
    for priority in ["high", "low", "999", "-3"] {
        people.job(&people.kim, &file(priority));
    }
    // By a schedule, a change and a clone.
    let nightly = format!("schedule: '0 3 1 1 *'\n{}", file("critical"));
    refused(&people.submit(&people.kim, &nightly), 403, "BRT0029");
    let own = people.job(&people.kim, &file("normal"));
    for priority in ["critical", "2147483647"] {
        let wish = json!({ "priority": priority });
        let answer = people.ask(&people.kim, "PATCH", &format!("/v1/jobs/{own}"), &wish);
        refused(&answer, 403, "BRT0029");
    }
    assert_eq!(people.server.job(&own)["priority"], 50);
    let raised = people.job(&people.admin, &format!("team: vision\n{}", file("critical")));
    let clone = format!("/v1/jobs/{raised}/clone");
    refused(&people.ask(&people.kim, "POST", &clone, &json!({})), 403, "BRT0029");
    let lower = json!({ "file": "priority: high" });
    assert_eq!(people.ask(&people.kim, "POST", &clone, &lower).status, 201);
    // A job takes its priority along to another team.
    people.give("lea", "audio", "researcher");
    people.admin("PATCH", &format!("/v1/jobs/{own}"), &json!({ "priority": "critical" }));
    let path = format!("/v1/jobs/{own}");
    let moved = people.ask(&people.lea, "PATCH", &path, &json!({ "team": "audio" }));
    refused(&moved, 403, "BRT0029");
}

#[test]
fn a_team_can_be_given_other_classes_than_its_roles_have() {
    let people = People::start("1xL4");
    let apply = |documents: &str| {
        people.ask(&people.admin, "POST", "/v1/apply", &json!({ "documents": documents }))
    };
    let limits = "kind: queue\nname: vision\nclass_limit: {researcher: low, team_lead: critical}\n";
    assert_eq!(apply(limits).status, 200);
    refused(&people.submit(&people.kim, "priority: normal\nrun: 'true'\n"), 403, "BRT0029");
    let plain = people.job(&people.kim, "hold: true\nrun: 'true'\n");
    assert_eq!(people.server.job(&plain)["priority"], 10, "it named none, and gets what it may");
    people.job(&people.lea, "priority: critical\nhold: true\nrun: 'true'\n");
    let odd = apply("kind: queue\nname: vision\nclass_limit: {researcher: lo}\n");
    refused(&odd, 400, "BRT0021");
}

#[test]
fn why_proposes_nothing_that_the_asker_may_not_do() {
    let people = People::start("1xL4");
    let holds = people.job(&people.admin, "team: audio\ngpus: 1\nrun: sleep 600\n");
    people.until_is(&holds, "running");
    let waits = people.job(&people.kim, "gpus: 1\nrun: 'true'\n");
    let _ = people.join("vic", "vision", "viewer");
    let (_, vic) = people.new_token("vic", "read", None);
    let commands = |token: &str| -> Vec<String> {
        let why = people.get(token, &format!("/v1/jobs/{waits}/why")).json();
        let sooner = why["sooner"].as_array().unwrap_or_else(|| panic!("{why}")).clone();
        let text = |one: &Value| one["command"].as_str().unwrap_or("by no command").to_owned();
        sooner.iter().map(text).collect()
    };
    let critical = format!("berth set {waits} priority=critical");
    let of_admin = commands(&people.admin);
    assert!(of_admin.contains(&critical), "{of_admin:?}");
    for token in [&people.kim, &people.lea] {
        let own = commands(token);
        assert!(!own.contains(&critical), "{own:?}");
        assert!(!own.iter().any(|one| one.contains("team=audio")), "{own:?}");
    }
    assert_eq!(commands(&vic), Vec::<String>::new());
    // A job on hold is released by whoever may.
    let held = people.job(&people.kim, "hold: true\nrun: 'true'\n");
    let of = |token: &str| people.get(token, &format!("/v1/jobs/{held}/why")).json();
    assert_eq!(of(&people.kim)["sooner"][0]["command"], format!("berth resume {held}"));
    assert_eq!(of(&vic)["sooner"], json!([]));
}

#[test]
fn a_job_comes_after_no_job_that_its_user_may_not_see() {
    let people = People::start("1xL4");
    let hidden = people.job(&people.admin, "team: audio\nname: hidden\nrun: 'true'\n");
    people.until_is(&hidden, "done");
    for (there, missing) in [(hidden.as_str(), "4711"), ("hidden", "nowhere")] {
        for kind in ["ok", "any", "notok", "start"] {
            let after = |job: &str| format!("after: {{{kind}: [{job}]}}\nrun: 'true'\n");
            let (real, none) = (people.submit(&people.kim, &after(there)), after(missing));
            refused(&real, 404, "BRT0008");
            // It reads as if there were none.
            let none = people.submit(&people.kim, &none);
            let said = |body: &str| {
                let mut problem: Value = serde_json::from_str(body).expect("a problem");
                // Each request has a number of its own.
                problem.as_object_mut().expect("an object").remove("instance");
                problem.to_string()
            };
            assert_eq!(said(&real.body).replace(there, missing), said(&none.body));
        }
    }
    // A name stands for what one may see: here the own job, although another team's has ended badly.
    let bad = people.job(&people.admin, "team: audio\nname: prepare\nrun: 'false'\n");
    people.until_is(&bad, "failed");
    people.job(&people.kim, "name: prepare\nrun: 'true'\n");
    let next = people.job(&people.kim, "after: [prepare]\nrun: 'true'\n");
    people.until_is(&next, "done");
    let both = people.job(&people.admin, &format!("after: [{hidden}, {next}]\nrun: 'true'\n"));
    people.until_is(&both, "done");
}

fn schedule_of(people: &People, id: &str) -> Value {
    people.get(&people.admin, &format!("/v1/schedules/{id}")).json()
}

#[test]
fn a_schedule_is_paused_with_the_reason_when_its_owner_loses_the_right() {
    let people = People::start("1xL4");
    let yearly = "name: yearly\nteam: vision\nschedule: '0 3 1 1 *'\nrun: 'true'\n";
    let made = people.submit(&people.kim, yearly).json();
    let id = made["schedule"].as_str().unwrap().to_owned();
    people.give("kim", "vision", "viewer");
    until("the schedule is paused", || schedule_of(&people, &id)["paused"] == true);
    let shown = people.server.run_ok(&["schedule", "list"]);
    assert!(shown.contains("kim may not submit jobs of team vision any more"), "{shown}");
    let resume = format!("/v1/schedules/{id}/resume");
    refused(&people.ask(&people.lea, "POST", &resume, &json!({})), 403, "BRT0006");
    people.give("kim", "vision", "researcher");
    assert_eq!(people.ask(&people.lea, "POST", &resume, &json!({})).status, 200);
    assert_eq!(schedule_of(&people, &id)["reason"], Value::Null);
    people.take("kim", "vision");
    until("it is paused again", || schedule_of(&people, &id)["paused"] == true);
    people.give("kim", "vision", "researcher");
    assert_eq!(people.ask(&people.lea, "POST", &resume, &json!({})).status, 200);
    people.admin("DELETE", "/v1/users/kim?force=true", &json!({}));
    until("it is paused with its owner", || schedule_of(&people, &id)["reason"] == "kim is gone");
    let rows = people.get(&people.admin, "/v1/audit?what=pause_schedule&who=berth").json();
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0]["detail"].as_str().unwrap().contains("kim is gone"), "{rows:?}");
}

#[test]
fn a_schedule_whose_priority_its_owner_may_not_use_any_more_is_paused() {
    let people = People::start("1xL4");
    let limit = |class: &str| {
        let documents =
            format!("kind: queue\nname: vision\nclass_limit: {{researcher: {class}}}\n");
        people.admin("POST", "/v1/apply", &json!({ "documents": documents }));
    };
    limit("critical");
    let file = "name: rare\nteam: vision\npriority: critical\nschedule: '0 3 1 1 *'\nrun: 'true'\n";
    let made = people.submit(&people.kim, file).json();
    let id = made["schedule"].as_str().unwrap().to_owned();
    limit("high");
    until("it is paused", || schedule_of(&people, &id)["paused"] == true);
    let reason = schedule_of(&people, &id)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("may not use the class `critical`"), "{reason}");
}

#[test]
fn texts_in_an_address_have_a_limit_and_no_answer_names_a_file_of_the_server() {
    let people = People::start("1xL4");
    let home = people.server.home.path().display().to_string();
    let long = |letters: usize| "x".repeat(letters);
    for path in [
        format!("/v1/jobs?text={}", long(60_000)),
        format!("/v1/jobs?text={}", long(2_000)),
        format!("/v1/jobs?team={}", long(2_000)),
        format!("/v1/jobs?cursor={}", long(2_000)),
        format!("/v1/jobs/{}", long(2_000)),
        format!("/v1/jobs/1/logs?search={}", long(2_000)),
        format!("/v1/audit?who={}", long(2_000)),
        format!("/v1/cost?by={}", long(2_000)),
        format!("/v1/events?kind={}", long(2_000)),
        format!("/v1/nodes/{}", long(2_000)),
        format!("/healthz?x={}", long(20_000)),
    ] {
        let answer = people.get(&people.admin, &path);
        refused(&answer, 400, "BRT0003");
        assert!(!answer.body.contains(&home) && !answer.body.contains("SELECT"), "{answer:?}");
    }
    let found = people.get(&people.admin, &format!("/v1/jobs?text={}", long(1_000)));
    assert_eq!(found.status, 200, "{found:?}");
}

#[test]
fn a_missing_role_is_named_before_the_scope_of_the_token() {
    let people = People::start("1xL4");
    people.join("viv", "vision", "viewer");
    let (_, viewers) = people.new_token("viv", "read", None);
    let (_, researchers) = people.new_token("kim", "read", None);
    let file = "team: vision\nrun: exit 0\n";
    // A token with a wider scope would not help viv.
    refused(&people.submit(&viewers, file), 403, "BRT0006");
    refused(&people.submit(&researchers, file), 403, "BRT0007");
}

#[test]
fn a_header_that_cannot_be_read_is_refused_and_never_ignored() {
    let people = People::start("1xL4");
    let send = |headers: &[(&'static str, &str)]| {
        let mut request = Request::new("POST", "/v1/jobs").token(Some(&people.kim));
        request = request.body("application/yaml", "hold: true\nrun: 'true'\n");
        request.headers.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        request.send(&people.server.url)
    };
    let long = "k".repeat(256);
    for key in ["schlüssel", "", long.as_str()] {
        refused(&send(&[("idempotency-key", key)]), 400, "BRT0003");
    }
    refused(&send(&[("idempotency-key", "a"), ("idempotency-key", "b")]), 400, "BRT0003");
    // A second token would be ignored silently.
    refused(&send(&[("authorization", "Bearer another")]), 400, "BRT0003");
    assert_eq!(people.server.all_jobs(), Vec::<Value>::new());
    let mut odd = Request::new("GET", "/v1/me");
    odd.headers.push(("authorization", "Basic a2ltOmtpbQ==".to_owned()));
    let answer = odd.send(&people.server.url);
    refused(&answer, 401, "BRT0004");
    assert!(answer.json()["detail"].as_str().unwrap().contains("Bearer"), "{answer:?}");
    assert_eq!(send(&[("idempotency-key", "one")]).status, 201);
}
