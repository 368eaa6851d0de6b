//! Faults of Berth, of the API server and of nodes.

use super::support::{add_nodes, berth, cluster, gang, node_of, nodes_of, own_cluster, pod, until};
use berth_kube::{Api, LeaderElection};
use berth_testbed::kube::{ADMIN, Cluster, Part};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

#[test]
fn a_server_that_is_killed_goes_on_where_it_was() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b", "c", "d"]);
    let mut berth = berth(&cluster);
    for round in 0..4 {
        cluster.apply(&gang(&format!("g{round}"), 4, 2));
        berth.kill();
        berth.start_again();
    }
    for round in 0..4 {
        let name = format!("g{round}");
        until("the gang is bound", || nodes_of(&cluster, &name, 4).iter().all(Option::is_some));
    }
    until("all run in the books", || {
        let jobs = berth.jobs();
        jobs.len() == 4 && jobs.iter().all(|job| job["state"] == "running")
    });
}

#[test]
fn a_lease_is_renewed_while_all_else_is_busy_and_given_back_in_the_end() {
    let cluster = Cluster::builder().start();
    let lasts = Duration::from_secs(8);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(Api::connect(Some(&cluster.kubeconfig(ADMIN)), None)).unwrap();
    let one =
        |name: &str| LeaderElection::new(api.clone(), "default", "berth", name.to_owned(), lasts);
    let (first, second) = (one("first"), one("second"));
    let mut kept = runtime.block_on(first.acquire(|_| {})).unwrap().renew_in_background();
    // As long as this takes nothing else of this runtime gets on.
    std::thread::sleep(lasts);
    runtime.block_on(async {
        assert!(timeout(Duration::ZERO, kept.lost()).await.is_err(), "it was not renewed");
        // Another one has to see it stand still for its whole time.
        assert!(timeout(lasts + lasts / 4, second.acquire(|_| {})).await.is_err(), "two lead");
        kept.release().await;
        second.acquire(|_| {}).await.expect("it was given back");
    });
}

#[test]
fn an_api_server_that_is_away_is_waited_for() {
    let mut cluster = own_cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(&gang("before", 2, 1));
    until("the first is bound", || nodes_of(&cluster, "before", 2).iter().all(Option::is_some));
    cluster.kill(Part::ApiServer);
    cluster.start(Part::ApiServer);
    cluster.apply(&gang("after", 2, 1));
    until("the second is bound", || nodes_of(&cluster, "after", 2).iter().all(Option::is_some));
    cluster.pause(Part::Etcd);
    cluster.resume(Part::Etcd);
    cluster.apply(&gang("last", 2, 1));
    until("the third is bound", || nodes_of(&cluster, "last", 2).iter().all(Option::is_some));
    assert_eq!(berth.jobs().len(), 3);
}

#[test]
fn a_node_that_is_deleted_under_a_gang_takes_it_down_as_a_whole() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    cluster.apply(&gang("wide", 2, 8));
    until("it is bound", || nodes_of(&cluster, "wide", 2).iter().all(Option::is_some));
    let lost = node_of(&cluster, "wide-0").unwrap();
    cluster.delete(&["node", &lost]);
    until("the node is gone from the books", || {
        let nodes = berth.get("/v1/nodes");
        nodes["items"].as_array().is_some_and(|nodes| nodes.len() == 1)
    });
    // Half a gang is of no use; its controller, where it has one, makes all of it anew.
    until("nothing is left of it", || berth.job("wide")["state"] == "cancelled");
}

#[test]
fn a_pod_that_waits_for_a_node_still_gets_it_after_a_restart() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let mut berth = berth(&cluster);
    cluster.apply(&pod("picky", 1, "", "  nodeSelector: {disk: nvme}"));
    until("it waits in the books", || berth.jobs().len() == 1);
    berth.kill();
    berth.start_again();
    assert_eq!(node_of(&cluster, "picky"), None);
    cluster.label(&["node", "a", "disk=nvme"]);
    until("it is bound", || node_of(&cluster, "picky").is_some());
}

#[test]
fn a_pod_whose_controller_makes_another_leaves_no_job_behind() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 1
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      schedulerName: berth
      containers:
      - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}
",
    );
    let bound = || {
        let pods = cluster.get(&["pods", "-l", "app=serve"]);
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let bound = pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string());
        bound.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    until("it is bound", || bound().len() == 1);
    let first = bound().remove(0);
    cluster.delete(&["pod", &first, "--wait=false"]);
    until("another one is bound", || bound().iter().any(|pod| *pod != first));
    until("only that one is left in the books", || {
        let jobs = berth.jobs();
        jobs.len() == 1 && jobs[0]["name"] != first.as_str()
    });
}

