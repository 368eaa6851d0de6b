//! Constraints of a pod alone: which nodes, ports and volumes it wants.

use super::nodes::{HOST, ZONE, ZONES};
use super::pods::{self, Ask};
use crate::fuzz::random::Random;
use serde_json::{Value, json};

pub fn node_selector(random: &mut Random, pod: &mut Value) {
    let (key, value) = random.pick(&[("disk", "ssd"), ("disk", "hdd"), (ZONE, "z0"), (ZONE, "z1")]);
    pod["spec"]["nodeSelector"][key] = value.into();
}

fn expression(random: &mut Random) -> Value {
    match random.between(0, 5) {
        0 => json!({ "key": ZONE, "operator": "In", "values": [random.pick(&ZONES), "z9"] }),
        1 => json!({ "key": ZONE, "operator": "NotIn", "values": [random.pick(&ZONES)] }),
        2 => json!({ "key": random.pick(&["disk", "gen"]), "operator": "Exists" }),
        3 => json!({ "key": random.pick(&["disk", "gen"]), "operator": "DoesNotExist" }),
        4 => json!({ "key": "gen", "operator": "Gt", "values": [random.pick(&["1", "4"])] }),
        _ => json!({ "key": "gen", "operator": "Lt", "values": [random.pick(&["6", "10"])] }),
    }
}

fn term(random: &mut Random, nodes: usize) -> Value {
    if random.percent(15) {
        let operator = random.pick(&["In", "NotIn"]);
        let name = format!("n{}", random.between(0, nodes - 1));
        let field = json!({ "key": "metadata.name", "operator": operator, "values": [name] });
        return json!({ "matchFields": [field] });
    }
    let count = random.between(1, 2);
    let expressions: Vec<Value> = (0..count).map(|_| expression(random)).collect();
    json!({ "matchExpressions": expressions })
}

pub fn required_nodes(random: &mut Random, pod: &mut Value, nodes: usize) {
    let count = random.between(1, 2);
    let terms: Vec<Value> = (0..count).map(|_| term(random, nodes)).collect();
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({ "nodeSelectorTerms": terms });
}

pub fn preferred_nodes(random: &mut Random, pod: &mut Value, nodes: usize) {
    let weight = random.between(1, 100);
    let term = term(random, nodes);
    pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        json!([{ "weight": weight, "preference": term }]);
}

pub fn tolerations(random: &mut Random, pod: &mut Value) {
    let unschedulable = "node.kubernetes.io/unschedulable";
    pod["spec"]["tolerations"] = match random.between(0, 4) {
        0 => json!([{ "operator": "Exists" }]),
        1 => json!([{ "key": "only", "operator": "Exists", "effect": "NoSchedule" }]),
        2 => json!([{ "key": "only", "value": "yes" }]),
        3 => json!([{ "key": "only", "operator": "Exists" }]),
        _ => json!([{ "key": unschedulable, "operator": "Exists", "effect": "NoSchedule" }]),
    };
}

pub fn port(random: &mut Random, pod: &mut Value) {
    let mut port = json!({ "containerPort": 80, "hostPort": random.pick(&[8_080, 8_081]) });
    if random.percent(20) {
        port["protocol"] = "UDP".into();
    }
    if random.percent(20) {
        port["hostIP"] = random.pick(&["10.0.0.1", "10.0.0.2"]).into();
    }
    pod["spec"]["containers"][0]["ports"] = json!([port]);
}

/// An init container that needs more than what runs then, or one that goes on beside it.
pub fn init_container(random: &mut Random, pod: &mut Value) {
    let ask = Ask { cpu_milli: random.pick(&[500, 3_000]), memory_mi: 128, gpus: 0 };
    let mut init = json!({ "name": "init", "image": "none", "resources": pods::resources(&ask) });
    if random.percent(40) {
        init["restartPolicy"] = "Always".into();
    }
    pod["spec"]["initContainers"] = json!([init]);
}

pub fn disk(random: &mut Random, pod: &mut Value) {
    let requests = &mut pod["spec"]["containers"][0]["resources"]["requests"];
    requests["ephemeral-storage"] = random.pick(&["1Gi", "8Gi", "15Gi"]).into();
}

pub fn gate(pod: &mut Value) {
    pod["spec"]["schedulingGates"] = json!([{ "name": "example.com/wait" }]);
}

/// A volume in one zone or on one node, and its claim. The pod uses it.
pub fn claim(random: &mut Random, pod: &mut Value, nodes: usize) -> [Value; 2] {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespace = pod["metadata"]["namespace"].clone();
    let (key, value) = match random.percent(60) {
        true => (ZONE, random.pick(&ZONES).to_owned()),
        false => (HOST, format!("n{}", random.between(0, nodes - 1))),
    };
    pod["spec"]["volumes"] =
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": name } }]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/d" }]);
    let expression = json!({ "key": key, "operator": "In", "values": [value] });
    let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "10Gi" }, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": "/data" },
            "nodeAffinity": { "required": terms },
            "claimRef": { "namespace": namespace, "name": name },
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name,
            "resources": { "requests": { "storage": "5Gi" } },
        },
    });
    [volume, claim]
}
