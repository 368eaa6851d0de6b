//! One file for kubectl and for `berth`: either way gives the same.

use super::crds::{install, object, queue, refused};
use super::gpus::{H100, add_node};
use super::other_schedulers::job;
use super::support::{add_nodes, berth_with, cluster, until};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::process::Output;

fn written(cluster: &Cluster, name: &str, text: &str) -> String {
    let file = cluster.folder().join(name);
    // A job file is one document.
    std::fs::write(&file, text.trim_end_matches("---\n")).expect("the folder can be written");
    file.display().to_string()
}

/// The queues and budgets of a server, but for what runs in them.
fn set_up(berth: &Server) -> [Value; 2] {
    let queues = ["lab", "nlp"].map(|name| queue(berth, name));
    [Value::from(queues.to_vec()), berth.get("/v1/budgets")["items"].clone()]
}

fn said(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn queues_policy_and_budgets_are_the_same_by_kubectl_and_by_berth_apply() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster);
    let berth = berth_with(&cluster, &[]);
    let objects = [
        object("Queue", "lab", "{quota: {gpu: 6}}"),
        object("Queue", "nlp", "{parent: lab, quota: {gpu: 2}, order: fifo, weight: 1.5}"),
        object("Policy", "default", "{strategy: spread, grace: 2m}"),
        object("Budget", "nlp", "{limit: 100, per: day, action: block, thresholds: [80%]}"),
    ];
    let file = written(&cluster, "objects.yaml", &objects.concat());
    let changes = || {
        let diff = berth.json(&["diff", "-f", &file]);
        let changes = diff["changes"].as_array().expect("a list").iter();
        changes.map(|change| change["kind"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    let kinds = ["queue", "policy", "budget"];
    let all_are_wanted =
        || kinds.iter().all(|kind| changes().iter().any(|changed| changed == kind));
    assert!(all_are_wanted(), "nothing is there yet: {:?}", changes());

    cluster.kubectl_stdout(&["apply", "-f", &file]);
    until("all is as the file says", || changes().is_empty());
    let by_kubectl = set_up(&berth);
    assert_eq!(by_kubectl[0][1]["quota_milli"], 2_000, "{by_kubectl:?}");
    assert_eq!(by_kubectl[1][0]["limit_micros"], 100_000_000, "{by_kubectl:?}");

    cluster.kubectl_stdout(&["delete", "-f", &file]);
    until("all of it is gone", all_are_wanted);
    until("no queue is left", || set_up(&berth)[0] == Value::from(vec![Value::Null; 2]));
    let applied = berth.run_ok(&["apply", "-f", &file]);
    assert!(applied.contains("Applied."), "{applied}");
    assert!(changes().is_empty(), "{:?}", changes());
    assert_eq!(set_up(&berth), by_kubectl);
}

#[test]
fn a_job_is_the_same_by_kubectl_and_by_berth_run_and_a_pool_is_refused_alike() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster);
    let berth = berth_with(&cluster, &["--image", "none"]);
    let spec = "{team: default, gpus: 2, time: 90m, priority: low, run: python train.py}";
    let file = written(&cluster, "job.yaml", &object("Job", "train", spec));
    cluster.kubectl_stdout(&["apply", "-f", &file]);
    until("its job runs", || cluster.get(&["bj", "train"])["status"]["state"] == "Running");
    let by_kubectl = job(&berth, "train");
    let set_up = said(&berth.berth(&["apply", "-f", &file]));
    assert!(set_up.contains("berth run -f FILE"), "{set_up}");
    berth.run_ok(&["run", "--detach", "-f", &file]);
    until("there are two", || {
        let jobs = berth.all_jobs();
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "running")
    });
    let jobs = berth.all_jobs();
    let by_run = jobs.iter().find(|job| job["id"] != by_kubectl["id"]).expect("the second");
    for key in ["name", "team", "gpus_milli", "asks", "priority", "kind"] {
        assert!(!by_run[key].is_null(), "{key}: {by_run}");
        assert_eq!(by_run[key], by_kubectl[key], "{key}");
    }
    let pods = cluster.get(&["pods", "-n", "berth-default", "-l", "berth.dev/job"]);
    let container = |at: usize| {
        let container = &pods["items"][at]["spec"]["containers"][0];
        ["image", "command", "args", "resources"].map(|key| container[key].clone())
    };
    assert!(container(1)[3]["limits"].is_object(), "{pods}");
    assert_eq!(container(0), container(1), "their pods do the same");

    let spec = "{max: 4, offerings: [{type: p5, gpus: 8, model: H100-80GB, price: 98}]}";
    let file = written(&cluster, "pool.yaml", &object("Pool", "cloud", spec));
    cluster.kubectl_stdout(&["apply", "-f", &file]);
    let by_kubectl = refused(&cluster, "bpool", "cloud", "NotSupported");
    let by_apply = said(&berth.berth(&["apply", "-f", &file]));
    let words = "machines cannot be bought yet, so a pool has no effect";
    assert!(by_kubectl.contains(words) && by_apply.contains(words), "{by_kubectl}; {by_apply}");
}

