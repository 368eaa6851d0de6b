//! Bounds and order of queues.

use crate::reasons::{TWO, world};

#[test]
fn a_spent_budget_blocks() {
    world(&format!("{TWO}
queues: [{{name: q, quota: {{gpu: 16}}, budget: {{limit: 500, spent: 512.25, per: month, action: block}}}}]
jobs: [{{name: j, queue: q, groups: [{{gpus: 1}}]}}]
")).waits("j", &["budget: the budget of queue q is spent: $512.25 of $500.00"]);
}

#[test]
fn a_limit_of_the_queue_tells_what_is_in_use() {
    world(&format!(
        "{TWO}
queues: [{{name: q, limit: {{gpu: 8}}}}]
jobs:
  - {{name: run, queue: q, groups: [{{gpus: 6, tasks: [{{node: a}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 4}}]}}
"
    ))
    .waits("j", &["queue-limit: queue q is limited to 8 GPUs: 6 in use, 4 more asked for"]);
}

#[test]
fn a_limit_on_a_model_is_told_once_the_model_is_known() {
    world(
        "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, gpus: 8, model: H100-80GB}
  - {name: b, gpus: 1, model: A100-80GB}
queues: [{name: q, limit: {gpu: {H100-80GB: 2}}}]
jobs: [{name: j, queue: q, groups: [{gpus: 4, models: [H100-80GB, A100-80GB]}]}]
",
    )
    .waits(
        "j",
        &["queue-limit: queue q is limited to 2 H100-80GB GPUs: 0 in use, 4 more asked for"],
    );
}

#[test]
fn a_bound_on_borrowing_tells_what_may_be_used() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 12}}}}, {{name: q, quota: {{gpu: 4}}, borrow: {{gpu: 2}}}}]
jobs:
  - {{name: run, queue: q, groups: [{{gpus: 4, tasks: [{{node: a}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 4}}]}}
"
    ))
    .waits("j", &["borrow-limit: queue q may use 6 GPUs, its quota and what it may borrow: 4 in use, 4 more asked for"]);
}

#[test]
fn a_limit_on_each_user_tells_what_they_use() {
    world(&format!(
        "{TWO}
queues: [{{name: q, user_limit: {{gpu: 4}}}}]
jobs:
  - {{name: run, queue: q, user: ada, groups: [{{gpus: 4, tasks: [{{node: a}}]}}]}}
  - {{name: j, queue: q, user: ada, groups: [{{gpus: 1}}]}}
"
    ))
    .waits(
        "j",
        &["user-limit: each user of queue q is limited to 4 GPUs: 4 in use, 1 more asked for"],
    );
}

#[test]
fn quota_that_is_not_lent_stays_free() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}, lend: {{gpu: 2}}}}, {{name: q, quota: {{gpu: 8}}}}]
jobs:
  - {{name: run, queue: q, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 4}}]}}
"
    ))
    .waits("j", &["not-lent: 6 GPUs are free, but kept for queue p, which does not lend that much of its quota"]);
}

#[test]
fn a_quota_that_is_kept_names_its_resource_and_no_more_than_there_is() {
    world(
        "nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB, cpu: 8, memory: 512GiB}]
queues: [{name: p, quota: {gpu: 8, cpu: 20}, lend: {cpu: 0}}, {name: q, quota: {gpu: 8, cpu: 8}}]
jobs: [{name: j, queue: q, groups: [{gpus: 1, cpu: 4}]}]
",
    )
    .waits("j", &["not-lent: 16 CPU cores are free, but kept for queue p, which does not lend that much of its quota"]);
}

#[test]
fn a_job_that_may_not_be_stopped_needs_quota() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 12}}}}, {{name: q, quota: {{gpu: 4}}}}]
jobs: [{{name: j, queue: q, preemptible: false, groups: [{{gpus: 8}}]}}]
"
    ))
    .waits("j", &["over-quota: a job that may not be stopped needs room in the quota of queue q: 0 of 4 in use, 8 more asked for; one that may be stopped does not"]);
}

#[test]
fn a_strict_queue_waits_for_its_head() {
    world(&format!(
        "{TWO}
queues: [{{name: q, order: strict}}]
jobs:
  - {{name: run, queue: q, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: head, queue: q, groups: [{{count: 2, gpus: 8}}]}}
  - {{name: j, queue: q, groups: [{{gpus: 1}}]}}
"
    ))
    .waits("j", &["behind: job 2 is ahead of it in a queue that keeps strict order"]);
}
