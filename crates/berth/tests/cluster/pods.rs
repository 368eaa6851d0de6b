//! What becomes of pods.

use super::preemption::is_displaced;
use super::support::{add_nodes, berth, cluster, gang, node, node_of, nodes_of, pod, until, why};

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
    until("the job is complete", || cluster.get(&["job", "train"])["status"]["succeeded"] == 2);
    until("both are done in the books", || {
        let jobs = berth.all_jobs();
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
    assert_eq!(berth.job("big")["state"], "pending");

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
    cluster.delete(&["pod", "foreign", "--force", "--grace-period=0"]);
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
    cluster.kubectl_stdout(&["taint", "node", "fast", "team-"]);
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
    until("the low one runs", || cluster.get(&["pod", "low"])["status"]["phase"] == "Running");
    // One that would rather wait displaces nobody.
    cluster.apply(&pod("patient", 8, "", "  priorityClassName: patient"));
    until("it says that it waits", || !why(&cluster, "patient").is_empty());
    assert_eq!(
        cluster.get(&["pod", "low"])["metadata"]["deletionTimestamp"],
        serde_json::Value::Null
    );
    cluster.apply(&pod("high", 8, "", "  priorityClassName: urgent"));
    until("the low one is asked to end", || is_displaced(&cluster, "low", 20));
    assert_eq!(node_of(&cluster, "high"), None, "the low one still has its GPUs");
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    // Nobody makes the low one again.
    until("the low one has ended", || berth.job("low")["state"] == "cancelled");
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
