//! What `kubectl describe pod` and `berth` say of pods: where they were scheduled, why they wait, which
//! pods their gang misses, and when a limit ends them. And pods that a cordon does not keep away.

use super::support::{add_nodes, berth, berth_with, cluster, gang, node_of, pod, until, why};
use berth_testbed::kube::Cluster;
use serde_json::Value;

/// The notes of the events about a pod, by reason.
fn notes(cluster: &Cluster, pod: &str, reason: &str) -> Vec<String> {
    let events = cluster.get(&["events.events.k8s.io"]);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let is_it = |event: &&Value| {
        event["regarding"]["kind"] == "Pod"
            && event["regarding"]["name"] == pod
            && event["reason"] == reason
            && event["reportingController"] == "berth.dev/scheduler"
    };
    let note = |event: &Value| event["note"].as_str().unwrap_or_default().to_owned();
    events.iter().filter(is_it).map(note).collect()
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn describe_shows_where_a_pod_was_scheduled_or_why_it_was_not() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth(&cluster);
    cluster.apply(&pod("runs", 8, "  annotations: {testbed.berth.dev/runs: 1h}", ""));
    until("the node is full", || node_of(&cluster, "runs").is_some());
    cluster.apply(&pod("waits", 8, "", ""));
    until("an event says where", || !notes(&cluster, "runs", "Scheduled").is_empty());
    let scheduled = notes(&cluster, "runs", "Scheduled");
    assert_eq!(scheduled, ["Successfully assigned default/runs to a"]);
    until("an event says why", || !notes(&cluster, "waits", "FailedScheduling").is_empty());
    let waits = notes(&cluster, "waits", "FailedScheduling");
    assert_eq!(waits.len(), 1, "{waits:?}");
    for part in ["It asks for 8 GPUs", "Forecast: ", "Next: `berth why "] {
        assert!(waits[0].contains(part), "{part}: {waits:?}");
    }
    let described = cluster.kubectl_stdout(&["describe", "pod", "waits"]);
    assert!(described.contains("FailedScheduling"), "{described}");
}

#[test]
fn events_of_scheduled_pods_can_be_left_out() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth_with(&cluster, &["--no-scheduled-events"]);
    cluster.apply(&pod("runs", 8, "  annotations: {testbed.berth.dev/runs: 1h}", ""));
    until("the node is full", || node_of(&cluster, "runs").is_some());
    cluster.apply(&pod("waits", 8, "", ""));
    until("an event says why", || !notes(&cluster, "waits", "FailedScheduling").is_empty());
    assert_eq!(notes(&cluster, "runs", "Scheduled"), Vec::<String>::new());
}

#[test]
fn a_gang_that_misses_a_pod_says_so_on_its_pods_and_in_berth() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    let all = gang("train", 3, 1);
    let pods: Vec<&str> = all.split_inclusive("---\n").collect();
    cluster.apply(&pods[..2].concat());
    let says = "2 of 3 pods of gang train exist";
    until("both say so", || (0..2).all(|at| why(&cluster, &format!("train-{at}")).contains(says)));
    let conditions = cluster.get(&["pod", "train-0"])["status"]["conditions"].clone();
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let scheduled = conditions.iter().find(|one| one["type"] == "PodScheduled");
    assert_eq!(scheduled.map(|one| &one["reason"]), Some(&Value::from("GangIncomplete")));
    until("there is an event", || !notes(&cluster, "train-0", "GangIncomplete").is_empty());
    let listed = said(&berth.berth(&["ps"]));
    assert!(listed.contains("gang default/train") && listed.contains(says), "{listed}");
    let told = said(&berth.berth(&["why", "train"]));
    assert!(told.contains(says), "{told}");
    cluster.apply(pods[2]);
    until("all of them run", || {
        (0..3).all(|at| node_of(&cluster, &format!("train-{at}")).is_some())
    });
    assert!(!said(&berth.berth(&["ps"])).contains("pods of gang"));
}

#[test]
fn pods_of_a_daemon_set_run_on_cordoned_nodes() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let _berth = berth(&cluster);
    cluster.kubectl_stdout(&["cordon", "b"]);
    cluster.apply(
        "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      schedulerName: berth
      containers: [{name: main, image: none}]
",
    );
    let nodes = || {
        let pods = cluster.get(&["pods", "-l", "app=agent"]);
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let node = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
        let mut nodes: Vec<String> = pods.iter().filter_map(node).collect();
        nodes.sort();
        nodes
    };
    until("each node has its pod", || nodes() == ["a", "b"]);
    // Others stay away from the cordoned one.
    cluster.apply(&pod("fills", 8, "  annotations: {testbed.berth.dev/runs: 1h}", ""));
    until("the open node is full", || node_of(&cluster, "fills").is_some());
    assert_eq!(node_of(&cluster, "fills").as_deref(), Some("a"));
    cluster.apply(&pod("waits", 8, "", ""));
    until("the other one says why", || !why(&cluster, "waits").is_empty());
    assert_eq!(node_of(&cluster, "waits"), None);
}

#[test]
fn the_end_by_a_time_limit_is_announced_before_it_comes() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth(&cluster);
    let marks = "  annotations: {berth.dev/time-limit: 30s, testbed.berth.dev/runs: 1h}";
    cluster.apply(&pod("short", 1, marks, ""));
    cluster.apply(&pod("long", 1, "  annotations: {testbed.berth.dev/runs: 1h}", ""));
    until("it is announced", || !notes(&cluster, "short", "TimeLimitNear").is_empty());
    assert!(node_of(&cluster, "long").is_some());
    until("it comes", || !notes(&cluster, "short", "TimeLimitReached").is_empty());
    until("the pod is gone", || cluster.find(&["pod", "short"]).is_none());
    assert_eq!(notes(&cluster, "long", "TimeLimitNear"), Vec::<String>::new());
    assert!(node_of(&cluster, "long").is_some());
}
