//! Nodes that are described anew while something runs on them.

use berth_core::State;
use berth_model::{Cpu, Decision, Division, Event, NodeSpec, Share, Stamped};
use berth_sim::world::World;

const WORLD: &str = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB, cpu: 8, memory: 64GiB}]
jobs:
  - {name: runs, groups: [{gpus: 1, cpu: 6, tasks: [{node: a}]}]}
  - {name: waits, groups: [{gpus: 1, cpu: 4, labels: {need: {disk: nvme}}}]}
";

fn state() -> State {
    let loaded = World::parse(WORLD).unwrap_or_else(|error| panic!("{error}"));
    State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"))
}

fn describe(state: &mut State, change: impl FnOnce(&mut NodeSpec)) {
    let mut node = state.node_snapshots()[0].spec.clone();
    change(&mut node);
    let event = Event::NodeAdded { node: Box::new(node) };
    let stamped = Stamped { seq: state.seq() + 1, at: state.now(), event };
    let _ = state.apply(&stamped).unwrap_or_else(|error| panic!("{error}"));
}

fn starts(state: &mut State) -> usize {
    let plan = state.plan();
    let decisions = plan.transactions.iter().flat_map(|transaction| &transaction.decisions);
    decisions.filter(|decision| matches!(decision, Decision::Start { .. })).count()
}

#[test]
fn a_label_that_a_busy_node_gets_counts_for_what_waits() {
    let mut state = state();
    assert_eq!(starts(&mut state), 0);
    describe(&mut state, |node| {
        node.labels.insert("disk".into(), "nvme".into());
        node.cpu = Some(Cpu(10_000));
    });
    assert_eq!(starts(&mut state), 1);
    // A state that is read back knows the same.
    let mut again = State::load(&state.snapshot()).unwrap();
    assert_eq!(again.plan(), state.plan());
}

#[test]
fn a_node_that_becomes_smaller_than_what_runs_there_takes_nothing_more_and_can_be_read_back() {
    let mut state = state();
    describe(&mut state, |node| {
        node.labels.insert("disk".into(), "nvme".into());
        node.cpu = Some(Cpu(5_000));
    });
    let mut again = State::load(&state.snapshot()).unwrap();
    assert_eq!(starts(&mut again), 0);
    describe(&mut again, |node| node.cpu = Some(Cpu(10_000)));
    assert_eq!(starts(&mut again), 1);
}

const PIECES: &str = "
now: 2026-11-15T09:00:00Z
nodes:
  - name: a
    gpus:
      - {model: A100-40GB, mig: {1g.5gb: 3}, division: mig}
      - {model: A100-40GB, division: time-slice, shares: 4}
jobs:
  - {name: held, groups: [{mig: 1g.5gb, tasks: [{node: a}]}]}
  - {name: shares, groups: [{time_slice: 4, tasks: [{node: a, gpus: [1]}]}]}
  - {name: waits, groups: [{mig: 1g.5gb}]}
  - {name: waits-too, groups: [{time_slice: 4}]}
";

#[test]
fn pieces_that_others_use_are_taken_off_a_busy_node_and_given_back() {
    let loaded = World::parse(PIECES).unwrap_or_else(|error| panic!("{error}"));
    let mut state = State::load(&loaded.snapshot).unwrap();
    let all = state.node_snapshots()[0].spec.gpus.clone();
    let held = state.snapshot().jobs.iter().flat_map(|job| job.leases.clone()).next().unwrap();
    let Share::Mig(held) = held.slices[0].share.clone() else { panic!("it holds an instance") };
    describe(&mut state, |node| {
        node.gpus[0].mig = Some(vec![held]);
        node.gpus[1].division = Some(Division::TimeSlice { shares: 1 });
    });
    let mut again = State::load(&state.snapshot()).unwrap();
    assert_eq!((starts(&mut state), starts(&mut again)), (0, 0));
    // What is held cannot be taken away.
    let mut less = state.node_snapshots()[0].spec.clone();
    less.gpus[1].division = Some(Division::TimeSlice { shares: 0 });
    let event = Event::NodeAdded { node: Box::new(less) };
    let stamped = Stamped { seq: state.seq() + 1, at: state.now(), event };
    assert!(state.apply(&stamped).is_err());
    describe(&mut state, |node| node.gpus = all);
    assert_eq!(starts(&mut state), 2);
}

