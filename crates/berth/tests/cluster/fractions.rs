//! A manifest of KAI with fractions of GPUs, from the webhook through the pods that hold the GPUs to
//! the binding. No container runs here: those of the holders are played with the program that they
//! run, and what a kubelet would put into an environment is read from the pod.

use super::chart::{certificate_file, install, kubeconfig};
use super::gpus::{H100, RESERVATIONS, add_node, holders, say_which};
use super::other_schedulers::{add_namespaces, sample};
use super::pod_groups::kinds::define;
use super::support::{own_cluster, until};
use super::webhook::{lead_to, webhook_of};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const VARIABLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// Berth in the place of another, with the account and the certificate of the chart.
pub fn berth_in_place_of(peer: &str, cluster: &Cluster) -> Server {
    install(cluster, &["webhook.enabled=true", &format!("scheduler.standIn={{{peer}}}")]);
    let [cert, key] =
        ["tls.crt", "tls.key"].map(|key| certificate_file(cluster, key).display().to_string());
    let listen = ["--webhook-listen", "127.0.0.1:0", "--webhook-cert", &cert];
    let more = ["--webhook-key", &key, "--stand-in", peer];
    let flags = [&listen[..], &more[..]].concat();
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let berth = Server::start_on(program, &kubeconfig(cluster), &flags);
    lead_to(cluster, &webhook_of(&berth));
    berth
}

fn pod(cluster: &Cluster, name: &str) -> Value {
    cluster.get(&["pod", name, "--namespace=vision"])
}

/// The variable of a pod's first container, as the pod has it.
pub fn variable(pod: &Value) -> Value {
    let env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    env.into_iter().find(|one| one["name"] == VARIABLE).unwrap_or_default()
}

/// What a kubelet would put into that variable.
pub fn environment(pod: &Value) -> Option<String> {
    let path = variable(pod)["valueFrom"]["fieldRef"]["fieldPath"].clone();
    let key = path.as_str()?.strip_prefix("metadata.annotations['")?.strip_suffix("']")?;
    pod["metadata"]["annotations"][key].as_str().map(str::to_owned)
}

/// Waits until the API server asks the webhook about pods such as these.
pub fn wait_for_webhook(cluster: &Cluster, pods: &str) {
    let file = cluster.folder().join("asked.yaml");
    std::fs::write(&file, sample(pods)).expect("the folder can be written");
    let file = file.display().to_string();
    let asks = ["create", "--dry-run=server", "--output=json", "--filename", &file];
    until("the webhook is asked", || {
        String::from_utf8_lossy(&cluster.kubectl(&asks).stdout).contains(VARIABLE)
    });
}

/// Plays the containers of those that hold GPUs and have not said which. Each says what a device
/// plugin would have given it.
pub fn play(cluster: &Cluster, said: &mut BTreeMap<String, String>) {
    for holder in holders(cluster) {
        if !said.contains_key(&holder) {
            let uuid = format!("GPU-{}", said.len());
            say_which(cluster, &holder, &uuid);
            said.insert(holder, uuid);
        }
    }
}

#[test]
fn fractions_of_kai_run_as_they_are_from_the_webhook_to_the_gpu() {
    let cluster = own_cluster();
    define(
        &cluster,
        &[
            "scheduling.run.ai/v2 Queue queues!",
            "scheduling.run.ai/v2alpha2 PodGroup podgroups",
            "kai.scheduler/v1alpha1 Topology topologies!",
        ],
    );
    add_namespaces(&cluster, &["vision"]);
    cluster.label(&["namespace", "vision", "berth.dev/managed=true"]);
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 4");
    let _berth = berth_in_place_of("kai", &cluster);
    wait_for_webhook(&cluster, "kai/pods.yaml");
    cluster.apply(&sample("kai/queues.yaml"));
    cluster.apply(&sample("kai/pods.yaml"));

    let is_bound = |name: &str| pod(&cluster, name)["spec"]["nodeName"] == "a";
    until("the whole GPU is given", || is_bound("whole"));
    assert_eq!(variable(&pod(&cluster, "whole")), Value::Null, "its GPU is the device plugin's");
    until("pods hold GPUs", || !holders(&cluster).is_empty());
    for name in ["half", "memory"] {
        let pod = pod(&cluster, name);
        assert_eq!(pod["spec"]["schedulerName"], "kai-scheduler", "{name}");
        assert!(variable(&pod).is_object(), "the webhook was asked about {name}: {pod}");
        assert!(pod["spec"]["nodeName"].is_null(), "no holder of {name} has said its GPU");
    }
    let mut said = BTreeMap::new();
    until("the fractions are bound", || {
        play(&cluster, &mut said);
        is_bound("half") && is_bound("memory")
    });

    let gpus_of = |name: &str| {
        let told = environment(&pod(&cluster, name)).expect("its container learns its GPU");
        told.split(',').map(str::to_owned).collect::<Vec<String>>()
    };
    let (half, memory) = (gpus_of("half"), gpus_of("memory"));
    assert_eq!((half.len(), memory.len()), (1, 2), "{half:?} {memory:?}");
    assert_ne!(memory[0], memory[1], "two GPUs were asked for");
    let held: Vec<&String> = said.values().collect();
    let used: Vec<&String> = half.iter().chain(&memory).collect();
    assert!(used.iter().all(|gpu| held.contains(gpu)), "{used:?} of {held:?}");
    assert!(held.iter().all(|gpu| used.contains(gpu)), "{held:?} for {used:?}");
    for holder in said.keys() {
        let pod = cluster.get(&["pod", holder, "--namespace", RESERVATIONS]);
        assert_eq!(pod["spec"]["nodeName"], "a");
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(limits["nvidia.com/gpu"], "1", "nobody else is given that GPU");
    }

    cluster.delete(&["pod", "half", "memory", "--namespace=vision", "--force"]);
    until("the GPUs are given back", || holders(&cluster).is_empty());
}
