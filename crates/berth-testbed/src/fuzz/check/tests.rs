//! The checker finds what is broken, and nothing else.

use super::{Run, Scene, Step, complete, of_berth, valid};
use crate::fuzz::finding::What;
use crate::fuzz::world::{Key, Kind, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "z0",
        } },
        "spec": {},
        "status": { "allocatable": { "cpu": cpu, "pods": "10" } },
    })
}

fn pod(name: &str, cpu: &str, priority: i64, node: Option<&str>) -> Value {
    json!({
        "metadata": {
            "namespace": "fuzz-a", "name": name, "labels": { "app": name }, "annotations": {},
        },
        "spec": {
            "nodeName": node, "priority": priority,
            "containers": [{ "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": if node.is_some() { "Running" } else { "Pending" } },
    })
}

fn seen(pod: &Value) -> Step {
    Step::of(&json!({ "type": "MODIFIED", "object": pod })).unwrap()
}

fn gone(pod: &Value) -> Step {
    Step::of(&json!({ "type": "DELETED", "object": pod })).unwrap()
}

fn start(nodes: &[Value]) -> Scene {
    Scene::new(nodes, &[], &[])
}

fn away_from(mut pod: Value, app: &str) -> Value {
    pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([{ "topologyKey": "kubernetes.io/hostname",
                 "labelSelector": { "matchLabels": { "app": app } } }]);
    pod
}

fn whats(start: &Scene, steps: &[Step]) -> Vec<What> {
    valid::check(start, steps).iter().map(|finding| finding.what).collect()
}

fn world(kind: Kind) -> World {
    let (nodes, volumes, budgets) = (Vec::new(), Vec::new(), Vec::new());
    World { seed: 0, kind, nodes, volumes, budgets, phases: Vec::new() }
}

#[test]
fn a_node_with_more_than_it_can_hold_is_found() {
    let start = start(&[node("n0", "4")]);
    let (a, b) = (pod("a", "3", 0, Some("n0")), pod("b", "2", 0, Some("n0")));
    assert_eq!(whats(&start, &[seen(&a), seen(&b)]), [What::BrokenConstraint]);
    assert_eq!(whats(&start, &[seen(&a), gone(&a), seen(&b)]), []);
}

#[test]
fn anti_affinity_is_found_in_both_directions() {
    let start = start(&[node("n0", "4"), node("n1", "4")]);
    let shy = |at| away_from(pod("shy", "1", 0, Some(at)), "meant");
    let meant = pod("meant", "1", 0, Some("n0"));
    assert_eq!(whats(&start, &[seen(&shy("n0")), seen(&meant)]), [What::BrokenConstraint]);
    assert_eq!(whats(&start, &[seen(&meant), seen(&shy("n0"))]), [What::BrokenConstraint]);
    assert_eq!(whats(&start, &[seen(&meant), seen(&shy("n1"))]), []);
}

#[test]
fn a_pod_beside_another_may_reach_the_api_server_first() {
    let start = start(&[node("n0", "4"), node("n1", "4")]);
    let follower = |at: &str| {
        let mut pod = pod("follower", "1", 0, Some(at));
        pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchLabels": { "app": "first" } },
        }]);
        pod
    };
    let first = pod("first", "1", 0, Some("n0"));
    assert_eq!(whats(&start, &[seen(&follower("n0")), seen(&first)]), []);
    assert_eq!(whats(&start, &[seen(&first), seen(&follower("n1"))]), [What::BrokenConstraint]);
}

#[test]
fn a_pod_that_fits_and_one_that_could_preempt_are_found() {
    let mut scene = start(&[node("n0", "4")]);
    for step in [seen(&pod("low", "3", 100, Some("n0"))), seen(&pod("small", "1", 0, None))] {
        let Step::Seen(pod) = step else { unreachable!("both are seen") };
        scene.pods.insert(pod.key.clone(), *pod);
    }
    let found = |scene: &Scene| -> Vec<What> {
        complete::check(scene, true).iter().map(|finding| finding.what).collect()
    };
    assert_eq!(found(&scene), [What::LeftWaiting]);
    let Step::Seen(high) = seen(&pod("small", "3", 200, None)) else { unreachable!("it is seen") };
    scene.pods.insert(high.key.clone(), *high);
    assert_eq!(found(&scene), [What::LeftWithoutPreempting]);
    let Step::Seen(equal) = seen(&pod("small", "3", 100, None)) else { unreachable!("it is seen") };
    scene.pods.insert(equal.key.clone(), *equal);
    assert_eq!(found(&scene), []);
}

#[test]
fn a_victim_that_could_have_stayed_is_needless() {
    let start = start(&[node("n0", "4")]);
    let (a, b) = (pod("a", "2", 100, Some("n0")), pod("b", "2", 100, Some("n0")));
    let high = pod("high", "2", 1_000, Some("n0"));
    let run = |steps: Vec<Step>| Run {
        start: start.clone(),
        steps,
        is_at_rest: true,
        reasons: BTreeMap::new(),
        errors: Vec::new(),
        log: String::new(),
    };
    let one = run(vec![seen(&a), seen(&b), Step::Phase, gone(&a), seen(&high)]);
    let both = run(vec![seen(&a), seen(&b), Step::Phase, gone(&a), gone(&b), seen(&high)]);
    let found = |berth: &Run| -> Vec<What> {
        let findings = of_berth(&world(Kind::PreemptOne), berth, &one);
        findings.iter().map(|finding| finding.what).collect()
    };
    assert_eq!(found(&one), []);
    let needless = What::NeedlessVictim;
    assert_eq!(found(&both), [needless, needless, What::MoreVictims]);
}

#[test]
fn a_budget_that_another_victim_would_have_kept_is_found() {
    let budget = json!({
        "metadata": { "namespace": "fuzz-a", "name": "kept" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } },
    });
    let start = Scene::new(&[node("n0", "4")], &[budget], &[]);
    let (a, b) = (pod("a", "2", 100, Some("n0")), pod("b", "2", 100, Some("n0")));
    let high = pod("high", "2", 1_000, Some("n0"));
    let run = |victim: &Value| {
        let steps = vec![seen(&a), seen(&b), Step::Phase, gone(victim), seen(&high)];
        Run {
            start: start.clone(),
            steps,
            is_at_rest: true,
            reasons: BTreeMap::new(),
            errors: Vec::new(),
            log: String::new(),
        }
    };
    let found = of_berth(&world(Kind::PreemptOne), &run(&a), &run(&b));
    assert_eq!(found.iter().map(|one| one.what).collect::<Vec<_>>(), [What::BudgetViolated]);
    assert!(of_berth(&world(Kind::PreemptOne), &run(&b), &run(&b)).is_empty());
}

#[test]
fn a_gang_of_which_one_pod_has_no_node_is_found() {
    let start = start(&[node("n0", "4")]);
    let member = |name: &str, at| {
        let mut pod = pod(name, "1", 0, at);
        pod["metadata"]["annotations"] =
            json!({ "berth.dev/gang": "train", "berth.dev/gang-size": "2" });
        pod
    };
    let steps = [seen(&member("a", Some("n0"))), seen(&member("b", None))];
    let found = valid::check(&start, &steps);
    let about = Key { namespace: "fuzz-a".to_owned(), name: "train".to_owned() };
    assert_eq!((found.len(), found[0].what, &found[0].about), (1, What::PartialGang, &about));
}