#[test]
fn a_task_that_ended_well_is_not_waited_for_when_the_rest_of_its_gang_begins_anew() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b", "c"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: batch/v1
kind: Job
metadata: {name: half}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 10
  template:
    metadata:
      labels: {job: half}
      annotations: {berth.dev/gang: half, berth.dev/gang-size: '2', testbed.berth.dev/runs: 1h}
    spec:
      schedulerName: berth
      restartPolicy: Never
      containers:
      - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}
",
    );
    let running = |index: &str| {
        let index = format!("job=half,batch.kubernetes.io/job-completion-index={index}");
        let pods = cluster.get(&["pods", "-l", &index]);
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let runs = |pod: &&Value| {
            pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let name =
            |pod: &Value, at: &str| pod.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let pod = pods.iter().find(runs)?;
        Some((name(pod, "/metadata/name")?, name(pod, "/spec/nodeName")?))
    };
    let succeed = |pod: &str| {
        let patch = "{\"status\": {\"phase\": \"Succeeded\"}}";
        cluster.patch(&["pod", pod, "--subresource=status", "--type=merge", "-p", patch]);
    };
    until("both run", || running("0").is_some() && running("1").is_some());
    let (first, _) = running("0").unwrap();
    let (second, lost) = running("1").unwrap();
    succeed(&first);
    until("one has ended", || cluster.get(&["job", "half"])["status"]["succeeded"] == 1);
    cluster.delete(&["node", &lost]);
    until("the other runs again", || running("1").is_some_and(|(pod, _)| pod != second));
    succeed(&running("1").unwrap().0);
    until("all of it is over", || cluster.get(&["job", "half"])["status"]["succeeded"] == 2);
    until("so it is in the books", || berth.job("half")["state"] == "done");
}

/// A pod of a gang of two, as a Job of that identity would make it.
fn numbered(name: &str, job: &str, index: u32) -> String {
    let marks = format!(
        "  labels: {{batch.kubernetes.io/controller-uid: {job}, \
         batch.kubernetes.io/job-completion-index: '{index}'}}
  annotations: {{berth.dev/gang: twins, berth.dev/gang-size: '2', testbed.berth.dev/runs: 1h}}"
    );
    pod(name, 1, &marks, "")
}

#[test]
fn a_gang_whose_pods_come_from_another_job_is_filled_again() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let _berth = berth(&cluster);
    cluster.apply(&numbered("zero", "first", 0));
    cluster.apply(&numbered("one", "first", 1));
    let bound = |name: &str| node_of(&cluster, name).is_some();
    until("the gang is bound", || bound("zero") && bound("one"));
    cluster.delete(&["pod", "one", "zero", "--grace-period=0", "--force"]);
    // As a JobSet does when it begins anew.
    cluster.apply(&numbered("next-zero", "second", 0));
    cluster.apply(&numbered("next-one", "second", 1));
    until("it is bound again", || bound("next-zero") && bound("next-one"));
}

#[test]
fn of_two_pods_that_do_the_same_work_one_is_part_of_the_gang() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    // As after a Job's controller that lost the answer to what it had made.
    let part = |name: &str, index: u32| cluster.apply(&numbered(name, "twins", index));
    let others_are_seen = |name: &str| {
        cluster.apply(&pod(name, 1, "", ""));
        until("a later pod is bound", || node_of(&cluster, name).is_some());
    };
    let succeed = |pod: &str| {
        let patch = "{\"status\": {\"phase\": \"Succeeded\"}}";
        cluster.patch(&["pod", pod, "--subresource=status", "--type=merge", "-p", patch]);
    };
    part("one", 1);
    part("same", 1);
    others_are_seen("later");
    let bound = || {
        let twins = ["one", "same"].into_iter();
        twins.filter(|name| node_of(&cluster, name).is_some()).collect::<Vec<&str>>()
    };
    assert_eq!(bound(), Vec::<&str>::new(), "one work makes no gang of two");
    part("zero", 0);
    until("the gang is bound", || node_of(&cluster, "zero").is_some() && bound().len() == 1);
    succeed(bound()[0]);
    others_are_seen("after-one");
    assert_eq!(bound().len(), 1, "its work is done");
    succeed("zero");
    until("all of it is over", || berth.job("twins")["state"] == "done");
    others_are_seen("last");
    assert_eq!(bound().len(), 1, "its work is done");
}
