//! What is promised, under way, or may be taken.

use crate::reasons::{TWO, world};

const POOL: &str = "
now: 2026-11-15T09:00:00Z
pools:
  - name: cloud
    max: 2
    offerings: [{type: p5, gpus: 8, model: H100-80GB, zone: z1, price: 28, boot: 3m}]
";

#[test]
fn a_node_that_leaves_takes_no_job_that_runs_longer() {
    world("
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, lifecycle: spot, state: leaving, leaves_at: 2026-11-15T09:30:00Z}]
jobs: [{name: j, time_limit: 1h, groups: [{gpus: 1}]}]
").waits("j", &["leaving: 1 node with room leaves within 30m, before it could end; a shorter time limit may let it start"]);
}

#[test]
fn maintenance_is_named_with_its_time() {
    world(&format!("{TWO}
jobs: [{{name: j, time_limit: 4h, groups: [{{gpus: 1}}]}}]
reservations: [{{name: new firmware, owner: ops, nodes: [a, b], from: 2026-11-15T12:00:00Z, to: 2026-11-15T14:00:00Z}}]
")).waits("j", &["reserved-by-operator: 2 nodes that would do are reserved from 2026-11-15T12:00:00Z to 2026-11-15T14:00:00Z (new firmware)"]);
}

#[test]
fn gpus_promised_to_others_are_not_taken_by_longer_jobs() {
    world(&format!("{TWO}
jobs:
  - {{name: run, started: 2026-11-15T08:00:00Z, time_limit: 3h, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: big, submitted: 2026-11-15T07:00:00Z, time_limit: 4h, groups: [{{count: 2, gpus: 8}}]}}
  - {{name: j, submitted: 2026-11-15T08:30:00Z, time_limit: 8h, groups: [{{gpus: 4}}]}}
")).planned().waits("j", &["reserved-for-others: enough is free, but reserved for 1 job ahead of it from 2026-11-15T11:05:00Z, and it could run longer; a shorter time limit may let it start"]);
}

#[test]
fn a_job_with_a_reservation_tells_its_time() {
    world(&format!("{TWO}
jobs:
  - {{name: run, started: 2026-11-15T08:00:00Z, time_limit: 3h, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: j, time_limit: 4h, groups: [{{count: 2, gpus: 8}}]}}
")).planned().waits("j", &["no-fit: it asks for 16 GPUs; 8 that would suit are free", "reserved: 16 GPUs are reserved for it from 2026-11-15T11:05:00Z, or sooner if it fits sooner"]);
}

#[test]
fn a_job_for_which_others_are_stopped_tells_when_they_are_gone() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, quota: {{gpu: 8}}}}]
jobs:
  - {{name: one, queue: p, grace: 2m, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: two, queue: p, grace: 2m, groups: [{{gpus: 8, tasks: [{{node: b}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 8}}]}}
"
    ))
    .planned()
    .waits(
        "j",
        &[
            "no-fit: it asks for 8 GPUs; none that suits it is free",
            "stopping: 1 job is being stopped for it and will be gone by 2026-11-15T09:02:00Z",
        ],
    );
}

#[test]
fn machines_being_bought_tell_when_they_are_there() {
    world(&format!(
        "{POOL}
jobs: [{{name: j, groups: [{{count: 2, gpus: 8}}]}}]
"
    ))
    .planned()
    .waits(
        "j",
        &[
            "no-model: no node here has a GPU",
            "buying: 2 machines are being bought for it, expected at 2026-11-15T09:03:00Z",
        ],
    );
}

#[test]
fn a_pool_at_its_limit_is_named() {
    world(&format!(
        "{POOL}
nodes: [{{name: n, count: 2, gpus: 8, model: H100-80GB, pool: cloud}}]
jobs:
  - {{name: run, groups: [{{count: 2, gpus: 8, tasks: [{{node: n-0}}, {{node: n-1}}]}}]}}
  - {{name: j, groups: [{{gpus: 8}}]}}
"
    ))
    .waits(
        "j",
        &[
            "no-fit: it asks for 8 GPUs; none that suits it is free",
            "pool-full: pool cloud could serve it but may not grow beyond 2 machines",
        ],
    );
}

#[test]
fn a_pool_without_machines_on_offer_is_named() {
    world("
now: 2026-11-15T09:00:00Z
pools:
  - name: cloud
    max: 2
    offerings: [{type: p5, gpus: 8, model: H100-80GB, zone: z1, price: 28, boot: 3m, unavailable_until: 2026-11-15T09:05:00Z}]
jobs: [{name: j, groups: [{gpus: 8}]}]
").waits("j", &["no-model: no node here has a GPU", "not-on-offer: pool cloud could serve it, but its machines could not be had; it is asked again at 2026-11-15T09:05:00Z"]);
}

#[test]
fn a_queue_at_its_share_takes_nothing_from_others() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, quota: {{gpu: 8}}}}]
jobs:
  - {{name: one, queue: p, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: two, queue: q, groups: [{{gpus: 8, tasks: [{{node: b}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 4}}]}}
"
    ))
    .waits("j", &["no-fit: it asks for 4 GPUs; none that suits it is free", "over-share: queue q has a fair share of 8 GPUs now and uses 8; 4 more would exceed it, so it may not take GPUs from other queues"]);
}

#[test]
fn jobs_that_could_be_stopped_are_protected_for_a_while() {
    world(&format!("{TWO}
policy: {{min_runtime: 30m}}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, quota: {{gpu: 8}}}}]
jobs:
  - {{name: one, queue: p, started: 2026-11-15T08:40:00Z, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: two, queue: p, started: 2026-11-15T08:50:00Z, groups: [{{gpus: 8, tasks: [{{node: b}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 8}}]}}
")).waits("j", &["no-fit: it asks for 8 GPUs; none that suits it is free", "victims-protected: it may take the GPUs of 1 running job, but not before 2026-11-15T09:10:00Z: until then they have a minimum run time"]);
}

#[test]
fn a_higher_class_takes_from_lower_ones_after_its_delay() {
    world(&format!(
        "{TWO}
queues: [{{name: q, preempt_after: 10m}}]
jobs:
  - {{name: one, queue: q, groups: [{{count: 2, gpus: 8, tasks: [{{node: a}}, {{node: b}}]}}]}}
  - {{name: j, queue: q, priority: high, submitted: 2026-11-15T08:55:00Z, groups: [{{gpus: 8}}]}}
"
    ))
    .waits("j", &["no-fit: it asks for 8 GPUs; none that suits it is free", "preempt-after: it may take GPUs from other jobs, but only from 2026-11-15T09:05:00Z on"]);
}

#[test]
fn a_job_that_fits_is_next() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits("j", &["next: nothing stands in its way; it starts next"]);
}
