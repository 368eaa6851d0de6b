//! Nodes that are described anew while something runs on them.

use berth_core::State;
use berth_model::{Cpu, Decision, Event, NodeSpec, Stamped};
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
