//! Berth's own jobs as pods.

use super::support::{add_nodes, berth_with, cluster, node, until};
use berth_testbed::Server;
use berth_testbed::kube::{Cluster, Kwok, Part};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

const NAMESPACE: &str = "berth-default";
pub const IMAGE: &[&str] = &["--image", "registry.example/train:1"];

/// Pods that Berth has made for a job.
pub fn pods(cluster: &Cluster, job: &str) -> Vec<Value> {
    let label = format!("berth.dev/job={job}");
    let pods = cluster.get(&["pods", "-n", NAMESPACE, "-l", &label]);
    pods["items"].as_array().cloned().unwrap_or_default()
}

pub fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

fn exists(cluster: &Cluster, what: &[&str]) -> bool {
    cluster.find(&[&["-n", NAMESPACE], what].concat()).is_some()
}

pub fn state(berth: &Server, job: &str) -> String {
    berth.job(job)["state"].as_str().unwrap_or_default().to_owned()
}

/// Runs a job in the background, and its number.
pub fn run(berth: &Server, args: &[&str]) -> String {
    let made = berth.run_ok(&[&["run", "-d", "-o", "json"], args].concat());
    let made: Value = serde_json::from_str(&made).unwrap();
    let id = &made["id"];
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

pub fn until_runs(cluster: &Cluster, job: &str, count: usize) -> Vec<Value> {
    until("its pods run", || {
        let pods = pods(cluster, job);
        pods.len() == count && pods.iter().all(|pod| pod["status"]["phase"] == "Running")
    });
    pods(cluster, job)
}

/// Lets a simulated pod end well, as if its program had.
pub fn finish(cluster: &Cluster, pod: &str) {
    cluster.annotate(&["pod", "-n", NAMESPACE, pod, "testbed.berth.dev/runs=10ms"]);
}

pub fn variable(pod: &Value, name: &str) -> Value {
    let env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    env.into_iter().find(|one| one["name"] == name).unwrap_or_default()
}

#[test]
fn a_job_runs_as_a_pod_in_the_namespace_of_its_team_and_leaves_nothing_behind() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth_with(&cluster, IMAGE);
    let mut set = berth.command(&["secret", "set", "hf"]);
    let mut set = set.stdin(Stdio::piped()).spawn().unwrap();
    set.stdin.take().unwrap().write_all(b"s3cret-value\n").unwrap();
    assert!(set.wait().unwrap().success());
    let file = berth.home.path().join("job.yaml");
    let text = "name: train\ngpus: 1\ncpu: 4\nmemory: 8GB\nsecrets: {HF_TOKEN: hf}\n\
                run: python train.py\n";
    std::fs::write(&file, text).unwrap();
    let job = run(&berth, &["-f", file.to_str().unwrap()]);
    let pods = until_runs(&cluster, &job, 1);
    let pod = &pods[0];
    let container = &pod["spec"]["containers"][0];
    assert_eq!(pod["spec"]["nodeName"], "a");
    assert_eq!(container["image"], "registry.example/train:1");
    assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], "1");
    assert_eq!(variable(pod, "BERTH_JOB_ID")["value"], job.as_str());
    assert!(!pod.to_string().contains("s3cret-value"));
    let token = &variable(pod, "HF_TOKEN")["valueFrom"]["secretKeyRef"]["name"];
    let token = token.as_str().unwrap().to_owned();
    until("the secret has come", || exists(&cluster, &["secret", &token]));
    let secret = cluster.get(&["secret", "-n", NAMESPACE, &token]);
    assert_eq!(secret["data"]["HF_TOKEN"], "czNjcmV0LXZhbHVl");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["uid"]);
    until("it runs in the books", || state(&berth, &job) == "running");

    // What a team has around its pods.
    let namespace = cluster.get(&["namespace", NAMESPACE]);
    let labels = &namespace["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "baseline");
    let policy = cluster.get(&["networkpolicy", "-n", NAMESPACE, "berth"]);
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Ingress"]));
    let binding = cluster.get(&["rolebinding", "-n", NAMESPACE, "berth-members"]);
    assert!(binding["subjects"].to_string().contains("\"ada\""), "{binding}");
    assert!(exists(&cluster, &["serviceaccount", "berth-jobs"]));
    assert!(exists(&cluster, &["resourcequota", "berth"]));

    let pod = name(pod).to_owned();
    finish(&cluster, &pod);
    until("it is done", || state(&berth, &job) == "done");
    until("its pod is gone", || !exists(&cluster, &["pod", &pod]));
    until("its secret is gone", || !exists(&cluster, &["secret", &token]));
    let cost = berth.json(&["cost", "--by", "job"]);
    assert_eq!(cost["rows"].as_array().map(Vec::len), Some(1), "{cost}");
}

