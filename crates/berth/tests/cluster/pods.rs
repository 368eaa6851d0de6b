//! What becomes of pods.

use super::peers::job;
use super::support::{add_nodes, berth, cluster, gang, node, node_of, nodes_of, pod, until, why};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;

#[test]
fn a_plain_job_runs_to_completion_and_is_in_the_books() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      annotations: {testbed.berth.dev/runs: 1s}
    spec:
      schedulerName: berth
      restartPolicy: Never
      containers:
      - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}
",
    );
    until("the job is complete", || {
        cluster.json(&["get", "job", "train"])["status"]["succeeded"] == 2
    });
    until("both are done in the books", || {
        let jobs = berth.json(&["ps", "--all"]);
        let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "done")
    });
    let cost = berth.json(&["cost", "--by", "job"]);
    assert_eq!(cost["rows"].as_array().map(Vec::len), Some(2), "{cost}");
}

#[test]
fn a_gang_is_bound_whole_or_not_at_all() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    cluster.apply(&gang("big", 3, 8));
    cluster.apply(&gang("small", 2, 4));
    // The small one came later and fits; the big one does not, and takes nothing.
    until("the small one is bound", || nodes_of(&cluster, "small", 2).iter().all(Option::is_some));
    let small = nodes_of(&cluster, "small", 2);
    assert_eq!(small[0], small[1], "it fits one node");
    assert_eq!(nodes_of(&cluster, "big", 3), [None, None, None]);
    assert_eq!(berth.json(&["ps", "big"])["jobs"][0]["state"], "pending");

    add_nodes(&cluster, &["c", "d"]);
    until("the big one is bound", || nodes_of(&cluster, "big", 3).iter().all(Option::is_some));
}

#[test]
fn a_gang_waits_for_all_of_its_pods() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth(&cluster);
    let pods = gang("late", 2, 1);
    let (first, second) = pods.split_once("---\n").unwrap();
    cluster.apply(first);
    cluster.apply(&pod("other", 1, "", ""));
    until("another pod is bound", || node_of(&cluster, "other").is_some());
    assert_eq!(node_of(&cluster, "late-0"), None);
    cluster.apply(second);
    until("both are bound", || nodes_of(&cluster, "late", 2).iter().all(Option::is_some));
}

#[test]
fn pods_of_other_schedulers_count_as_used() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let foreign = pod("foreign", 6, "", "  nodeName: a").replace("berth", "another");
    cluster.apply(&foreign);
    let berth = berth(&cluster);
    cluster.apply(&pod("large", 4, "", ""));
    cluster.apply(&pod("small", 2, "", ""));
    until("the small one is bound", || node_of(&cluster, "small").is_some());
    assert_eq!(node_of(&cluster, "large"), None);
    let job = berth.json(&["why", "large"]);
    assert!(!job["blockers"].as_array().unwrap().is_empty(), "{job}");
    cluster.says(&["delete", "pod", "foreign", "--force", "--grace-period=0"]);
    until("the large one is bound", || node_of(&cluster, "large").is_some());
}

#[test]
fn selectors_affinity_and_taints_are_honoured() {
    let cluster = cluster();
    add_nodes(&cluster, &["plain"]);
    let tainted = "[{key: team, value: vision, effect: NoSchedule}]";
    cluster.apply(&node("fast", "{disk: nvme}", tainted));
    let _berth = berth(&cluster);
    cluster.apply(&pod("chooses", 1, "", "  nodeSelector: {disk: nvme}"));
    let both = "  nodeSelector: {disk: nvme}
  tolerations: [{key: team, operator: Exists}]";
    cluster.apply(&pod("may", 1, "", both));
    let affinity = "  tolerations: [{operator: Exists}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: disk, operator: NotIn, values: [nvme]}]";
    cluster.apply(&pod("avoids", 1, "", affinity));
    cluster.apply(&pod("any", 8, "", ""));
    until("the one that may is bound", || node_of(&cluster, "may").is_some());
    until("the one that avoids is bound", || node_of(&cluster, "avoids").is_some());
    assert_eq!(node_of(&cluster, "may").as_deref(), Some("fast"));
    assert_eq!(node_of(&cluster, "avoids").as_deref(), Some("plain"));
    assert_eq!(node_of(&cluster, "chooses"), None, "the taint keeps it out");
    // Nodes that run something may get other labels, too.
    cluster.says(&["taint", "node", "fast", "team-"]);
    until("the one that chooses is bound", || node_of(&cluster, "chooses").is_some());
    assert_eq!(node_of(&cluster, "chooses").as_deref(), Some("fast"));
    assert_eq!(node_of(&cluster, "any"), None, "no node has eight left");
}

#[test]
fn a_higher_class_takes_the_place_of_a_lower_one_with_its_grace() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: patient}
value: 900
preemptionPolicy: Never
",
    );
    let runs = "  annotations: {testbed.berth.dev/runs: 1h, testbed.berth.dev/stops: 2s}";
    cluster.apply(&pod("low", 8, runs, "  terminationGracePeriodSeconds: 20"));
    until("the low one runs", || {
        cluster.json(&["get", "pod", "low"])["status"]["phase"] == "Running"
    });
    // One that would rather wait displaces nobody.
    cluster.apply(&pod("patient", 8, "", "  priorityClassName: patient"));
    until("it says that it waits", || !why(&cluster, "patient").is_empty());
    assert_eq!(
        cluster.json(&["get", "pod", "low"])["metadata"]["deletionTimestamp"],
        serde_json::Value::Null
    );
    cluster.apply(&pod("high", 8, "", "  priorityClassName: urgent"));
    until("the low one is asked to end", || is_displaced(&cluster, "low", 20));
    assert_eq!(node_of(&cluster, "high"), None, "the low one still has its GPUs");
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    // Nobody makes the low one again.
    until("the low one has ended", || {
        berth.json(&["ps", "--all", "low"])["jobs"][0]["state"] == "cancelled"
    });
}

