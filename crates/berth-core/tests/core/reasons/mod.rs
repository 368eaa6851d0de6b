//! Every reason, in a small world where it is the answer, with its sentence.

mod coming;
mod fit;
mod never;
mod parked;
mod queue;

use berth_core::State;
use berth_model::{Event, JobId, Snapshot, Stamped};
use berth_sim::world::World;

/// Two nodes of eight GPUs, one per rack.
const TWO: &str = "
now: 2026-11-15T09:00:00Z
topology: [zone, rack]
nodes:
  - {name: a, gpus: 8, model: H100-80GB, labels: {zone: z, rack: r1}}
  - {name: b, gpus: 8, model: H100-80GB, labels: {zone: z, rack: r2}}
";

struct Case {
    state: State,
    snapshot: Snapshot,
}

fn world(text: &str) -> Case {
    let loaded = World::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let state = State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"));
    Case { state, snapshot: loaded.snapshot }
}

impl Case {
    fn id(&self, name: &str) -> JobId {
        let job = self.snapshot.jobs.iter().find(|job| job.spec.name.as_str() == name);
        job.unwrap_or_else(|| panic!("no job {name}")).id()
    }

    fn then(mut self, event: Event) -> Case {
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.state.now(), event };
        let _ = self.state.apply(&stamped).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Carries one plan out, as far as deciding goes.
    fn planned(mut self) -> Case {
        for made in self.state.plan().transactions {
            self = self.then(Event::Decided { job: made.job, decisions: made.decisions });
        }
        self
    }

    /// The reasons of a job are exactly these, in this order, and asking changes nothing.
    #[track_caller]
    fn waits(mut self, name: &str, expected: &[&str]) {
        let job = self.id(name);
        self.waits_as(job, expected);
    }

    #[track_caller]
    fn waits_as(&mut self, job: JobId, expected: &[&str]) {
        let before = self.state.hash();
        let reasons = self.state.reasons(job);
        let found: Vec<String> =
            reasons.iter().map(|reason| format!("{}: {reason}", reason.code())).collect();
        assert_eq!(found, expected);
        assert_eq!(before, self.state.hash(), "asking changed the state");
    }
}

#[test]
fn all_that_stands_in_the_way_is_told_the_most_fundamental_first() {
    world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, quota: {{gpu: 8}}, limit: {{gpu: 8}}}}]
jobs:
  - {{name: one, queue: p, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: two, queue: q, groups: [{{gpus: 8, tasks: [{{node: b}}]}}]}}
  - {{name: j, queue: q, groups: [{{count: 2, gpus: 4, topology: {{required: rack}}}}]}}
"
    ))
    .waits("j", &["queue-limit: queue q is limited to 8 GPUs: 8 in use, 8 more asked for", "no-fit: it asks for 8 GPUs; none that suits it is free", "no-domain: its 2 tasks must lie in one rack, and no rack has room for any now", "over-share: queue q has a fair share of 8 GPUs now and uses 8; 8 more would exceed it, so it may not take GPUs from other queues"]);
    world(&format!("{TWO}
jobs: [{{name: j, hold: true, begin: 2026-11-15T10:00:00Z, groups: [{{gpus: 1, models: [A100-80GB]}}]}}]
")).waits("j", &["held: on hold; `berth resume` lets it start", "begin-time: it was asked to begin no earlier than 2026-11-15T10:00:00Z", "no-model: no node here has A100-80GB GPUs; name another model"]);
}

#[test]
fn a_job_knows_its_place_in_line() {
    let text = |order: &str| {
        format!(
            "{TWO}
queues: [{{name: q, order: {order}}}]
jobs:
  - {{name: long, queue: q, submitted: 2026-11-15T08:00:00Z, time_limit: 8h, groups: [{{gpus: 8}}]}}
  - {{name: short, queue: q, submitted: 2026-11-15T08:30:00Z, time_limit: 1h, groups: [{{gpus: 1}}]}}
  - {{name: high, queue: q, submitted: 2026-11-15T08:59:00Z, priority: high, groups: [{{gpus: 8}}]}}
  - {{name: held, queue: q, hold: true, groups: [{{gpus: 1}}]}}
"
        )
    };
    for (order, line) in [
        ("fifo", ["high", "long", "short"]),
        ("shortest", ["high", "short", "long"]),
        ("response-ratio", ["high", "short", "long"]),
    ] {
        let case = world(&text(order));
        for (ahead, name) in line.into_iter().enumerate() {
            assert_eq!(case.state.position(case.id(name)), Some((ahead, 3)), "{order}: {name}");
        }
        assert_eq!(case.state.position(case.id("held")), None);
        let all: Vec<JobId> = case.snapshot.jobs.iter().map(|job| job.id()).collect();
        let expected = line.into_iter().enumerate().map(|(ahead, name)| (case.id(name), ahead));
        assert_eq!(case.state.positions(&all), expected.collect(), "{order}: asked together");
    }
}

#[test]
fn jobs_that_are_asked_about_together_are_told_what_each_is_told_alone() {
    let mut case = world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, limit: {{gpu: 8}}}}]
