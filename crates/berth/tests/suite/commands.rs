//! The real binary against a server that says what it is told to.

mod server;

use serde_json::{Value, json};
use server::{Reply, Server, problem, ran};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn job(state: &str) -> Value {
    json!({
        "id": "17", "name": "bert", "kind": "job", "state": state, "user": "kim", "team": "nlp",
        "project": "", "experiment": "", "priority": 50, "nodes": 1, "gpus_milli": 1000,
        "asks": "H100", "submitted": "2026-11-15T09:00:00Z",
        "started": if state == "pending" { Value::Null } else { "2026-11-15T09:01:00Z".into() },
        "ended": if state == "running" || state == "pending" { Value::Null }
                 else { "2026-11-15T09:11:00Z".into() },
        "attempts": if state == "pending" { 0 } else { 1 }, "cost_micros": 500_000,
        "price_micros_per_hour": null, "position": null, "eta": null,
        "reason": if state == "pending" { "no room".into() } else { Value::Null },
        "reason_code": null,
        "exit": if state == "failed" {
            json!({"kind": "failed", "code": 3, "signal": null, "text": "exit code 3"})
        } else { Value::Null },
        "on": [], "url": null, "ready": false, "declared": false, "labels": {}, "tags": [],
        "comment": null
    })
}

fn ok(value: &Value) -> Reply {
    Reply::Json(200, value.to_string())
}

fn chunk(position: u64, text: &str) -> String {
    let chunk = json!({
        "attempt": 0, "task": 0, "rank": 0, "stream": "output", "position": position, "at": null,
        "text": text, "dropped": 0, "end": false
    });
    format!("{chunk}\n")
}

fn submitted() -> Reply {
    ok(&json!({
        "id": "17", "name": "bert", "schedule": null, "elements": 1, "repeated": false,
        "warnings": [{"key": "idle", "message": "it has no effect here", "line": 9}]
    }))
}

fn list() -> Reply {
    ok(&json!({"jobs": [job("running"), job("pending")], "next": null, "counts": {"running": 2}}))
}

#[test]
fn ps_prints_rows_json_and_numbers() {
    let server = Server::start(vec![("GET /v1/jobs", vec![list()])]);
    let ran = server.berth(&["ps", "--team", "nlp"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[0].starts_with("ID  NAME  STATE    GPUS  USER  TEAM  WAIT/RUN   COST"),
        "{}",
        ran.out
    );
    assert!(lines[2].ends_with("no room"), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'), "colour on a pipe");
    let asked = server.asked_at("GET /v1/jobs");
    assert!(asked.contains("state=active") && asked.contains("team=nlp"), "{asked}");
    assert!(asked.contains("authorization: Bearer secret-token"), "{asked}");
    assert_eq!(server.berth(&["ps", "-o", "name"]).out, "17\n17\n");
    let json: Value = serde_json::from_str(&server.berth(&["-o", "json", "ps"]).out).unwrap();
    assert_eq!(json["jobs"][0]["submitted"], "2026-11-15T09:00:00Z");
    assert!(server.berth(&["ps", "-o", "yaml"]).out.contains("name: bert"));
}

#[test]
fn ps_reads_as_many_pages_as_it_takes() {
    let page = |next: Value| {
        ok(&json!({"jobs": [job("running")], "next": next, "counts": {"running": 9}}))
    };
    let pages = vec![page("a".into()), page("b".into()), page("c".into())];
    let server = Server::start(vec![("GET /v1/jobs", pages)]);
    let ran = server.berth(&["ps", "-n", "3"]);
    assert_eq!(ran.out.lines().count(), 4);
    assert!(ran.err.starts_with("only the first 3 are shown; --limit shows more"), "{}", ran.err);
    let asked = server.asked();
    assert!(asked[1].contains("cursor=a") && asked[2].contains("cursor=b"), "{asked:?}");
}

#[test]
fn what_is_not_there_says_so_and_what_to_do() {
    let reply = Reply::Json(404, problem("BRT0008", 404, "there is no job 99"));
    let server = Server::start(vec![("GET /v1/jobs/99/why", vec![reply])]);
    let ran = server.berth(&["why", "99"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    assert_eq!(
        ran.err,
        "error: there is no job 99\nnext: Do this.\nBRT0008: A title (docs/errors/BRT0008.md)\n"
    );
    let ran = server.berth(&["why", "99", "-o", "json"]);
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &problem["code"]), (4, &json!("BRT0008")));
}

#[test]
fn no_server_names_the_address_and_how_to_start_one() {
    let server = Server::start(Vec::new());
    let nobody = [("BERTH_URL", "http://127.0.0.1:1")];
    let ran = server.berth_with(&["stop", "17"], "", &nobody);
    assert_eq!(ran.code, 5);
    assert!(ran.err.starts_with("error: no server answers at http://127.0.0.1:1 ("), "{}", ran.err);
    assert!(ran.err.contains("`berth up`"), "{}", ran.err);
}

#[test]
fn refusals_end_with_three_and_with_125_where_a_job_would_have_its_own_code() {
    let reply = Reply::Json(403, problem("BRT0018", 403, "the budget of nlp is spent"));
    let server = Server::start(vec![("POST /v1/jobs", vec![reply])]);
    assert_eq!(server.berth(&["run", "-d", "--", "true"]).code, 3);
    assert_eq!(server.berth(&["run", "--wait", "-o", "json", "--", "true"]).code, 125);
    assert_eq!(server.berth(&["run", "--gpu", "1", "--", "true"]).code, 125);
    assert_eq!(server.berth(&["shell", "99", "--", "true"]).code, 125);
    let ran = server.berth(&["run", "--", "true"]);
    assert_eq!(ran.code, 125);
    assert!(ran.err.starts_with("error: the budget of nlp is spent"), "{}", ran.err);
}

fn run_routes(end: &str, logs: Vec<Reply>) -> Vec<(&'static str, Vec<Reply>)> {
    vec![
        ("POST /v1/jobs", vec![submitted()]),
        ("GET /v1/jobs/17", vec![ok(&job("pending")), ok(&job("running")), ok(&job(end))]),
        ("GET /v1/jobs/17/logs", logs),
        ("GET /v1/events", vec![Reply::Lines(String::new())]),
    ]
}

/// What was asked with, such as `?here=%2Fhome%2Fkim&template=sft`.
fn parameters(asked: &str) -> Vec<(&str, PathBuf)> {
    let target = asked.split(' ').nth(1).unwrap();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name, PathBuf::from(value.replace("%2F", "/")))).collect()
}

