//! Jobs that could never do what they say are refused at submission, with what to do instead.

use super::http::{Answer, Request};
use super::people::People;
use super::server::until;
use serde_json::json;

#[track_caller]
fn refused(answer: &Answer, code: &str, says: &str, next: &str) {
    let problem = answer.json();
    assert_eq!(answer.code().as_deref(), Some(code), "{answer:?}");
    let (detail, what) = (problem["detail"].to_string(), problem["next"].to_string());
    assert!(detail.contains(says), "{detail} lacks {says}");
    assert!(what.contains(next), "{what} lacks {next}");
}

/// A job file of team vision, which is refused.
#[track_caller]
fn check(people: &People, file: &str, code: &str, says: &str, next: &str) {
    let text = format!("team: vision\nrun: 'true'\n{file}\n");
    refused(&people.submit(&people.kim, &text), code, says, next);
}

#[test]
fn a_job_that_comes_after_nothing_or_itself_is_refused() {
    let people = People::start("1xL4");
    let next = "berth ps --all";
    people.job(&people.kim, "team: vision\nname: prepare\nhold: true\nrun: 'true'\n");
    check(&people, "after: [nosuch]", "BRT0008", "there is no job `nosuch`", next);
    check(&people, "after: [prepar]", "BRT0008", "did you mean `prepare`?", next);
    check(&people, "after: [4711]", "BRT0008", "there is no job `4711`", next);
    check(&people, "name: me\nafter: [me]", "BRT0002", "come after itself", "singleton");
    let nightly = "schedule: '@daily'\nname: night\n";
    check(&people, &format!("{nightly}after: [night]"), "BRT0002", "after itself", "singleton");
    check(&people, &format!("{nightly}after: [nosuch]"), "BRT0008", "no job `nosuch`", next);
}

#[test]
fn schedules_that_wait_for_each_other_are_refused() {
    let people = People::start("1xL4");
    let file = |name: &str, after: &str| {
        format!("team: vision\nschedule: '@daily'\nname: {name}\nafter: [{after}]\nrun: 'true'\n")
    };
    people.job_or_schedule(&people.kim, &file("fetch", "seed").replace("after: [seed]\n", ""));
    people.job_or_schedule(&people.kim, &file("train", "fetch"));
    let circle = people.submit(&people.kim, &file("fetch", "train"));
    refused(&circle, "BRT0002", "fetch → train → fetch", "leave one of these out");
}

#[test]
fn a_job_that_would_wait_for_another_outcome_than_there_was_is_refused() {
    let people = People::start("1xL4");
    let bad = people.job(&people.kim, "team: vision\nname: bad\nrun: 'false'\n");
    people.until_is(&bad, "failed");
    let next = format!("berth clone {bad}");
    check(&people, "after: [bad]", "BRT0002", "it is failed already", &next);
    let rescue = people.job(&people.kim, "team: vision\nafter: {notok: [bad]}\nrun: 'true'\n");
    people.until_is(&rescue, "done");
    let any =
        people.job(&people.kim, &format!("team: vision\nafter: {{any: [{bad}]}}\nrun: 'true'\n"));
    people.until_is(&any, "done");
}

#[test]
fn parts_that_must_lie_apart_are_refused_where_there_is_one_machine() {
    let people = People::start("8xH100");
    for gpus in ["gpus: 1\n", ""] {
        let file = format!("{gpus}nodes: 2\nplace: apart");
        check(&people, &file, "BRT0019", "at most 1 to a node", "Ask for less");
    }
}

#[test]
fn a_folder_that_this_machine_does_not_have_is_refused() {
    let people = People::start("1xL4");
    let file = |path: &str| format!("workdir: {path}");
    check(&people, &file("/nowhere/at/all"), "BRT0002", "no folder /nowhere/at/all", "plan");
    check(&people, &file("/etc/passwd"), "BRT0002", "/etc/passwd", "plan");
    // A job that this one comes after may make it.
    let first = people.job(&people.kim, "team: vision\nname: makes\nhold: true\nrun: 'true'\n");
    let file = format!("team: vision\nafter: [{first}]\nworkdir: /nowhere/at/all\nrun: 'true'\n");
    people.job(&people.kim, &file);
}

#[test]
fn a_command_that_is_submitted_from_another_machine_starts_in_the_folder_of_its_job() {
    let people = People::start("1xL4");
    let path = "/v1/jobs?here=%2Fnowhere%2Fat%2Fall";
    let request = Request::new("POST", path).token(Some(&people.kim));
    let body = "team: vision\nrun: pwd\n";
    let answer = request.body("application/yaml", body).send(&people.server.url);
    let made = answer.json();
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(made["warnings"][0]["message"].to_string().contains("no folder"), "{made}");
    people.until_is(made["id"].as_str().unwrap(), "done");
}