/// What `kubectl get` shows of a Job under a heading; nothing where the place is empty.
fn column(cluster: &Cluster, name: &str, heading: &str) -> String {
    let table = cluster.kubectl_stdout(&["get", "jobs.berth.dev", name]);
    let mut lines = table.lines();
    let (heads, line) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let at = heads.find(heading).unwrap_or_else(|| panic!("{heading}: {table}"));
    line.get(at..).and_then(|rest| rest.split("  ").next()).unwrap_or_default().trim().to_owned()
}

#[test]
fn the_columns_of_a_job_tell_when_it_is_likely_to_start_and_what_it_has_cost() {
    let cluster = cluster();
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 8");
    install(&cluster);
    // A dollar a second for the whole node, so that it is seen soon.
    let prices = written(&cluster, "prices.yaml", "H100-80GB: 450\n");
    let berth = berth_with(&cluster, &["--image", "none", "--prices", &prices]);
    let begun = std::time::Instant::now();
    cluster.apply(&object("Job", "first", "{gpus: 8, time: 2h, run: python train.py}"));
    until("it runs", || column(&cluster, "first", "STATUS") == "Running");
    cluster.apply(&object("Job", "next", "{gpus: 8, time: 1h, run: python train.py}"));
    until("it has a place in the line", || column(&cluster, "next", "POSITION") == "1");

    until("it is told when it starts", || !column(&cluster, "next", "ETA").is_empty());
    let shown = column(&cluster, "next", "ETA");
    let minute = |moment: &Value| moment.as_str().unwrap_or_default()[..16].to_owned();
    assert_eq!(shown, format!("{}Z", minute(&job(&berth, "next")["eta"])));
    // Not before the first one has run for a while, nor after its time is over.
    let started = minute(&job(&berth, "first")["started"]);
    let minutes = |moment: &str| {
        let part = |at: std::ops::Range<usize>| moment[at].parse::<i64>().expect("a number");
        part(11..13) * 60 + part(14..16)
    };
    let wait = (minutes(&shown) - minutes(&started)).rem_euclid(24 * 60);
    assert!((1..=121).contains(&wait), "{started} to {shown}");
    assert_eq!(column(&cluster, "first", "ETA"), "", "it has started");

    let cost = |name: &str| {
        let shown = column(&cluster, name, "COST");
        let dollars = shown.strip_prefix('$').and_then(|shown| shown.parse::<f64>().ok());
        dollars.unwrap_or_else(|| panic!("{name} costs {shown:?}"))
    };
    until("it is told what it costs", || cost("first") > 0.0);
    let (cost_of_first, seconds) = (cost("first"), begun.elapsed().as_secs_f64());
    assert!(cost_of_first <= seconds, "${cost_of_first} after {seconds} s");
    assert_eq!(column(&cluster, "next", "COST"), "$0.00");
}
