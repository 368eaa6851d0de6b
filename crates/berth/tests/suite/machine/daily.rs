//! What people do every day on one machine: describe, follow, pass variables on, and read exit codes.

use super::http::Request;
use super::people::People;
use super::server::{Server, until};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

fn err(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_preempted_job_is_described_with_who_preempted_it() {
    let people = People::start("1xL4");
    let low = people.job(&people.kim, "team: vision\nname: low\ngpus: 1\nrun: sleep 600\n");
    people.until_is(&low, "running");
    let high = people
        .job(&people.lea, "team: vision\nname: first\ngpus: 1\npriority: high\nrun: sleep 600\n");
    people.until_is(&high, "running");
    let by = format!("by {high} first (vision)");
    until("it waits again", || people.server.job(&low)["state"] == "pending");
    let why = people.server.run_ok(&["why", &low]);
    assert!(why.contains(&format!("preempted {by}")), "{why}");
    assert_eq!(people.server.json(&["why", &low])["preempted"]["by"]["name"], "first");
    let shown = people.server.run_ok(&["describe", &low]);
    for part in [&by, "Attempts", "Events", "Job file", "submitted", "cost", "places      box"] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    // The time that it has waited goes on.
    let still = |shown: String| {
        let lines = shown.lines().filter(|line| !line.trim_start().starts_with("time "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let alias = people.server.run_ok(&["show", &low]);
    assert_eq!(still(shown), still(alias), "the alias says the same");
    let json = people.server.json(&["describe", &low]);
    assert_eq!(json["job"]["name"], "low");
    assert!(json["file"].as_str().unwrap().contains("sleep 600"), "{json}");
}

#[test]
fn events_tell_the_past_of_a_job_and_of_the_cluster() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "--name", "short", "-g", "1", "--", "true"]);
    server.run_ok(&["cordon", "box"]);
    let of_job = server.run_ok(&["events", "short"]);
    assert!(of_job.contains("submitted by") && of_job.contains("ended"), "{of_job}");
    let all = server.run_ok(&["events"]);
    assert!(all.contains("cordoned") && all.contains("short"), "{all}");
    let nodes = server.json(&["events", "--kind", "node"]);
    assert_eq!(nodes["items"][0]["kind"], "node", "{nodes}");
    assert_eq!(server.run_ok(&["events", "--kind", "alert"]), "No events.\n");
}

#[test]
fn the_policy_is_shown_compared_with_a_file_and_has_a_history() {
    let server = Server::start(&["--gpus", "1xL4"]);
    assert_eq!(
        server.run_ok(&["policy", "show", "--changed"]),
        "All settings have their default.\n"
    );
    let file = server.work.path().join("policy.yaml");
    std::fs::write(&file, "kind: policy\ngrace: 7m\n").unwrap();
    let diff = server.berth(&["policy", "diff", "-f", "policy.yaml", "--exit-code"]);
    assert_eq!(diff.status.code(), Some(1), "{diff:?}");
    assert!(out(&diff).contains("grace: 5m -> 7m") || out(&diff).contains("-> 7m"), "{diff:?}");
    assert_eq!(server.run_ok(&["policy", "history"]), "No changes.\n");
    server.run_ok(&["apply", "-f", "policy.yaml"]);
    let changed = server.run_ok(&["policy", "show", "--changed"]);
    assert!(changed.contains("grace") && changed.contains("7m"), "{changed}");
    let history = server.json(&["policy", "history"]);
    let change = &history["changes"][0];
    assert_eq!(
        (&change["setting"], &change["value"]),
        (&"grace".into(), &"7m".into()),
        "{history}"
    );
}

#[test]
fn a_drained_node_says_why_until_it_takes_work_again() {
    let mut server = Server::start(&["--gpus", "H100:2"]);
    server.run_ok(&["drain", "box", "--reason", "kernel update"]);
    let shown = server.run_ok(&["nodes"]);
    assert!(shown.contains("draining (kernel update)"), "{shown}");
    server.kill();
    server.start_again();
    assert_eq!(server.json(&["nodes"])["items"][0]["reason"], "kernel update");
    server.run_ok(&["uncordon", "box"]);
    assert!(server.json(&["nodes"])["items"][0]["reason"].is_null());
    server.run_ok(&["cordon", "box"]);
    assert!(server.json(&["nodes"])["items"][0]["reason"].is_null(), "the old one is forgotten");
}

#[test]
fn gpus_are_written_either_way_round() {
    let server = Server::start(&["--gpus", "H100:4"]);
    for gpus in ["4xH100", "H100:4"] {
        server.run_ok(&["run", "-g", gpus, "--", "true"]);
    }
    let asks = server.json(&["ps", "--all"]);
    assert_eq!(
        (&asks["jobs"][0]["asks"], &asks["jobs"][1]["asks"]),
        (&"H100:4".into(), &"H100:4".into())
    );
}

#[test]
fn cost_by_job_has_names_in_the_order_of_numbers() {
    let server = Server::start(&["--gpus", "2xH100"]);
    for number in 1..=11 {
        let name = format!("job-{number}");
        server.run_ok(&["run", "--name", &name, "-g", "1", "--", "true"]);
    }
    let cost = server.json(&["cost", "--by", "job"]);
    let rows = cost["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let expect: Vec<String> = (1..=11).map(|number| format!("job-{number}")).collect();
    assert_eq!(names, expect, "{cost}");
    let text = server.run_ok(&["cost", "--by", "job"]);
    assert!(!text.contains(" 0.0 "), "{text}");
}

#[test]
fn doctor_says_what_is_well_and_fails_without_a_server() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    let report = server.json(&["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
    let names: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for name in ["server", "clock", "database", "token", "rights", "nodes", "isolation", "disk"] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    assert!(server.run_ok(&["doctor"]).contains("ok       server"));
    server.stop();
    let ended =
        server.command(&["doctor"]).env("BERTH_URL", "http://127.0.0.1:1").output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = out(&ended);
    assert!(said.contains("failed   server") && said.contains("berth up"), "{said}");
}

#[test]
fn completion_is_installed_where_the_shell_looks_for_it() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let home = server.work.path();
    for (shell, path) in [
        ("bash", ".local/share/bash-completion/completions/berth"),
        ("zsh", ".zfunc/_berth"),
        ("fish", ".config/fish/completions/berth.fish"),
    ] {
        let mut command = server.command(&["completion", shell, "--install"]);
        command.env("HOME", home).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        let ran = command.env_remove("ZDOTDIR").output().unwrap();
        assert!(out(&ran).starts_with(&format!("Wrote {}", home.join(path).display())), "{ran:?}");
        assert!(std::fs::read_to_string(home.join(path)).unwrap().contains("BERTH_COMPLETE"));
    }
}

#[test]
fn shell_ends_with_the_exit_code_of_its_command_and_with_125_where_berth_fails() {
    let server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "-d", "--name", "long", "--", "sleep", "600"]);
    until("it runs", || server.job("long")["state"] == "running");
    let ended = server.berth(&["shell", "long", "--", "bash", "-c", "exit 9"]);
    assert_eq!(ended.status.code(), Some(9), "{ended:?}");
    let ended = server.berth(&["shell", "nosuch", "--", "true"]);
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
    let ended = server.berth(&["run", "--after", "nosuch", "--", "true"]);
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
}

