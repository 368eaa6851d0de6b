//! Jobs that would not fit the empty cluster.

use crate::reasons::{TWO, world};
use berth_model::{Event, Health, JobId};

#[test]
fn a_model_that_is_not_there_is_named() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 1, models: [A100-80GB, B200-180GB]}}]}}]
"
    ))
    .waits("j", &["no-model: no node here has A100-80GB or B200-180GB GPUs; name another model"]);
}

#[test]
fn a_job_for_gpus_finds_none_where_there_are_no_nodes() {
    world(
        "
now: 2026-11-15T09:00:00Z
jobs: [{name: j, groups: [{gpus: 1}]}]
",
    )
    .waits("j", &["no-model: no node here has a GPU"]);
}

#[test]
fn a_profile_that_no_gpu_has_is_named() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, gpus: 8, model: H100-80GB}
  - {name: b, gpus: 8, model: A100-40GB}
jobs: [{name: j, groups: [{mig: 1g.5gb}]}]
",
    )
    .then(Event::NodeRemoved { node: "b".into() })
    .waits(
        "j",
        &["no-profile: no GPU here can be cut into 1g.5gb instances; name another profile"],
    );
}

#[test]
fn too_little_gpu_memory_tells_the_largest() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 1, min_gpu_memory: 140GB}}]}}]
"
    ))
    .waits(
        "j",
        &["gpu-memory: it needs GPUs with 140GB of memory; the largest suitable one here has 80GB"],
    );
}

#[test]
fn labels_that_no_node_has_are_named() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 1, labels: {{need: {{disk: nvme}}}}}}]}}]
"
    ))
    .waits("j", &["no-label: no node carries the labels it needs: disk=nvme"]);
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 1, labels: {{need: {{rack: r9}}}}}}]}}]
"
    ))
    .waits("j", &["no-label: no node carries the labels it needs: rack=r9"]);
}

#[test]
fn a_taint_that_is_not_tolerated_is_named() {
    world("
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB, taints: [{key: team, value: vision, effect: NoSchedule}]}]
jobs: [{name: j, groups: [{gpus: 1}]}]
").waits("j", &["tainted: 2 nodes would do but are tainted team=vision; only jobs that tolerate that run there"]);
}

#[test]
fn a_lifecycle_that_is_not_there_is_named() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, lifecycle: spot, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits("j", &["no-lifecycle: it asks for spot machines and there are none"]);
}

#[test]
fn a_job_larger_than_the_cluster_is_too_large() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{count: 3, gpus: 8}}]}}]
"
    ))
    .waits("j", &["too-large: it asks for 24 GPUs at once; even the empty cluster has room for 16, 2 of its 3 tasks"]);
}

#[test]
fn a_job_larger_than_a_rack_is_too_large_for_it() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{count: 2, gpus: 8, topology: {{required: rack}}}}]}}]
"
    ))
    .waits(
        "j",
        &["too-large-for-domain: it asks for 16 GPUs in one rack; the largest rack has room for 8"],
    );
}

#[test]
fn a_task_larger_than_a_node_is_too_large_for_it() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 16}}]}}]
"
    ))
    .waits(
        "j",
        &["too-large-for-domain: it asks for 16 GPUs in one node; the largest node has room for 8"],
    );
}

#[test]
fn a_task_with_more_gpus_than_an_island_is_too_large_for_it() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, nvlink: [[0, 1, 2, 3], [4, 5, 6, 7]]}]
jobs: [{name: j, groups: [{gpus: 8, topology: {required: nvlink}}]}]
",
    )
    .waits("j", &["too-large-for-domain: it asks for 8 GPUs in one NVLink island; the largest NVLink island has room for 4"]);
}

#[test]
fn a_task_with_more_cpu_or_memory_than_a_node_is_too_large() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, cpu: 64, memory: 512GiB}]
jobs: [{name: j, groups: [{gpus: 1, cpu: 96, memory: 1TiB}]}]
",
    )
    .waits("j", &["too-large-cpu: each task asks for 96 CPU cores; the largest suitable node has 64", "too-large-memory: each task asks for 1TiB of memory; the largest suitable node has 512GiB"]);
}

