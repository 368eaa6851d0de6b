//! Who is stopped, for whom and why.

use crate::check::world::*;
use FindingCode as F;
use berth_core::{FindingCode, State, check};
use berth_model::{Cause, Decision, NodeState, QueueSpec, Reservation, Snapshot, Span};

#[test]
fn an_owner_takes_back_what_it_lent_and_no_more() {
    let (_, plan) = reclaimable().plan();
    let stops = plan.decisions().filter(|decision| matches!(decision, Decision::Stop { .. }));
    assert_eq!(stops.count(), 1);
    // The two small jobs are what b has borrowed; with the large one it would lose its quota.
    let world = reclaimable().jobs([job(5, "a", 2, 8)]);
    let all = vec![
        stop(2, 0, Cause::Reclaim, Some(5)),
        stop(3, 0, Cause::Reclaim, Some(5)),
        stop(1, 0, Cause::Reclaim, Some(5)),
        stop(1, 1, Cause::Reclaim, Some(5)),
        reserve(5, NOW + Span::mins(5), &[("n3", 0..8), ("n4", 0..8)]),
    ];
    assert_eq!(world.judged(5, all), [F::Right]);
}

#[test]
fn nobody_takes_from_another_queue_beyond_its_own_quota() {
    let world = World::new()
        .running(running(job(1, "a", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .running(running(job(2, "b", 2, 8), &[("n3", 0..8), ("n4", 0..8)]))
        .jobs([job(3, "a", 1, 8)]);
    let take = |cause| {
        vec![
            stop(2, 0, cause, Some(3)),
            stop(2, 1, cause, Some(3)),
            reserve(3, NOW + Span::mins(5), &[("n3", 0..8)]),
        ]
    };
    assert_eq!(world.judged(3, take(Cause::Reclaim)), [F::Right]);
    assert_eq!(world.judged(3, take(Cause::Preempt)), [F::Right]);
    assert_eq!(world.judged(3, take(Cause::Across)), [F::Right]);
    let own = vec![
        stop(1, 0, Cause::Preempt, Some(3)),
        stop(1, 1, Cause::Preempt, Some(3)),
        reserve(3, NOW + Span::mins(5), &[("n1", 0..8)]),
    ];
    assert_eq!(world.judged(3, own), [F::Right]);
}

#[test]
fn a_queue_under_its_fair_share_takes_from_one_above_it() {
    // No quotas: each queue's share is half, and b has all of it.
    let world = World::new()
        .with(|world| world.queues.clear())
        .queues([QueueSpec::new("a"), QueueSpec::new("b")])
        .running(running(job(1, "b", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .running(running(job(2, "b", 1, 8), &[("n3", 0..8)]))
        .running(running(job(3, "b", 1, 8), &[("n4", 0..8)]))
        .jobs((4..8).map(|id| job(id, "a", 1, 8)));
    let (_, plan) = world.plan();
    let stops = plan.decisions().filter(|decision| matches!(decision, Decision::Stop { .. }));
    assert_eq!(stops.count(), 2);
    let more = vec![
        stop(2, 0, Cause::Reclaim, Some(4)),
        stop(3, 0, Cause::Reclaim, Some(4)),
        stop(1, 0, Cause::Reclaim, Some(4)),
        stop(1, 1, Cause::Reclaim, Some(4)),
        reserve(4, NOW + Span::mins(5), &[("n3", 0..8)]),
    ];
    assert_eq!(world.judged(4, more), [F::Right]);
}

#[test]
fn preemption_takes_from_a_lower_class_and_across_needs_the_class() {
    let world = |priority| {
        let mut high = job(3, "a", 1, 8);
        high.priority = priority;
        World::default()
            .nodes([node("n1", 8, "r1"), node("n2", 8, "r1")])
            .queues([queue("a", 8), queue("b", 8)])
            .running(running(job(1, "a", 1, 8), &[("n1", 0..8)]))
            .running(running(job(2, "b", 1, 8), &[("n2", 0..8)]))
            .jobs([high])
    };
    let take = |victim, node, cause| {
        vec![stop(victim, 0, cause, Some(3)), reserve(3, NOW + Span::mins(5), &[(node, 0..8)])]
    };
    let preempt = || take(1, "n1", Cause::Preempt);
    let across = || take(2, "n2", Cause::Across);
    assert_eq!(world(50).judged(3, preempt()), [F::Right]);
    assert_eq!(world(100).judged(3, preempt()), []);
    assert_eq!(world(100).judged(3, across()), [F::Right]);
    assert_eq!(world(1_000).judged(3, across()), []);
    assert_eq!(world(1_000).judged(3, take(2, "n2", Cause::Preempt)), [F::Right]);
    for priority in [50, 100, 1_000] {
        world(priority).plan();
    }
}

/// A high job that preempts, with a change to the victim and the rest of the world.
fn preempting(change: impl FnOnce(&mut Snapshot)) -> World {
    let mut high = job(2, "a", 1, 8);
    high.priority = 100;
    World::default()
        .nodes([node("n1", 8, "r1")])
        .queues([queue("a", 8)])
        .running(running(job(1, "a", 1, 8), &[("n1", 0..8)]))
        .jobs([high])
        .with(change)
}

fn preemption() -> Vec<Decision> {
    vec![stop(1, 0, Cause::Preempt, Some(2)), reserve(2, NOW + Span::mins(5), &[("n1", 0..8)])]
}

#[test]
fn a_victim_can_be_stopped_has_run_long_enough_and_keeps_its_grace() {
    let on = |world: World| {
        world.plan();
        world.judged(2, preemption())
    };
    assert_eq!(on(preempting(|_| ())), []);
    assert_eq!(on(preempting(|world| world.jobs[0].spec.preemptible = false)), [F::Victim]);
    let young = |world: &mut Snapshot| world.jobs[0].spec.min_runtime = Some(Span::hours(2));
    assert_eq!(on(preempting(young)), [F::MinRuntime]);
    let patient = |world: &mut Snapshot| world.jobs[1].spec.preempt_after = Some(Span::hours(2));
    assert_eq!(on(preempting(patient)), [F::TooSoon]);
    let found = preempting(|_| ()).spoilt(|plan| {
        let Decision::Stop { grace, .. } = &mut plan.transactions[0].decisions[0] else {
            panic!("a stop");
        };
        *grace = Span::secs(1);
    });
    assert_eq!(found, [F::Grace]);
    let found = preempting(|_| ()).spoilt(|plan| {
        let Decision::Stop { grace, .. } = &mut plan.transactions[0].decisions[0] else {
            panic!("a stop");
        };
        *grace = Span::hours(1);
    });
    assert_eq!(found, [F::Grace, F::NotFree]);
}

#[test]
fn nobody_gives_way_without_a_claimant_who_gets_something() {
    let alone = preempting(|_| ()).spoilt(|plan| {
        plan.transactions[0].decisions.pop();
    });
    assert_eq!(alone, [F::NoClaimant]);
    let nobody = preempting(|_| ()).judged(1, vec![stop(1, 0, Cause::Preempt, None)]);
    assert_eq!(nobody, [F::NoClaimant]);
    let twice =
        preempting(|_| ()).spoilt(|plan| plan.transactions.push(plan.transactions[0].clone()));
    assert_eq!(twice, [F::Stopping]);
}

#[test]
fn a_job_that_starts_in_a_plan_is_no_victim_of_it() {
    let mut high = job(2, "a", 1, 8);
    high.priority = 100;
    high.begin = Some(NOW);
    let world = World::default()
        .nodes([node("n1", 8, "r1")])
        .queues([queue("a", 8)])
        .jobs([job(1, "a", 1, 8), high]);
    let state = State::load(&world.0).expect("the world makes sense");
    let mut plan = plan_of(1, vec![start(1, 0, "n1", gpus(0..8))]);
    plan.transactions.extend(plan_of(2, preemption()).transactions);
    assert_eq!(codes(&check(&state, &plan)), [F::Victim]);
}

#[test]
fn a_gang_is_stopped_as_a_whole() {
    let mut high = job(2, "a", 1, 8);
    high.priority = 100;
    let world = World::default()
        .nodes([node("n1", 8, "r1"), node("n2", 8, "r1")])
        .queues([queue("a", 16)])
        .running(running(job(1, "a", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .jobs([high]);
    let found = world.spoilt(|plan| {
        plan.transactions[0].decisions.remove(1);
    });
    assert_eq!(found, [F::HalfStopped]);
}

#[test]
fn only_surplus_is_taken_as_surplus() {
    let mut workers = group(whole(2), 4);
    workers.min = 2;
    let elastic = job_with(1, "a", vec![workers]);
    let places = [("n1", 0..2), ("n1", 2..4), ("n1", 4..6), ("n1", 6..8)];
    let world = World::default()
        .nodes([node("n1", 8, "r1")])
        .queues([queue("a", 8)])
        .running(running(elastic, &places))
        .jobs([job(2, "a", 1, 4), job(3, "a", 1, 6)]);
    let shrink = |job: u64, tasks: &[u32], range| {
        let stops = tasks.iter().map(|task| stop(1, *task, Cause::Shrink, Some(job)));
        let at = NOW + Span::mins(5);
        stops.chain([reserve(job, at, &[("n1", range)])]).collect::<Vec<_>>()
    };
    assert_eq!(world.judged(2, shrink(2, &[3, 2], 4..8)), []);
    assert_eq!(world.judged(3, shrink(3, &[3, 2, 1], 2..8)), [F::Surplus]);
    let (_, plan) = world.plan();
    assert!(plan.decisions().any(|d| matches!(d, Decision::Stop { cause: Cause::Shrink, .. })));
}

#[test]
fn the_cause_of_a_stop_is_true() {
    let world = World::new().running(running(job(1, "a", 1, 8), &[("n1", 0..8)]));
    let causes = [
        Cause::Stale,
        Cause::Drain,
        Cause::Leaving,
        Cause::Budget,
        Cause::Cancelled,
        Cause::Held,
        Cause::PeerFailed,
        Cause::TimeLimit,
    ];
    for cause in causes {
        assert_eq!(world.judged(1, vec![stop(1, 0, cause, None)]), [F::Cause], "{cause}");
    }
    let so = |cause, change: fn(&mut Snapshot)| {
        let world = World::new().running(running(job(1, "a", 1, 8), &[("n1", 0..8)])).with(change);
        let (_, plan) = world.plan();
        let causes: Vec<Cause> = plan
            .decisions()
            .filter_map(|decision| match decision {
                Decision::Stop { cause, .. } => Some(*cause),
                _ => None,
            })
            .collect();
        assert_eq!(causes, [cause]);
    };
    so(Cause::Drain, |world| world.nodes[0].spec.state = NodeState::Draining);
    let leaving = NodeState::Leaving { at: NOW + Span::mins(2) };
    assert_eq!(leaving, NodeState::Leaving { at: NOW + Span::mins(2) });
    so(Cause::Leaving, |world| {
        world.nodes[0].spec.state = NodeState::Leaving { at: NOW + Span::mins(2) };
    });
    so(Cause::Cancelled, |world| world.jobs[0].cancelled = true);
    so(Cause::PeerFailed, |world| world.jobs[0].failed = true);
    so(Cause::Held, |world| world.jobs[0].spec.hold = true);
    so(Cause::TimeLimit, |world| world.jobs[0].spec.time_limit = Some(Span::mins(30)));
    so(Cause::Drain, |world| {
        world.reservations.push(Reservation {
            name: name("upkeep"),
            owner: name("operators"),
            nodes: vec![name("n1")],
            from: NOW + Span::mins(3),
            to: NOW + Span::hours(3),
        });
    });
}

#[test]
fn a_gang_is_stale_only_after_its_time() {
    let world = |since| {
        let mut stale = running(job(1, "a", 2, 8), &[("n1", 0..8)]);
        stale.stale_since = Some(since);
        World::new().running(stale)
    };
    let on = |world: &World| world.judged(1, vec![stop(1, 0, Cause::Stale, None)]);
    assert_eq!(on(&world(NOW - Span::secs(30))), [F::Cause]);
    assert_eq!(on(&world(NOW - Span::secs(60))), []);
    world(NOW - Span::secs(60)).plan();
}
