//! Machines of pools.

use crate::check::world::*;
use FindingCode as F;
use berth_core::FindingCode;
use berth_model::{Bytes, Decision, JobId, Lifecycle, Micros, Name, Offering, PoolSpec, Span};
use std::collections::BTreeMap;

fn pool(min: u32, max: u32) -> PoolSpec {
    PoolSpec {
        name: name("cloud"),
        min,
        max,
        offerings: vec![Offering {
            instance: name("big"),
            gpus: 8,
            model: name("H100-80GB"),
            memory_per_gpu: Bytes::gb(80),
            cpu: None,
            memory: None,
            zone: name("z"),
            lifecycle: Lifecycle::OnDemand,
            price: Micros::dollars(20),
            boot: Span::mins(3),
            interruptions: 0,
            unavailable_until: None,
        }],
        labels: BTreeMap::new(),
    }
}

fn claim(n: u32, zone: &str) -> Decision {
    Decision::Claim {
        claim: Name::from(format!("cloud-{n}")),
        pool: name("cloud"),
        instance: name("big"),
        zone: Name::new(zone),
        lifecycle: Lifecycle::OnDemand,
        for_job: Some(JobId::new(1)),
    }
}

#[test]
fn pools_buy_what_is_offered_up_to_their_limit() {
    let world = World::default()
        .nodes([node("n1", 4, "r1")])
        .queues([queue("a", 16)])
        .jobs([job(1, "a", 2, 8)])
        .with(|world| world.pools.push(pool(0, 2)));
    let (_, plan) = world.plan();
    assert_eq!(plan.decisions().filter(|d| matches!(d, Decision::Claim { .. })).count(), 2);
    let buy = |claims: Vec<Decision>| world.judged(1, claims);
    assert_eq!(buy(vec![claim(1, "z"), claim(2, "z")]), []);
    assert_eq!(buy(vec![claim(1, "z"), claim(2, "z"), claim(3, "z")]), [F::PoolFull]);
    assert_eq!(buy(vec![claim(1, "y")]), [F::Claim]);
    assert_eq!(buy(vec![claim(1, "z"), claim(1, "z")]), [F::Claim]);
}

#[test]
fn only_idle_machines_above_the_minimum_are_given_back() {
    let bought = |name: &str| {
        let mut node = node(name, 8, "r1");
        node.pool = Some(Name::new("cloud"));
        node
    };
    let world = |min| {
        World::default()
            .nodes([bought("n1"), bought("n2"), node("n3", 8, "r1")])
            .queues([queue("a", 16)])
            .running(running(job(1, "a", 1, 8), &[("n1", 0..8)]))
            .with(|world| {
                world.pools.push(pool(min, 2));
                world.nodes[1].idle_since = Some(NOW - Span::hours(1));
            })
    };
    let back =
        |min, node: &str| world(min).judged(1, vec![Decision::Return { node: Name::new(node) }]);
    let (_, plan) = world(0).plan();
    assert!(plan.decisions().any(|d| matches!(d, Decision::Return { .. })));
    assert_eq!(back(1, "n2"), []);
    assert_eq!(back(2, "n2"), [F::PoolShort]);
    assert_eq!(back(0, "n1"), [F::Return]);
    assert_eq!(back(0, "n3"), [F::Return]);
    world(2).plan();
}
