//! Objects of our own: what they say becomes true, and what becomes of them stands in them.

use super::support::{add_nodes, berth, berth_with, cluster, node_of, pod, until, why};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::process::Command;

/// Installs the definitions that the program prints.
pub fn install(cluster: &Cluster) {
    let printed = Command::new(env!("CARGO_BIN_EXE_berth")).args(["kube", "crds"]).output();
    let printed = printed.expect("the program runs");
    assert!(printed.status.success());
    cluster.apply(&String::from_utf8(printed.stdout).unwrap());
    until("the kinds are served", || {
        let definitions = cluster.get(&["crd"])["items"].as_array().cloned().unwrap_or_default();
        let is_established = |definition: &Value| {
            let conditions = definition["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
        };
        definitions.iter().all(is_established)
    });
}

pub fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )
}

/// A condition of an object: its status, reason and message.
fn condition(cluster: &Cluster, what: &str, name: &str, of: &str) -> [String; 3] {
    let object = cluster.get(&[what, name]);
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|one| one["type"] == of).unwrap_or_default();
    ["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default().to_owned())
}

fn accepted(cluster: &Cluster, what: &str, name: &str) -> [String; 3] {
    condition(cluster, what, name, "Accepted")
}

/// Waits until an object was refused for that reason, and gives back its words.
pub fn refused(cluster: &Cluster, what: &str, name: &str, reason: &str) -> String {
    until(&format!("{what} {name} says {reason}"), || {
        let [status, found, _] = accepted(cluster, what, name);
        status == "False" && found == reason
    });
    accepted(cluster, what, name)[2].clone()
}

