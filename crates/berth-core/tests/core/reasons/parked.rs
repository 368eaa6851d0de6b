//! Jobs that are not even considered.

use crate::reasons::{TWO, world};
use berth_model::{Event, JobId};

#[test]
fn a_job_on_hold_says_so() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, hold: true, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits("j", &["held: on hold; `berth resume` lets it start"]);
}

#[test]
fn a_job_with_a_begin_time_waits_for_it() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, begin: 2026-11-15T10:00:00Z, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits("j", &["begin-time: it was asked to begin no earlier than 2026-11-15T10:00:00Z"]);
}

#[test]
fn a_job_names_the_jobs_it_comes_after() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: prepare, groups: [{{gpus: 1}}]}}
  - {{name: fetch, groups: [{{gpus: 1}}]}}
  - {{name: j, after: {{ok: [prepare], start: [fetch]}}, groups: [{{gpus: 1}}]}}
"
    ))
    .waits("j", &["dependency: waiting for prepare to succeed and for fetch to start"]);
}

#[test]
fn a_job_after_one_that_was_cancelled_never_starts() {
    let case = world(&format!(
        "{TWO}
jobs:
  - {{name: prepare, groups: [{{gpus: 1}}]}}
  - {{name: j, after: {{ok: [prepare]}}, groups: [{{gpus: 1}}]}}
"
    ));
    let prepare = case.id("prepare");
    case.then(Event::JobCancelled { job: prepare }).waits("j", &["dependency-never: waiting for prepare to succeed, which can no longer happen; stop it, or submit it without that dependency"]);
}

#[test]
fn an_array_that_can_never_be_waited_for_is_told_by_name_too() {
    let case = world(&format!(
        "{TWO}
jobs:
  - {{name: sweep, id: 5, array: 0-1, groups: [{{gpus: 1}}]}}
  - {{name: j, id: 6, after: {{ok: [5]}}, groups: [{{gpus: 1}}]}}
"
    ));
    case.then(Event::JobCancelled { job: JobId::new(5) }).waits("j", &["dependency-never: waiting for sweep (job 5) to succeed, which can no longer happen; stop it, or submit it without that dependency"]);
}

#[test]
fn a_singleton_waits_for_the_first_of_its_name() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: j, id: 3, groups: [{{gpus: 1, tasks: [{{node: a}}]}}]}}
  - {{name: j, id: 4, singleton: true, groups: [{{gpus: 1}}]}}
"
    ))
    .waits_as(
        JobId::new(4),
        &["singleton: only one job of its name and user may run at a time, and job 3 comes first"],
    );
}

#[test]
fn an_element_waits_for_a_place_in_its_array() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, id: 5, array: 0-9%2, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits_as(
        JobId::new(5).element(2),
        &["array-limit: its array may run 2 elements at a time, and that many are ahead of it"],
    );
}

#[test]
fn a_job_that_failed_the_check_tells_the_finding() {
    world(&format!(
        "{TWO}
jobs: [{{name: j, set_aside: GPU 0 of a is held twice, groups: [{{gpus: 1}}]}}]
"
    ))
    .waits("j", &["set-aside: its placement failed the safety check (GPU 0 of a is held twice); it is tried again when the job or the cluster changes"]);
}

#[test]
fn a_gang_that_lost_a_member_restarts_soon() {
    world(&format!(
        "{TWO}
jobs:
  - name: j
    started: 2026-11-15T08:00:00Z
    stale_since: 2026-11-15T08:59:30Z
    groups: [{{count: 2, gpus: 1, tasks: [{{node: a}}]}}]
"
    ))
    .waits("j", &["stale: 1 task of its gang is lost; if not back by 2026-11-15T09:00:30Z, it restarts from its checkpoint"]);
}

#[test]
fn a_paused_job_says_since_when() {
    world(&format!(
        "{TWO}
jobs:
  - {{name: short, groups: [{{count: 2, gpus: 8, tasks: [{{node: a}}, {{node: b}}]}}]}}
  - {{name: j, paused: true, pauses: [2026-11-15T08:40:00Z], groups: [{{gpus: 8}}]}}
"
    ))
    .waits("j", &["paused: it was paused at 2026-11-15T08:40:00Z for shorter jobs of its queue, and goes on after", "no-fit: it asks for 8 GPUs; none that suits it is free"]);
}
