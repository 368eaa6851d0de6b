//! Queues that several may describe, and what becomes of them when somebody does not any more.

use super::crds::{install, object, queue};
use super::pod_groups::kinds::define;
use super::support::{add_nodes, berth_with, cluster, until};
use berth_testbed::kube::Cluster;
use std::time::Duration;

const KAI: &str = "queues.v2.scheduling.run.ai";

/// A queue of KAI's with a quota of GPUs.
fn of_kai(name: &str, gpus: u32) -> String {
    format!(
        "{{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {{name: {name}}}, \
         spec: {{resources: {{gpu: {{quota: {gpus}, limit: -1}}}}}}}}\n---\n"
    )
}

/// What was said about objects of that name.
fn said(cluster: &Cluster, name: &str) -> String {
    let events = cluster.get(&["events.events.k8s.io", "--all-namespaces"]);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let about = events.iter().filter(|event| event["regarding"]["name"] == name);
    about.filter_map(|event| event["note"].as_str()).collect::<Vec<_>>().join("\n")
}

fn serve(cluster: &Cluster, is_served: bool) {
    let patch = format!(
        r#"[{{"op": "replace", "path": "/spec/versions/0/served", "value": {is_served}}}]"#
    );
    cluster.patch(&["crd", "queues.scheduling.run.ai", "--type=json", "-p", &patch]);
}

#[test]
fn queues_of_another_scheduler_go_when_they_are_deleted_and_not_before() {
    let cluster = cluster();
    install(&cluster);
    define(&cluster, &["scheduling.run.ai/v2 Queue queues!"]);
    add_nodes(&cluster, &["a"]);
    cluster.apply(&["vision", "speech", "text"].map(|name| of_kai(name, 2)).concat());
    let mut berth = berth_with(&cluster, &["--stand-in", "kai"]);
    let quota = |berth: &_, name: &str| queue(berth, name)["quota_milli"].as_i64();
    until("the queues are there", || quota(&berth, "text") == Some(2_000));

    // One of our own goes first, whatever becomes of the other one.
    cluster.apply(&object("Queue", "vision", "{quota: {gpu: 5}}"));
    until("the object has its way", || quota(&berth, "vision") == Some(5_000));
    until("the other one is told", || said(&cluster, "vision").contains("goes before it"));
    cluster.apply(&of_kai("vision", 3));
    cluster.apply(&of_kai("speech", 3));
    until("another one has changed", || quota(&berth, "speech") == Some(3_000));
    assert_eq!(quota(&berth, "vision"), Some(5_000));

    // What is deleted while nobody looks is gone, and what is not stays.
    berth.kill();
    cluster.delete(&[KAI, "speech"]);
    berth.start_again();
    until("it is gone", || quota(&berth, "speech").is_none());
    assert_eq!((quota(&berth, "vision"), quota(&berth, "text")), (Some(5_000), Some(2_000)));

    // A kind that is not served for a while has lost no objects.
    serve(&cluster, false);
    until("it is not served", || cluster.find(&[KAI]).is_none());
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(quota(&berth, "text"), Some(2_000));
    berth.kill();
    berth.start_again();
    assert_eq!(quota(&berth, "text"), Some(2_000));
    serve(&cluster, true);
    until("it is served", || cluster.find(&[KAI]).is_some());
    cluster.delete(&[KAI, "text"]);
    until("it is gone, too", || quota(&berth, "text").is_none());

    // Without our own object the other one holds.
    cluster.delete(&["queues.berth.dev", "vision"]);
    until("the other one has its way", || quota(&berth, "vision") == Some(3_000));
}
