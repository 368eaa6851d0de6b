//! What no waiting changes is told on the pods and once in an event, where people look for it.
//! Ordinary waiting is told on the pods alone.

use super::crds::{install, object};
use super::support::{add_nodes, berth, cluster, gang, node_of, nodes_of, pod, until, why};
use berth_testbed::kube::Cluster;
use serde_json::Value;

/// The warnings about pods whose names begin so, by reason, beside those that say why a pod waits.
fn warnings(cluster: &Cluster, beginning: &str) -> Vec<(String, String)> {
    let events = cluster.get(&["events.events.k8s.io"]);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about = |event: &&Value| {
        let regarding = &event["regarding"];
        regarding["kind"] == "Pod"
            && text(&regarding["name"]).starts_with(beginning)
            && event["type"] == "Warning"
            && event["reason"] != "FailedScheduling"
            && event["reportingController"] == "berth.dev/scheduler"
    };
    let events = events.iter().filter(about);
    events.map(|event| (text(&event["reason"]), text(&event["note"]))).collect()
}

#[test]
fn a_gang_that_can_never_fit_says_so_on_its_pods_and_in_one_event() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let mut berth = berth(&cluster);
    cluster.apply(&pod("busy", 8, "  annotations: {testbed.berth.dev/runs: 1h}", ""));
    until("the node is full", || node_of(&cluster, "busy").is_some());
    cluster.apply(&pod("waits", 8, "", ""));
    cluster.apply(&gang("huge", 3, 8));
    let says = |room: &str| {
        (0..3).all(|at| {
            let why = why(&cluster, &format!("huge-{at}"));
            why.contains("it asks for 24 GPUs at once")
                && why.contains(room)
                && why.contains("Waiting does not help: change what the pod asks for")
        })
    };
    until("all pods say why", || says("room for 8"));
    until("there is an event", || !warnings(&cluster, "huge-").is_empty());
    let [(reason, note)] = &warnings(&cluster, "huge-")[..] else {
        panic!("one for all of them: {:?}", warnings(&cluster, "huge-"));
    };
    assert_eq!(reason, "NeverFits");
    assert!(note.contains("24 GPUs") && note.contains("add or change nodes"), "{note}");
    let described = cluster.kubectl_stdout(&["describe", "pod", "huge-0"]);
    assert!(described.contains("NeverFits"), "{described}");

    // Others may end, which is nothing to warn of.
    until("the other one says why", || why(&cluster, "waits").contains("it asks for 8 GPUs"));
    assert!(!why(&cluster, "waits").contains("Waiting does not help"));

    // Neither other figures nor another server are news.
    add_nodes(&cluster, &["b"]);
    until("all pods say the new figure", || says("room for 16"));
    berth.kill();
    berth.start_again();
    cluster.apply(&gang("other", 4, 8));
    until("another one is told by the new server", || !warnings(&cluster, "other-").is_empty());
    assert_eq!(warnings(&cluster, "huge-").len(), 1, "{:?}", warnings(&cluster, "huge-"));
    assert_eq!(warnings(&cluster, "waits"), []);

    cluster.delete(&["pod", "busy", "waits", "--force", "--grace-period=0"]);
    add_nodes(&cluster, &["c"]);
    until("with enough nodes it runs", || {
        nodes_of(&cluster, "huge", 3).iter().all(Option::is_some)
    });
}

#[test]
fn pods_of_an_unknown_queue_and_nonsense_say_so_on_themselves_and_in_one_event() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster);
    let mut berth = berth(&cluster);
    let in_queue =
        |pods: &str| pods.replace("annotations: {", "annotations: {berth.dev/queue: nlp, ");
    cluster.apply(&in_queue(&gang("lost", 2, 1)));
    let nonsense = "  annotations: {berth.dev/gang: g, berth.dev/gang-size: lots}";
    cluster.apply(&pod("odd", 1, nonsense, ""));
    let says = |pod: &str| why(&cluster, pod).contains("there is no queue nlp: create it");
    until("both pods say why", || says("lost-0") && says("lost-1"));
    until("there is an event", || !warnings(&cluster, "lost-").is_empty());
    until("and one about the other", || !warnings(&cluster, "odd").is_empty());
    let told = || (warnings(&cluster, "lost-"), warnings(&cluster, "odd"));
    let (lost, odd) = told();
    assert_eq!((lost.len(), lost[0].0.as_str()), (1, "UnknownQueue"), "{lost:?}");
    assert!(lost[0].1.contains("no queue nlp: create it, or choose one"), "{lost:?}");
    assert_eq!((odd.len(), odd[0].0.as_str()), (1, "NotUnderstood"), "{odd:?}");
    assert!(odd[0].1.contains("`berth.dev/gang-size` is `lots`"), "{odd:?}");

    berth.kill();
    berth.start_again();
    cluster.apply(&in_queue(&gang("later", 1, 1)));
    until("another one is told by the new server", || !warnings(&cluster, "later-").is_empty());
    assert_eq!(told(), (lost, odd), "nothing is told twice");

    cluster.apply(&object("Queue", "nlp", "{quota: {gpu: 4}}"));
    until("with the queue they run", || nodes_of(&cluster, "lost", 2).iter().all(Option::is_some));

    // A queue that comes a moment after its pods is nothing to warn of.
    let both = in_queue(&pod("prompt", 1, "  annotations: {a: b}", "")).replace("nlp", "vision")
        + &object("Queue", "vision", "{quota: {gpu: 4}}");
    cluster.apply(&both);
    until("it runs", || node_of(&cluster, "prompt").is_some());
    assert_eq!(warnings(&cluster, "prompt"), []);
}
