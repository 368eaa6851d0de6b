//! Jobs that do not fit what is free now.

use crate::reasons::{TWO, world};

#[test]
fn too_few_free_gpus_are_counted() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: run, groups: [{{count: 13, gpus: 1, tasks: [{}]}}]}}
  - {{name: j, groups: [{{gpus: 4}}]}}
",
        ["{node: a}"; 8].into_iter().chain(["{node: b}"; 5]).collect::<Vec<_>>().join(", ")
    ))
    .waits("j", &["no-fit: it asks for 4 GPUs; 3 that would suit are free"]);
}

#[test]
fn scattered_gpus_are_told_from_missing_ones() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 4, tasks: [{{node: a}}, {{node: b}}]}}]}}
  - {{name: j, groups: [{{gpus: 8}}]}}
"
    ))
    .waits("j", &["no-fit: it asks for 8 GPUs; 8 are free, but not together"]);
    world(&format!(
        "{TWO}
jobs:
  - {{name: run, groups: [{{count: 16, fraction: 0.6, tasks: [{}]}}]}}
  - {{name: j, groups: [{{fraction: 0.5}}]}}
",
        ["{node: a}"; 8].into_iter().chain(["{node: b}"; 8]).collect::<Vec<_>>().join(", ")
    ))
    .waits("j", &["no-fit: it asks for 0.5 of a GPU; 6.4 are free, but not together"]);
}

#[test]
fn cpu_and_memory_are_told_where_gpus_are_free() {
    let nodes = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB, cpu: 64, memory: 512GiB}]
";
    world(&format!(
        "{nodes}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 1, cpu: 50, tasks: [{{node: a-0}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{gpus: 1, cpu: 16}}]}}
"
    ))
    .waits("j", &["no-fit-cpu: each task asks for 16 CPU cores; no node that otherwise has room has more than 14 left"]);
    world(&format!(
        "{nodes}
jobs:
  - {{name: run, groups: [{{gpus: 1, memory: 400GiB, tasks: [{{node: a-0}}]}}]}}
  - {{name: j, groups: [{{count: 4, gpus: 1, memory: 256GiB}}]}}
"
    ))
    .waits(
        "j",
        &["no-fit-memory: each task asks for 256GiB of memory; 2 of its 4 tasks would find it"],
    );
    world(&format!("{nodes}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 1, cpu: 50, memory: 400GiB, tasks: [{{node: a-0}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{cpu: 20, memory: 200GiB}}]}}
")).waits("j", &["no-fit-cpu: each task asks for 20 CPU cores; no node that otherwise has room has more than 14 left", "no-fit-memory: each task asks for 200GiB of memory; no node that otherwise has room has more than 112GiB left"]);
}

#[test]
fn a_gang_for_one_rack_tells_the_best_one() {
    world(
        "
now: 2026-11-15T09:00:00Z
topology: [rack]
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r1}}
  - {name: b, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r2}}
jobs:
  - {name: run, groups: [{count: 2, gpus: 6, tasks: [{node: a-0}, {node: b-0}]}]}
  - {name: j, groups: [{count: 4, gpus: 4, topology: {required: rack}}]}
",
    )
    .waits(
        "j",
        &["no-domain: its 4 tasks must lie in one rack; the best one, r1, has room for 2 now"],
    );
}

#[test]
fn a_task_for_one_island_finds_none() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, nvlink: [[0, 1, 2, 3], [4, 5, 6, 7]]}]
jobs:
  - {name: run, groups: [{count: 2, gpus: 1, tasks: [{node: a, gpus: [0]}, {node: a, gpus: [4]}]}]}
  - {name: j, groups: [{gpus: 4, topology: {required: nvlink}}]}
",
    )
    .waits("j", &["no-domain: its 1 task must lie in one NVLink island, and no NVLink island has room for any now"]);
}

#[test]
fn groups_that_lie_together_tell_the_best_rack() {
    world(
        "
now: 2026-11-15T09:00:00Z
topology: [rack]
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r1}}
  - {name: b, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r2}}
jobs:
  - {name: run, groups: [{count: 2, gpus: 8, tasks: [{node: a-0}, {node: b-0}]}]}
  - name: j
    groups:
      - name: all
        topology: {required: rack}
        groups: [{name: learn, gpus: 8}, {name: act, count: 4, gpus: 1}]
",
    )
    .waits(
        "j",
        &["no-domain: its 5 tasks must lie in one rack; the best one, r1, has room for 1 now"],
    );
}

#[test]
fn segments_that_fit_are_counted() {
    world(
        "
now: 2026-11-15T09:00:00Z
topology: [rack]
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r1}}
  - {name: b, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r2}}
jobs:
  - {name: run, groups: [{gpus: 8, tasks: [{node: b-0}]}]}
  - {name: j, groups: [{count: 4, gpus: 4, topology: {segment: {size: 4, within: rack}}}]}
  - {name: k, groups: [{count: 6, gpus: 4, topology: {segment: {size: 3, within: rack}}}]}
