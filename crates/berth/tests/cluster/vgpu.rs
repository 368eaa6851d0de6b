//! A manifest of Volcano with parts of GPUs, on nodes that have nothing of Volcano's.

use super::fractions::{berth_in_place_of, environment, play, variable, wait_for_webhook};
use super::gpus::{H100, add_node, holders};
use super::other_schedulers::{add_namespaces, events, sample, why};
use super::support::{own_cluster, until};
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::collections::BTreeMap;

fn pod(cluster: &Cluster, name: &str) -> Value {
    cluster.get(&["pod", name, "--namespace=ml"])
}

fn gpus_of(cluster: &Cluster, name: &str) -> Vec<String> {
    let told = environment(&pod(cluster, name)).expect("its container learns its GPU");
    told.split(',').map(str::to_owned).collect()
}

#[test]
fn pods_for_volcano_with_half_a_gpu_each_share_one_and_the_webhook_tells_them_which() {
    let cluster = own_cluster();
    add_namespaces(&cluster, &["ml"]);
    cluster.label(&["namespace", "ml", "berth.dev/managed=true"]);
    add_node(&cluster, "theirs", H100, "nvidia.com/gpu: 8, volcano.sh/vgpu-number: 80");
    let _berth = berth_in_place_of("volcano", &cluster);
    wait_for_webhook(&cluster, "volcano/vgpu.yaml");
    cluster.apply(&sample("volcano/vgpu.yaml"));
    until("they keep off the device plugin of Volcano", || {
        why(&cluster, "ml", "first").contains("not handed out by Volcano's device plugin")
    });

    add_node(&cluster, "a", H100, "nvidia.com/gpu: 1");
    let node_of = |name: &str| pod(&cluster, name)["spec"]["nodeName"].clone();
    let mut said = BTreeMap::new();
    until("those with half a GPU are bound", || {
        play(&cluster, &mut said);
        node_of("first") == "a" && node_of("second") == "a"
    });
    assert_eq!(gpus_of(&cluster, "first"), ["GPU-0"]);
    assert_eq!(gpus_of(&cluster, "second"), ["GPU-0"]);
    assert_eq!(holders(&cluster).len(), 1, "they share it");
    assert!(node_of("pair").is_null() && node_of("alone").is_null(), "there is no more of it");

    add_node(&cluster, "b", H100, "nvidia.com/gpu: 3");
    until("the others are bound", || {
        play(&cluster, &mut said);
        node_of("pair") == "b" && node_of("alone") == "b"
    });
    let (pair, alone) = (gpus_of(&cluster, "pair"), gpus_of(&cluster, "alone"));
    assert_eq!((pair.len(), alone.len()), (2, 1));
    assert!(!pair.contains(&alone[0]), "{alone:?} is nobody else's: {pair:?}");
    assert!(variable(&pod(&cluster, "pair")).is_object());
    assert!(pod(&cluster, "pair")["spec"]["containers"][1]["env"].is_null(), "it asks for none");

    let odd = sample("volcano/vgpu.yaml").replace("name: first", "name: odd");
    let odd =
        odd.split("\n---\n").next().expect("the first").replace("memory: 40000", "cores: 200");
    cluster.apply(&odd);
    let told = "`volcano.sh/vgpu-cores` is `200`";
    until("nonsense is told", || why(&cluster, "ml", "odd").contains(told));
    until("also in an event", || events(&cluster).contains(told));
}