#[test]
fn a_gang_finds_itself_by_name_and_fails_as_a_whole() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth_with(&cluster, IMAGE);
    let wish = ["--nodes", "2", "-g", "8", "--launch", "ranks", "--name", "big"];
    let job = run(&berth, &[&wish[..], &["--", "python", "train.py"]].concat());
    let pods = until_runs(&cluster, &job, 2);
    let mut nodes: Vec<&str> =
        pods.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["a", "b"]);
    let service = format!("big-j{job}");
    let master = format!("task-0.{service}.{NAMESPACE}.svc");
    for (at, pod) in pods.iter().enumerate() {
        assert_eq!(variable(pod, "MASTER_ADDR")["value"], master.as_str());
        assert_eq!(variable(pod, "WORLD_SIZE")["value"], "16");
        assert_eq!(variable(pod, "NODE_RANK")["value"], at.to_string().as_str());
        assert_eq!(pod["spec"]["subdomain"], service.as_str());
    }
    let made = cluster.get(&["service", "-n", NAMESPACE, &service]);
    assert_eq!(made["spec"]["clusterIP"], "None");

    let waits = run(&berth, &["-g", "1", "--name", "next", "--", "true"]);
    let failed = r#"{"status": {"phase": "Failed", "containerStatuses": [{"name": "main",
        "image": "x", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}}"#;
    let pod = name(&pods[1]);
    cluster.patch(&["pod", "-n", NAMESPACE, pod, "--subresource=status", "-p", failed]);
    until("it has failed", || state(&berth, &job) == "failed");
    let shown = berth.job(&job);
    assert!(shown.to_string().contains("exit code 3"), "{shown}");
    until("nothing is left of it", || {
        self::pods(&cluster, &job).is_empty() && !exists(&cluster, &["service", &service])
    });
    until_runs(&cluster, &waits, 1);
}

#[test]
fn a_job_that_is_stopped_has_its_grace_and_what_cannot_run_is_refused() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth_with(&cluster, &["--namespace", "default=research"]);
    let without = berth.berth(&["run", "-d", "-g", "1", "--", "true"]);
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(said.contains("name an image"), "{said}");
    let shared = ["run", "-d", "-g", "shared", "--image", "x", "--", "true"];
    let said = String::from_utf8_lossy(&berth.berth(&shared).stderr).into_owned();
    assert!(said.contains("ask for a part such as 0.5"), "{said}");

    let job = run(&berth, &["-g", "8", "--image", "x", "--name", "long", "--", "sleep", "600"]);
    let pod = format!("long-j{job}-0-0");
    let found = || cluster.find(&["pod", "-n", "research", &pod]).unwrap_or_default();
    until("it runs", || found()["status"]["phase"] == "Running");
    // A program that takes its time to save.
    cluster.annotate(&["pod", "-n", "research", &pod, "testbed.berth.dev/stops=3s"]);
    let next = run(&berth, &["-g", "8", "--image", "x", "--name", "next", "--", "true"]);
    berth.run_ok(&["stop", &job]);
    until("it is asked to end", || found()["metadata"]["deletionTimestamp"].is_string());
    let grace = found()["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    assert!(grace >= 30, "{grace}");
    assert_eq!(state(&berth, &next), "pending", "the other still has its GPUs");
    until("it has ended", || state(&berth, &job) == "cancelled");
    until("the next one runs", || state(&berth, &next) == "running");

    // Somebody takes the pod away: it is made again.
    let again = |attempt: u32| format!("next-j{next}-{attempt}-0");
    cluster.delete(&["pod", "-n", "research", &again(0), "--grace-period=0", "--force"]);
    until("its second attempt runs", || {
        cluster.find(&["pod", "-n", "research", &again(1)]).is_some()
    });
}

