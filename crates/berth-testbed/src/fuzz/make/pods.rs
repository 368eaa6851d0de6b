//! Draws pods without constraints; [`super::traits`] adds these.

use crate::fuzz::random::Random;
use serde_json::{Value, json};

pub const APPS: [&str; 3] = ["a", "b", "c"];
const TIERS: [&str; 2] = ["x", "y"];

/// What a container asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    pub cpu_milli: usize,
    pub memory_mi: usize,
    pub gpus: usize,
}

pub fn ask(random: &mut Random) -> Ask {
    let gpus = if random.percent(35) { random.pick(&[1, 1, 2, 4]) } else { 0 };
    Ask {
        cpu_milli: random.pick(&[0, 100, 100, 250, 500, 500, 1_000, 1_000, 2_000, 3_000, 7_000]),
        memory_mi: random.pick(&[0, 64, 512, 1_024, 4_096]),
        gpus,
    }
}

pub fn resources(ask: &Ask) -> Value {
    let mut requests = json!({});
    if ask.cpu_milli > 0 {
        requests["cpu"] = format!("{}m", ask.cpu_milli).into();
    }
    if ask.memory_mi > 0 {
        requests["memory"] = format!("{}Mi", ask.memory_mi).into();
    }
    let mut resources = json!({ "requests": requests });
    if ask.gpus > 0 {
        resources["requests"]["nvidia.com/gpu"] = ask.gpus.to_string().into();
        resources["limits"] = json!({ "nvidia.com/gpu": ask.gpus.to_string() });
    }
    resources
}

/// Without a scheduler: that is set for each run.
pub fn pod(random: &mut Random, name: &str, ask: &Ask) -> Value {
    let labels = json!({ "app": random.pick(&APPS), "tier": random.pick(&TIERS) });
    let namespace = if random.percent(75) { "fuzz-a" } else { "fuzz-b" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels, "annotations": {},
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "none", "resources": resources(ask) }],
        },
    })
}

/// How long it has between the request to stop and its end. The clock is compressed: a program that
/// may take 30 s takes two.
pub fn set_grace(pod: &mut Value, seconds: usize) {
    pod["spec"]["terminationGracePeriodSeconds"] = seconds.into();
    if seconds > 0 {
        let stops = if seconds == 1 { "1s" } else { "2s" };
        pod["metadata"]["annotations"]["testbed.berth.dev/stops"] = stops.into();
    }
}

pub fn set_class(pod: &mut Value, class: &str) {
    pod["spec"]["priorityClassName"] = class.into();
}

pub fn set_gang(pod: &mut Value, gang: &str, size: usize) {
    let annotations = &mut pod["metadata"]["annotations"];
    annotations["berth.dev/gang"] = gang.into();
    annotations["berth.dev/gang-size"] = size.to_string().into();
}

/// Only this node.
pub fn pin(pod: &mut Value, node: &str) {
    pod["spec"]["nodeSelector"][super::nodes::HOST] = node.into();
}
