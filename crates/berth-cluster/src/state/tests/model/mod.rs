//! A model of interleavings: the cluster state and the core beside an API server in miniature, with
//! an adversary that chooses the order of everything, and a judge that knows nothing of Berth.
//!
//! The order within one watch is kept. All else may come in any order: the watches of nodes and pods
//! beside each other, orders and their outcomes, ticks of the clock, users and controllers, and the
//! change of leaders.

mod api;
mod rules;
mod run;
mod world;

use run::play;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Dice, Fate, Key, Maker, NodeSpec, PodSpec, Rule, Step, World, steps, world};

/// What is wrong with a trace, if anything is.
fn fault(world: &World, steps: &[Step]) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| play(world, steps))) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("it panics: {}", text.unwrap_or("without a text")))
        }
    }
}

/// Leaves out of a trace what it goes wrong without.
fn shrink(world: &World, mut steps: Vec<Step>) -> Vec<Step> {
    let mut size = steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut less = steps.clone();
            less.drain(at..(at + size).min(less.len()));
            if fault(world, &less).is_some() {
                steps = less;
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    steps
}

fn check(seed: u64) {
    let mut dice = Dice::new(seed);
    let world = world(&mut dice);
    let steps = steps(&mut dice, &world);
    let Some(first) = fault(&world, &steps) else { return };
    let steps = shrink(&world, steps);
    let why = fault(&world, &steps).unwrap_or(first);
    let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
    panic!("seed {seed}: {why}\n{world}{}", steps.join("\n"));
}

/// MODEL_SEED runs one seed alone.
fn check_all(seeds: std::ops::Range<u64>) {
    match std::env::var("MODEL_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => check(seed),
        None => seeds.for_each(check),
    }
}

#[test]
fn whatever_comes_first_rules_hold_and_nothing_waits_in_vain() {
    check_all(0..300);
}

#[test]
#[ignore = "it takes minutes"]
fn whatever_comes_first_rules_hold_and_nothing_waits_in_vain_ten_thousand_times() {
    check_all(1_000..11_000);
}

fn plain(app: char) -> PodSpec {
    PodSpec {
        app,
        gpus: 1,
        port: None,
        rule: None,
        maker: Maker::NoController,
        gang: None,
        is_ranked: false,
    }
}

#[test]
fn a_rule_that_comes_when_the_pods_it_means_were_released_already_locks_them() {
    let rule = |app, rule| PodSpec { rule: Some(rule), ..plain(app) };
    let pods = vec![
        plain('x'),
        rule('y', Rule::Near('x', Key::Zone)),
        rule('z', Rule::Away('x', Key::Host)),
    ];
    let world = World { nodes: vec![NodeSpec { zone: 'a', gpus: 4 }], pods };
    let mut steps = Vec::new();
    for pod in 0..3 {
        steps.extend([Step::Pod(pod), Step::SeePods(1), Step::Turn, Step::Tick(1), Step::Turn]);
    }
    // The pods have been there for a while when the first node comes.
    steps.extend([Step::Node(0), Step::SeeNodes(1), Step::Turn, Step::Turn]);
    assert_eq!(play(&world, &steps), Ok(()));
}

#[test]
fn a_pod_that_lost_its_place_heeds_the_rules_that_have_come_since() {
    let away = PodSpec { rule: Some(Rule::Away('x', Key::Host)), ..plain('z') };
    let nodes = vec![NodeSpec { zone: 'a', gpus: 1 }, NodeSpec { zone: 'a', gpus: 2 }];
    let world = World { nodes, pods: vec![plain('x'), away] };
    let steps = [
        Step::Node(0),
        Step::Pod(0),
        Step::SeeNodes(1),
        Step::SeePods(1),
        Step::Turn,
        // It is on its way to the only node when the other pod and the other node come.
        Step::Node(1),
        Step::Pod(1),
        Step::SeeNodes(1),
        Step::SeePods(1),
        Step::Turn,
        Step::Act(1, Fate::Done),
        Step::Act(0, Fate::Infeasible),
        Step::DropNode(0),
        Step::SeeNodes(1),
        Step::Hear(0),
        Step::Hear(0),
        Step::Turn,
        Step::Turn,
    ];
    assert_eq!(play(&world, &steps), Ok(()));
}

#[test]
fn a_member_of_a_running_gang_does_not_wait_for_a_pod_that_finds_no_place() {
    let member = PodSpec { gpus: 2, maker: Maker::AtOnce, gang: Some((1, 2)), ..plain('x') };
    let near = PodSpec {
        gpus: 0,
        port: Some(8080),
        rule: Some(Rule::Near('x', Key::Host)),
        maker: Maker::AtOnce,
        ..plain('z')
    };
    // Both of the others want the port on the node of the member that runs.
    let pods = vec![member, member, near, near];
    let nodes = vec![NodeSpec { zone: 'b', gpus: 2 }, NodeSpec { zone: 'a', gpus: 3 }];
    let world = World { nodes, pods };
    let steps = [
        Step::Pod(0),
        Step::Pod(1),
        Step::Node(0),
        Step::Node(1),
        Step::SeePods(4),
        Step::Delete(0),
        Step::SeeNodes(3),
        Step::Pod(2),
        Step::Turn,
        Step::Pod(3),
    ];
    assert_eq!(play(&world, &steps), Ok(()));
}

#[test]
fn a_binding_that_failed_takes_nothing_from_the_pod_that_came_in_its_place() {
    let member = PodSpec {
        gpus: 2,
        maker: Maker::Afterwards,
        gang: Some((1, 3)),
        is_ranked: true,
        ..plain('x')
    };
    let nodes = vec![NodeSpec { zone: 'b', gpus: 3 }, NodeSpec { zone: 'b', gpus: 4 }];
    let world = World { nodes, pods: vec![member; 3] };
    for act in 0..6 {
        let steps = [
            Step::Pod(0),
            Step::Node(0),
            Step::Node(1),
            Step::Pod(1),
            Step::SeeNodes(4),
            Step::Pod(2),
            Step::SeePods(6),
            Step::Turn,
            // All three are being bound when the first one is deleted, and another one comes.
            Step::Delete(0),
            Step::Replace(0),
            Step::SeePods(2),
            Step::Act(act, Fate::Done),
            Step::Turn,
        ];
        assert_eq!(play(&world, &steps), Ok(()), "order {act}");
    }
}