#[test]
fn variables_and_an_active_environment_reach_a_job_on_one_machine_and_secrets_do_not() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let bin = server.work.path().join("venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let tool = bin.join("mytool");
    std::fs::write(&tool, "#!/bin/sh\necho the tool of the venv\n").unwrap();
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let script = "echo FOO=$FOO SHLVL_OF_US=$SSH_TTY; mytool; env | grep -c ^MY_TOKEN";
    let run = |more: &[&str]| {
        let line = [&["run", "--name", "env"], more, &["--", "sh", "-c", script]].concat();
        let mut command = server.command(&line);
        let command = command.env("FOO", "bar").env("PATH", &path).env("SSH_TTY", "/dev/pts/9");
        command.env("VIRTUAL_ENV", server.work.path().join("venv"));
        command.env("MY_TOKEN", "hunter2").output().unwrap()
    };
    let ran = run(&[]);
    assert!(out(&ran).contains("FOO=bar SHLVL_OF_US=\nthe tool of the venv\n0\n"), "{ran:?}");
    assert!(out(&run(&["-e", "FOO=mine"])).contains("FOO=mine "), "{ran:?}");
    assert!(out(&run(&["--export", "none"])).contains("FOO= "), "{ran:?}");
    assert!(out(&run(&["--export", "FOO"])).contains("FOO=bar "), "{ran:?}");
    if server.json(&["nodes"])["items"][0]["isolation"] != "none" {
        let inside = server.berth(&["run", "--", "sh", "-c", "command -v berth"]);
        assert!(inside.status.success(), "Berth itself stays on the path: {inside:?}");
    }
    let refused = run(&["--export", "MY_TOKEN"]);
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert!(err(&refused).contains("berth secret set MY_TOKEN"), "{refused:?}");
    let shown = server.run_ok(&["describe", "env"]);
    assert!(shown.contains("Job file") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_user_or_project_in_use_is_deleted_by_force_only() {
    let people = People::start("1xL4");
    people.server.run_ok(&["project", "add", "llama", "--team", "vision"]);
    let file = "team: vision\nproject: llama\nname: holds\nhold: true\nrun: x\n";
    let job = people.job(&people.kim, file);
    for (line, name) in [(["user", "rm", "kim"], "kim"), (["project", "rm", "llama"], "llama")] {
        let refused = people.server.berth(&line);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let said = err(&refused);
        assert!(
            said.contains(&format!("`{name}` has 1 job")) && said.contains("--force"),
            "{said}"
        );
        let forced = people.server.run_ok(&[&line[..], &["--force"]].concat());
        assert_eq!(forced, format!("Deleted {} {name}\n", line[0]));
    }
    assert_eq!(people.server.job(&job)["project"], "llama", "the job keeps the name");
}

#[test]
fn a_slip_in_the_name_of_a_team_gets_a_suggestion() {
    let people = People::start("1xL4");
    let refused = people.submit(&people.kim, "team: visoin\nrun: x\n");
    let problem = refused.json();
    assert_eq!(problem["code"], "BRT0009", "{problem}");
    assert_eq!(problem["detail"], "there is no team `visoin`; did you mean `vision`?");
    let said = err(&people.server.berth(&["team", "rm", "audoi"]));
    assert!(said.contains("there is no team `audoi`; did you mean `audio`?"), "{said}");
    let said = err(&people.server.berth(&["drain", "bix"]));
    assert!(said.contains("there is no node `bix`; did you mean `box`?"), "{said}");
}

#[test]
fn a_job_that_its_own_budget_has_paused_says_so_wherever_one_looks() {
    let people = People::start("1xL4");
    let file = "team: vision\nname: dear\ngpus: 1\nbudget: $0.0001\nrun: sleep 600\n";
    let job = people.job(&people.kim, file);
    people.until_is(&job, "paused");
    let why = people.get(&people.kim, &format!("/v1/jobs/{job}/why")).json();
    let blocker = why["blockers"][0]["text"].as_str().unwrap_or_default();
    assert!(blocker.starts_with("paused by its own budget: it has cost"), "{why}");
    assert!(blocker.contains(&format!("berth clone {job} --budget")), "{why}");
    let sooner = why["sooner"].to_string();
    assert!(!sooner.contains("resume"), "it would be paused again at once: {sooner}");
    let ps = people.server.run_ok(&["ps", "--all", "-o", "wide"]);
    assert!(ps.contains("paused by its own budget"), "{ps}");
    let resumed = people.ask(&people.kim, "POST", &format!("/v1/jobs/{job}/resume"), &json!({}));
    assert_eq!((resumed.status, resumed.code().as_deref()), (409, Some("BRT0011")), "{resumed:?}");
    assert!(resumed.body.contains(&format!("berth clone {job} --budget")), "{resumed:?}");
}

#[test]
fn a_name_that_two_live_jobs_have_stops_neither_and_a_plan_sees_the_budget_of_the_job() {
    let people = People::start("4xL4");
    let (kim, server) = (&people.kim, &people.server);
    let file = "team: vision\nname: twin\ngpus: 1\nrun: sleep 600\n";
    let (one, other) = (people.job(kim, file), people.job(kim, file));
    let said = err(&server.berth(&["stop", "twin"]));
    assert!(said.contains("2 jobs named `twin` have not ended"), "{said}");
    assert!(said.contains(&format!("such as {other}")), "{said}");
    server.run_ok(&["stop", "--now", &other]);
    people.until_is(&other, "cancelled");
    // The name now stands for the job that has not ended, also if a newer one has.
    server.run_ok(&["stop", "--now", "twin"]);
    people.until_is(&one, "cancelled");

    let array = people.job(kim, "team: vision\narray: 0-2\ngpus: 1\nrun: sleep 600\n");
    until("all elements run", || {
        (0..3).all(|element| server.job(&format!("{array}_{element}"))["state"] == "running")
    });
    let preview = people.get(kim, &format!("/v1/jobs/{array}/stop/preview")).json();
    assert_eq!(
        (&preview["job"], &preview["gpus_milli"]),
        (&json!(array), &json!(3000)),
        "{preview}"
    );
    assert!(server.run_ok(&["stop", &array, "--preview"]).contains("cost so far"));

    let file = "team: vision\ngpus: 1\ntime: 10h\nbudget: $0.01\nrun: x\n";
    let plan = Request::new("POST", "/v1/plan").token(Some(kim)).body("application/yaml", file);
    let plan = plan.send(&server.url).json();
    assert_eq!(plan["total_micros"], 10_000, "{plan}");
    assert_eq!(plan["most_micros"], 10_000, "{plan}");
    assert!(plan["warnings"].to_string().contains("its budget of $0.01 is spent after"), "{plan}");
}

#[test]
fn what_a_job_cannot_have_is_refused_when_it_is_submitted() {
    let people = People::start("1xL4");
    let submit = |file: &str| people.submit(&people.kim, file);
    let missing = submit("team: vision\nrun: x\nvolumes: {/x: /no/such/folder}\n");
    assert_eq!((missing.status, missing.code().as_deref()), (422, Some("BRT0002")), "{missing:?}");
    let swept = submit("team: vision\nrun: x\nsweep: {PATH: [1, 2]}\n");
    assert_eq!((swept.status, swept.code().as_deref()), (400, Some("BRT0001")), "{swept:?}");
    // Everything that is wrong is said at once.
    let all = submit("team: vision\nnodes: many\ngpus: abc\n").json();
    let paths: Vec<&str> =
        all["errors"].as_array().unwrap().iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["nodes", "gpus", "run"], "{all}");
    let rest = submit("team: vision\ngpus: abc\n").json();
    assert_eq!(
        (rest["code"].as_str(), rest["errors"].as_array().map(Vec::len)),
        (Some("BRT0002"), Some(2))
    );
    let file = people.server.work.path().join("job.yaml");
    std::fs::write(&file, "team: vision\nnodes: many\ngpus: abc\n").expect("the folder is ours");
    let said = err(&people.server.berth(&["plan", "-f", file.to_str().expect("a path")]));
    assert!(said.contains("job.yaml:2:8") && said.contains("job.yaml:3:7"), "{said}");
    assert!(said.contains("nothing to run"), "{said}");
}
