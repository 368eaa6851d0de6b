//! Worlds with full nodes, on which pods of higher priorities need room.

use super::nodes::{self, Size, ZONE, ZONES};
use super::pods::{self, APPS, Ask};
use super::{POLITE, rules, traits};
use crate::fuzz::random::Random;
use crate::fuzz::world::{Kind, Phase, World};
use serde_json::{Value, json};

/// The priorities of those that fill the nodes. Nothing preempts the last one.
const FILL: [i32; 4] = [100, 200, 300, 2_000];

pub fn world(seed: u64, random: &mut Random, kind: Kind) -> World {
    let count = random.between(2, 6);
    let graces: &[usize] = random.pick(&[&[0][..], &[1], &[30], &[0, 1, 30]]);
    let mut fill = Vec::new();
    let mut all_nodes = Vec::new();
    for at in 0..count {
        let size =
            Size { cpu: random.pick(&[4, 8]), memory_gi: 16, gpus: random.pick(&[0, 0, 0, 2, 4]) };
        let mut node = nodes::plain(&format!("n{at}"), size);
        node["metadata"]["labels"][ZONE] = random.pick(&ZONES).into();
        all_nodes.push(node);
        fill_node(random, at, size, graces, &mut fill);
    }
    if kind == Kind::PreemptMany && random.percent(40) {
        join(random, &mut fill);
    }
    let budgets = budgets(random, &fill);
    let preemptors = if kind == Kind::PreemptOne { 1 } else { random.between(2, 5) };
    let urgent = (0..preemptors).map(|at| urgent(random, at, kind, count)).collect();
    let phases = vec![
        Phase { leaving: Vec::new(), pods: fill },
        Phase { leaving: Vec::new(), pods: urgent },
    ];
    World { seed, kind, nodes: all_nodes, volumes: Vec::new(), budgets, phases }
}

/// Pods that are told to be on this node, until there is little room left.
fn fill_node(
    random: &mut Random,
    node: usize,
    size: Size,
    graces: &[usize],
    fill: &mut Vec<Value>,
) {
    let (mut cpu, mut memory, mut gpus) = (size.cpu * 1_000, size.memory_gi * 1_024, size.gpus);
    let is_coarse = random.percent(50);
    for at in 0..12 {
        let cpu_milli = match is_coarse {
            true => random.pick(&[1_000, 2_000, 4_000]),
            false => random.pick(&[100, 500, 1_000]),
        };
        let ask = Ask {
            cpu_milli: cpu_milli.min(cpu),
            memory_mi: random.pick(&[256, 1_024, 2_048]).min(memory),
            gpus: if gpus > 0 { random.between(0, 2.min(gpus)) } else { 0 },
        };
        if ask.cpu_milli == 0 || ask.memory_mi == 0 {
            break;
        }
        cpu -= ask.cpu_milli;
        memory -= ask.memory_mi;
        gpus -= ask.gpus;
        let mut pod = pods::pod(random, &format!("f{node}-{at}"), &ask);
        pods::pin(&mut pod, &format!("n{node}"));
        let priority = FILL[random.pick(&[0, 0, 0, 1, 1, 2, 3])];
        pods::set_class(&mut pod, &format!("p{priority}"));
        let grace = random.pick(graces);
        pods::set_grace(&mut pod, grace);
        if random.percent(10) {
            traits::port(random, &mut pod);
        }
        fill.push(pod);
    }
}

/// Makes a gang of some of those that fill nodes.
fn join(random: &mut Random, fill: &mut [Value]) {
    let size = random.between(2, 3).min(fill.len());
    let Some(first) = fill.first() else { return };
    let (namespace, class) =
        (first["metadata"]["namespace"].clone(), first["spec"]["priorityClassName"].clone());
    let ends = first["metadata"]["annotations"].clone();
    let grace = first["spec"]["terminationGracePeriodSeconds"].clone();
    let step = fill.len() / size;
    for at in 0..size {
        let pod = &mut fill[at * step];
        pod["metadata"]["namespace"] = namespace.clone();
        pod["metadata"]["annotations"] = ends.clone();
        pod["spec"]["priorityClassName"] = class.clone();
        pod["spec"]["terminationGracePeriodSeconds"] = grace.clone();
        pods::set_gang(pod, "old", size);
    }
}

/// The controllers of Kubernetes count pods without an owner for `minAvailable` only.
fn budgets(random: &mut Random, fill: &[Value]) -> Vec<Value> {
    let mut budgets = Vec::new();
    for app in APPS {
        if !random.percent(35) {
            continue;
        }
        let of_app = |pod: &&Value| {
            pod["metadata"]["labels"]["app"] == app && pod["metadata"]["namespace"] == "fuzz-a"
        };
        let covered = fill.iter().filter(of_app).count();
        let may_go = random.between(0, 2).min(covered);
        budgets.push(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": format!("budget-{app}"), "namespace": "fuzz-a" },
            "spec": {
                "minAvailable": covered - may_go, "selector": { "matchLabels": { "app": app } },
            },
        }));
    }
    budgets
}

/// A pod that needs the place of others.
fn urgent(random: &mut Random, at: usize, kind: Kind, nodes: usize) -> Value {
    let ask = Ask {
        cpu_milli: random.pick(&[500, 1_000, 2_000, 3_500]),
        memory_mi: random.pick(&[64, 512, 6_144]),
        gpus: random.pick(&[0, 0, 0, 1, 2]),
    };
    let mut pod = pods::pod(random, &format!("u{at}"), &ask);
    let class = match kind {
        Kind::PreemptOne => "p1000".to_owned(),
        _ if random.percent(10) => POLITE.0.to_owned(),
        _ => format!("p{}", random.pick(&[300, 400, 1_000])),
    };
    pods::set_class(&mut pod, &class);
    match random.between(0, 19) {
        0 => traits::node_selector(random, &mut pod),
        1 | 2 => traits::required_nodes(random, &mut pod, nodes),
        3 => traits::port(random, &mut pod),
        4 => rules::anti_affinity(random, &mut pod),
        5 => rules::spread(random, &mut pod),
        _ => {}
    }
    pod
}
