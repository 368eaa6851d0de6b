//! Parts of GPUs, and GPUs that are claimed.

use super::chart::{install_reservations, kubeconfig_of};
use super::support::{berth, cluster, node_of, until, why};
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

pub const H100: &str =
    "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: '81559'";

/// A node as the device plugin and GPU feature discovery would describe it.
pub fn add_node(cluster: &Cluster, name: &str, labels: &str, devices: &str) {
    cluster.apply(&format!(
        "apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{{labels}}}}}
status:
  capacity: &amounts {{cpu: 64, memory: 512Gi, pods: 110, {devices}}}
  allocatable: *amounts
  conditions: [{{type: Ready, status: 'True'}}]
"
    ));
    until("the node is ready and free of taints", || {
        cluster.get(&["node", name])["spec"]["taints"] == Value::Null
    });
}

/// A pod that asks for devices, and runs for as long as the test does.
fn pod(name: &str, devices: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{testbed.berth.dev/runs: 1h}}}}
spec:
  schedulerName: berth
{spec}
  containers:
  - {{name: main, image: none, resources: {{limits: {{{devices}}}}}}}
---
"
    )
}

fn bound(cluster: &Cluster, name: &str) -> String {
    until("the pod is bound", || node_of(cluster, name).is_some());
    node_of(cluster, name).expect("it was bound just now")
}

#[test]
fn mig_instances_are_given_as_the_node_has_them() {
    let cluster = cluster();
    let count = format!("{H100}, nvidia.com/gpu.count: '2', nvidia.com/mig.strategy: mixed");
    let instances = "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 3, nvidia.com/mig-3g.40gb: 1";
    add_node(&cluster, "mixed", &count, instances);
    // One instance is another scheduler's.
    let foreign = pod("foreign", "nvidia.com/mig-1g.10gb: 1", "  nodeName: mixed");
    cluster.apply(&foreign.replace("schedulerName: berth", "schedulerName: another"));
    let _berth = berth(&cluster);
    cluster.apply(&pod("two", "nvidia.com/mig-1g.10gb: 2", ""));
    assert_eq!(bound(&cluster, "two"), "mixed", "also two of one GPU");
    cluster.apply(&pod("one-more", "nvidia.com/mig-1g.10gb: 1", ""));
    cluster.apply(&pod("not-made", "nvidia.com/mig-2g.20gb: 1", ""));
    cluster.apply(&pod("large", "nvidia.com/mig-3g.40gb: 1", ""));
    cluster.apply(&pod("whole", "nvidia.com/gpu: 1", ""));
    bound(&cluster, "large");
    bound(&cluster, "whole");
    until("the one too many says why", || !why(&cluster, "one-more").is_empty());
    until("nothing is cut anew", || !why(&cluster, "not-made").is_empty());
    assert_eq!(node_of(&cluster, "one-more"), None);
    assert_eq!(node_of(&cluster, "not-made"), None);
    cluster.delete(&["pod", "foreign", "--force", "--grace-period=0"]);
    assert_eq!(bound(&cluster, "one-more"), "mixed");

    // Where all instances are alike they are called GPUs. A whole one is given first.
    let single = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-MIG-1g.10gb, \
                  nvidia.com/gpu.memory: '9856', nvidia.com/mig.strategy: single";
    cluster.apply(&pod("waits", "nvidia.com/gpu: 1", "  nodeSelector: {kind: small}"));
    until("it waits", || !why(&cluster, "waits").is_empty());
    add_node(&cluster, "single", &format!("{single}, kind: small"), "nvidia.com/gpu: 7");
    assert_eq!(bound(&cluster, "waits"), "single", "what a GPU is was found out late");
    cluster.apply(&pod("six", "nvidia.com/gpu: 6", "  nodeSelector: {kind: small}"));
    assert_eq!(bound(&cluster, "six"), "single");
    cluster.apply(&pod("eighth", "nvidia.com/gpu: 1", "  nodeSelector: {kind: small}"));
    until("the one too many waits", || !why(&cluster, "eighth").is_empty());
    assert_eq!(node_of(&cluster, "eighth"), None);
}

#[test]
fn replicas_of_shared_gpus_are_given_as_often_as_there_are() {
    let cluster = cluster();
    let _berth = berth(&cluster);
    cluster.apply(&pod("early", "nvidia.com/gpu.shared: 1", ""));
    until("nobody shares yet", || why(&cluster, "early").contains("no node hands out"));
    let slices = format!("{H100}, nvidia.com/gpu.replicas: '3'");
    let renamed = format!("{slices}, nvidia.com/gpu.sharing-strategy: time-slicing");
    add_node(&cluster, "renamed", &renamed, "nvidia.com/gpu.shared: 3");
    assert_eq!(bound(&cluster, "early"), "renamed");
    // Another scheduler has one, so that one is left.
    let foreign = pod("foreign", "nvidia.com/gpu.shared: 1", "  nodeName: renamed");
    cluster.apply(&foreign.replace("schedulerName: berth", "schedulerName: another"));
    let mps = "nvidia.com/gpu.product: NVIDIA-L4-SHARED, nvidia.com/gpu.memory: '23034', \
               nvidia.com/gpu.replicas: '13', nvidia.com/gpu.sharing-strategy: mps";
    add_node(&cluster, "mps", mps, "nvidia.com/gpu: 13");
    let many = |name: &str, devices: &str, count: u32| {
        let pods = (0..count).map(|at| pod(&format!("{name}-{at}"), devices, ""));
        cluster.apply(&pods.collect::<String>());
    };
    many("slice", "nvidia.com/gpu.shared: 1", 2);
    many("mps", "nvidia.com/gpu: 1", 14);
    let on = |name: &str, count: u32| {
        let nodes = (0..count).filter_map(|at| node_of(&cluster, &format!("{name}-{at}")));
        nodes.collect::<Vec<String>>()
    };
    until("all that there are have been given", || {
        on("slice", 2).len() == 1 && on("mps", 14).len() == 13
    });
    assert!(on("mps", 14).iter().all(|node| node == "mps"), "a share is not asked for elsewhere");
    until("the one too many waits", || {
        (0..14).any(|at| !why(&cluster, &format!("mps-{at}")).is_empty())
    });
    assert_eq!((on("slice", 2).len(), on("mps", 14).len()), (1, 13));
}