#[test]
fn a_server_that_is_killed_makes_no_pod_twice_and_loses_none() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let mut berth = berth_with(&cluster, IMAGE);
    // The namespace is there, so that pods come quickly.
    let first = run(&berth, &["-g", "1", "--", "true"]);
    until_runs(&cluster, &first, 1);
    let mut jobs = vec![first];
    for round in 0..3 {
        for _ in 0..4 {
            jobs.push(run(&berth, &["-g", "1", "--", "true"]));
        }
        berth.kill();
        if round == 1 {
            // One ends while nobody looks, and one goes.
            let ends = pods(&cluster, &jobs[0]);
            finish(&cluster, name(&ends[0]));
            let goes = pods(&cluster, &jobs[1]);
            cluster.delete(&["pod", "-n", NAMESPACE, name(&goes[0]), "--now"]);
        }
        berth.start_again();
    }
    until("the first is done", || state(&berth, &jobs[0]) == "done");
    for job in &jobs[1..] {
        let found = until_runs(&cluster, job, 1);
        until("it runs in the books", || state(&berth, job) == "running");
        finish(&cluster, name(&found[0]));
        until("it is done", || state(&berth, job) == "done");
    }
    until("nothing is left", || {
        let all = cluster.get(&["pods", "-n", NAMESPACE]);
        all["items"].as_array().is_some_and(Vec::is_empty)
    });
}

/// What the container runtime of a simulated node has in its file.
fn runtime_log(lines: &[&str]) -> String {
    let line = |(at, text): (usize, &&str)| format!("2026-11-16T02:00:0{at}.5Z stdout F {text}\n");
    lines.iter().enumerate().map(line).collect()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn output_and_terminals_come_through_the_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let (log, config) = (folder.path().join("log"), folder.path().join("kwok.yaml"));
    std::fs::write(&log, runtime_log(&["epoch 1", "epoch 2"])).unwrap();
    let answers = format!(
        "apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {{name: logs}}
spec: {{logs: [{{logsFile: {log:?}}}]}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {{name: execs}}
spec: {{execs: [{{local: {{envs: [{{name: INSIDE, value: 'yes'}}]}}}}]}}
"
    );
    std::fs::write(&config, answers).unwrap();
    let cluster = Cluster::builder()
        .controller_manager()
        .kwok(Kwok::all_nodes())
        .flag(Part::Kwok, &format!("--config={}", config.display()))
        .start();
    // kwok says where its nodes are when it makes them ready.
    let node = node("a", "{}", "[]").replace("Ready, status: 'True'", "Ready, status: 'False'");
    cluster.apply(&node);
    until("the node has an address", || {
        let node = cluster.get(&["node", "a"]);
        node["status"]["addresses"].is_array() && node["spec"]["taints"].is_null()
    });
    let berth = berth_with(&cluster, IMAGE);
    let job = run(&berth, &["-g", "1", "--name", "talks", "--", "python", "train.py"]);
    let pods = until_runs(&cluster, &job, 1);
    until("it runs in the books", || state(&berth, &job) == "running");
    assert_eq!(berth.run_ok(&["logs", &job]), "epoch 1\nepoch 2\n");
    assert_eq!(berth.run_ok(&["logs", "-n", "1", &job]), "epoch 2\n");

    let typed = folder.path().join("typed");
    let script = format!("echo inside: $INSIDE; read word; echo $word > {}", typed.display());
    let mut shell = berth.command(&["shell", &job, "--", "sh", "-c", &script]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains("inside: yes")), "the program prints");
    shell.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    assert!(shell.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(&typed).unwrap(), "hello\n");

    let mut follows = berth.command(&["logs", "-f", &job]);
    let follows = follows.stdout(Stdio::piped()).spawn().unwrap();
    let mut file = std::fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"2026-11-16T02:00:07.5Z stdout F saved\n").unwrap();
    finish(&cluster, name(&pods[0]));
    until("it is done", || state(&berth, &job) == "done");
    let followed = follows.wait_with_output().unwrap();
    assert_eq!(out(&followed), "epoch 1\nepoch 2\nsaved\n");
    until("its pod is gone", || self::pods(&cluster, &job).is_empty());
    assert_eq!(berth.run_ok(&["logs", &job]), "epoch 1\nepoch 2\nsaved\n", "it was kept");
}

