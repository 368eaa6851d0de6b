//! Volumes that nodes attach, of which each attaches so many and no more, and volumes that have to
//! be made where there is storage for them.

use super::support::{berth, cluster, node, node_of, pod, until, volume, why};
use super::volumes::{claim, class, user};
use berth_testbed::kube::Cluster;
use std::collections::BTreeMap;

const DRIVER: &str = "disks.example.com";

/// So many volumes of the driver can be attached to a node.
fn limit(cluster: &Cluster, node: &str, count: u32) {
    cluster.apply(&format!(
        "apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {{name: {node}}}
spec: {{drivers: [{{name: {DRIVER}, nodeID: {node}, topologyKeys: [], allocatable: {{count: {count}}}}}]}}
"
    ));
}

fn two_nodes(cluster: &Cluster) {
    for name in ["a", "b"] {
        let labels = format!("{{kubernetes.io/hostname: {name}, rack: {name}}}");
        cluster.apply(&node(name, &labels, "[]"));
    }
    cluster.apply(&class("disks", "kubernetes.io/no-provisioner", "Immediate"));
}

/// A volume of the driver, and a claim that it is kept for.
fn disk(name: &str) -> String {
    let spec = format!(
        "  persistentVolumeReclaimPolicy: Retain
  storageClassName: disks
  claimRef: {{namespace: default, name: {name}}}
  csi: {{driver: {DRIVER}, volumeHandle: {name}}}"
    );
    volume(name, &spec) + &claim(name, "disks", "ReadWriteOnce")
}

/// The pods of a gang, each with a disk of its own, and the disks.
fn gang(name: &str, size: u32) -> String {
    let each = (0..size).map(|at| {
        let (name, gang) = (format!("{name}-{at}"), name);
        let marks =
            format!("  annotations: {{berth.dev/gang: {gang}, berth.dev/gang-size: '{size}'}}");
        let volumes =
            format!("  volumes: [{{name: d, persistentVolumeClaim: {{claimName: {name}}}}}]");
        disk(&name) + &pod(&name, 1, &marks, &volumes)
    });
    each.collect()
}

/// How many of these pods are on each node.
fn counts(cluster: &Cluster, pods: &[String]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for node in pods.iter().filter_map(|pod| node_of(cluster, pod)) {
        *counts.entry(node).or_default() += 1;
    }
    counts
}

fn waits_for_room(cluster: &Cluster, pod: &str) {
    until(&format!("{pod} says that no node attaches more"), || {
        why(cluster, pod).contains(&format!("cannot attach that many more volumes of {DRIVER}"))
    });
    assert_eq!(node_of(cluster, pod), None);
}

#[test]
fn a_node_attaches_so_many_volumes_and_no_more() {
    let cluster = cluster();
    two_nodes(&cluster);
    limit(&cluster, "a", 2);
    limit(&cluster, "b", 1);
    let _berth = berth(&cluster);
    let is_bound = |name: &str| node_of(&cluster, name).is_some();
    let names: Vec<String> = ["v0", "v1", "v2"].map(str::to_owned).to_vec();
    for name in &names {
        cluster.apply(&(disk(name) + &user(name, name)));
    }
    until("those that have room are bound", || names.iter().all(|name| is_bound(name)));
    let there = counts(&cluster, &names);
    assert_eq!((there["a"], there["b"]), (2, 1), "whoever finds a node full goes elsewhere");

    // GPUs are free on both, so whoever has no volume to attach, or one that is attached, goes on.
    cluster.apply(&(disk("v3") + &user("v3", "v3")));
    waits_for_room(&cluster, "v3");
    cluster.apply(&pod("plain", 1, "", ""));
    cluster.apply(&user("again", "v0"));
    until("they are bound", || is_bound("plain") && is_bound("again"));
    assert_eq!(node_of(&cluster, "again"), node_of(&cluster, "v0"));

    // A volume is attached for as long as some pod there uses it.
    cluster.delete(&["pod", "v0", "--wait=true"]);
    cluster.apply(&(disk("v4") + &user("v4", "v4")));
    waits_for_room(&cluster, "v4");
    assert!(!is_bound("v3"));
    let room = node_of(&cluster, "again");
    cluster.delete(&["pod", "again", "--wait=true"]);
    until("the first of them has its place", || is_bound("v3") || is_bound("v4"));
    let (first, last) = if is_bound("v3") { ("v3", "v4") } else { ("v4", "v3") };
    assert_eq!(node_of(&cluster, first), room);
    waits_for_room(&cluster, last);

    // What is still attached counts, though no pod there uses it any more.
    cluster.apply(&format!(
        "{}apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {{name: left}}
spec: {{attacher: {DRIVER}, nodeName: b, source: {{persistentVolumeName: left}}}}
",
        disk("left")
    ));
    limit(&cluster, "b", 2);
    cluster.apply(&(disk("v5") + &user("v5", "v5")));
    waits_for_room(&cluster, "v5");
    assert!(!is_bound(last));
    limit(&cluster, "b", 4);
    until("more can be attached", || is_bound(last) && is_bound("v5"));
    assert_eq!(node_of(&cluster, last).as_deref(), Some("b"));
    assert_eq!(node_of(&cluster, "v5").as_deref(), Some("b"));
}