#[test]
fn run_submits_and_shows_the_log_until_the_job_ends() {
    let logs = Reply::Lines(chunk(0, "epoch 1\n") + &chunk(8, "epoch 2\n"));
    let server = Server::start(run_routes("done", vec![logs]));
    let ran = server.berth(&["run", "-g", "1", "-e", "A=1", "--", "python", "train.py"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "epoch 1\nepoch 2\n"), "{}", ran.err);
    for part in [
        "warning: idle: it has no effect here",
        "Submitted 17 bert\n  berth logs -f 17 ",
        "\n  berth why 17 ",
        "\n  berth stop 17 ",
        "17 pending: no room",
        "17 bert done after 10m, $0.50",
    ] {
        assert!(ran.err.contains(part), "no {part:?} in {}", ran.err);
    }
    let asked = server.asked_at("POST /v1/jobs");
    let body = asked.split_once("\r\n\r\n").unwrap().1;
    let file = berth_file::job::read(body).unwrap().file;
    assert_eq!(file.workdir, None, "only the server knows whether it has this folder");
    assert_eq!(parameters(&asked), [("here", server.home().canonicalize().unwrap())]);
    assert_eq!(file.env, berth_file::job::read("env: {A: 1}").unwrap().file.env);
    assert!(asked.contains("idempotency-key: "), "{asked}");
}

#[test]
fn a_command_ends_with_the_exit_code_of_its_job() {
    let logs = Reply::Lines(chunk(0, "oh no\n"));
    let server = Server::start(run_routes("failed", vec![logs]));
    let ran = server.berth(&["run", "--", "false"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "oh no\n"));
    assert!(ran.err.ends_with("17 bert failed after 10m, $0.50: exit code 3\n"), "{}", ran.err);
}

#[test]
fn a_log_that_breaks_off_goes_on_where_it_was() {
    let logs = vec![Reply::Broken(chunk(0, "one\n")), Reply::Lines(chunk(4, "two\n"))];
    let server = Server::start(run_routes("done", logs));
    let ran = server.berth(&["run", "--", "true"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "one\ntwo\n"), "{}", ran.err);
    assert!(server.asked().iter().any(|asked| asked.contains("from=4")), "{:?}", server.asked());
}