/// A pod with the labels of Berth's own.
fn labelled(namespace: &str, name: &str, job: &str, attempt: u32) -> String {
    let metadata = format!(
        "  namespace: {namespace}
  labels:
    app.kubernetes.io/managed-by: berth
    berth.dev/job: '{job}'
    berth.dev/task: '0'
    berth.dev/attempt: '{attempt}'
    berth.dev/secret: 'yes'
  annotations: {{berth.dev/secret: {name}}}"
    );
    super::support::pod(name, 0, &metadata, "  nodeName: a")
}

#[test]
fn a_pod_that_only_says_it_was_made_for_a_job_is_left_alone_and_so_is_its_secret() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let mut berth = berth_with(&cluster, IMAGE);
    let job = run(&berth, &["-g", "1", "--name", "train", "--", "true"]);
    let made = until_runs(&cluster, &job, 1);
    // By its name elsewhere, of an attempt that never was, beside it by another name, and of a job
    // that nobody knows.
    let forged = [
        ("default", format!("train-j{job}-0-0"), job.as_str(), 0),
        ("default", format!("train-j{job}-7-0"), job.as_str(), 7),
        (NAMESPACE, format!("other-j{job}-0-0"), job.as_str(), 0),
        ("default", "train-j18446744073709551615-0-0".to_owned(), "18446744073709551615", 0),
    ];
    for (namespace, name, job, attempt) in &forged {
        cluster.kubectl_stdout(&[
            "create",
            "secret",
            "generic",
            "-n",
            namespace,
            name,
            "--from-literal=a=b",
        ]);
        cluster.apply(&labelled(namespace, name, job, *attempt));
    }
    finish(&cluster, name(&made[0]));
    until("it is done", || state(&berth, &job) == "done");
    until("its pod is gone", || !exists(&cluster, &["pod", name(&made[0])]));
    // One that a server has left, of a job that has ended.
    cluster.apply(&labelled(NAMESPACE, name(&made[0]), &job, 0));
    until("what was left is removed", || !exists(&cluster, &["pod", name(&made[0])]));

    berth.kill();
    berth.start_again();
    let next = run(&berth, &["-g", "1", "--", "true"]);
    assert!(next.len() < 9, "numbers go on where they were: {next}");
    until_runs(&cluster, &next, 1);
    cluster.apply(&labelled(NAMESPACE, name(&made[0]), &job, 0));
    until("what was left is removed", || !exists(&cluster, &["pod", name(&made[0])]));
    for (namespace, name, ..) in &forged {
        for kind in ["pod", "secret"] {
            let found = cluster.get(&[kind, name, "-n", namespace]);
            let leaves = &found["metadata"]["deletionTimestamp"];
            assert!(found["metadata"]["uid"].is_string() && leaves.is_null(), "{found}");
        }
    }
}
