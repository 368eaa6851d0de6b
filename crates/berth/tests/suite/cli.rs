//! The real binary on real files.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn berth(arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the binary runs");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of its own for each test.
fn file(name: &str, text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli");
    std::fs::create_dir_all(&folder).expect("a folder for the tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path.to_str().expect("a plain path").to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let ran = berth(arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

const RECLAIM: &str = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
queues: [{name: owner, quota: {gpu: 1}}, {name: guest}]
jobs:
  - {name: old, queue: guest, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: train, queue: owner, groups: [{name: worker, gpus: 1}]}
";

#[test]
fn settle_stops_the_guest_in_the_first_round_and_starts_the_owner_in_the_second() {
    let world = file("reclaim.yaml", RECLAIM);
    let report = json(&["sim", "settle", &world, "-o", "json"]);
    assert_eq!(report["rounds"], 2);
    let stop = &report["decisions"][0];
    assert_eq!(
        (&stop["round"], &stop["kind"], &stop["job"], &stop["task"], &stop["cause"], &stop["for"]),
        (&1.into(), &"stop".into(), &"old".into(), &0.into(), &"reclaim".into(), &"train".into())
    );
    let task = report["tasks"].as_array().unwrap().iter().find(|t| t["job"] == "train").unwrap();
    assert_eq!(
        *task,
        serde_json::json!({
            "job": "train", "group": "worker", "task": 0, "state": "running", "node": "a",
            "gpus": [{"index": 0, "milli": 1000}], "before": {"state": "waiting"},
        })
    );
    assert_eq!(report["cost"]["per_hour"]["queues"]["owner"], 2.5);
}

#[test]
fn once_plans_and_carries_nothing_out() {
    let world = file("once.yaml", RECLAIM);
    let report = json(&["sim", "once", &world, "-o", "json"]);
    assert_eq!(report["rounds"], 1);
    let old = report["tasks"].as_array().unwrap().iter().find(|t| t["job"] == "old").unwrap();
    assert_eq!((&old["state"], &old["before"]["state"]), (&"stopping".into(), &"running".into()));
}

#[test]
fn a_world_may_come_from_standard_input_as_json() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["sim", "once", "-", "-o", "json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let world = br#"{"nodes": [{"name": "a", "gpus": 1, "model": "L4-24GB"}],
        "jobs": [{"name": "j", "groups": [{"gpus": 1}]}]}"#;
    std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), world).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["decisions"][0]["kind"], "start");
}

#[test]
fn a_bad_world_is_refused_with_file_and_line_and_exit_code_2() {
    let world = file("bad.yaml", "nodes:\n  - {name: a, gpsu: 8}\n");
    let ran = berth(&["sim", "once", &world]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("bad.yaml:2:15: unknown key `gpsu`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `gpus`?"), "{}", ran.err);
}

#[test]
fn what_only_the_core_can_refuse_has_its_line_too() {
    let text =
        "nodes: []\nqueues:\n  - {name: up}\n  - {name: low, parent: up, quota: {gpu: 40%}}\n";
    let ran = berth(&["sim", "once", &file("core.yaml", text)]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("core.yaml:4:5: queues[1]: "), "{}", ran.err);
}

