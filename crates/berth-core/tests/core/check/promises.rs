//! Promises and reservations.

use crate::check::world::*;
use FindingCode as F;
use berth_core::FindingCode;
use berth_model::{BackfillEnds, Decision, JobId, Place, Promise, Reservation, Span};

/// Job 2 is promised all of n1 in an hour; n2 is free.
fn promised() -> World {
    let mut short = job(1, "a", 1, 4);
    short.time_limit = Some(Span::hours(2) - Span::mins(5));
    World::default()
        .nodes([node("n1", 8, "r1"), node("n2", 4, "r1")])
        .queues([queue("a", 16)])
        .running(running(short, &[("n1", 0..4)]))
        .jobs([job(2, "a", 1, 8), job(3, "a", 1, 4)])
        .with(|world| {
            let slices = gpus(0..8);
            world.promises.push(Promise {
                job: JobId::new(2),
                at: NOW + Span::hours(1),
                places: vec![Place { task: 0, node: name("n1"), slices }],
                firm: false,
            });
        })
}

#[test]
fn what_is_promised_to_another_job_is_free_at_its_time() {
    let world = promised();
    world.plan();
    assert_eq!(world.judged(3, vec![start(3, 0, "n1", gpus(4..8))]), [F::Promised]);
    assert_eq!(world.judged(3, vec![start(3, 0, "n2", gpus(0..4))]), []);
    let brief = promised().with(|world| {
        world.jobs[2].spec.time_limit = Some(Span::mins(55));
    });
    assert_eq!(brief.judged(3, vec![start(3, 0, "n1", gpus(4..8))]), []);
    // By estimates it would be off in time, without a grace.
    let expected = promised().with(|world| {
        world.policy.backfill = BackfillEnds::Estimates;
        world.jobs[2].estimate = Some(Span::mins(60));
    });
    assert_eq!(expected.judged(3, vec![start(3, 0, "n1", gpus(4..8))]), []);
}

#[test]
fn a_promise_is_not_made_twice_moved_later_or_made_where_others_run() {
    let world = promised();
    let later = NOW + Span::hours(9);
    assert_eq!(
        world.judged(3, vec![reserve(3, NOW + Span::hours(2), &[("n1", 0..4)])]),
        [F::Promised]
    );
    assert_eq!(world.judged(3, vec![reserve(3, later, &[("n1", 0..4)])]), []);
    assert_eq!(world.judged(2, vec![reserve(2, later, &[("n1", 0..8)])]), [F::PromiseMoved]);
    let unreserve = Decision::Unreserve { job: JobId::new(2) };
    assert_eq!(world.judged(2, vec![unreserve]), [F::PromiseMoved]);
    assert_eq!(world.judged(2, vec![reserve(2, NOW, &[("n1", 0..8)])]), [F::NotFree]);
    assert_eq!(
        world.judged(3, vec![reserve(3, NOW - Span::secs(1), &[("n2", 0..4)])]),
        [F::Promise]
    );
    assert_eq!(world.judged(3, vec![reserve(3, NOW, &[])]), [F::Minimum, F::Promise]);
    assert_eq!(world.judged(3, vec![reserve(3, NOW, &[("n2", 0..3)])]), [F::Slices]);
    assert_eq!(world.judged(1, vec![reserve(1, later, &[("n2", 0..4)])]), [F::NotInLine]);
}

#[test]
fn a_job_that_starts_late_keeps_what_it_was_promised() {
    // Job 2's hour has come and gone by a minute; job 3 is promised the same GPUs right after it.
    let world = promised().with(|world| {
        world.jobs[0].leases.clear();
        world.jobs[0].started = None;
        world.jobs.remove(0);
        world.promises[0].at = NOW - Span::mins(1);
        let at = NOW - Span::mins(1) + Span::hours(4) + Span::mins(5);
        world.promises.push(Promise {
            job: JobId::new(3),
            at,
            places: vec![Place { task: 0, node: name("n1"), slices: gpus(0..4) }],
            firm: false,
        });
    });
    assert_eq!(world.judged(2, vec![start(2, 0, "n1", gpus(0..8))]), []);
    world.plan();
}

#[test]
fn an_operators_reservation_is_empty_but_for_its_owner() {
    let world = |owner: &str| {
        World::new().jobs([job(1, "a", 1, 8)]).with(|world| {
            world.reservations.push(Reservation {
                name: name("upkeep"),
                owner: name(owner),
                nodes: vec![name("n1")],
                from: NOW + Span::hours(1),
                to: NOW + Span::hours(3),
            });
        })
    };
    let on = |world: &World| world.judged(1, vec![start(1, 0, "n1", gpus(0..8))]);
    assert_eq!(on(&world("operators")), [F::NodeReserved]);
    assert_eq!(on(&world("a")), []);
    world("operators").plan();
}
