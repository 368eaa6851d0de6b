//! Pods with rules about each other take turns, and none of them blocks the others for long.

use super::{World, binds};
use crate::state::observation::Observation;
use crate::view::{NodeView, PodView};
use berth_kube::{Change, WatchUpdate};
use serde_json::json;

/// A cluster of nodes with eight cores each and no GPUs.
fn cores(nodes: &[&str]) -> World {
    let mut world = World::new(&[]);
    let node = |name: &&str| -> NodeView {
        let has = json!({ "cpu": "8", "memory": "8Gi", "pods": "10" });
        let object = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "status": {
                "allocatable": has,
                "capacity": has,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        world.reader.node(&serde_json::from_value(object).unwrap())
    };
    let nodes = nodes.iter().map(node).collect();
    world.observe(Observation::Nodes(WatchUpdate::Snapshot(nodes)));
    world
}

/// A pod that asks for so much CPU.
fn plain(world: &World, name: &str, cpu: &str, seconds: Option<u32>) -> PodView {
    world.pod(name, "berth", 0, |pod| {
        pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
        if let Some(seconds) = seconds {
            pod["spec"]["activeDeadlineSeconds"] = json!(seconds);
        }
    })
}

/// One that is spread over the nodes with all others of its label.
fn spread(world: &World, name: &str, cpu: &str) -> PodView {
    world.pod(name, "berth", 0, |pod| {
        pod["metadata"]["labels"] = json!({ "app": "web" });
        pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        }]);
    })
}

/// The pods that are bound by these observations, each a second after the other.
fn bound(world: &mut World, puts: Vec<PodView>, ticks: u32) -> Vec<String> {
    let mut found = Vec::new();
    for pod in puts {
        let seen = Observation::Pods(WatchUpdate::Changes(vec![Change::Applied(pod)]));
        found.extend(binds(&world.observe(seen)));
    }
    for _ in 0..ticks {
        found.extend(binds(&world.observe(Observation::Tick)));
    }
    found.into_iter().map(|(pod, _)| pod).collect()
}

#[test]
fn a_pod_with_a_reservation_does_not_block_others_that_its_rules_mean() {
    let mut world = cores(&["a", "b"]);
    // Six of eight cores of both nodes are taken for an hour.
    let fillers = ["f-0", "f-1"].map(|name| plain(&world, name, "6", Some(3_600)));
    assert_eq!(bound(&mut world, fillers.to_vec(), 0).len(), 2);
    let large = spread(&world, "large", "7");
    assert!(bound(&mut world, vec![large], 3).is_empty());
    let job = world.engine.core.jobs.keys().copied().max().unwrap();
    let promise = world.engine.core.state.promise_of(job);
    assert!(promise.is_some_and(|(_, is_firm)| !is_firm), "it holds a reservation: {promise:?}");
    let small = spread(&world, "small", "100m");
    assert_eq!(bound(&mut world, vec![small], 4), ["small"]);
    assert!(world.engine.core.state.promise_of(job).is_some(), "what it holds is kept");
}

#[test]
fn each_of_those_that_wait_has_its_turn_although_others_came_first() {
    let mut world = cores(&["a", "b"]);
    let fillers = ["f-0", "f-1"].map(|name| plain(&world, name, "6", None));
    assert_eq!(bound(&mut world, fillers.to_vec(), 0).len(), 2);
    let large: Vec<PodView> =
        (0..5).map(|at| spread(&world, &format!("large-{at}"), "7")).collect();
    assert!(bound(&mut world, large, 2).is_empty());
    let small = spread(&world, "small", "100m");
    assert_eq!(bound(&mut world, vec![small], 8), ["small"]);
}