#[test]
fn ctrl_c_leaves_the_job_and_never_ends_it() {
    let mut routes = run_routes("running", vec![Reply::Open(chunk(0, "epoch 1\n"))]);
    routes.push(("POST /v1/jobs/17/stop", vec![ok(&job("cancelled"))]));
    let server = Server::start(routes);
    let mut child = server.spawn(&["run", "--", "true"], &[("BERTH_URL", &server.url)]);
    let mut first = [0u8; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"epoch 1\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = ran(child);
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("Detached; the job continues."), "{}", ran.err);
    assert!(server.asked().iter().all(|asked| !asked.contains("/stop")));
}

#[test]
fn a_log_that_is_not_there_yet_is_waited_for() {
    let none = Reply::Json(404, problem("BRT0009", 404, "it has no log yet"));
    let mut routes = run_routes("done", vec![none, Reply::Lines(chunk(0, "at last\n"))]);
    let states = ["pending", "running", "running", "done"].map(|state| ok(&job(state)));
    routes[1].1 = states.into();
    let ran = Server::start(routes).berth(&["run", "--", "true"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "at last\n"), "{}", ran.err);
}

#[test]
fn a_server_that_starts_anew_is_waited_for() {
    let away = || Reply::Broken(String::new());
    let logs = vec![away(), away(), Reply::Lines(chunk(0, "back\n"))];
    let ran = Server::start(run_routes("done", logs)).berth(&["run", "--", "true"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "back\n"), "{}", ran.err);
}

