//! Draws nodes.

use crate::fuzz::random::Random;
use serde_json::{Value, json};

pub const HOST: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const RACK: &str = "rack";
pub const ZONES: [&str; 3] = ["z0", "z1", "z2"];

/// How large a node is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub cpu: usize,
    pub memory_gi: usize,
    pub gpus: usize,
}

/// A node that takes any pod.
pub fn plain(name: &str, size: Size) -> Value {
    let Size { cpu, memory_gi, gpus } = size;
    let mut amounts = json!({
        "cpu": cpu.to_string(), "memory": format!("{memory_gi}Gi"),
        "ephemeral-storage": "20Gi", "pods": "110",
    });
    if gpus > 0 {
        amounts["nvidia.com/gpu"] = gpus.to_string().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { HOST: name } },
        "spec": {},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    })
}

pub fn size(random: &mut Random) -> Size {
    Size {
        cpu: random.pick(&[4, 8, 16, 16]),
        memory_gi: random.pick(&[8, 16, 32]),
        gpus: random.pick(&[0, 0, 4, 8, 8]),
    }
}

/// A node with labels, and perhaps taints or little room for pods.
pub fn node(random: &mut Random, at: usize) -> Value {
    let size = size(random);
    let mut node = plain(&format!("n{at}"), size);
    let labels = &mut node["metadata"]["labels"];
    if random.percent(90) {
        labels[ZONE] = random.pick(&ZONES).into();
    }
    if random.percent(60) {
        labels[RACK] = random.pick(&["r0", "r1"]).into();
    }
    if random.percent(60) {
        labels["disk"] = random.pick(&["ssd", "hdd"]).into();
    }
    if random.percent(50) {
        labels["gen"] = random.pick(&["1", "5", "10", "odd"]).into();
    }
    if random.percent(10) {
        let few = random.between(2, 4).to_string();
        node["status"]["allocatable"]["pods"] = few.into();
    }
    if random.percent(15) {
        let effect = random.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
        let value = random.pick(&["yes", "no"]);
        node["spec"]["taints"] = json!([{ "key": "only", "value": value, "effect": effect }]);
    }
    if random.percent(8) {
        node["spec"]["unschedulable"] = true.into();
    }
    node
}
