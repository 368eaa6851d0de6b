use berth_core::*;
use berth_model::*;
use berth_sim::world::World;

fn load(text: &str) -> State {
    let loaded = World::parse(text).unwrap_or_else(|e| panic!("{e}"));
    State::load(&loaded.snapshot).unwrap()
}

fn push(state: &mut State, at: Time, event: Event) {
    let seq = state.seq() + 1;
    let _ = state
        .apply(&Stamped { seq, at, event: event.clone() })
        .unwrap_or_else(|e| panic!("{e}: {event:?}"));
}

fn settle(state: &mut State, rounds: usize) {
    for round in 0..rounds {
        let before = state.hash();
        let plan = state.plan();
        assert_eq!(before, state.hash(), "plan changed the state");
        let mut fresh = State::load(&state.snapshot()).unwrap();
        assert_eq!(fresh.plan(), plan, "fresh plan differs");
        if plan.is_empty() {
            println!("-- settled after {round}, next {:?}", plan.next.map(|t| t.to_string()));
            return;
        }
        let now = state.now();
        for t in &plan.transactions {
            for d in &t.decisions {
                println!("round {round}: {}", show(d));
            }
            push(state, now, Event::Decided { job: t.job, decisions: t.decisions.clone() });
        }
        for d in plan.decisions() {
            match d {
                Decision::Start { lease, .. } => {
                    push(state, now, Event::LeaseStarted { lease: *lease })
                }
                Decision::Stop { lease, .. } => push(
                    state,
                    now,
                    Event::LeaseEnded { lease: *lease, outcome: LeaseOutcome::Stopped },
                ),
                _ => {}
            }
        }
    }
    panic!("did not settle");
}

fn show(d: &Decision) -> String {
    match d {
        Decision::Start { lease, node, slices, price, .. } => format!(
            "start {lease} on {node} {:?} ${price}/h",
            slices.iter().map(|s| (s.gpu, format!("{:?}", s.share))).collect::<Vec<_>>()
        ),
        Decision::Stop { lease, cause, for_job, .. } => {
            format!("stop {lease} {cause} for {for_job:?}")
        }
        Decision::Reserve { job, at, places, firm } => format!(
            "reserve {job} at {at} firm={firm} {:?}",
            places
                .iter()
                .map(|p| (
                    p.task,
                    p.node.to_string(),
                    p.slices.iter().map(|s| s.gpu).collect::<Vec<_>>()
                ))
                .collect::<Vec<_>>()
        ),
        d => format!("{d:?}"),
    }
}

#[test]
fn basic() {
    let mut s = load("
now: 2026-11-15T09:00:00Z
topology: [zone, rack]
nodes:
  - {name: a, count: 4, gpus: 8, model: H100-80GB, labels: {zone: z1, rack: r1}}
  - {name: b, count: 4, gpus: 8, model: H100-80GB, labels: {zone: z1, rack: r2}}
queues:
  - {name: x, quota: {gpu: 32}}
  - {name: y, quota: {gpu: 32}}
jobs:
  - {name: j1, queue: x, time_limit: 4h, groups: [{count: 1, gpus: 1}]}
  - {name: j2, queue: x, time_limit: 4h, groups: [{count: 4, gpus: 8, topology: {required: rack}}]}
  - {name: j3, queue: y, time_limit: 4h, groups: [{count: 8, gpus: 1}]}
  - {name: j4, queue: y, time_limit: 4h, groups: [{count: 4, gpus: 8, topology: {required: rack}}]}
  - {name: j5, queue: y, time_limit: 1h, groups: [{count: 1, fraction: 0.5}]}
  - {name: j6, queue: y, time_limit: 1h, groups: [{count: 1, mig: 3g.40gb}]}
  - {name: j7, queue: x, time_limit: 1h, groups: [{count: 1, min: 1, gpus: 1}, {name: w, count: 6, min: 2, gpus: 2}]}
");
    settle(&mut s, 10);
}

#[test]
fn reclaim() {
    let mut s = load("
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB}
queues:
  - {name: x, quota: {gpu: 8}}
  - {name: y, quota: {gpu: 8}}
jobs:
  - {name: old1, queue: x, started: 2026-11-15T08:00:00Z, groups: [{count: 1, gpus: 4, tasks: [{node: a-0}]}]}
  - {name: old2, queue: x, started: 2026-11-15T08:10:00Z, groups: [{count: 1, gpus: 4, tasks: [{node: a-0}]}]}
  - {name: old3, queue: x, started: 2026-11-15T08:20:00Z, groups: [{count: 1, gpus: 4, tasks: [{node: a-1}]}]}
  - {name: old4, queue: x, started: 2026-11-15T08:30:00Z, groups: [{count: 1, gpus: 4, tasks: [{node: a-1}]}]}
  - {name: new, queue: y, groups: [{count: 1, gpus: 8}]}
  - {name: hi, queue: x, priority: high, groups: [{count: 1, gpus: 4}]}
");
    settle(&mut s, 10);
}

#[test]
fn elastic_backfill() {
    let mut s = load("
now: 2026-11-15T09:00:00Z
nodes:
  - {name: a, count: 2, gpus: 8, model: H100-80GB}
jobs:
  - {name: run, started: 2026-11-15T08:00:00Z, time_limit: 3h, groups: [{count: 1, gpus: 8, tasks: [{node: a-0}]}]}
  - {name: big, submitted: 2026-11-15T07:00:00Z, time_limit: 4h, groups: [{count: 2, gpus: 8}]}
  - {name: short, submitted: 2026-11-15T08:30:00Z, time_limit: 30m, groups: [{count: 1, gpus: 4}]}
  - {name: long, submitted: 2026-11-15T08:30:00Z, time_limit: 8h, groups: [{count: 1, gpus: 4}]}
  - {name: el, submitted: 2026-11-15T08:30:00Z, time_limit: 20m, groups: [{count: 4, min: 1, gpus: 1}]}
");
    settle(&mut s, 10);
}
