//! Gangs that lose a pod, and go on with the one that comes in its place.

use super::support::{add_nodes, berth, cluster, until};
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pods of the Job that run, by their index: uid and node.
fn running(cluster: &Cluster) -> BTreeMap<String, (String, String)> {
    let pods = cluster.get(&["pods", "-l", "batch.kubernetes.io/job-name=train"]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let index = "batch.kubernetes.io/job-completion-index";
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let runs = pods.iter().filter(|pod| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    });
    runs.map(|pod| {
        let meta = &pod["metadata"];
        (text(&meta["labels"][index]), (text(&meta["uid"]), text(&pod["spec"]["nodeName"])))
    })
    .collect()
}

#[test]
fn the_pod_that_a_job_makes_for_a_lost_one_joins_its_gang_at_once() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b", "c"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  template:
    metadata:
      annotations:
        {berth.dev/gang: train, berth.dev/gang-size: '3', testbed.berth.dev/runs: 1h}
    spec:
      schedulerName: berth
      restartPolicy: Never
      terminationGracePeriodSeconds: 2
      containers:
      - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}
",
    );
    until("all three run", || running(&cluster).len() == 3);
    let before = running(&cluster);
    let pods = cluster.get(&["pods", "-l", "batch.kubernetes.io/job-completion-index=1"]);
    let lost = pods["items"][0]["metadata"]["name"].as_str().expect("it has a name").to_owned();
    cluster.delete(&["pod", &lost, "--wait=false"]);
    until("another one runs in its place", || {
        running(&cluster).get("1").is_some_and(|(uid, _)| *uid != before["1"].0)
    });
    let after = running(&cluster);
    for index in ["0", "2"] {
        assert_eq!(after[index], before[index], "the others have gone on");
    }
    let jobs = berth.all_jobs();
    assert_eq!(jobs.len(), 1, "it is one job: {jobs:?}");
    assert_eq!(jobs[0]["state"], "running", "{jobs:?}");
}
