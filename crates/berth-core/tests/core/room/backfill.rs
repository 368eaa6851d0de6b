//! A job that delays no promise starts now, beside jobs with an end and without one.

use super::{carry_out, endless, node_with, promised, runs, started, stopped, task, tell, world};
use crate::check::world::{NOW, name};
use berth_core::State;
use berth_model::*;
use std::collections::BTreeSet;

#[test]
fn free_gpus_are_had_although_a_job_has_a_reservation_on_the_node_for_later() {
    // Six of eight GPUs come free in three hours; four are promised then.
    let made = world([node_with("n1", 8, 64)])
        .running(runs(task(1, 50, 6, 6), "n1", 0..6))
        .jobs([task(2, 50, 4, 4)]);
    let (mut state, plan) = made.plan();
    assert!(promised(&plan, 2).is_some_and(|at| at > NOW));
    carry_out(&mut state, &plan);
    let spec = JobSpec { submitted: NOW, ..endless(task(3, 50, 2, 2)) };
    tell(&mut state, Event::JobSubmitted { spec: Box::new(spec) });
    assert_eq!(started(&state.plan()), [(3, name("n1"))].into());
}

#[test]
fn free_cores_are_had_although_more_are_promised_for_later() {
    let made = world([node_with("n1", 0, 8)])
        .running(runs(task(1, 50, 0, 6), "n1", 0..0))
        .jobs([task(2, 50, 0, 7)]);
    let (mut state, plan) = made.plan();
    assert!(promised(&plan, 2).is_some_and(|at| at > NOW));
    carry_out(&mut state, &plan);
    let small = |id, cores| Event::JobSubmitted { spec: Box::new(endless(task(id, 50, 0, cores))) };
    // Seven of eight are promised: one is left beside them, and not two.
    tell(&mut state, small(3, 2));
    assert_eq!(started(&state.plan()), BTreeSet::new());
    tell(&mut state, small(4, 1));
    let plan = state.plan();
    assert_eq!(started(&plan), [(4, name("n1"))].into());
    carry_out(&mut state, &plan);
    // The promise is kept.
    let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
    tell(&mut state, Event::LeaseEnded { lease, outcome: LeaseOutcome::Done });
    assert_eq!(started(&state.plan()), [(2, name("n1"))].into());
}

#[test]
fn a_job_without_an_end_does_not_start_where_it_would_delay_a_promise() {
    let made = world([node_with("n1", 8, 64)])
        .running(runs(task(1, 50, 6, 6), "n1", 0..6))
        .jobs([task(2, 50, 8, 8)]);
    let (mut state, plan) = made.plan();
    let at = promised(&plan, 2).expect("it holds a reservation");
    carry_out(&mut state, &plan);
    tell(&mut state, Event::JobSubmitted { spec: Box::new(endless(task(3, 50, 2, 2))) });
    assert_eq!(started(&state.plan()), BTreeSet::new());
    // One that is through before starts.
    let brief = JobSpec { time_limit: Some(Span::mins(10)), ..task(4, 50, 2, 2) };
    tell(&mut state, Event::JobSubmitted { spec: Box::new(brief) });
    assert!(at > state.now() + Span::mins(20));
    assert_eq!(started(&state.plan()), [(4, name("n1"))].into());
}

#[test]
fn nothing_is_promised_on_the_end_of_a_job_that_has_none_and_nothing_waits_for_it() {
    let made = world([node_with("n1", 8, 64)])
        .running(runs(endless(task(1, 50, 6, 6)), "n1", 0..6))
        .jobs([task(2, 50, 4, 4)]);
    let (mut state, plan) = made.plan();
    assert_eq!((promised(&plan, 2), started(&plan)), (None, BTreeSet::new()));
    carry_out(&mut state, &plan);
    tell(&mut state, Event::JobSubmitted { spec: Box::new(endless(task(3, 50, 2, 2))) });
    assert_eq!(started(&state.plan()), [(3, name("n1"))].into());
}

/// Random worlds: whatever starts beside a promise, the promise is kept, and what has no end never
/// ends.
#[test]
fn promises_are_kept_whatever_starts_beside_them() {
    let mut random = 1_u64;
    let mut below = move |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    for case in 0..150 {
        let made = world([node_with("n1", 4, 16), node_with("n2", 4, 16), node_with("n3", 0, 16)]);
        let mut state = State::load(&made.0).expect("the world makes sense");
        let mut ends: Vec<(Time, u64)> = Vec::new();
        let mut owed: Option<(JobId, Time)> = None;
        let mut settle = |state: &mut State, ends: &mut Vec<(Time, u64)>| {
            let plan = state.plan();
            assert_eq!(berth_core::check(state, &plan), [], "case {case}");
            assert_eq!(stopped(&plan), BTreeSet::new(), "case {case}: nobody has a right");
            carry_out(state, &plan);
            for (job, _) in started(&plan) {
                let progress = state.progress(JobId::new(job)).expect("it runs");
                ends.push((progress.ends_at_most.expect("it has started"), job));
            }
            ends.sort();
            let kept = state.snapshot().promises.first().map(|kept| (kept.job, kept.at));
            if let (Some((job, at)), Some((now, later))) = (owed, kept) {
                assert!(job != now || later <= at, "case {case}: job {job} was promised {at}");
            }
            owed = kept;
        };
        for number in 1..30_u64 {
            let when = state.now() + Span::secs(1) + Span::mins(below(6) as i64);
            // What ends at the same moment ends before anything is planned.
            while let Some((at, _)) = ends.first().copied().filter(|(at, _)| *at <= when) {
                let gone: Vec<u64> =
                    ends.iter().filter(|(end, _)| *end == at).map(|(_, job)| *job).collect();
                ends.retain(|(end, _)| *end != at);
                for job in gone {
                    let lease = LeaseId { job: JobId::new(job), task: 0, attempt: 0 };
                    let event = Event::LeaseEnded { lease, outcome: LeaseOutcome::Done };
                    let seq = state.seq() + 1;
                    drop(state.apply(&Stamped { seq, at, event }).expect("it runs"));
                }
                settle(&mut state, &mut ends);
            }
            let (gpus, cores) = (below(4) as u32, 1 + below(8) as i64);
            let limit = match below(3) {
                0 => Span::UNLIMITED,
                n => Span::mins(10 * n as i64),
            };
            let mut spec = task(number, 50, gpus, cores);
            (spec.time_limit, spec.submitted) = (Some(limit), when);
            let event = Event::JobSubmitted { spec: Box::new(spec) };
            let seq = state.seq() + 1;
            drop(state.apply(&Stamped { seq, at: when, event }).expect("it makes sense"));
            settle(&mut state, &mut ends);
        }
    }
}
