//! What would start a waiting job now, each answer tried on a copy.

use berth_core::{State, what_would_start};
use berth_model::{Event, Stamped};
use berth_sim::world::World;

/// The job called `j` would start with exactly these changes. With `planned`, after a plan.
#[track_caller]
fn check(text: &str, planned: bool, expected: &[&str]) {
    let loaded = World::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut state = State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"));
    let job = loaded.snapshot.jobs.iter().find(|job| job.spec.name.as_str() == "j");
    let job = job.expect("a job j").id();
    if planned {
        for made in state.plan().transactions {
            let event = Event::Decided { job: made.job, decisions: made.decisions };
            let stamped = Stamped { seq: state.seq() + 1, at: state.now(), event };
            let _ = state.apply(&stamped).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    let before = state.hash();
    let found: Vec<String> =
        what_would_start(&state, job).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
    assert_eq!(before, state.hash());
}

const FULL: &str = "
now: 2026-11-15T09:00:00Z
topology: [rack]
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB, labels: {rack: r1}}
  - {name: b, count: 2, gpus: 8, model: A100-80GB, labels: {rack: r2}}
";

#[test]
fn another_model_that_is_free() {
    check(
        &format!(
            "{FULL}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 8, tasks: [{{node: a-0}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{gpus: 8, models: [H100-80GB]}}]}}
"
        ),
        false,
        &[
            "on A100-80GB GPUs it would start now",
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn any_rack_and_fewer_tasks() {
    check(
        &format!(
            "{FULL}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 4, tasks: [{{node: a-0}}, {{node: b-0}}]}}]}}
  - {{name: j, groups: [{{count: 4, gpus: 4, topology: {{required: rack}}}}]}}
"
        ),
        false,
        &[
            "without having to lie in one rack it would start now",
            "with 3 tasks instead of 4 it would start now",
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn fewer_segments_and_none_at_all() {
    check(
        &format!(
            "{FULL}
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 4, tasks: [{{node: a-0}}, {{node: b-0}}]}}]}}
  - {{name: j, groups: [{{count: 6, gpus: 4, topology: {{segment: {{size: 2, within: node}}}}}}]}}
"
        ),
        false,
        &[
            "without having to lie in one node it would start now",
            "with 4 tasks instead of 6 it would start now",
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn less_spread() {
    check(
        &format!(
            "{FULL}
jobs: [{{name: j, groups: [{{count: 3, gpus: 1, spread: {{over: rack, at_most: 1}}}}]}}]
"
        ),
        false,
        &[
            "with more tasks to a rack it would start now",
            "with 2 tasks instead of 3 it would start now",
        ],
    );
}

#[test]
fn no_neighbours() {
    check(
        &format!(
            "{FULL}
jobs:
  - {{name: data, groups: [{{count: 2, gpus: 8, tasks: [{{node: a-0}}, {{node: a-1}}]}}]}}
  - {{name: j, groups: [{{gpus: 1, near: {{job: data, within: rack}}}}]}}
"
        ),
        false,
        &["without its wishes about other jobs it would start now"],
    );
}

#[test]
fn another_lifecycle() {
    check(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, lifecycle: spot}]
jobs: [{name: j, lifecycle: on-demand, groups: [{gpus: 8}]}]
",
        false,
        &["on spot machines it would start now"],
    );
}

#[test]
fn a_part_of_a_gpu() {
    check(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
jobs:
  - {name: run, groups: [{fraction: 0.4, tasks: [{node: a}]}]}
  - {name: j, groups: [{gpus: 1}]}
",
        false,
        &[
            "with 0.5 of a GPU instead of a whole one it would start now",
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn a_time_limit_that_ends_before_a_reservation() {
    check(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB}]
jobs:
  - {name: run, started: 2026-11-15T08:00:00Z, time_limit: 3h, groups: [{gpus: 8, tasks: [{node: a-0}]}]}
  - {name: big, submitted: 2026-11-15T07:00:00Z, time_limit: 4h, groups: [{count: 2, gpus: 8}]}
  - {name: j, submitted: 2026-11-15T08:30:00Z, time_limit: 8h, groups: [{gpus: 4}]}
",
        true,
        &["with a time limit of 2h instead of 8h it would start now"],
    );
}

#[test]
fn a_higher_class_and_another_queue() {
    check(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB}]
queues: [{name: p, quota: {gpu: 8}}, {name: q, quota: {gpu: 8}}, {name: full, limit: {gpu: 0}}]
jobs:
  - {name: one, queue: p, groups: [{gpus: 8, tasks: [{node: a-0}]}]}
  - {name: two, queue: p, groups: [{gpus: 8, tasks: [{node: a-1}]}]}
  - {name: j, queue: p, groups: [{gpus: 8}]}
",
        false,
        &[
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
            "in queue q it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn a_higher_limit() {
    check(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB}]
queues: [{name: q, limit: {gpu: 8}}]
jobs:
  - {name: one, queue: q, groups: [{gpus: 6, tasks: [{node: a-0}]}]}
  - {name: j, queue: q, groups: [{gpus: 4}]}
",
        false,
        &[
            "with a limit of 10 GPUs instead of 8 for queue q it would start now",
            "with priority high it would take the GPUs of 1 running job and start by 2026-11-15T09:05:00Z",
        ],
    );
}

#[test]
fn a_release_or_no_dependency() {
    let world = |how: &str| {
        format!(
            "{FULL}
jobs:
  - {{name: data, groups: [{{gpus: 1, tasks: [{{node: a-0}}]}}]}}
  - {{name: j, {how}, groups: [{{gpus: 1}}]}}
"
        )
    };
    check(&world("hold: true"), false, &["released from its hold it would start now"]);
    check(
        &world("after: {ok: [data]}"),
        false,
        &["without the jobs it comes after it would start now"],
    );
    check(
        &world("begin: 2026-11-15T10:00:00Z"),
        false,
        &["without its begin time it would start now"],
    );
}

#[test]
fn leave_to_be_stopped() {
    check(
        &format!(
            "{FULL}
queues: [{{name: q, quota: {{gpu: 4}}}}]
jobs: [{{name: j, queue: q, preemptible: false, groups: [{{gpus: 8}}]}}]
"
        ),
        false,
        &["as a job that may be stopped it would start now"],
    );
}

#[test]
fn nothing_for_a_job_that_starts_anyway_or_never_can() {
    check(&format!("{FULL}\njobs: [{{name: j, groups: [{{gpus: 8}}]}}]\n"), false, &[]);
    check(&format!("{FULL}\njobs: [{{name: j, groups: [{{gpus: 9}}]}}]\n"), false, &[]);
}
