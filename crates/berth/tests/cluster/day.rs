//! A short day of a cluster with the real controllers: rollouts, a drain, a lost node, while a gang
//! trains. The week of it is played in virtual time, beside the state of the cluster.

use super::support::{add_nodes, berth, cluster, until};
use berth_testbed::kube::{Cluster, Watch};
use serde_json::{Value, json};

/// A workload, with the same pods in each.
fn workload(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
{spec}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      schedulerName: berth
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: none, resources: {{requests: {{cpu: 1}}}}}}]
---
"
    )
}

/// A Job of three numbered pods with eight GPUs each.
const GANG: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimit: 20
  template:
    metadata:
      labels: {app: train}
      annotations: {berth.dev/gang: train, berth.dev/gang-size: '3', testbed.berth.dev/runs: 1h}
    spec:
      schedulerName: berth
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
---
";

const EVERY_MINUTE: &str = "apiVersion: batch/v1
kind: CronJob
metadata: {name: tidy}
spec:
  schedule: '* * * * *'
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: tidy}}
        spec:
          schedulerName: berth
          restartPolicy: Never
          containers: [{name: main, image: none, resources: {requests: {cpu: 1}}}]
---
";

/// Pods of a workload that run, as node and name.
fn running(cluster: &Cluster, app: &str) -> Vec<(String, String)> {
    let pods = cluster.get(&["pods", "-l", &format!("app={app}")]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let runs = |pod: &&Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = pods.iter().filter(runs);
    named.map(|pod| (text(&pod["spec"]["nodeName"]), text(&pod["metadata"]["name"]))).collect()
}

fn nodes(cluster: &Cluster) -> usize {
    cluster.get(&["nodes"])["items"].as_array().map_or(0, Vec::len)
}

fn is_complete(cluster: &Cluster) -> bool {
    let has = |app: &str| running(cluster, app).len();
    (has("web"), has("db"), has("agent"), has("train")) == (4, 3, nodes(cluster), 3)
}

/// Pods that Berth ended, which it says in their condition.
fn ended_by_berth(watch: &mut Watch) -> Vec<String> {
    let is_ours = |event: &Value| {
        let conditions = event["object"]["status"]["conditions"].as_array().cloned();
        conditions.unwrap_or_default().iter().any(|one| {
            one["type"] == "DisruptionTarget" && one["reason"] == "PreemptionByScheduler"
        })
    };
    let events = watch.news();
    events.iter().filter(|event| is_ours(event)).map(|event| event["object"].to_string()).collect()
}

/// As `kubectl drain` does: the node takes no more, and all but daemons leave it.
fn drain(cluster: &Cluster, node: &str) {
    cluster.patch(&["node", node, "-p", r#"{"spec": {"unschedulable": true}}"#]);
    for app in ["web", "db", "train"] {
        for (_, pod) in running(cluster, app).iter().filter(|(at, _)| at == node) {
            let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
            let eviction = json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod },
            });
            assert!(cluster.post(&path, &eviction.to_string()), "{pod} may go");
        }
    }
}

fn roll_out(cluster: &Cluster, kind: &str, name: &str, revision: u32) {
    let template = json!({ "metadata": { "annotations": { "revision": revision.to_string() } } });
    let patch = json!({ "spec": { "template": template } }).to_string();
    cluster.patch(&[kind, name, "-p", &patch]);
    until("the rollout is through", || {
        let status = cluster.get(&[kind, name])["status"].clone();
        let generation = cluster.get(&[kind, name])["metadata"]["generation"].clone();
        status["observedGeneration"] == generation
            && status["updatedReplicas"] == status["replicas"]
            && status["readyReplicas"] == status["replicas"]
    });
}

#[test]
#[ignore = "it takes a minute; make test-long runs it"]
fn workloads_live_through_rollouts_a_drain_and_a_lost_node() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b", "c", "d", "e"]);
    let _berth = berth(&cluster);
    let mut watch = cluster.watch("/api/v1/pods");
    cluster.apply(&workload("Deployment", "web", "  replicas: 4"));
    cluster.apply(&workload("StatefulSet", "db", "  replicas: 3\n  serviceName: db"));
    cluster.apply(&workload("DaemonSet", "agent", ""));
    cluster.apply(EVERY_MINUTE);
    cluster.apply(GANG);
    until("all is there", || is_complete(&cluster));

    for revision in 1..=2 {
        roll_out(&cluster, "deployment", "web", revision);
        roll_out(&cluster, "statefulset", "db", revision);
    }
    let (drained, _) = running(&cluster, "train").remove(0);
    drain(&cluster, &drained);
    until("all is there again", || is_complete(&cluster));
    assert!(running(&cluster, "train").iter().all(|(node, _)| *node != drained));
    cluster.patch(&["node", &drained, "-p", r#"{"spec": {"unschedulable": null}}"#]);

    let (lost, _) = running(&cluster, "train").remove(0);
    cluster.delete(&["node", &lost, "--wait=false"]);
    for app in ["web", "db", "train", "agent"] {
        for (_, pod) in running(&cluster, app).iter().filter(|(at, _)| *at == lost) {
            cluster.delete(&[
                "pod",
                pod,
                "--force",
                "--grace-period=0",
                "--wait=false",
                "--ignore-not-found",
            ]);
        }
    }
    until("all is there on the others", || is_complete(&cluster));
    add_nodes(&cluster, &[&lost]);
    until("the hourly job has run", || {
        let jobs = cluster.get(&["jobs"]);
        let mut jobs = jobs["items"].as_array().cloned().unwrap_or_default().into_iter();
        jobs.any(|job| job["metadata"]["name"] != "train" && job["status"]["succeeded"] == 1)
    });
    until("all is there at the end", || is_complete(&cluster));
    assert_eq!(ended_by_berth(&mut watch), Vec::<String>::new());
}