#[test]
fn closed_nodes_are_counted_where_they_would_make_room() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, gpus: 8, model: H100-80GB}
  - {name: b, count: 2, gpus: 8, model: H100-80GB, state: cordoned}
jobs: [{name: j, groups: [{count: 3, gpus: 8}]}]
",
    )
    .waits("j", &["closed: 2 nodes that would make room are closed to new work: cordoned, draining, in trouble or failed"]);
    world(
        "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, gpus: 8, model: H100-80GB}
  - {name: b, gpus: 8, model: H100-80GB, state: draining}
jobs:
  - {name: run, groups: [{gpus: 4, tasks: [{node: a}]}]}
  - {name: j, groups: [{gpus: 8}]}
",
    )
    .waits("j", &["no-fit: it asks for 8 GPUs; 4 that would suit are free", "closed: 1 node that would make room is closed to new work: cordoned, draining, in trouble or failed"]);
}

#[test]
fn a_job_that_only_a_failed_gpu_keeps_out_may_wait_for_the_repair() {
    let mut case = world(&format!(
        "{TWO}
jobs: [{{name: whole, groups: [{{gpus: 8}}]}}, {{name: more, groups: [{{gpus: 9}}]}}]
"
    ))
    .then(Event::NodeRemoved { node: "b".into() })
    .then(Event::GpuChanged { node: "a".into(), gpu: 3, health: Health::Failed });
    let mut asked = |name: &str| {
        let job = case.snapshot.jobs.iter().find(|job| job.spec.name.as_str() == name).unwrap();
        let mut spec = job.spec.clone();
        spec.id = JobId::new(1_000);
        case.state.never(&spec).len()
    };
    assert_eq!(asked("whole"), 0);
    assert_ne!(asked("more"), 0);
}

/// What a job of that group would be told at its submission.
fn refused(nodes: &str, group: &str) -> Vec<String> {
    let mut case = world(&format!("{nodes}\njobs: [{{name: j, groups: [{group}]}}]\n"));
    let job = case.snapshot.jobs.iter().find(|job| job.spec.name.as_str() == "j").unwrap();
    let mut spec = job.spec.clone();
    spec.id = JobId::new(1_000);
    case.state.never(&spec).iter().map(ToString::to_string).collect()
}

#[test]
fn tasks_that_must_lie_apart_on_more_nodes_than_there_are_never_start() {
    let apart = "{count: 2, gpus: 1, spread: {over: node, at_most: 1}}";
    let one = "now: 2026-11-15T09:00:00Z\nnodes: [{name: a, gpus: 8, model: H100-80GB}]";
    let says = "its 2 tasks must be spread, at most 1 to a node; 1 node has room";
    let told = refused(one, apart);
    assert!(told.len() == 1 && told[0].starts_with(says), "{told:?}");
    let cpu_only = refused(one, "{count: 2, spread: {over: node, at_most: 1}}");
    assert!(cpu_only.len() == 1 && cpu_only[0].starts_with(says), "{cpu_only:?}");
    assert!(refused(TWO, apart).is_empty());
    let racks = refused(TWO, "{count: 3, gpus: 1, spread: {over: rack, at_most: 1}}");
    assert!(racks.len() == 1 && racks[0].contains("at most 1 to a rack"), "{racks:?}");
    assert!(refused(TWO, "{count: 4, gpus: 1, spread: {over: rack, at_most: 2}}").is_empty());
}

#[test]
fn tasks_that_must_lie_apart_may_wait_for_a_node_that_is_closed() {
    let nodes = "now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, gpus: 8, model: H100-80GB}
  - {name: b, gpus: 8, model: H100-80GB, state: cordoned}";
    let apart = "{count: 2, gpus: 1, spread: {over: node, at_most: 1}}";
    assert!(refused(nodes, apart).is_empty());
}
