//! Jobs that take turns from outside: while it is not its turn a job does not start, and keeps what
//! it is promised.

use super::{carry_out, node_with, promised, runs, started, task, tell, world};
use crate::check::world::name;
use berth_model::*;
use std::collections::BTreeSet;

#[test]
fn a_job_keeps_its_promise_while_others_have_their_turn() {
    let made = world([node_with("n1", 0, 8)])
        .running(runs(task(1, 50, 0, 6), "n1", 0..0))
        .jobs([task(2, 50, 0, 7)]);
    let (mut state, plan) = made.plan();
    let at = promised(&plan, 2).expect("it holds a reservation");
    carry_out(&mut state, &plan);
    let turn = |is_its| JobChange::Turn(is_its);
    tell(&mut state, Event::JobChanged { job: JobId::new(2), change: turn(false) });
    assert_eq!(state.promise_of(JobId::new(2)), Some((at, false)));
    assert!(state.waits_turn(JobId::new(2)));
    // Its places are free, and others may not have them; but it is not its turn.
    let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
    tell(&mut state, Event::LeaseEnded { lease, outcome: LeaseOutcome::Done });
    tell(&mut state, Event::JobSubmitted { spec: Box::new(task(3, 50, 0, 2)) });
    let plan = state.plan();
    assert_eq!(started(&plan), BTreeSet::new());
    carry_out(&mut state, &plan);
    tell(&mut state, Event::JobChanged { job: JobId::new(2), change: turn(true) });
    assert_eq!(started(&state.plan()), [(2, name("n1"))].into());
}

#[test]
fn a_job_whose_turn_it_is_not_does_not_start_without_a_promise_either() {
    let (mut state, _) = world([node_with("n1", 0, 8)]).plan();
    let mut held = task(1, 50, 0, 1);
    held.hold = true;
    tell(&mut state, Event::JobSubmitted { spec: Box::new(held) });
    let job = JobId::new(1);
    tell(&mut state, Event::JobChanged { job, change: JobChange::Turn(false) });
    tell(&mut state, Event::JobChanged { job, change: JobChange::Hold(false) });
    assert_eq!(started(&state.plan()), BTreeSet::new());
    assert!(state.snapshot().jobs[0].waits_turn);
    tell(&mut state, Event::JobChanged { job, change: JobChange::Turn(true) });
    assert_eq!(started(&state.plan()).len(), 1);
}