fn queues(berth: &Server) -> Vec<String> {
    let queues = berth.get("/v1/queues");
    let items = queues["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|queue| queue["name"].as_str().map(str::to_owned)).collect()
}

pub fn queue(berth: &Server, name: &str) -> Value {
    let queues = berth.get("/v1/queues");
    let items = queues["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().find(|queue| queue["name"] == name).unwrap_or_default()
}

/// How often an event of that reason was written about an object.
fn events(cluster: &Cluster, name: &str, reason: &str) -> usize {
    let events = cluster.get(&["events.events.k8s.io", "--all-namespaces"]);
    let items = events["items"].as_array().cloned().unwrap_or_default();
    let about = |event: &&Value| event["regarding"]["name"] == name && event["reason"] == reason;
    items.iter().filter(about).count()
}

#[test]
fn a_tree_of_queues_is_set_up_used_changed_and_removed_by_objects() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    // The definitions come later than the server, and the queue later than its pod.
    let mut berth = berth(&cluster);
    let marks = "  annotations: {berth.dev/queue: nlp, testbed.berth.dev/runs: 1h}";
    cluster.apply(&pod("early", 2, marks, ""));
    until("the pod says what is missing", || why(&cluster, "early").contains("no queue nlp"));
    install(&cluster);
    let tree = [
        object("Queue", "nlp", "{parent: lab, quota: {gpu: 2}, order: fifo}"),
        object("Queue", "vision", "{parent: lab, quota: {gpu: {total: 4}}, weight: 1.5}"),
        object("Queue", "lab", "{quota: {gpu: 6}}"),
    ];
    cluster.apply(&tree.concat());
    until("the pod runs in its queue", || node_of(&cluster, "early").is_some());
    until("the queue says so", || {
        let status = cluster.get(&["bq", "nlp"])["status"].clone();
        status["running"] == 1 && status["usedGpus"] == "2" && status["state"] == "Active"
    });
    let [status, _, message] = condition(&cluster, "bq", "nlp", "Ready");
    assert_eq!(status, "True", "{message}");

    let table = cluster.kubectl_stdout(&["get", "queues.berth.dev"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = table.lines().map(words).collect();
    let heads = ["NAME", "PARENT", "GPUS", "USED", "PENDING", "RUNNING", "STATUS", "AGE"];
    assert_eq!(lines[0], heads, "{table}");
    let nlp = lines.iter().find(|line| line[0] == "nlp").unwrap();
    assert_eq!(nlp[..7], ["nlp", "lab", "2", "2", "0", "1", "Active"], "{table}");
    assert!(cluster.kubectl_stdout(&["get", "berth"]).contains("queue.berth.dev/nlp"));

    // What an object says is changed in one place, and stays so.
    let patch = r#"{"spec": {"quota": {"gpu": 3}}}"#;
    cluster.patch(&["bq", "nlp", "--type=merge", "--patch", patch]);
    until("the quota is another one", || queue(&berth, "nlp")["quota_milli"] == 3_000);
    until("the object shows it", || cluster.get(&["bq", "nlp"])["status"]["quotaGpus"] == "3");
    let mut apply = berth.command(&["apply", "-f", "-"]);
    apply.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut apply = apply.spawn().unwrap();
    let elsewhere = object("Queue", "nlp", "{parent: lab, quota: {gpu: 1}}");
    std::io::Write::write_all(&mut apply.stdin.take().unwrap(), elsewhere.as_bytes()).unwrap();
    assert!(apply.wait().unwrap().success(), "the same object is taken by `berth apply`");
    until("the object has its way", || queue(&berth, "nlp")["quota_milli"] == 3_000);

    // A queue goes with its object when nothing is in it.
    cluster.delete(&["bq", "nlp", "vision"]);
    until("the empty one is gone", || !queues(&berth).contains(&"vision".to_owned()));
    until("the other one is said to stay", || events(&cluster, "nlp", "QueueInUse") == 1);
    assert!(queues(&berth).contains(&"nlp".to_owned()));
    berth.kill();
    cluster.delete(&["pod", "early", "--force", "--grace-period=0"]);
    cluster.delete(&["bq", "lab"]);
    berth.start_again();
    until("all are gone", || queues(&berth) == ["default"]);
}

#[test]
fn objects_that_make_no_sense_say_what_to_do_and_the_rest_goes_on() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster);
    let berth = berth(&cluster);
    let objects = [
        object("Queue", "round", "{parent: about}"),
        object("Queue", "about", "{parent: round}"),
        object("Queue", "below", "{parent: about}"),
        object("Queue", "lost", "{parent: nowhere}"),
        object("Queue", "slow", "{min_runtime: soon}"),
        object("Queue", "typo", "{quota: {gpu: {Z900-80GB: 4}}}"),
        object("Queue", "good", "{quota: {gpu: 4}}"),
        object(
            "Pool",
            "cloud",
            "{max: 4, offerings: [{type: p5, gpus: 8, model: H100-80GB, price: 98}]}",
        ),
        object("Budget", "good", "{limit: 100, per: day, thresholds: [80%]}"),
        object("Budget", "nobody", "{limit: 100}"),
        object("Budget", "twice", "{queue: good, limit: 5}"),
        object("Policy", "default", "{strategy: spread, grace: 2m}"),
        object("Job", "odd", "{gpus: 'Z900:8', run: sleep 1}"),
        object("Job", "bad", "{time: soon, run: sleep 1}"),
        object("Job", "teamless", "{team: nobodys, run: sleep 1}"),
    ];
    cluster.apply(&objects.concat());
    let circle = refused(&cluster, "bq", "round", "QueueCycle");
    assert!(circle.contains("round below about below round"), "{circle}");
    refused(&cluster, "bq", "about", "QueueCycle");
    refused(&cluster, "bq", "below", "ParentRefused");
    // The objects come one after another, so the queue that it could name may come later.
    until("it is told that there is no such queue, and which there are", || {
        let lost = refused(&cluster, "bq", "lost", "UnknownParent");
        lost.contains("no queue `nowhere`") && lost.contains("good")
    });
    let slow = refused(&cluster, "bq", "slow", "BadSpec");
    assert!(slow.contains("min_runtime") && !slow.contains("line 1"), "{slow}");
    refused(&cluster, "bpool", "cloud", "NotSupported");
    let nobody = refused(&cluster, "bb", "nobody", "UnknownQueue");
    assert!(nobody.contains("no queue `nobody`"), "{nobody}");
    refused(&cluster, "bb", "twice", "SecondBudget");
    let odd = refused(&cluster, "bj", "odd", "JobRefused");
    assert!(odd.contains("Z900"), "{odd}");
    let bad = refused(&cluster, "bj", "bad", "BadJobFile");
    assert!(bad.contains("soon"), "{bad}");
    let teamless = refused(&cluster, "bj", "teamless", "NotFound");
    assert!(teamless.contains("no queue `nobodys`"), "{teamless}");
    until("the unknown model is doubted", || {
        condition(&cluster, "bq", "typo", "Ready")[1] == "UnknownGpuModel"
    });
    assert_eq!(accepted(&cluster, "bq", "typo")[0], "True", "nodes may come");

    // Each problem is one event, which kubectl shows with the object.
    for (name, reason) in
        [("round", "QueueCycle"), ("lost", "UnknownParent"), ("odd", "JobRefused")]
    {
        until("there is an event", || events(&cluster, name, reason) > 0);
        assert_eq!(events(&cluster, name, reason), 1, "{name}");
    }
    let described = cluster.kubectl_stdout(&["describe", "queues.berth.dev", "lost"]);
    assert!(described.contains("UnknownParent") && described.contains("Events:"), "{described}");

    // What a schema can tell is refused at once.
    let refusal = |text: &str| {
        let path = cluster.folder().join("refused.yaml");
        std::fs::write(&path, text).unwrap();
        let output = cluster.kubectl(&["apply", "-f", path.to_str().unwrap()]);
        assert!(!output.status.success(), "{text}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let own = refusal(&object("Queue", "self", "{parent: self}"));
    assert!(own.contains("cannot lie below itself"), "{own}");
    refusal(&object("Queue", "negative", "{quota: {gpu: -4}}"));
    refusal(&object("Queue", "negative", "{limit: {cpu: '-4'}}"));
    let typo = refusal(&object("Queue", "typing", "{quotta: {gpu: 4}}"));
    assert!(typo.contains("quotta"), "{typo}");
    let second = refusal(&object("Policy", "second", "{grace: 2m}"));
    assert!(second.contains("one policy"), "{second}");
    refusal(&object("Policy", "default", "{strategy: scatter}"));
    refusal(&object("Budget", "none", "{per: day}"));

    // The rest is as it says.
    until("the good budget holds", || {
        let budgets = berth.get("/v1/budgets");
        let budget = &budgets["items"][0];
        budget["queue"] == "good" && budget["limit_micros"] == 100_000_000
    });
    until("the budget shows what is spent", || {
        let table = cluster.kubectl_stdout(&["get", "budgets.berth.dev", "good"]);
        ["$100.00", "$0.00", "day", "Within"].iter().all(|word| table.contains(word))
    });
    until("the policy is taken", || accepted(&cluster, "bpol", "default")[0] == "True");
    cluster.apply(&pod("fine", 1, "  annotations: {berth.dev/queue: good}", ""));
    until("pods go on", || node_of(&cluster, "fine").is_some());

    // What was wrong is put right, and what goes leaves nothing behind.
    cluster.patch(&["bq", "round", "--type=merge", "--patch", r#"{"spec": {"parent": null}}"#]);
    for name in ["round", "about", "below"] {
        until("the circle is broken", || accepted(&cluster, "bq", name)[0] == "True");
    }
    cluster.delete(&["bb", "good"]);
    until("the other budget takes its place", || {
        berth.get("/v1/budgets")["items"][0]["limit_micros"] == 5_000_000
    });
    cluster.delete(&["bb", "twice"]);
    until("no budget is left", || {
        berth.get("/v1/budgets")["items"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn a_job_object_is_one_job_and_tells_how_it_is_until_it_ends() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster);
    let mut berth = berth_with(&cluster, &["--image", "registry.example/train:1"]);
    let objects = [
        object("Job", "train", "{gpus: 8, run: python train.py}"),
        object("Job", "huge", "{nodes: 4, gpus: 8, run: python train.py}"),
        object("Job", "foreign", "{team: vision, gpus: 1, run: python train.py}"),
        object("Queue", "vision", "{}"),
    ];
    cluster.apply(&objects.concat());
    let status = |name: &str| cluster.get(&["bj", name])["status"].clone();
    until("the first runs", || {
        let status = status("train");
        status["state"] == "Running" && status["nodes"] == "a" && status["gpus"] == "8"
    });
    assert_eq!(condition(&cluster, "bj", "train", "Running")[0], "True");
    let never = refused(&cluster, "bj", "huge", "NeverFits");
    assert!(!never.is_empty());
    until("there is an event", || events(&cluster, "huge", "NeverFits") == 1);
    let foreign = refused(&cluster, "bj", "foreign", "Forbidden");
    assert!(foreign.contains("kubectl label namespace default berth.dev/team"), "{foreign}");
    // A namespace is not a team's because of what it is called.
    cluster.create_namespace("vision");
    let named = object("Job", "named", "{team: vision, gpus: 1, run: python train.py}");
    cluster.apply(&named.replace("name: named", "name: named, namespace: vision"));
    let named = || cluster.get(&["bj", "named", "-n", "vision"])["status"].to_string();
    until("it is refused", || named().contains("Forbidden"));

    cluster.apply(&object("Job", "next", "{gpus: 8, priority: low, run: python train.py}"));
    until("the second has a place in the line", || {
        let status = status("next");
        status["position"] == 1 && status["state"] == "Pending" && status["reason"].is_string()
    });
    let table = cluster.kubectl_stdout(&["get", "jobs.berth.dev"]);
    let heads: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["NAME", "GPUS", "POSITION", "ETA", "COST", "STATUS", "AGE"], "{table}");
    let patch = r#"{"spec": {"gpus": 1}}"#;
    cluster.patch(&["bj", "next", "--type=merge", "--patch", patch]);
    let changed = refused(&cluster, "bj", "next", "SpecChanged");
    assert!(changed.contains("delete the object"), "{changed}");

    let pods = cluster.get(&["pods", "-n", "berth-default", "-l", "berth.dev/job"]);
    let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    let runs = "testbed.berth.dev/runs=10ms";
    cluster.annotate(&["pod", "-n", "berth-default", &pod, runs]);
    cluster.kubectl_stdout(&[
        "wait",
        "--for=condition=Complete",
        "jobs.berth.dev/train",
        "--timeout=120s",
    ]);
    until("the second runs", || status("next")["state"] == "Running");
    assert!(status("next")["position"].is_null(), "it waits no more");

    // An object that went while nobody looked takes its job along, and none is made twice.
    berth.kill();
    cluster.delete(&["bj", "next"]);
    berth.start_again();
    until("the job is cancelled", || berth.job("next")["state"] == "cancelled");
    assert_eq!(status("train")["state"], "Done");
    let jobs = berth.all_jobs();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
}
