//! Which jobs start, and within which bounds.

use crate::check::world::*;
use FindingCode as F;
use berth_core::FindingCode;
use berth_model::{
    After, Amount, ArraySpec, Budget, BudgetAction, BudgetPeriod, Cause, Decision, Dependency,
    JobId, JobRef, JobSnapshot, JobSpec, Micros, Milli, Name, QueueSpec, Span,
};

#[test]
fn decisions_name_things_that_are_there() {
    let world = World::new().jobs([job(1, "a", 1, 8)]);
    assert_eq!(world.judged(1, vec![start(9, 0, "n1", gpus(0..8))]), [F::Unknown]);
    assert_eq!(world.judged(1, vec![start(1, 0, "n9", gpus(0..8))]), [F::Unknown]);
    assert_eq!(world.judged(1, vec![start(1, 5, "n1", gpus(0..8))]), [F::Unknown]);
    assert_eq!(world.judged(1, vec![stop(1, 0, Cause::Held, None)]), [F::Unknown]);
    assert_eq!(world.judged(9, vec![start(1, 0, "n1", gpus(0..8))]), [F::Stray]);
}

#[test]
fn a_task_is_started_once_and_as_its_next_attempt() {
    let world = World::new().jobs([job(1, "a", 1, 4)]);
    let twice = vec![start(1, 0, "n1", gpus(0..4)), start(1, 0, "n1", gpus(4..8))];
    assert_eq!(world.judged(1, twice), [F::Attempt]);
    let found = world.spoilt(|plan| {
        let Decision::Start { lease, .. } = &mut plan.transactions[0].decisions[0] else {
            panic!("a start");
        };
        lease.attempt = 3;
    });
    assert_eq!(found, [F::Attempt]);
    let found = world.spoilt(|plan| plan.transactions.push(plan.transactions[0].clone()));
    assert_eq!(found, [F::Attempt]);
}

#[test]
fn a_job_that_resumes_has_something_to_resume_from_and_costs_what_it_costs() {
    let world = World::new().jobs([job(1, "a", 1, 4)]);
    let found = world.spoilt(|plan| {
        let Decision::Start { resume, price: of, .. } = &mut plan.transactions[0].decisions[0]
        else {
            panic!("a start");
        };
        assert_eq!(*of, price(4));
        *resume = true;
        *of = Micros(1);
    });
    assert_eq!(found, [F::Resume, F::Price]);
}

#[test]
fn a_job_that_is_not_in_line_does_not_start() {
    let change = |change: fn(&mut JobSpec)| {
        let mut spec = job(2, "a", 1, 1);
        change(&mut spec);
        World::new().running(running(job(1, "a", 1, 1), &[("n1", 0..1)])).jobs([spec])
    };
    let on = |world: World| world.judged(2, vec![start(2, 0, "n2", gpus(0..1))]);
    assert_eq!(on(change(|_| ())), []);
    assert_eq!(on(change(|spec| spec.hold = true)), [F::NotInLine]);
    assert_eq!(on(change(|spec| spec.begin = Some(NOW + Span::secs(1)))), [F::NotInLine]);
    let after = |spec: &mut JobSpec| {
        spec.after = vec![Dependency { after: After::Ok, job: JobRef::Id(JobId::new(1)) }];
    };
    assert_eq!(on(change(after)), [F::NotInLine]);
    let named = |spec: &mut JobSpec| {
        spec.after = vec![Dependency { after: After::Any, job: JobRef::Name(name("job-1")) }];
    };
    assert_eq!(on(change(named)), [F::NotInLine]);
    let single = |spec: &mut JobSpec| {
        spec.name = name("job-1");
        spec.singleton = true;
    };
    assert_eq!(on(change(single)), [F::NotInLine]);
    let started = |spec: &mut JobSpec| {
        spec.after = vec![Dependency { after: After::Start, job: JobRef::Id(JobId::new(1)) }];
    };
    assert_eq!(on(change(started)), []);
}

#[test]
fn no_more_elements_of_an_array_run_than_may() {
    let mut spec = job(1, "a", 1, 1);
    spec.array = Some(ArraySpec { elements: vec![0, 1, 2], at_most: Some(2) });
    let element =
        |element| JobSnapshot { element: Some(element), ..JobSnapshot::new(spec.clone()) };
    let world = World::new().with(|world| world.jobs.extend((0..3).map(element)));
    let found = world.spoilt(|plan| {
        assert_eq!(plan.transactions.len(), 2);
        let mut third = plan.transactions[1].clone();
        let id = JobId::new(1).element(2);
        third.job = Some(id);
        let Decision::Start { lease, slices, .. } = &mut third.decisions[0] else {
            panic!("a start");
        };
        lease.job = id;
        *slices = gpus(7..8);
        plan.transactions.push(third);
    });
    assert_eq!(found, [F::NotInLine]);
}

