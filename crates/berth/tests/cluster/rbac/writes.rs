//! What pods cost the API server: one write for each, whoever else is told of them.

use super::figure;
use super::setup::Scene;
use crate::support::{gang, pod, until};
use std::collections::BTreeMap;

/// GPUs of the cluster that pods get one each of, and pods besides that ask for none.
const WITH: u32 = 8;
const WITHOUT: u32 = 80;
/// What may be written besides, for all of them.
const OTHERS: usize = 3;

/// Berth leads, says where it is and asks what it may, with pods or without.
fn is_of_its_own(right: &str) -> bool {
    ["leases.", "endpointslices.", "selfsubject"].iter().any(|own| right.contains(own))
}

#[test]
fn a_pod_costs_one_write_which_binds_it() {
    let scene = Scene::new(&[]);
    let berth = scene.berth();
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    let with: String = (0..WITH).map(|at| pod(&format!("with-{at}"), 1, runs, "")).collect();
    let without: String =
        (0..WITHOUT).map(|at| pod(&format!("without-{at}"), 0, runs, "")).collect();
    scene.cluster.apply(&(with + &without + &gang("together", 4, 2)));
    let count = (WITH + WITHOUT + 4) as usize;
    until("all of them run", || {
        let running = scene.cluster.get(&["pods", "--field-selector=status.phase=Running"]);
        running["items"].as_array().is_some_and(|pods| pods.len() == count)
    });

    let mut bindings: BTreeMap<String, u32> = BTreeMap::new();
    let mut events: BTreeMap<String, u32> = BTreeMap::new();
    let mut others = Vec::new();
    for (right, name) in scene.writes() {
        match &*right {
            "create pods/binding" => *bindings.entry(name).or_default() += 1,
            "create events.events.k8s.io" => {
                let about = name.rsplit_once('.').map_or(&*name, |(pod, _)| pod);
                *events.entry(about.to_owned()).or_default() += 1;
            }
            right if is_of_its_own(right) => {}
            _ => others.push((right, name)),
        }
    }
    assert_eq!(bindings.len(), count, "{bindings:?}");
    assert!(bindings.values().all(|times| *times == 1), "{bindings:?}");
    // That it is scheduled, and why it was not where that took a while.
    assert!(events.values().all(|times| *times <= 2), "{events:?}");
    assert!(others.len() <= OTHERS, "{others:?}");
    let bound = figure(&berth, "berth_bindings_total{outcome=\"bound\"}");
    assert!((bound - count as f64).abs() < 0.5, "{bound} of {count}");
}
