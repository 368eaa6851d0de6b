//! Whether no constraint was broken, at any time of a run.

use super::fits::{at_the_time, lasting};
use super::history::Step;
use super::scene::{Pod, Scene};
use crate::fuzz::finding::{Finding, What};
use crate::fuzz::world::Key;
use std::collections::BTreeMap;

/// Steps of the search for an order in which placements were allowed. Beyond that it is not known
/// whether there is one, and nothing is said.
const SEARCH: usize = 20_000;

pub fn check(start: &Scene, steps: &[Step]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut scene = start.clone();
    // Since a pod went for the last time: what there was, and what was placed.
    let (mut before, mut placed): (Scene, Vec<Pod>) = (scene.clone(), Vec::new());
    let mut lately_gone: Option<Scene> = None;
    for step in steps {
        match step {
            Step::Phase => {}
            Step::Seen(pod) => {
                let was_placed = scene.pods.get(&pod.key).is_some_and(|known| known.node.is_some());
                if let Some(node) = pod.node.as_ref().filter(|_| !was_placed) {
                    let node = &scene.nodes[node];
                    if let Err(why) = lasting(&scene, pod, node) {
                        findings.push(broken(pod, &why));
                    }
                    placed.push((**pod).clone());
                }
                scene.pods.insert(pod.key.clone(), (**pod).clone());
            }
            Step::Gone(key) => {
                findings.extend(in_some_order(&before, &placed, lately_gone.as_ref()));
                lately_gone = Some(scene.clone());
                scene.pods.remove(key);
                (before, placed) = (scene.clone(), Vec::new());
            }
        }
    }
    findings.extend(in_some_order(&before, &placed, lately_gone.as_ref()));
    findings.extend(partial_gangs(&scene));
    findings
}

fn broken(pod: &Pod, why: &str) -> Finding {
    let node = pod.node.as_deref().unwrap_or_default();
    Finding::new(What::BrokenConstraint, &pod.key, format!("on {node}: {why}"))
}

/// Placements reach the API server in another order than that in which they were decided. There
/// has to be one in which each was allowed. A pod may have been placed before another one went.
fn in_some_order(before: &Scene, placed: &[Pod], gone: Option<&Scene>) -> Vec<Finding> {
    let (left, plain): (Vec<&Pod>, Vec<&Pod>) = placed.iter().partition(|pod| pod.has_rules());
    let mut scene = before.clone();
    for pod in plain {
        scene.pods.insert(pod.key.clone(), pod.clone());
    }
    // Mostly an order with all plain pods at its beginning will do, and is found at once.
    let all: Vec<&Pod> = placed.iter().collect();
    for (from, pods) in [(&scene, &left), (before, &all)] {
        let mut steps = SEARCH;
        if order(from, pods, &mut steps) || steps == 0 {
            return Vec::new();
        }
    }
    let mut findings = Vec::new();
    let mut now = scene.clone();
    for pod in left {
        let node = &before.nodes[pod.node.as_ref().expect("it is placed")];
        let verdicts = [at_the_time(&now, pod, node), at_the_time(before, pod, node)];
        let earlier = gone.map(|gone| at_the_time(gone, pod, node));
        now.pods.insert(pod.key.clone(), pod.clone());
        if let ([Err(why), Err(_)], None | Some(Err(_))) = (&verdicts, &earlier) {
            findings.push(broken(pod, why));
        }
    }
    findings
}

fn order(scene: &Scene, left: &[&Pod], steps: &mut usize) -> bool {
    if left.is_empty() {
        return true;
    }
    for at in 0..left.len() {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let pod = left[at];
        let node = &scene.nodes[pod.node.as_ref().expect("it is placed")];
        if at_the_time(scene, pod, node).is_ok() {
            let rest: Vec<&Pod> = left.iter().filter(|one| one.key != pod.key).copied().collect();
            if order(&scene.with(pod, &node.name), &rest, steps) {
                return true;
            }
        }
    }
    false
}

/// Gangs of which some pods have a node and others have none.
fn partial_gangs(scene: &Scene) -> Vec<Finding> {
    let mut gangs: BTreeMap<Key, (usize, usize)> = BTreeMap::new();
    for pod in scene.pods.values() {
        let Some(gang) = &pod.gang else { continue };
        let (placed, size) = gangs.entry(gang.name.clone()).or_insert((0, gang.size));
        *placed += usize::from(pod.node.is_some());
        *size = gang.size;
    }
    let partial = gangs.into_iter().filter(|(_, (placed, size))| *placed > 0 && placed < size);
    partial
        .map(|(name, (placed, size))| {
            Finding::new(What::PartialGang, &name, format!("{placed} of {size} pods have a node"))
        })
        .collect()
}