/// Whether a pod was told to leave, and has so many seconds for it.
fn is_displaced(cluster: &Cluster, name: &str, grace: u32) -> bool {
    let pod = cluster.kubectl(&["get", "pod", name, "-o", "json"]);
    let pod: Value = serde_json::from_slice(&pod.stdout).unwrap_or_default();
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let told = conditions.iter().any(|one| one["type"] == "DisruptionTarget");
    told && pod["metadata"]["deletionGracePeriodSeconds"] == grace
}

/// A class that others give way to.
const URGENT: &str = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, \
                      metadata: {name: urgent}, value: 1000}";

/// A Job of two pods that fill a node, with marks on its pods.
fn displaceable(name: &str, marks: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      annotations: {{{marks}testbed.berth.dev/runs: 1h, testbed.berth.dev/stops: 2s}}
    spec:
      schedulerName: berth
      restartPolicy: Never
      terminationGracePeriodSeconds: 20
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]
"
    )
}

/// The names of the pods of a Job that run.
fn running(cluster: &Cluster, job: &str) -> Vec<String> {
    let pods = cluster.json(&["get", "pods", &format!("--selector=job-name={job}")]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let runs = |pod: &&Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let names = pods.iter().filter(runs).map(|pod| pod["metadata"]["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Has a Job lose its place to a pod and get it back, and its pods end well then.
fn displace(cluster: &Cluster, name: &str) {
    until("the low one runs", || running(cluster, name).len() == 2);
    let first = running(cluster, name);
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    cluster.apply(&pod("high", 8, runs, "  priorityClassName: urgent"));
    until("the low one is asked to end", || first.iter().all(|pod| is_displaced(cluster, pod, 20)));
    assert_eq!(node_of(cluster, "high"), None, "the low one still has its GPUs");
    until("the high one is bound", || node_of(cluster, "high").is_some());
    cluster.says(&["delete", "pod", "high", "--force", "--grace-period=0"]);
    until("the low one runs again", || running(cluster, name).len() == 2);
    let second = running(cluster, name);
    assert!(second.iter().all(|pod| !first.contains(pod)), "{first:?} {second:?}");
    for pod in &second {
        cluster.says(&["annotate", "pod", pod, "testbed.berth.dev/runs=10ms", "--overwrite"]);
    }
    let complete = format!("job/{name}");
    cluster.says(&["wait", "--for=condition=Complete", &complete, "--timeout=120s"]);
}

#[test]
fn a_gang_that_its_job_makes_anew_is_the_same_job_again() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(URGENT);
    let marks = "berth.dev/gang: low, berth.dev/gang-size: '2', ";
    cluster.apply(&displaceable("low", marks));
    until("it is known", || !of_job(&berth, "low").is_empty());
    let before = job(&berth, "low")["id"].clone();
    displace(&cluster, "low");
    until("it is done in the books", || job(&berth, "low")["state"] == "done");
    let after = job(&berth, "low");
    assert_eq!((&after["id"], &after["attempts"]), (&before, &2.into()), "{after}");
}

#[test]
fn pods_of_no_gang_that_their_job_makes_anew_are_the_same_jobs_again() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(URGENT);
    cluster.apply(&displaceable("low", ""));
    displace(&cluster, "low");
    until("both are done in the books", || {
        let jobs = of_job(&berth, "low-");
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "done" && job["attempts"] == 2)
    });
}

#[test]
fn a_pod_that_is_made_before_the_one_in_its_place_has_ended_is_the_same_job_too() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(URGENT);
    cluster.apply(
        "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: low}
spec:
  replicas: 1
  selector: {matchLabels: {job-name: low}}
  template:
    metadata:
      labels: {job-name: low}
      annotations: {testbed.berth.dev/stops: 5s}
    spec:
      schedulerName: berth
      terminationGracePeriodSeconds: 20
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
",
    );
    until("it runs", || running(&cluster, "low").len() == 1);
    let first = running(&cluster, "low");
    let before = of_job(&berth, "low");
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    cluster.apply(&pod("high", 8, runs, "  priorityClassName: urgent"));
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    cluster.says(&["delete", "pod", "high", "--force", "--grace-period=0"]);
    until("it runs again", || running(&cluster, "low").len() == 1);
    assert_ne!(running(&cluster, "low"), first);
    let after = of_job(&berth, "low");
    assert_eq!((after.len(), &after[0]["id"]), (1, &before[0]["id"]), "{after:?}");
    assert_eq!(after[0]["attempts"], 2, "{after:?}");
}

/// The jobs in the books whose names begin so.
fn of_job(berth: &Server, beginning: &str) -> Vec<Value> {
    let all = berth.json(&["ps", "--all"])["jobs"].as_array().cloned().unwrap_or_default();
    let is_of = |job: &Value| job["name"].as_str().is_some_and(|name| name.starts_with(beginning));
    all.into_iter().filter(is_of).collect()
}

#[test]
fn what_is_not_understood_waits_and_says_so() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth(&cluster);
    let bad = "  annotations: {berth.dev/gang: g, berth.dev/gang-size: lots}";
    cluster.apply(&pod("odd", 1, bad, ""));
    cluster.apply(&pod("fine", 1, "", ""));
    until("it says why", || why(&cluster, "odd").contains("`berth.dev/gang-size` is `lots`"));
    until("the others go on", || node_of(&cluster, "fine").is_some());
    assert_eq!(node_of(&cluster, "odd"), None);
}
