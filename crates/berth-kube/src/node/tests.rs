use super::*;
use crate::pod::requests::{GpuSharing, GpuUnit, SharingStrategy};
use berth_model::{GpuSpec, NodeState};

/// A ready node with those labels and allocatable resources, both as JSON.
fn node(labels: &str, allocatable: &str) -> Node {
    serde_json::from_str(&format!(
        r#"{{"metadata": {{"name": "n1", "labels": {labels}}},
             "status": {{"allocatable": {allocatable},
                         "conditions": [{{"type": "Ready", "status": "True"}}]}}}}"#
    ))
    .unwrap()
}

fn read_one(labels: &str, allocatable: &str) -> Result<NodeReading, Error> {
    read(&node(labels, allocatable), &TOPOLOGY_KEYS)
}

/// GPUs in short: `2×H100-80GB`, and `mig:` with the number of instances.
fn gpus(reading: &NodeReading) -> Vec<String> {
    let text = |gpu: &GpuSpec| match &gpu.mig {
        None => gpu.model.to_string(),
        Some(slots) => format!("{} mig:{}", gpu.model, slots.len()),
    };
    let mut counted: Vec<(usize, String)> = Vec::new();
    for gpu in reading.spec.gpus.iter().map(text) {
        match counted.last_mut() {
            Some((count, last)) if *last == gpu => *count += 1,
            _ => counted.push((1, gpu)),
        }
    }
    counted.into_iter().map(|(count, gpu)| format!("{count}×{gpu}")).collect()
}

#[test]
fn a_node_has_its_amounts_its_gpus_and_its_place() {
    let reading = read_one(
        r#"{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.count": "8", "topology.kubernetes.io/zone": "a",
            "kubernetes.io/os": "linux"}"#,
        r#"{"cpu": "191500m", "memory": "2Ti", "nvidia.com/gpu": "8", "pods": "110"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&reading), ["8×H100-80GB"]);
    assert_eq!(reading.spec.gpus[0].memory, Bytes::mib(81_559));
    assert_eq!(reading.spec.cpu, Some(Cpu(191_500)));
    assert_eq!(reading.spec.memory, Some(Bytes::gib(2_048)));
    let zone = [("topology.kubernetes.io/zone".into(), "a".into())];
    assert_eq!(reading.spec.labels, BTreeMap::from(zone));
    assert_eq!(reading.other, BTreeMap::from([("pods".into(), 110)]));
    assert_eq!((reading.spec.state, reading.not_ready_reason), (NodeState::Ready, None));
}

