//! Whether a pod waits that need not.

use super::fits::fits;
use super::scene::{Gang, Pod, Scene};
use crate::fuzz::finding::{Finding, What};
use crate::fuzz::world::Key;
use std::collections::BTreeMap;

/// Steps of the search for places of a gang.
const SEARCH: usize = 5_000;

/// Of a run that has come to rest. Where `with_gangs` is false, pods of gangs are like others.
pub fn check(scene: &Scene, with_gangs: bool) -> Vec<Finding> {
    let waits = |pod: &&Pod| pod.node.is_none() && !pod.is_gated && !pod.is_leaving && !pod.is_over;
    let mut gangs: BTreeMap<&Gang, Vec<&Pod>> = BTreeMap::new();
    let mut findings = Vec::new();
    for pod in scene.pods.values().filter(waits) {
        match &pod.gang {
            Some(gang) if with_gangs => gangs.entry(gang).or_default().push(pod),
            _ => findings.extend(alone(scene, pod)),
        }
    }
    for (gang, pods) in gangs {
        let nodes = (pods.len() == gang.size).then(|| together(scene, &pods)).flatten();
        if let Some(nodes) = nodes {
            let text = format!("its pods fit on {}", nodes.join(", "));
            findings.push(Finding::new(What::GangLeftWaiting, &gang.name, text));
        }
    }
    findings
}

fn alone(scene: &Scene, pod: &Pod) -> Option<Finding> {
    if let Some(node) = scene.nodes.values().find(|node| fits(scene, pod, node).is_ok()) {
        let text = format!("it fits on {}", node.name);
        return Some(Finding::new(What::LeftWaiting, &pod.key, text));
    }
    let takes = scene.nodes.values().find(|node| {
        let lower = lower(scene, pod, &node.name);
        !lower.is_empty() && fits(&scene.without(&lower), pod, node).is_ok()
    });
    let node = takes.filter(|_| pod.may_preempt())?;
    let text = format!("it would fit on {} without pods of lower priorities", node.name);
    Some(Finding::new(What::LeftWithoutPreempting, &pod.key, text))
}

/// The pods on a node that it may stop.
fn lower<'a>(scene: &'a Scene, pod: &Pod, node: &'a str) -> Vec<&'a Key> {
    let on = scene.on(node).filter(|other| other.priority < pod.priority);
    on.map(|other| &other.key).collect()
}

fn together(scene: &Scene, pods: &[&Pod]) -> Option<Vec<String>> {
    let mut steps = SEARCH;
    let mut nodes = Vec::new();
    place(scene, pods, &mut nodes, &mut steps).then_some(nodes)
}

fn place(scene: &Scene, pods: &[&Pod], nodes: &mut Vec<String>, steps: &mut usize) -> bool {
    let [pod, rest @ ..] = pods else { return true };
    for node in scene.nodes.values() {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        if fits(scene, pod, node).is_ok() {
            nodes.push(node.name.clone());
            if place(&scene.with(pod, &node.name), rest, nodes, steps) {
                return true;
            }
            nodes.pop();
        }
    }
    false
}