#[test]
fn a_target_of_messages_that_nobody_has_named_is_refused() {
    let people = People::start_with(&["--gpus", "1xL4", "--notify-allow", "127.0.0.1/32"]);
    let documents = "kind: notify\nname: 'slack:#nlp'\nurl: 'http://127.0.0.1:9/'\n";
    people.admin("POST", "/v1/apply", &json!({ "documents": documents }));
    let next = "kind: notify";
    check(&people, "notify: ['slack:#nosuch']", "BRT0002", "`slack:#nosuch`", next);
    check(&people, "notify: ['slack:#nlpp']", "BRT0002", "did you mean `slack:#nlp`?", next);
    check(&people, "notify: ['webhook:ops']", "BRT0002", "`webhook:ops`", next);
    people.job(&people.kim, "team: vision\nnotify: ['slack:#nlp']\nhold: true\nrun: 'true'\n");
}

#[test]
fn numbers_that_no_machine_has_are_refused_with_their_line() {
    let people = People::start("1xL4");
    for (file, says) in [
        ("launch: ranks\nranks: 4294967295", "ranks"),
        ("nodes: 4294967295", "nodes"),
        ("memory: 9000TiB", "memory"),
        ("cpu: 99999999", "cpu"),
    ] {
        let answer = people.submit(&people.kim, &format!("team: vision\nrun: x\n{file}\n"));
        refused(&answer, "BRT0001", says, "docs/job-file.md");
    }
    let many = "launch: ranks\nranks: 1024\nnodes: 100";
    check(&people, many, "BRT0002", "processes on one machine", "berth plan");
}

#[test]
fn a_typo_in_a_name_says_that_there_is_no_such_thing() {
    let people = People::start("1xL4");
    for token in [&people.kim, &people.admin] {
        let answer = people.submit(token, "team: visoin\nrun: 'true'\n");
        let says = "there is no team `visoin`; did you mean `vision`?";
        refused(&answer, "BRT0009", says, "vision");
    }
    let job = people.job(&people.kim, "team: vision\nhold: true\nrun: 'true'\n");
    let wish = json!({ "team": "visoin" });
    let moved = people.ask(&people.kim, "PATCH", &format!("/v1/jobs/{job}"), &wish);
    refused(&moved, "BRT0009", "there is no team `visoin`", "vision");
    // A team that is there, and not one's own, is refused as before.
    let other = people.submit(&people.kim, "team: audio\nrun: 'true'\n");
    refused(&other, "BRT0006", "may not do this for team audio", "berth whoami");
    people.admin("POST", "/v1/projects", &json!({ "name": "llama", "team": "vision" }));
    let says = "team vision has no project `lama`; did you mean `llama`?";
    check(&people, "project: lama", "BRT0002", says, "berth project add lama --team vision");
    people.admin("PUT", "/v1/secrets/vision/HF_TOKEN", &json!({ "value": "hush" }));
    let says = "team vision has no secret `HF_TOKN`; did you mean `HF_TOKEN`?";
    check(&people, "secrets: [HF_TOKN]", "BRT0020", says, "berth secret set HF_TOKN");
}

#[test]
fn a_secret_may_be_called_as_the_documents_call_it() {
    let people = People::start("1xL4");
    people.admin("PUT", "/v1/secrets/vision/HF_TOKEN", &json!({ "value": "hush" }));
    let file = "team: vision\nsecrets: [HF_TOKEN]\nrun: '[ \"$HF_TOKEN\" = hush ]'\n";
    let job = people.job(&people.kim, file);
    people.until_is(&job, "done");
}

#[test]
fn a_script_of_almost_a_mebibyte_runs_and_can_be_cloned() {
    let people = People::start("1xL4");
    let filler = "  # x\n".repeat(160_000);
    let file = format!("team: vision\nname: long\nrun: |\n{filler}  echo \"at the end of $0\"\n");
    assert!((900_000..1 << 20).contains(&file.len()));
    let job = people.job(&people.kim, &file);
    until("it ends", || people.server.job(&job)["ended"] != json!(null));
    let log = people.server.run_ok(&["logs", &job]);
    assert_eq!(people.server.job(&job)["state"], "done", "{log}");
    assert!(log.contains("at the end of bash"), "{log}");
    let path = format!("/v1/jobs/{job}/clone");
    let again = people.ask(&people.kim, "POST", &path, &json!({ "file": "hold: true\n" }));
    assert_eq!(again.status, 201, "{again:?}");
    let larger = format!("team: vision\nrun: |\n{}", filler.repeat(2));
    let answer = people.submit(&people.kim, &larger);
    refused(&answer, "BRT0001", "at most 1 MiB", "docs/job-file.md");
}