#[test]
fn detached_and_for_programs_a_run_prints_what_was_submitted() {
    let server = Server::start(run_routes("done", Vec::new()));
    assert_eq!(server.berth(&["run", "-d", "-o", "name", "--", "true"]).out, "17\n");
    let ran = server.berth(&["run", "-d", "--", "true"]);
    assert!(ran.out.starts_with("Submitted 17 bert\n  berth logs -f 17"), "{}", ran.out);
    let ran = server.berth(&["run", "-o", "json", "--", "true"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["id"], "17");
    let ran = server.berth(&["run", "--wait", "-o", "json", "--", "true"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["state"], "done");
}

#[test]
fn a_mistake_in_a_job_file_is_found_before_anything_is_submitted() {
    let server = Server::start(Vec::new());
    server.file("job.yaml", "gpu: 1\nrun: x\n");
    let ran = server.berth(&["run", "-d", "-f", "job.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.starts_with("error: job.yaml:1:1: unknown key `gpu`; did you mean `gpus`?"),
        "{}",
        ran.err
    );
    let ran = server.berth(&["run", "-g", "1"]);
    assert_eq!(ran.code, 125);
    assert!(ran.err.starts_with("error: there is nothing to run"), "{}", ran.err);
    assert_eq!(server.berth(&["run", "-d", "-f", "none.yaml"]).code, 2);
    // The server says only what else is wrong.
    let asked = server.asked();
    assert!(asked.iter().all(|request| request.contains("/v1/plan")), "{asked:?}");
}

#[test]
fn waiting_for_a_job_ends_with_its_exit_code_too() {
    let server = Server::start(run_routes("failed", Vec::new()));
    assert_eq!(server.berth(&["run", "--wait", "--", "false"]).code, 3);
}

#[test]
fn a_job_that_the_server_refuses_is_shown_at_its_place_in_the_file() {
    let refusal = json!({
        "type": "x", "title": "A title", "status": 422, "detail": "`image`: no containers here",
        "code": "BRT0002", "next": "Do this.",
        "errors": [{"path": "image", "line": 40, "column": 2, "message": "no containers here"}]
    });
    let server =
        Server::start(vec![("POST /v1/jobs", vec![Reply::Json(422, refusal.to_string())])]);
    server.file("job.yaml", "# mine\nrun: x\nimage: pytorch\n");
    let ran = server.berth(&["run", "-d", "-f", "job.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.starts_with("error: job.yaml:3:8: `image`: no containers here\nnext: Do this."),
        "{}",
        ran.err
    );
}

#[test]
fn files_templates_and_flags_lie_over_each_other() {
    let template = ok(&json!({
        "name": "sft", "team": "vision", "by": "kim", "created": "2026-11-15T09:00:00Z",
        "file": "team: vision\nworkdir: /code\nrun: python sft.py\n"
    }));
    let mut routes = run_routes("done", Vec::new());
    routes.push(("GET /v1/templates/sft", vec![template]));
    let server = Server::start(routes);
    server.file("job.yaml", "gpus: 1\ntime: 1h\n");
    server.file(".berth.toml", "team = 'nlp'\nproject = 'llama'\n");
    let ran = server.berth(&["run", "@sft", "-f", "job.yaml", "-g", "8", "-d"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let asked = server.asked_at("POST /v1/jobs");
    let here = server.home().canonicalize().unwrap();
    assert_eq!(parameters(&asked), [("here", here), ("template", "sft".into())]);
    let file = berth_file::job::read(asked.split_once("\r\n\r\n").unwrap().1).unwrap().file;
    let expect = berth_file::job::read("gpus: 8\ntime: 1h\nproject: llama\n").unwrap().file;
    assert_eq!(file, expect, "the template's team and folder stay");
}

#[test]
fn a_secret_comes_from_standard_input_and_is_never_shown() {
    let kept = json!({"team": "nlp", "name": "HF", "created": "2026-11-15T09:00:00Z", "by": "kim"});
    let server = Server::start(vec![("PUT /v1/secrets/nlp/HF", vec![ok(&kept)])]);
    let variables = [("BERTH_URL", server.url.as_str()), ("BERTH_TEAM", "nlp")];
    let ran = server.berth_with(&["secret", "set", "HF"], "hush hush\n", &variables);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Saved secret HF for nlp\n"), "{}", ran.err);
    assert!(server.asked()[0].ends_with(r#"{"value":"hush hush"}"#));
    assert!(!format!("{}{}", ran.out, ran.err).contains("hush"));
}

#[test]
fn the_token_of_the_local_server_is_found_and_has_to_be_private() {
    let server = Server::start(vec![("GET /v1/jobs", vec![list()])]);
    std::fs::create_dir(server.home().join(".berth")).unwrap();
    server.file(".berth/server.json", &json!({"url": server.url, "pid": 1}).to_string());
    server.file(".berth/admin.token", "from-the-file\n");
    let token = server.home().join(".berth/admin.token");
    let mode = |mode| std::fs::set_permissions(&token, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let ran = server.berth_with(&["ps"], "", &[]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("next: Close it with `chmod 600 "), "{}", ran.err);
    mode(0o600);
    assert_eq!(server.berth_with(&["ps"], "", &[]).code, 0);
    assert!(server.asked()[0].contains("authorization: Bearer from-the-file"));
    let ran = server.berth_with(&["config", "explain"], "", &[]);
    assert!(ran.out.contains("(hidden)") && !ran.out.contains("from-the-file"), "{}", ran.out);
}

#[test]
fn several_jobs_are_all_acted_on_though_one_is_not_there() {
    let server = Server::start(vec![
        ("POST /v1/jobs/17/stop", vec![ok(&job("cancelled"))]),
        ("POST /v1/jobs/99/stop", vec![Reply::Json(404, problem("BRT0008", 404, "no 99"))]),
    ]);
    let ran = server.berth(&["stop", "99", "17", "--now"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, "17 bert cancelled\n"));
    assert!(server.asked()[1].ends_with(r#"{"now":true}"#));
}

#[test]
fn drift_can_be_told_by_the_exit_code() {
    let change = json!({"changes": [{"kind": "queue", "name": "nlp", "path": "quota.gpu",
        "change": "change", "old": "64", "new": "96"}], "applied": false});
    let server = Server::start(vec![("POST /v1/diff", vec![ok(&change)])]);
    server.file("a.yaml", "kind: team\nname: a\n");
    server.file("b.yaml", "kind: team\nname: b\n");
    let ran = server.berth(&["diff", "-f", "a.yaml", "-f", "b.yaml"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.starts_with("~ queue nlp quota.gpu: 64 -> 96\n"), "{}", ran.out);
    let body = server.asked()[0].split_once("\r\n\r\n").unwrap().1.to_owned();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["documents"], "kind: team\nname: a\n---\nkind: team\nname: b\n");
    assert_eq!(server.berth(&["diff", "-f", "a.yaml", "--exit-code"]).code, 1);
}

#[test]
fn completion_knows_commands_and_live_names() {
    let server = Server::start(vec![("GET /v1/jobs", vec![list()])]);
    let complete = |words: &[&str], index: &str| {
        let args: Vec<&str> = ["--", "berth"].iter().chain(words).copied().collect();
        let variables = [
            ("BERTH_URL", server.url.as_str()),
            ("BERTH_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", index),
            ("_CLAP_COMPLETE_COMP_TYPE", "9"),
            ("_CLAP_COMPLETE_SPACE", "true"),
            ("_CLAP_IFS", "\n"),
        ];
        server.berth_with(&args, "", &variables).out
    };
    assert!(complete(&["w"], "1").lines().any(|line| line == "why"));
    let names = complete(&["why", ""], "2");
    assert!(names.lines().any(|line| line == "17"), "{names}");
    assert!(names.lines().any(|line| line == "bert"), "{names}");
    assert!(complete(&["run", "--gp"], "2").contains("--gpus"));
}

#[test]
fn the_helper_of_a_node_comes_before_everything_else() {
    let server = Server::start(Vec::new());
    let ran = server.berth_with(&["__node", "nonsense"], "", &[("BERTH_COMPLETE", "bash")]);
    assert_eq!((ran.code, ran.err.as_str()), (2, "this command is for Berth's own use\n"));
}

#[test]
fn one_screen_of_top_is_text() {
    let none = ok(&json!({"items": []}));
    let server = Server::start(vec![
        ("GET /v1/jobs", vec![list()]),
        ("GET /v1/gpus", vec![none.clone()]),
        ("GET /v1/queues", vec![none]),
    ]);
    let ran = server.berth(&["top", "--once"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("2 running  0 waiting"), "the server counts: {}", ran.out);
    assert_eq!(server.berth(&["top"]).code, 2, "a pipe is no terminal");
}

#[test]
fn deleting_a_team_asks_at_a_terminal_and_says_what_goes_with_it() {
    let items = |items: Value| ok(&json!({ "items": items }));
    let routes = || {
        vec![
            (
                "GET /v1/teams/nlp/members",
                vec![items(json!([
                    {"team": "nlp", "user": "kim", "role": "researcher"},
                    {"team": "nlp", "user": "lea", "role": "team_lead"}
                ]))],
            ),
            (
                "GET /v1/projects",
                vec![items(json!([
                    {"name": "llama", "team": "nlp"}, {"name": "sam", "team": "vision"}
                ]))],
            ),
            ("GET /v1/secrets", vec![items(json!([]))]),
            ("GET /v1/templates", vec![items(json!([]))]),
            ("GET /v1/schedules", vec![items(json!([]))]),
            ("DELETE /v1/teams/nlp", vec![Reply::Json(200, "null".into())]),
        ]
    };
    let deleted = |server: &Server| server.asked().iter().any(|asked| asked.starts_with("DELETE"));
    let server = Server::start(routes());
    let ran = server.at_terminal(&["team", "rm", "nlp"], "n\n", &[]);
    assert!(
        ran.out.contains("Delete team nlp? This also deletes 2 memberships and 1 project. [y/N]"),
        "{}",
        ran.out
    );
    assert!(ran.code == 1 && !deleted(&server), "{}", ran.out);
    let ran = server.at_terminal(&["team", "rm", "nlp"], "y\n", &[]);
    assert!(ran.out.contains("Deleted team nlp") && deleted(&server), "{}", ran.out);
    let server = Server::start(routes());
    let ran = server.at_terminal(&["team", "rm", "nlp", "-y"], "", &[]);
    assert!(
        ran.out.trim_end().ends_with("Deleted team nlp") && !ran.out.contains("[y/N]"),
        "{}",
        ran.out
    );
    let server = Server::start(routes());
    assert_eq!(
        server.berth(&["team", "rm", "nlp"]).out,
        "Deleted team nlp\n",
        "a script is not asked"
    );
}

#[test]
fn long_output_goes_through_a_pager_at_a_terminal_only() {
    let jobs: Vec<Value> = (0..200).map(|_| job("running")).collect();
    let list = || ok(&json!({"jobs": jobs, "next": null, "counts": {}}));
    let server = Server::start(vec![("GET /v1/jobs", vec![list()])]);
    let pager = [("BERTH_PAGER", "sed s/^/paged:/")];
    let paged = server.at_terminal(&["ps", "-n", "200"], "", &pager);
    // A terminal without a size has no screen that a text could be longer than.
    let sized = std::process::Command::new("script")
        .args(["-qec", "stty size", "/dev/null"])
        .output()
        .is_ok_and(|said| !String::from_utf8_lossy(&said.stdout).starts_with("0 "));
    assert_eq!(paged.out.contains("paged:17"), sized, "{}", paged.out);
    let plain = server.at_terminal(&["ps", "-n", "200", "--no-pager"], "", &pager);
    assert!(plain.out.contains("17  bert") && !plain.out.contains("paged:"), "{}", plain.out);
    let piped = server.berth_with(
        &["ps", "-n", "200"],
        "",
        &[("BERTH_URL", &server.url), ("BERTH_TOKEN", "secret-token"), pager[0]],
    );
    assert!(!piped.out.contains("paged:"), "{}", piped.out);
}