const GPUS: &str = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB}]
jobs:
  - {name: low, groups: [{gpus: 2, tasks: [{node: a, gpus: [0, 1]}]}]}
  - {name: high, groups: [{gpus: 1, tasks: [{node: a, gpus: [6]}]}]}
  - {name: waits, groups: [{gpus: 8}]}
";

fn gpus() -> State {
    let loaded = World::parse(GPUS).unwrap_or_else(|error| panic!("{error}"));
    State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"))
}

fn node_with(state: &State, gpus: usize) -> NodeSpec {
    let mut node = state.node_snapshots()[0].spec.clone();
    let one = node.gpus[0].clone();
    node.gpus.resize(gpus, one);
    node
}

fn tell(state: &mut State, event: Event) -> Result<(), berth_model::Rejected> {
    let stamped = Stamped { seq: state.seq() + 1, at: state.now(), event };
    state.apply(&stamped).map(drop)
}

#[test]
fn a_busy_node_may_lose_gpus_that_nothing_holds_and_get_more() {
    let mut state = gpus();
    let seven = node_with(&state, 7);
    assert!(state.unfit_leases(&seven).is_empty());
    tell(&mut state, Event::NodeAdded { node: Box::new(seven) }).unwrap();
    assert_eq!(state.node_snapshots()[0].spec.gpus.len(), 7);
    let mut again = State::load(&state.snapshot()).unwrap();
    assert_eq!((again.plan(), again.snapshot()), (state.plan(), state.snapshot()));
    let sixteen = node_with(&state, 16);
    tell(&mut state, Event::NodeAdded { node: Box::new(sixteen) }).unwrap();
    // There are 13 free ones now, and the third job needs eight.
    assert_eq!(starts(&mut state), 1);
}

#[test]
fn a_busy_node_loses_no_gpu_before_the_leases_on_it_have_ended() {
    let mut state = gpus();
    let four = node_with(&state, 4);
    let unfit = state.unfit_leases(&four);
    assert_eq!(unfit.len(), 1, "{unfit:?}");
    let event = || Event::NodeAdded { node: Box::new(four.clone()) };
    let refused = tell(&mut state, event()).unwrap_err();
    assert_eq!(refused.code(), "node-in-use");
    let outcome = berth_model::LeaseOutcome::Lost;
    tell(&mut state, Event::LeaseEnded { lease: unfit[0], outcome }).unwrap();
    tell(&mut state, event()).unwrap();
    assert_eq!(state.node_snapshots()[0].spec.gpus.len(), 4);
    // What was lost waits for a GPU of those that are left.
    assert_eq!(starts(&mut state), 1);
    let other = {
        let mut node = node_with(&state, 4);
        node.gpus[0].model = "L4-24GB".into();
        node
    };
    assert_eq!(state.unfit_leases(&other).len(), 1);
}

#[test]
fn one_queue_with_those_above_it_is_as_among_all_queues() {
    let world = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB}]
queues: [{name: lab}, {name: nlp, parent: lab}, {name: audio, parent: lab}]
";
    let loaded = World::parse(world).unwrap_or_else(|error| panic!("{error}"));
    let state = State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"));
    let path = state.queue_snapshots_of("nlp");
    let names: Vec<&str> = path.iter().map(|queue| queue.spec.name.as_str()).collect();
    assert_eq!(names, ["nlp", "lab"]);
    let all = state.queue_snapshots();
    assert!(path.iter().all(|queue| all.contains(queue)));
    assert!(state.queue_snapshots_of("vision").is_empty());
    assert_eq!(state.node_spec("a"), Some(&state.node_snapshots()[0].spec));
    assert_eq!(state.node_spec("b"), None);
}
