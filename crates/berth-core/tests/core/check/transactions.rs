//! Transactions that fail, and those that depend on them.

use crate::check::world::*;
use FindingCode as F;
use berth_core::{FindingCode, Transaction, vetted};
use berth_model::{After, Decision, Dependency, Event, JobId, JobRef, Outcome, Stamped};

#[test]
fn a_transaction_that_fails_takes_those_with_it_that_lean_on_it_and_no_others() {
    let world = World::new().jobs([job(1, "a", 1, 8), job(2, "b", 1, 8)]);
    let (state, mut plan) = world.plan();
    let Some(Decision::Start { slices, .. }) = plan.transactions[0].decisions.first_mut() else {
        panic!("a start");
    };
    slices.pop();
    let again = plan.transactions[0].job.expect("a job");
    let reserve = reserve(again.number, NOW, &[("n4", 0..8)]);
    plan.transactions.push(Transaction { job: Some(again), decisions: vec![reserve] });
    let (kept, findings) = vetted(&state, &plan);
    let failed: Vec<usize> = findings.iter().map(|finding| finding.transaction).collect();
    assert!(failed.contains(&0) && failed.contains(&2) && !failed.contains(&1));
    assert_eq!(kept.len(), 2);
    let Decision::SetAside { job, finding } = &kept[0].decisions[0] else {
        panic!("put aside: {kept:?}");
    };
    assert_eq!(*job, again);
    assert!(finding.starts_with("slices: "), "{finding}");
    assert_eq!(kept[1], plan.transactions[1]);
    let mut state = state;
    for (n, transaction) in kept.into_iter().enumerate() {
        let Transaction { job, decisions } = transaction;
        let event = Event::Decided { job, decisions };
        let seq = state.seq() + 1;
        let applied = state.apply(&Stamped { seq, at: NOW, event });
        assert!(applied.is_ok(), "transaction {n}: {applied:?}");
    }
    assert_eq!(state.plan().transactions, []);
}

#[test]
fn a_plan_that_is_right_is_kept_as_it_is() {
    let (state, plan) = reclaimable().plan();
    let (kept, findings) = vetted(&state, &plan);
    assert_eq!(findings, []);
    assert_eq!(kept, plan.transactions);
}

#[test]
fn an_outcome_that_rules_a_dependency_out_keeps_the_job_from_starting() {
    let mut spec = job(2, "a", 1, 1);
    spec.after = vec![Dependency { after: After::Ok, job: JobRef::Id(JobId::new(1)) }];
    let world = |outcome| {
        World::new().jobs([spec.clone()]).with(|world| {
            world.outcomes.push((JobId::new(1), name("job-1"), outcome));
        })
    };
    let on = |outcome| world(outcome).judged(2, vec![start(2, 0, "n1", gpus(0..1))]);
    assert_eq!(on(Outcome::Done), []);
    assert_eq!(on(Outcome::Failed), [F::NotInLine]);
}