jobs:
  - {{name: run, queue: p, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: large, queue: q, groups: [{{gpus: 8}}, {{gpus: 8}}]}}
  - {{name: small, queue: q, groups: [{{gpus: 4}}]}}
  - {{name: other, queue: p, groups: [{{gpus: 1, models: [A100-80GB]}}]}}
  - {{name: held, queue: p, hold: true, groups: [{{gpus: 1}}]}}
"
    ));
    let all: Vec<JobId> = case.snapshot.jobs.iter().map(|job| job.id()).collect();
    let before = case.state.hash();
    let together = case.state.reasons_of(&all);
    let alone: Vec<_> = all.iter().map(|job| case.state.reasons(*job)).collect();
    assert_eq!(together, alone);
    assert_eq!(before, case.state.hash(), "asking changed the state");
}

#[test]
fn a_plan_tells_what_blocks_each_shape_and_queue_once() {
    let mut case = world(&format!(
        "{TWO}
queues: [{{name: p, quota: {{gpu: 8}}}}, {{name: q, quota: {{gpu: 8}}, limit: {{gpu: 8}}}}]
jobs:
  - {{name: one, queue: p, groups: [{{gpus: 8, tasks: [{{node: a}}]}}]}}
  - {{name: two, queue: q, groups: [{{gpus: 6, tasks: [{{node: b}}]}}]}}
  - {{name: j, queue: p, groups: [{{gpus: 4}}]}}
  - {{name: k, queue: p, groups: [{{gpus: 4}}]}}
  - {{name: l, queue: q, groups: [{{gpus: 4}}]}}
  - {{name: m, queue: p, groups: [{{gpus: 1, models: [A100-80GB]}}]}}
"
    ));
    let blocked = case.state.plan().blocked;
    let show = |reasons: &[berth_model::Reason]| {
        reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let shapes: Vec<String> =
        blocked.shapes.iter().map(|b| format!("{}: {}", b.example, show(&b.reasons))).collect();
    assert_eq!(
        shapes,
        [
            "3: it asks for 4 GPUs; 2 that would suit are free",
            "6: no node here has A100-80GB GPUs; name another model"
        ]
    );
    let queues: Vec<String> = blocked
        .queues
        .iter()
        .map(|(queue, b)| format!("{queue}: {}: {}", b.example, show(&b.reasons)))
        .collect();
    assert_eq!(
        queues,
        [
            "p: 3: queue p has a fair share of 8 GPUs now and uses 8; 4 more would exceed it, so it may not take GPUs from other queues",
            "q: 5: queue q is limited to 8 GPUs: 6 in use, 4 more asked for; queue q has a fair share of 8 GPUs now and uses 6; 4 more would exceed it, so it may not take GPUs from other queues"
        ]
    );
}