/// Where pods hold GPUs, and the account they have there.
pub const RESERVATIONS: &str = "berth-reservations";
pub const HOLDER: &str = "berth-reservation";

/// A pod with a fraction, whose container learns its GPU by its environment.
pub fn fraction(name: &str, share: &str) -> String {
    let told = "env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: \
                \"metadata.annotations['berth.dev/gpus']\"}}}]";
    pod(name, "", "")
        .replace("annotations: {", &format!("annotations: {{gpu-fraction: '{share}', "))
        .replace("image: none,", &format!("image: none, {told},"))
}

/// The pods that hold GPUs.
pub fn holders(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.get(&["pods", "-n", RESERVATIONS]);
    let names = pods["items"].as_array().into_iter().flatten();
    names.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The container of a pod that holds a GPU: the program that it runs, with the account it has.
pub fn container(cluster: &Cluster, holder: &str, uuid: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["reserve", "--kubeconfig"])
        .arg(kubeconfig_of(cluster, RESERVATIONS, HOLDER))
        .env("POD_NAME", holder)
        .env("POD_NAMESPACE", RESERVATIONS)
        .env("NVIDIA_VISIBLE_DEVICES", uuid)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Plays the container of a pod that holds a GPU until the pod says which one that is.
pub fn say_which(cluster: &Cluster, holder: &str, uuid: &str) {
    let mut program = container(cluster, holder, uuid);
    until("the pod says which GPU it has", || {
        let pod = cluster.get(&["pod", holder, "-n", RESERVATIONS]);
        pod["metadata"]["annotations"]["berth.dev/gpu-uuid"] == uuid
    });
    program.kill().expect("it holds the GPU until it is ended");
    program.wait().expect("it has ended");
}

fn told(cluster: &Cluster, pod: &str) -> Value {
    cluster.get(&["pod", pod])["metadata"]["annotations"]["berth.dev/gpus"].clone()
}

#[test]
fn fractions_share_a_gpu_that_a_pod_of_ours_holds() {
    let cluster = cluster();
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 2");
    let mut berth = berth(&cluster);
    cluster.apply(&fraction("half-0", "0.5").replace("env:", "args: [x], env:"));
    until("nothing holds GPUs yet", || why(&cluster, "half-0").contains("could not be held"));
    install_reservations(&cluster);
    until("a pod holds the GPU", || holders(&cluster).len() == 1);
    assert_eq!(node_of(&cluster, "half-0"), None, "its GPU is not known yet");
    let holder = holders(&cluster).remove(0);
    say_which(&cluster, &holder, "GPU-1");
    cluster.apply(&fraction("half-1", "0.5"));
    let mute = pod("mute", "", "").replace("{testbed", "{gpu-fraction: '0.5', testbed");
    cluster.apply(&mute);
    for name in ["half-0", "half-1"] {
        assert_eq!(bound(&cluster, name), "a");
        assert_eq!(told(&cluster, name), "GPU-1");
    }
    assert_eq!(holders(&cluster), std::slice::from_ref(&holder));
    until("it is told how to learn its GPU", || {
        why(&cluster, "mute").contains("NVIDIA_VISIBLE_DEVICES")
    });
    // The other GPU is still to be had whole, and only that one.
    cluster.apply(&pod("whole", "nvidia.com/gpu: 1", ""));
    assert_eq!(bound(&cluster, "whole"), "a");

    // A server that starts knows which GPU is shared.
    berth.kill();
    berth.start_again();
    cluster.delete(&["pod", "half-0", "--force", "--grace-period=0"]);
    cluster.apply(&fraction("third", "0.3"));
    assert_eq!(bound(&cluster, "third"), "a");
    assert_eq!(told(&cluster, "third"), "GPU-1");
    assert_eq!(holders(&cluster), [holder]);
    cluster.apply(&pod("late", "nvidia.com/gpu: 1", ""));
    until("no GPU is free", || !why(&cluster, "late").is_empty());
    // With the last share the GPU is whole again.
    cluster.delete(&["pod", "half-1", "third", "--force", "--grace-period=0"]);
    until("the GPU is given back", || holders(&cluster).is_empty());
    assert_eq!(bound(&cluster, "late"), "a");
}