",
    )
    .waits("k", &["no-segment: it needs 2 segments of 3 tasks, each in one rack; 1 would fit now"]);
}

#[test]
fn tasks_that_must_be_spread_tell_where_there_is_room() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{count: 4, gpus: 1, spread: {{over: rack, at_most: 1}}}}]}}]
"
    ))
    .waits(
        "j",
        &["spread: its 4 tasks must be spread, at most 1 to a rack; 2 racks have room now"],
    );
}

#[test]
fn a_job_near_another_waits_for_room_there() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: data, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: j, groups: [{{gpus: 1, near: {{job: data, within: rack}}}}]}}
"
    ))
    .waits("j", &["near: it must run in the same rack as data, and there is no room there"]);
    world(&format!(
        "{TWO}
jobs:
  - {{name: data, hold: true, groups: [{{gpus: 8}}]}}
  - {{name: j, groups: [{{gpus: 1, near: {{job: data, within: rack}}}}]}}
"
    ))
    .waits("j", &["near: it must run in the same rack as data, which does not run"]);
}

#[test]
fn a_job_away_from_others_waits_for_room_elsewhere() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: noisy, labels: {{app: load}}, groups: [{{gpus: 1, tasks: [{{node: a}}]}}]}}
  - {{name: run, groups: [{{gpus: 8, tasks: [{{node: b}}]}}]}}
  - {{name: j, groups: [{{gpus: 1, near: {{label: {{app: load}}, within: rack, away: true}}}}]}}
"
    ))
    .waits("j", &["away: it must not run in a rack where a job with app=load runs, and there is no room elsewhere"]);
}

#[test]
fn a_search_that_was_cut_off_says_so() {
    world("
now: 2026-11-15T09:00:00Z
policy: {search: 10}
nodes: [{name: a, count: 6, gpus: 7, model: H100-80GB, cpu: 64}]
jobs:
  - {name: run, groups: [{count: 6, gpus: 1, cpu: 1, tasks: [{node: a-0}, {node: a-1}, {node: a-2}, {node: a-3}, {node: a-4}, {node: a-5}]}]}
  - {name: j, groups: [{name: x, count: 4, gpus: 4, cpu: 20}, {name: y, count: 4, gpus: 3, cpu: 33}, {name: z, count: 4, gpus: 2, cpu: 30}]}
").waits("j", &["search-bound: its tasks differ, and no packing of them was found in 10 steps; it may fit all the same"]);
}

#[test]
fn unlike_groups_that_do_not_fit_beside_each_other_are_counted() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{name: x, gpus: 4}}, {{name: y, count: 2, gpus: 6}}]}}]
"
    ))
    .waits(
        "j",
        &["no-fit: it asks for 16 GPUs; 16 are free, but scattered: 2 of its 3 tasks would fit"],
    );
}

#[test]
fn room_that_there_is_beside_another_queue_alone_is_told_from_too_little() {
    let shared = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 2, model: H100-80GB}]
queues: [{name: p}, {name: q}]
";
    let jobs = "
jobs:
  - {name: one, queue: p, groups: [{fraction: 0.5, tasks: [{node: a, gpus: [0]}]}]}
  - {name: two, queue: p, groups: [{gpus: 1, tasks: [{node: a, gpus: [1]}]}]}
  - {name: j, queue: q, groups: [{fraction: 0.5}]}
  - {name: large, queue: q, groups: [{fraction: 0.7}]}
  - {name: pair, queue: q, groups: [{name: x, fraction: 0.2}, {name: y, fraction: 0.1}]}
  - {name: whole, queue: q, groups: [{gpus: 1}]}
";
    let beside = |asks: &str| {
        format!(
            "beside-others: it asks for {asks} of a GPU; there is room, 0.5, only on GPUs that other queues have shares of, and queues are kept apart there"
        )
    };
    let world = || world(&format!("{shared}{jobs}"));
    world().waits("j", &[&beside("0.5")]);
    world().waits("pair", &[&beside("0.3")]);
    world().waits("large", &["no-fit: it asks for 0.7 of a GPU; none that suits it is free"]);
    world().waits("whole", &["no-fit: it asks for 1 GPU; none that suits it is free"]);
}

#[test]
fn what_a_node_counts_and_how_many_tasks_it_takes_are_told() {
    let nodes = "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB, tasks: 3, counted: {rdma/hca: 4}}
";
    world(&format!(
        "{nodes}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 1, counted: {{rdma/hca: 3}}, tasks: [{{node: a-0}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{gpus: 1, counted: {{rdma/hca: 2}}}}]}}
"
    ))
    .waits("j", &["no-fit-counted: each task asks for 2 rdma/hca; no node that otherwise has room has more than 1 left"]);
    world(&format!(
        "{nodes}
jobs:
  - {{name: run, groups: [{{count: 5, gpus: 1, tasks: [{{node: a-0}}, {{node: a-0}}, {{node: a-0}}, {{node: a-1}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{count: 2, gpus: 1}}]}}
"
    ))
    .waits("j", &["no-fit-tasks: nodes run only so many tasks each; 1 of its 2 tasks would find a place"]);
}