#[test]
fn the_volumes_of_a_gang_count_together() {
    let cluster = cluster();
    two_nodes(&cluster);
    limit(&cluster, "a", 2);
    limit(&cluster, "b", 2);
    let _berth = berth(&cluster);
    let pods = |name: &str, size: u32| -> Vec<String> {
        (0..size).map(|at| format!("{name}-{at}")).collect()
    };
    // One node has GPUs for all of them.
    cluster.apply(&gang("four", 4));
    let four = pods("four", 4);
    until("all of it is bound", || counts(&cluster, &four).values().sum::<u32>() == 4);
    assert_eq!(counts(&cluster, &four), [("a".to_owned(), 2), ("b".to_owned(), 2)].into());
    let delete: Vec<&str> = ["pod"].into_iter().chain(four.iter().map(|one| &**one)).collect();
    cluster.delete(&delete);

    cluster.apply(&gang("five", 5));
    let five = pods("five", 5);
    waits_for_room(&cluster, "five-0");
    assert!(counts(&cluster, &five).is_empty(), "none of it begins without the others");
    limit(&cluster, "b", 3);
    until("all of it is bound", || counts(&cluster, &five).values().sum::<u32>() == 5);
    assert_eq!(counts(&cluster, &five), [("a".to_owned(), 2), ("b".to_owned(), 3)].into());
}

#[test]
fn volumes_are_made_where_there_is_storage_for_them() {
    let cluster = cluster();
    two_nodes(&cluster);
    let capacity = |node: &str, size: &str| {
        cluster.apply(&format!(
            "apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {{name: of-{node}, namespace: default}}
storageClassName: made
nodeTopology: {{matchLabels: {{rack: {node}}}}}
capacity: {size}
"
        ));
    };
    let driver = "apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disks.example.com}
spec: {attachRequired: false, storageCapacity: true}
---
";
    cluster.apply(&(driver.to_owned() + &class("made", DRIVER, "WaitForFirstConsumer")));
    capacity("a", "4Gi");
    let _berth = berth(&cluster);
    cluster.apply(&(claim("new", "made", "ReadWriteOnce") + &user("maker", "new")));
    until("there is too little", || {
        why(&cluster, "maker").contains("too little storage of the class made for the claim new")
    });
    let chosen = || {
        let claim = cluster.get(&["pvc", "new"]);
        let annotations = &claim["metadata"]["annotations"];
        annotations["volume.kubernetes.io/selected-node"].as_str().map(str::to_owned)
    };
    assert_eq!(chosen(), None);
    capacity("b", "6Gi");
    until("it is made where there is enough", || chosen().is_some());
    assert_eq!(chosen().as_deref(), Some("b"));
    cluster.apply(&(claim("more", "made", "ReadWriteOnce") + &user("another", "more")));
    let chosen = || cluster.get(&["pvc", "more"])["metadata"]["annotations"].clone();
    until("a node is chosen for the next", || {
        chosen()["volume.kubernetes.io/selected-node"] == "b"
    });
}
