//! Jobs without GPUs leave on GPU nodes the CPU and memory that the free GPUs there will need.

use super::{carry_out, node_with, runs, started, stopped, task, tell, world};
use crate::check::world::name;
use berth_core::State;
use berth_model::*;
use std::collections::BTreeSet;

#[test]
fn many_jobs_without_gpus_leave_every_free_gpu_usable() {
    let nodes: Vec<NodeSpec> = (0..8).map(|at| node_with(&format!("n{at}"), 8, 64)).collect();
    let jobs: Vec<JobSpec> = (1..=400).map(|at| task(at, 50, 0, 1)).collect();
    let (mut state, plan) = world(nodes).jobs(jobs).plan();
    // Half of the cores are for jobs without GPUs.
    assert_eq!(started(&plan).len(), 256);
    carry_out(&mut state, &plan);
    for at in 0..64 {
        tell(&mut state, Event::JobSubmitted { spec: Box::new(task(500 + at, 50, 1, 4)) });
    }
    let plan = state.plan();
    let with_gpus: BTreeSet<u64> =
        started(&plan).into_iter().map(|(job, _)| job).filter(|job| *job >= 500).collect();
    assert_eq!(with_gpus.len(), 64, "all GPUs are of use");
}

#[test]
fn nodes_without_gpus_are_taken_first_and_the_reason_names_what_is_kept() {
    let nodes = [node_with("gpu", 8, 96), node_with("cpu", 0, 8)];
    let jobs = [task(1, 50, 0, 8), task(2, 50, 0, 40), task(3, 50, 0, 16)];
    let (mut state, plan) = world(nodes).jobs(jobs).plan();
    assert_eq!(started(&plan), [(1, name("cpu")), (2, name("gpu"))].into());
    carry_out(&mut state, &plan);
    let reasons = state.reasons(JobId::new(3));
    let kept = Reason::KeptForGpus {
        node: name("gpu"),
        cpu: Cpu::cores(48),
        memory: Bytes(0),
        gpus: Milli::whole(8),
        nodes: 1,
    };
    assert!(reasons.contains(&kept), "{reasons:?}");
    assert_eq!(kept.to_string(), "gpu keeps 48 CPU cores for its 8 free GPUs");
}

#[test]
fn nothing_is_kept_for_gpus_that_are_taken_nor_by_a_policy_of_none() {
    let busy = world([node_with("n1", 8, 64)])
        .running(runs(task(1, 50, 8, 8), "n1", 0..8))
        .jobs([task(2, 50, 0, 56)]);
    assert_eq!(started(&busy.plan().1).len(), 1);
    let jobs = || [task(1, 50, 0, 30), task(2, 50, 0, 30)];
    assert_eq!(started(&world([node_with("n1", 8, 64)]).jobs(jobs()).plan().1).len(), 1);
    let greedy = world([node_with("n1", 8, 64)])
        .jobs(jobs())
        .with(|world| world.policy.gpu_reserve = Milli::ZERO);
    assert_eq!(started(&greedy.plan().1).len(), 2);
}

#[test]
fn a_job_without_gpus_that_would_fit_no_node_otherwise_takes_what_is_there() {
    let (_, plan) = world([node_with("n1", 8, 64)]).jobs([task(1, 50, 0, 60)]).plan();
    assert_eq!(started(&plan).len(), 1);
    // And one that may lie on one node alone.
    let mut pinned = task(1, 50, 0, 20);
    let only = Some(BTreeSet::from([name("n1")]));
    pinned.groups[0].nodes = Some(NodeAsk { only, ..NodeAsk::default() });
    let made = world([node_with("n1", 8, 64)])
        .running(runs(task(2, 50, 0, 30), "n1", 0..0))
        .jobs([pinned]);
    assert_eq!(started(&made.plan().1).len(), 1);
    // Or one that only one of several nodes has the labels for.
    let mut labelled = task(1, 50, 0, 20);
    labelled.groups[0].labels.need = [(name("host"), name("n1"))].into();
    let mut own = node_with("n1", 8, 64);
    own.labels.insert(name("host"), name("n1"));
    let made = world([own, node_with("n2", 8, 64)])
        .running(runs(task(2, 50, 0, 30), "n1", 0..0))
        .jobs([labelled]);
    assert_eq!(started(&made.plan().1).len(), 1);
}

#[test]
fn a_log_from_before_the_reserve_is_read_back_as_it_was_decided() {
    // What was decided then would not be decided now: a log holds decisions, and replays them.
    let mut state = State::load(&world([node_with("n1", 8, 64)]).0).expect("the world makes sense");
    for id in [1, 2] {
        tell(&mut state, Event::JobSubmitted { spec: Box::new(task(id, 50, 0, 30)) });
    }
    let start = |id| Decision::Start {
        lease: LeaseId { job: JobId::new(id), task: 0, attempt: 0 },
        node: name("n1"),
        slices: Vec::new(),
        price: Micros::ZERO,
        resume: false,
    };
    for id in [1, 2] {
        let (job, decisions) = (Some(JobId::new(id)), vec![start(id)]);
        tell(&mut state, Event::Decided { job, decisions });
    }
    assert_eq!(state.snapshot().jobs.iter().filter(|job| !job.leases.is_empty()).count(), 2);
}

#[test]
fn nobody_is_stopped_to_make_room_for_free_gpus() {
    // All cores are taken although eight GPUs are free: who comes takes the place of one, and no
    // more are stopped for the GPUs' sake.
    let mut made = world([node_with("n1", 8, 16)]).jobs([task(100, 100, 0, 2)]);
    for at in 1..=8 {
        made = made.running(runs(task(at, 10, 0, 2), "n1", 0..0));
    }
    let (_, plan) = made.plan();
    assert_eq!(stopped(&plan).len(), 1);
    // Where cores are free but kept for GPUs, it takes these rather than the place of a lower one.
    let mut made = world([node_with("n1", 8, 16)]).jobs([task(100, 100, 0, 4)]);
    for at in 1..=4 {
        made = made.running(runs(task(at, 10, 0, 2), "n1", 0..0));
    }
    let (_, plan) = made.plan();
    assert_eq!(stopped(&plan), BTreeSet::new());
    assert_eq!(started(&plan), [(100, name("n1"))].into());
    // One of their own class waits.
    let mut made = world([node_with("n1", 8, 16)]).jobs([task(100, 10, 0, 4)]);
    for at in 1..=4 {
        made = made.running(runs(task(at, 10, 0, 2), "n1", 0..0));
    }
    let (_, plan) = made.plan();
    assert_eq!((stopped(&plan), started(&plan)), (BTreeSet::new(), BTreeSet::new()));
}