#[test]
fn a_node_without_gpus_or_without_labels_is_a_node() {
    assert_eq!(gpus(&read_one("{}", r#"{"cpu": "4"}"#).unwrap()), [""; 0]);
    let unlabelled = read_one("{}", r#"{"nvidia.com/gpu": "2"}"#).unwrap();
    assert_eq!(gpus(&unlabelled), ["2×gpu"]);
}

#[test]
fn mixed_mig_has_whole_gpus_beside_partitioned_ones() {
    let reading = read_one(
        r#"{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960",
            "nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "mixed"}"#,
        r#"{"nvidia.com/gpu": "6", "nvidia.com/mig-1g.5gb": "4", "nvidia.com/mig-3g.20gb": "2",
            "nvidia.com/mig-7g.40gb": "0"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&reading), ["6×A100-40GB", "2×A100-40GB mig:3"]);
    assert_eq!(reading.devices.gpu, GpuUnit::Whole);
}

#[test]
fn single_mig_hands_out_instances_as_gpus() {
    let reading = read_one(
        r#"{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
            "nvidia.com/gpu.memory": "9856", "nvidia.com/gpu.count": "14",
            "nvidia.com/mig.strategy": "single"}"#,
        r#"{"nvidia.com/gpu": "14"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&reading), ["2×H100-80GB mig:7"]);
    assert_eq!(reading.devices.gpu, GpuUnit::Instance("1g.10gb".into()));
    assert_eq!(reading.spec.gpus[0].memory, Bytes::gb(80));
}

#[test]
fn replicas_are_counted_back_to_gpus_under_either_name() {
    let slices = GpuSharing { strategy: SharingStrategy::TimeSlice, replicas: 4 };
    let unnamed = read_one(
        r#"{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4",
            "nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.memory": "15360"}"#,
        r#"{"nvidia.com/gpu": "8"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&unnamed), ["2×T4-16GB"]);
    assert_eq!(unnamed.devices.gpu, GpuUnit::Replica(slices));
    let renamed = read_one(
        r#"{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "10",
            "nvidia.com/gpu.sharing-strategy": "mps"}"#,
        r#"{"nvidia.com/gpu.shared": "20"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&renamed), ["2×T4-16GB"]);
    let mps = GpuSharing { strategy: SharingStrategy::Mps, replicas: 10 };
    assert_eq!((renamed.devices.gpu, renamed.devices.shared), (GpuUnit::Whole, Some(mps)));
}

#[test]
fn labels_of_an_older_release_mean_time_slices() {
    let reading = read_one(
        r#"{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "2"}"#,
        r#"{"nvidia.com/gpu": "2"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&reading), ["1×T4-16GB"]);
    let slices = GpuSharing { strategy: SharingStrategy::TimeSlice, replicas: 2 };
    assert_eq!(reading.devices.gpu, GpuUnit::Replica(slices));
    let unshared = r#"{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "1"}"#;
    assert_eq!(gpus(&read_one(unshared, r#"{"nvidia.com/gpu": "2"}"#).unwrap()), ["2×T4-16GB"]);
}

#[test]
fn labels_and_resources_that_contradict_each_other_are_refused_with_words() {
    let sharing = r#""nvidia.com/gpu.sharing-strategy": "time-slicing""#;
    for (labels, allocatable, word) in [
        ("{}".to_owned(), r#"{"nvidia.com/gpu.shared": "4"}"#, "nvidia.com/gpu.replicas"),
        (
            format!(
                r#"{{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "3", {sharing}}}"#
            ),
            r#"{"nvidia.com/gpu": "8"}"#,
            "3 replicas",
        ),
        (
            format!(
                r#"{{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", {sharing}}}"#
            ),
            r#"{"nvidia.com/gpu": "8"}"#,
            "shared MIG",
        ),
        (
            r#"{"nvidia.com/gpu.sharing-strategy": "wishing"}"#.to_owned(),
            r#"{"nvidia.com/gpu": "8"}"#,
            "wishing",
        ),
        (
            r#"{"nvidia.com/gpu.product": "NVIDIA-L4"}"#.to_owned(),
            r#"{"nvidia.com/mig-1g.5gb": "7"}"#,
            "L4-24GB has no MIG profile 1g.5gb",
        ),
        (
            r#"{"nvidia.com/gpu.product": "Tesla-T4-SHARED"}"#.to_owned(),
            r#"{"nvidia.com/gpu": "8"}"#,
            "nvidia.com/gpu.replicas",
        ),
        (
            r#"{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"}"#.to_owned(),
            r#"{"nvidia.com/gpu": "0"}"#,
            "no MIG profile INVALID",
        ),
        ("{}".to_owned(), r#"{"nvidia.com/gpu": "1", "amd.com/gpu": "1"}"#, "two makers"),
        ("{}".to_owned(), r#"{"nvidia.com/gpu": "70000"}"#, "65536"),
        ("{}".to_owned(), r#"{"cpu": "fast"}"#, "`fast`"),
    ] {
        let refusal = read_one(&labels, allocatable).unwrap_err().to_string();
        assert!(refusal.contains(word), "{refusal}");
    }
}

#[test]
fn amd_gpus_are_gpus() {
    let reading = read_one(
        r#"{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}"#,
        r#"{"amd.com/gpu": "8"}"#,
    )
    .unwrap();
    assert_eq!(gpus(&reading), ["8×MI300X-OAM"]);
    assert_eq!(reading.spec.gpus[0].memory, Bytes::gib(192));
}

#[track_caller]
fn check_state(json: &str, expected: NodeState, word: &str) {
    let node: Node = serde_json::from_str(json).unwrap();
    let reading = read(&node, &TOPOLOGY_KEYS).unwrap();
    assert_eq!(reading.spec.state, expected);
    assert!(reading.not_ready_reason.unwrap().contains(word), "{:?}", reading.not_ready_reason);
}

#[test]
fn a_silent_kubelet_cordons_its_node_until_its_pods_are_ended() {
    let silent = r#""status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}"#;
    check_state(&format!("{{{silent}}}"), NodeState::Cordoned, "not ready");
    let tainted = |effect: &str| {
        format!(
            r#"{{"spec": {{"taints": [{{"key": "node.kubernetes.io/unreachable", "effect": "{effect}"}}]}}, {silent}}}"#
        )
    };
    check_state(&tainted("NoSchedule"), NodeState::Cordoned, "not ready");
    check_state(&tainted("NoExecute"), NodeState::Failed, "stopped answering");
    check_state("{}", NodeState::Cordoned, "not reported");
}

#[test]
fn a_node_that_is_marked_or_about_to_go_takes_no_work() {
    let ready = r#""status": {"conditions": [{"type": "Ready", "status": "True"}]}"#;
    check_state(
        &format!(r#"{{"spec": {{"unschedulable": true}}, {ready}}}"#),
        NodeState::Cordoned,
        "unschedulable",
    );
    check_state(
        &format!(
            r#"{{"spec": {{"unschedulable": true, "taints": [{{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}}]}}, {ready}}}"#
        ),
        NodeState::Draining,
        "Karpenter",
    );
    check_state(
        &format!(r#"{{"metadata": {{"deletionTimestamp": "2026-11-15T09:00:00Z"}}, {ready}}}"#),
        NodeState::Draining,
        "deleted",
    );
}

#[test]
fn how_a_machine_was_bought_is_read_from_whoever_bought_it() {
    for (label, expected) in [
        (r#"{"karpenter.sh/capacity-type": "spot"}"#, Lifecycle::Spot),
        (r#"{"karpenter.sh/capacity-type": "reserved"}"#, Lifecycle::Reserved),
        (r#"{"eks.amazonaws.com/capacityType": "SPOT"}"#, Lifecycle::Spot),
        (r#"{"eks.amazonaws.com/capacityType": "ON_DEMAND"}"#, Lifecycle::OnDemand),
        (r#"{"cloud.google.com/gke-spot": "true"}"#, Lifecycle::Spot),
        ("{}", Lifecycle::OnDemand),
    ] {
        assert_eq!(read_one(label, "{}").unwrap().spec.lifecycle, expected, "{label}");
    }
}

#[test]
fn taints_are_kept() {
    let node: Node = serde_json::from_str(
        r#"{"spec": {"taints": [{"key": "team", "value": "vision", "effect": "NoSchedule"}]}}"#,
    )
    .unwrap();
    let taint = Taint { key: "team".into(), value: "vision".into(), effect: Effect::NoSchedule };
    assert_eq!(read(&node, &TOPOLOGY_KEYS).unwrap().spec.taints, [taint]);
}
