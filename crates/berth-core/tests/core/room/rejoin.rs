//! Gangs that take a lost member back while the others run.

use super::{carry_out, node_with, started, tell, world};
use crate::check::world::{group, job_with, name};
use berth_core::State;
use berth_model::*;

/// A gang of three that runs on three nodes with a GPU each.
fn running(more: &[&str]) -> State {
    let nodes = ["n1", "n2", "n3"].iter().chain(more).map(|name| node_with(name, 1, 8));
    let of = GroupSpec { cpu: Cpu::cores(1), ..group(GpuAsk::Whole { count: 1 }, 3) };
    let gang = JobSpec { time_limit: Some(Span::hours(1)), ..job_with(1, "q", vec![of]) };
    let (mut state, plan) = world(nodes.collect::<Vec<_>>()).jobs([gang]).plan();
    carry_out(&mut state, &plan);
    assert_eq!(state.short_gangs().count(), 0);
    state
}

fn lose(state: &mut State, task: u32) {
    let lease = LeaseId { job: JobId::new(1), task, attempt: 0 };
    tell(state, Event::LeaseEnded { lease, outcome: LeaseOutcome::Lost });
}

#[test]
fn a_lost_member_starts_again_beside_those_that_run() {
    let mut state = running(&[]);
    assert_eq!(state.rejoin(JobId::new(1)), None, "it misses none");
    lose(&mut state, 1);
    assert_eq!(state.short_gangs().collect::<Vec<_>>(), [JobId::new(1)]);
    let before = state.snapshot();
    let plan = state.rejoin(JobId::new(1)).expect("its place is free");
    assert_eq!(state.snapshot(), before, "it is only worked out");
    assert!(berth_core::check(&state, &plan).is_empty());
    let lease = LeaseId { job: JobId::new(1), task: 1, attempt: 1 };
    assert!(matches!(plan.decisions().collect::<Vec<_>>()[..],
        [Decision::Start { lease: found, .. }] if *found == lease));
    carry_out(&mut state, &plan);
    assert_eq!(state.short_gangs().count(), 0, "it is whole again");
    assert_eq!(state.rejoin(JobId::new(1)), None);
}

#[test]
fn a_member_does_not_come_back_where_there_is_no_room() {
    let mut state = running(&[]);
    tell(&mut state, Event::NodeAdded { node: Box::new(closed("n1")) });
    tell(&mut state, Event::NodeAdded { node: Box::new(closed("n2")) });
    tell(&mut state, Event::NodeAdded { node: Box::new(closed("n3")) });
    lose(&mut state, 1);
    assert_eq!(state.rejoin(JobId::new(1)), None, "no node takes new work");
    tell(&mut state, Event::NodeAdded { node: Box::new(node_with("n4", 1, 8)) });
    let plan = state.rejoin(JobId::new(1)).expect("there is room now");
    assert_eq!(started(&plan), [(1, name("n4"))].into());
}

/// The node as it is when it takes no new work.
fn closed(name: &str) -> NodeSpec {
    NodeSpec { state: NodeState::Cordoned, ..node_with(name, 1, 8) }
}

#[test]
fn a_gang_that_is_to_end_takes_no_member_back() {
    let mut state = running(&["n4"]);
    lose(&mut state, 1);
    tell(&mut state, Event::JobCancelled { job: JobId::new(1) });
    assert_eq!(state.rejoin(JobId::new(1)), None);
}