#[test]
fn limits_of_queues_users_and_models_hold() {
    let bound = |change: fn(&mut QueueSpec)| {
        let mut a = queue("a", 8);
        change(&mut a);
        World::new()
            .with(|world| world.queues.clear())
            .queues([a, queue("b", 8)])
            .running(running(job(1, "a", 1, 8), &[("n1", 0..8)]))
            .jobs([job(2, "a", 1, 4)])
    };
    let on = |world: World| world.judged(2, vec![start(2, 0, "n2", gpus(0..4))]);
    let gpu = |n| Some(Amount::Of(Milli::whole(n)));
    assert_eq!(gpu(1), gpu(1));
    assert_eq!(on(bound(|_| ())), []);
    assert_eq!(on(bound(|a| a.limit.gpu.total = Some(Amount::Of(Milli::whole(11))))), [F::Limit]);
    assert_eq!(on(bound(|a| a.limit.gpu.total = Some(Amount::Of(Milli::whole(12))))), []);
    assert_eq!(on(bound(|a| a.limit.gpu.total = Some(Amount::Share(Milli(350))))), [F::Limit]);
    assert_eq!(on(bound(|a| a.borrow.gpu.total = Some(Amount::Of(Milli::whole(3))))), [F::Borrow]);
    let user = |a: &mut QueueSpec| a.user_limit.gpu.total = Some(Amount::Of(Milli::whole(11)));
    assert_eq!(on(bound(user)), [F::UserLimit]);
    let model = |a: &mut QueueSpec| {
        a.limit.gpu.models.insert(name("H100-80GB"), Amount::Of(Milli::whole(11)));
    };
    assert_eq!(on(bound(model)), [F::Limit]);
    bound(model).plan();
    bound(user).plan();
}

#[test]
fn limits_of_a_parent_hold_for_its_children() {
    let mut parent = queue("p", 8);
    parent.limit.gpu.total = Some(Amount::Of(Milli::whole(8)));
    let child = |name: &str| QueueSpec { parent: Some(Name::new("p")), ..queue(name, 8) };
    let world = World::new()
        .queues([parent, child("x"), child("y")])
        .running(running(job(1, "x", 1, 8), &[("n1", 0..8)]))
        .jobs([job(2, "y", 1, 1)]);
    assert_eq!(world.judged(2, vec![start(2, 0, "n2", gpus(0..1))]), [F::Limit]);
    world.plan();
}

#[test]
fn what_is_not_lent_stays_free() {
    let mut b = queue("b", 16);
    b.lend.gpu.total = Some(Amount::Of(Milli::whole(4)));
    let world = World::new()
        .with(|world| world.queues.clear())
        .queues([queue("a", 16), b])
        .running(running(job(1, "a", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .jobs([job(2, "a", 1, 4), job(3, "a", 1, 8)]);
    assert_eq!(world.judged(2, vec![start(2, 0, "n3", gpus(0..4))]), []);
    assert_eq!(world.judged(3, vec![start(3, 0, "n3", gpus(0..8))]), [F::NotLent]);
    world.plan();
}

#[test]
fn a_job_that_cannot_be_stopped_starts_only_within_the_quota() {
    let mut spec = job(1, "a", 3, 8);
    spec.preemptible = false;
    let world = World::new().jobs([spec]);
    let starts = ["n1", "n2", "n3"].iter().enumerate();
    let starts = starts.map(|(task, node)| start(1, task as u32, node, gpus(0..8))).collect();
    assert_eq!(world.judged(1, starts), [F::OverQuota]);
    world.plan();
}

#[test]
fn a_spent_budget_blocks_starts_and_is_the_only_reason_to_pause() {
    let spend = |action, spent| {
        let mut a = queue("a", 16);
        a.budget = Some(Budget {
            limit: Micros::dollars(10),
            per: BudgetPeriod::Once,
            action,
            thresholds: Vec::new(),
        });
        World::new()
            .with(|world| world.queues.clear())
            .queues([a, queue("b", 16)])
            .with(|world| world.queues[0].spent = Micros::dollars(spent))
            .running(running(job(1, "a", 1, 8), &[("n1", 0..8)]))
            .jobs([job(2, "a", 1, 4)])
    };
    let on = |world: &World| world.judged(2, vec![start(2, 0, "n2", gpus(0..4))]);
    let pause = |world: &World| world.judged(1, vec![stop(1, 0, Cause::Budget, None)]);
    assert_eq!(on(&spend(BudgetAction::Block, 10)), [F::Budget]);
    assert_eq!(on(&spend(BudgetAction::Block, 9)), []);
    assert_eq!(on(&spend(BudgetAction::Notify, 10)), []);
    assert_eq!(pause(&spend(BudgetAction::Block, 10)), [F::Cause]);
    assert_eq!(pause(&spend(BudgetAction::Pause, 10)), []);
    spend(BudgetAction::Pause, 10).plan();
}