#[test]
fn a_missing_file_and_a_wrong_option_end_with_exit_code_2() {
    let missing = berth(&["sim", "once", "nowhere.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("reading nowhere.yaml"), "{}", missing.err);
    assert_eq!(berth(&["sim", "settle", "--tick", "often", "x.yaml"]).code, 2);
    assert_eq!(berth(&["sim", "check"]).code, 2);
}

#[test]
fn check_prints_a_line_per_scenario_and_what_was_there_instead() {
    let good = file("good.yaml", &format!("{RECLAIM}expect: [{{at: 5m, running: [train]}}]\n"));
    let wrong = file("wrong.yaml", &format!("{RECLAIM}expect: [{{at: 1m, running: [train]}}]\n"));
    let passed = berth(&["sim", "check", &good]);
    assert_eq!(passed.code, 0, "{}{}", passed.out, passed.err);
    assert!(passed.out.starts_with("ok"), "{}", passed.out);
    let both = berth(&["sim", "check", &good, &wrong]);
    assert_eq!(both.code, 1);
    assert!(both.out.contains("FAIL"), "{}", both.out);
    assert!(
        both.out.contains(
            "line 8, at 1m (2026-11-15T09:01:00Z): expected train with at least 1 running; train waits"
        ),
        "{}",
        both.out
    );
}

#[test]
fn check_goes_on_after_a_bad_file_and_ends_with_exit_code_2() {
    let good = file("good2.yaml", &format!("{RECLAIM}expect: [{{at: 5m, running: [train]}}]\n"));
    let bad = file("bad2.yaml", "jobs: 5\n");
    let ran = berth(&["sim", "check", &bad, &good]);
    assert_eq!(ran.code, 2);
    assert!(ran.out.contains("BAD") && ran.out.contains("\nok"), "{}", ran.out);
    let report: Value =
        serde_json::from_str(&berth(&["sim", "check", "-o", "json", &bad, &good]).out).unwrap();
    assert_eq!((&report[0]["passed"], &report[1]["passed"]), (&false.into(), &true.into()));
}

#[test]
fn the_demo_shows_plan_reasons_and_cost_and_what_to_try_next() {
    let ran = berth(&["sim", "demo"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in ["Decisions", "Placement", "Waiting", "Cost", "reclaim", "finetune", "Try next"] {
        assert!(ran.out.contains(part), "{part} is missing in\n{}", ran.out);
    }
}

#[test]
fn why_tells_reasons_position_forecast_and_what_would_start_it() {
    let world = file(
        "why-not.yaml",
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
jobs:
  - {name: runs, time_limit: 2h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: waits, groups: [{gpus: 1}]}
",
    );
    let report = json(&["sim", "once", &world, "--why", "waits", "-o", "json"]);
    let why = &report["why"];
    assert_eq!(why["job"], "waits");
    assert!(why["reasons"].as_array().unwrap().iter().any(|r| r["code"] == "no-fit"), "{why}");
    assert_eq!(why["position"]["ahead"], 0);
    assert!(why["forecast"]["p50"].is_string(), "{why}");
    assert!(!why["would_start"].as_array().unwrap().is_empty(), "{why}");
    let table = berth(&["sim", "once", &world, "--why", "waits"]);
    assert!(table.out.contains("Forecast: it starts"), "{}", table.out);
    assert!(table.out.contains("What would start it:"), "{}", table.out);
}

#[test]
fn why_of_an_unknown_job_says_so() {
    let world = file("why.yaml", RECLAIM);
    let ran = berth(&["sim", "once", &world, "--why", "nobody"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is no job `nobody`"), "{}", ran.err);
}

#[test]
fn the_examples_are_worlds() {
    for example in ["examples/first-world.yaml", "examples/every-key.yaml"] {
        let ran = berth(&["sim", "once", example, "-o", "json"]);
        assert_eq!(ran.code, 0, "{example}: {}", ran.err);
    }
}

#[test]
fn a_trace_runs_under_the_core_and_its_peers_side_by_side() {
    let report = json(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "fifo,berth,berth-sharing",
        "-o",
        "json",
    ]);
    let rows = report["policies"].as_array().expect("a row for each policy");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["report"]["unfinished"], 0, "{}", row["policy"]);
        assert_eq!(row["report"]["all"]["jobs"], report["jobs"]);
    }
    let text = berth(&["sim", "trace", "--bundled", "week", "--policy", "fifo,berth"]).out;
    assert!(text.contains("mean wait") && text.contains("berth"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let run = |seed| {
        berth(&[
            "sim",
            "trace",
            "--bundled",
            "week",
            "--policy",
            "berth",
            "--seed",
            seed,
            "-o",
            "json",
        ])
    };
    assert_eq!(run("3").out, run("3").out);
    assert_ne!(run("3").out, run("4").out);
}

#[test]
fn a_malformed_row_names_file_line_column_and_what_was_expected() {
    let jobs = file("bad.csv", "job_id,submit_s,duration_s,gpus\na,0,10,1\nb,5,soon,1\n");
    let ran = berth(&["sim", "trace", "--jobs", &jobs, "--cluster", "2x8xA100"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let wanted = format!("{jobs}, line 3, column 3 (duration_s): found `soon`, expected seconds");
    assert!(ran.err.contains(&wanted), "{}", ran.err);
}

#[test]
fn a_trace_without_a_cluster_and_a_policy_that_is_none_are_refused_with_what_to_give() {
    let jobs = file("fine.csv", "job_id,submit_s,duration_s,gpus\na,0,10,1\n");
    let ran = berth(&["sim", "trace", "--jobs", &jobs]);
    assert!(ran.code == 2 && ran.err.contains("give --cluster or --nodes"), "{}", ran.err);
    let ran = berth(&["sim", "trace", "--bundled", "week", "--policy", "fastest"]);
    assert!(ran.code == 2 && ran.err.contains("fair-share"), "{}", ran.err);
}

#[test]
fn the_page_and_the_report_are_written_whole_and_nothing_else_is_left() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let at = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let (html, out) = (at("page.html"), at("report.json"));
    let ran = berth(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "fifo,berth",
        "--html",
        &html,
        "--out",
        &out,
        "-o",
        "json",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.ends_with("</body></html>\n") && page.contains("Distribution of waits"));
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&out).expect("a report")).expect("JSON");
    let parts = &report["policies"][1]["account"]["cost"];
    assert!(parts["total"].as_f64() > parts["parts"]["used"].as_f64(), "{parts}");
    let left = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(left, 2);
    let ran = berth(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "fifo",
        "--html",
        &at("nowhere/page.html"),
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
}

/// As root this once put a regular file in the place of /dev/null.
#[test]
fn a_report_goes_into_a_pipe_or_through_a_link_and_puts_no_file_in_its_place() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().expect("a folder for the test");
    let at = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (pipe, link, file) = (at("pipe"), at("link"), at("file"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let mut reader = std::fs::File::from(open(&pipe, flags, Mode::empty()).expect("a reader"));
    std::os::unix::fs::symlink("file", &link).expect("a link");
    let ran = berth(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "fifo",
        "--html",
        &link,
        "--out",
        &pipe,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut report = String::new();
    reader.read_to_string(&mut report).expect("what was written into the pipe");
    assert!(report.contains("fifo"), "{report}");
    let kind = |path: &str| std::fs::symlink_metadata(path).expect("it is there").file_type();
    assert!(kind(&pipe).is_fifo() && kind(&link).is_symlink() && kind(&file).is_file());
    let ran =
        berth(&["sim", "trace", "--bundled", "week", "--policy", "fifo", "--out", "/dev/null"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(kind("/dev/null").is_char_device());
}

#[test]
fn every_policy_of_the_comparison_runs_in_one_command() {
    let all = "fifo,fifo-skip,easy,sjf,fair-share,best-fit,fgd,berth";
    let report =
        json(&["sim", "trace", "--bundled", "week", "--policy", all, "--teams", "-o", "json"]);
    let rows = report["policies"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row["report"]["unfinished"] == 0));
    let text = berth(&["sim", "trace", "--bundled", "week", "--policy", all, "--teams"]).out;
    for words in ["by queue", "by size", "fragmented", "on demand", "MWh", "Jain", "fgd"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn a_what_if_stands_beside_its_base() {
    let report = json(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "fifo,berth",
        "--add-nodes",
        "3",
        "--set",
        "reservations=4",
        "-o",
        "json",
    ]);
    let told = |row: &Value| (row["policy"].clone(), row["what_if"].clone());
    let rows = report["policies"].as_array().expect("rows");
    let order: Vec<_> = rows.iter().map(told).collect();
    let wanted = [("fifo", false), ("fifo", true), ("berth", false), ("berth", true)];
    assert_eq!(order, wanted.map(|(policy, other)| (policy.into(), other.into())));
    let mean = |row: usize| rows[row]["report"]["all"]["wait"]["mean"].as_f64().expect("a number");
    assert!(mean(1) < mean(0) && mean(3) < mean(2));
    assert_eq!(report["worlds"][1]["gpus"], 48);
    let ran = berth(&["sim", "trace", "--bundled", "week", "--quota", "team-0=4"]);
    assert!(ran.code == 2 && ran.err.contains("quota-without-teams"), "{}", ran.err);
    let ran = berth(&["sim", "trace", "--bundled", "week", "--set", "reservation=4"]);
    assert!(ran.code == 2 && ran.err.contains("no-such-policy-key"), "{}", ran.err);
}

#[test]
fn the_size_that_is_found_is_enough_and_one_node_less_is_not() {
    let found = json(&["sim", "size", "--policy", "easy", "--p95-wait", "10m", "-o", "json"]);
    let nodes = found["found"]["nodes"].as_u64().expect("a size");
    assert!(found["found"]["p95_wait"].as_f64() <= Some(600.0));
    let less = found["tried"].as_array().expect("what was tried");
    let less = less.iter().find(|tried| tried["nodes"] == nodes - 1).expect("it was tried");
    assert_eq!(less["enough"], false);
    let ran = berth(&["sim", "size", "--most", "1", "--p95-wait", "1s", "--policy", "fifo"]);
    assert!(ran.code == 1 && ran.out.contains("Not even"), "{} {}", ran.out, ran.err);
}

#[test]
fn unlike_nodes_are_honoured_with_their_models() {
    let nodes = file("nodes.csv", "node_id,gpus,gpu_type\na,8,A100\nb,4,T4\nc,2,T4\n");
    let jobs = file(
        "typed.csv",
        "job_id,submit_s,duration_s,gpus,gpu_type\na,0,100,4,T4\nb,0,100,4,T4\nc,0,100,8,\nd,0,9,1,P100\n",
    );
    let asked = ["sim", "trace", "--jobs", &jobs, "--nodes", &nodes, "--policy", "fifo-skip,berth"];
    let report = json(&[&asked[..], &["-o", "json"]].concat());
    for row in report["policies"].as_array().expect("rows") {
        // The second waits for the only node of four T4, and nobody has a P100.
        assert_eq!(row["report"]["all"]["wait"]["max"], 100.0, "{}", row["policy"]);
        assert_eq!(row["report"]["unfinished"], 1, "{}", row["policy"]);
    }
}

#[test]
fn failures_cost_work_and_checkpoints_save_most_of_it() {
    let lost = |more: &[&str]| {
        let asked = [
            "sim",
            "trace",
            "--bundled",
            "week",
            "--policy",
            "easy,berth",
            "--node-mtbf",
            "2d",
            "-o",
            "json",
        ];
        let report = json(&[&asked[..], more].concat());
        let of = |row: &Value| {
            assert!(row["report"]["interruptions"].as_u64() > Some(0), "{row}");
            assert_eq!(row["report"]["unfinished"], 0);
            row["report"]["lost_gpu_hours"].as_f64().expect("a number")
        };
        report["policies"].as_array().expect("rows").iter().map(of).collect::<Vec<_>>()
    };
    let (without, with) = (lost(&[]), lost(&["--checkpoint", "10m"]));
    assert!(
        with.iter().zip(&without).all(|(with, without)| with < without),
        "{with:?} {without:?}"
    );
}

#[test]
fn machines_are_bought_when_jobs_wait_and_paid_until_they_are_returned() {
    let report = json(&[
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "berth",
        "--cluster",
        "1x8xA100",
        "--pool",
        "4x8xA100",
        "--checkpoint",
        "30m",
        "-o",
        "json",
    ]);
    let row = &report["policies"][0];
    assert_eq!(row["report"]["unfinished"], 0);
    let cost = &row["account"]["cost"];
    assert!(cost["spot"].as_f64() > Some(0.0) && cost["parts"]["booting"].as_f64() > Some(0.0));
    let ran =
        berth(&["sim", "trace", "--bundled", "week", "--policy", "easy", "--pool", "4x8xA100"]);
    assert!(ran.code == 2 && ran.err.contains("peers-cannot-buy"), "{}", ran.err);
}

#[test]
fn forecasts_are_compared_with_what_came_of_them() {
    let asked = [
        "sim",
        "trace",
        "--bundled",
        "week",
        "--policy",
        "berth",
        "--forecast",
        "1",
        "--held-back",
        "3d",
    ];
    let report = json(&[&asked[..], &["-o", "json"]].concat());
    let told = &report["policies"][0]["forecasts"];
    let (learned, judged) = (&told["learned"]["jobs"], &told["held_back"]["jobs"]);
    assert_eq!(learned.as_u64().unwrap() + judged.as_u64().unwrap(), 300, "{told}");
    assert!(told["held_back"]["by_p90"].as_f64() > Some(0.5), "{told}");
    assert!(berth(&asked).out.contains("corrected"));
}

#[test]
fn all_threads_share_the_pages_of_one_heap() {
    let output = Command::new(env!("CARGO_BIN_EXE_berth"))
        .arg("--version")
        .env("_RJEM_MALLOC_CONF", "stats_print:true")
        .output()
        .expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("opt.narenas: 1\n") && told.contains("opt.hpa: true\n"), "{told}");
}
