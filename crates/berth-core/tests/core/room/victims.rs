//! Victims of CPU: as few and as low as possible, at every grace.

use super::{carry_out, node_with, runs, started, stopped, task, tell, world};
use crate::check::world::World;
use berth_core::{State, check};
use berth_model::*;
use std::collections::BTreeSet;

const CLAIMANT: u64 = 900;

/// xorshift64, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What runs on one node: jobs by number with their priority and cores; and cores that are free.
struct Held {
    jobs: Vec<(u64, i32, i64)>,
    free: i64,
}

fn random_world(seed: u64, grace: Span) -> (World, Vec<Held>, i64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut nodes, mut held, mut running) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = 0;
    for at in 0..1 + random.below(4) {
        let name = format!("n{at}");
        let cores = 4 + random.below(9) as i64;
        nodes.push(node_with(&name, 0, cores));
        let mut here = Held { jobs: Vec::new(), free: cores };
        while here.free > 0 && here.jobs.len() < 6 {
            number += 1;
            let asks = (1 + random.below(4) as i64).min(here.free);
            let priority = [0, 10, 20][random.below(3) as usize];
            let spec = JobSpec { grace: Some(grace), ..task(number, priority, 0, asks) };
            running.push(runs(spec, &name, 0..0));
            here.free -= asks;
            here.jobs.push((number, priority, asks));
        }
        held.push(here);
    }
    let asks = 1 + random.below(8) as i64;
    let claimant = task(CLAIMANT, 15, 0, asks);
    let mut made = world(nodes).jobs([claimant]);
    for job in running {
        made = made.running(job);
    }
    (made, held, asks)
}

/// The highest priority and the number of victims of the best set on any node: every set is tried.
fn best(held: &[Held], asks: i64) -> Option<(i32, usize)> {
    let of_node = |node: &Held| {
        let open: Vec<&(u64, i32, i64)> = node.jobs.iter().filter(|(_, of, _)| *of < 15).collect();
        let sets = 1..1_u32 << open.len();
        let price = |set: u32| {
            let chosen = || open.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
            let freed: i64 = chosen().map(|(_, (_, _, cores))| cores).sum();
            let highest = chosen().map(|(_, (_, of, _))| *of).max()?;
            (node.free + freed >= asks).then(|| (highest, chosen().count()))
        };
        sets.filter_map(price).min()
    };
    held.iter().filter_map(of_node).min()
}

#[test]
fn victims_of_cpu_are_the_lowest_and_fewest_on_any_node_at_every_grace() {
    for (seed, grace) in (1..400).zip([Span::ZERO, Span::secs(1), Span::secs(30)].iter().cycle()) {
        let (made, held, asks) = random_world(seed, *grace);
        let mut state = State::load(&made.0).expect("the world makes sense");
        let plan = state.plan();
        assert_eq!(check(&state, &plan), [], "seed {seed}");
        let gone = stopped(&plan);
        if held.iter().any(|node| node.free >= asks) {
            assert!(gone.is_empty(), "seed {seed}: there is room");
            assert_eq!(started(&plan).len(), 1, "seed {seed}");
            continue;
        }
        let all: Vec<&(u64, i32, i64)> = held.iter().flat_map(|node| &node.jobs).collect();
        let highest = all.iter().filter(|(job, ..)| gone.contains(job)).map(|(_, of, _)| *of).max();
        let taken = highest.map(|highest| (highest, gone.len()));
        assert_eq!(taken, best(&held, asks), "seed {seed}: {gone:?} for {asks}");
    }
}

#[test]
fn no_more_is_stopped_while_what_was_stopped_is_not_gone_yet() {
    for (seed, grace) in (1..100).zip([Span::ZERO, Span::secs(1), Span::secs(30)].iter().cycle()) {
        let (made, held, asks) = random_world(seed, *grace);
        let mut state = State::load(&made.0).expect("the world makes sense");
        let plan = state.plan();
        let first = stopped(&plan);
        carry_out(&mut state, &plan);
        if first.is_empty() {
            continue;
        }
        // Its grace passes, and the kubelet takes its time.
        for _ in 0..40 {
            tell(&mut state, Event::Tick);
            let plan = state.plan();
            assert_eq!(stopped(&plan), BTreeSet::new(), "seed {seed}");
            carry_out(&mut state, &plan);
        }
        for job in &first {
            let lease = LeaseId { job: JobId::new(*job), task: 0, attempt: 0 };
            tell(&mut state, Event::LeaseEnded { lease, outcome: LeaseOutcome::Stopped });
        }
        let starts = started(&state.plan());
        assert!(
            starts.iter().any(|(job, _)| *job == CLAIMANT),
            "seed {seed}: {asks}, {}",
            held.len()
        );
    }
}

#[test]
fn one_cpu_pod_takes_one_of_many() {
    let nodes: Vec<NodeSpec> = (0..6).map(|at| node_with(&format!("n{at}"), 0, 8)).collect();
    let mut made = world(nodes).jobs([task(CLAIMANT, 100, 0, 1)]);
    for at in 0..48_u64 {
        let spec = JobSpec { grace: Some(Span::ZERO), ..task(at + 1, 0, 0, 1) };
        made = made.running(runs(spec, &format!("n{}", at % 6), 0..0));
    }
    let mut state = State::load(&made.0).expect("the world makes sense");
    let mut gone = BTreeSet::new();
    for _ in 0..10 {
        let plan = state.plan();
        gone.extend(stopped(&plan));
        carry_out(&mut state, &plan);
        tell(&mut state, Event::Tick);
    }
    assert_eq!(gone.len(), 1, "{gone:?}");
}

#[test]
fn jobs_without_gpus_give_way_to_a_gpu_job_that_lacks_cpu() {
    let mut made = world([node_with("n1", 8, 16)]).jobs([task(CLAIMANT, 100, 8, 12)]);
    for at in 1..=4 {
        made = made.running(runs(task(at, 10, 0, 4), "n1", 0..0));
    }
    let (_, plan) = made.plan();
    assert_eq!(stopped(&plan).len(), 3);
}

#[test]
fn a_victim_that_holds_nothing_on_the_claimants_nodes_fails_the_check() {
    use crate::check::world::{reserve, stop};
    let nodes = [node_with("n1", 8, 16), node_with("n2", 8, 16)];
    let made = world(nodes)
        .running(runs(task(1, 10, 8, 8), "n1", 0..8))
        .running(runs(task(2, 10, 8, 8), "n2", 0..8))
        .jobs([task(CLAIMANT, 100, 8, 8)]);
    let at = crate::check::world::NOW + Span::mins(5);
    let take = |also: &[u64]| {
        let stops = [1].iter().chain(also);
        let stops = stops.map(|job| stop(*job, 0, Cause::Preempt, Some(CLAIMANT)));
        stops.chain([reserve(CLAIMANT, at, &[("n1", 0..8)])]).collect::<Vec<_>>()
    };
    assert_eq!(made.judged(CLAIMANT, take(&[])), []);
    assert_eq!(made.judged(CLAIMANT, take(&[2])), [berth_core::FindingCode::Needless]);
}
