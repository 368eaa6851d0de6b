//! Where tasks go: GPUs, gangs, topology, labels and shares.

use crate::check::world::*;
use FindingCode as F;
use berth_core::FindingCode;
use berth_model::{
    Bytes, Cpu, Decision, Division, Effect, GpuAsk, GroupSpec, Health, JobId, JobSnapshot,
    JobTarget, Lifecycle, MigSlot, Milli, ModelAsk, Near, NodeState, Place, Segment, Share,
    ShareGpus, Slice, Span, Spread, Taint, TopologyAsk,
};

#[test]
fn a_gpu_that_is_held_is_not_leased_again() {
    let world = World::new().jobs([job(1, "a", 2, 4), job(2, "b", 1, 8)]);
    let found = world.spoilt(|plan| {
        let Decision::Start { slices: of, node: at, .. } =
            plan.transactions[0].decisions[0].clone()
        else {
            panic!("a start");
        };
        let Decision::Start { slices, node, .. } = &mut plan.transactions[0].decisions[1] else {
            panic!("a start");
        };
        (*slices, *node) = (of, at);
    });
    assert_eq!(found, [F::Capacity]);
    let busy = World::new().running(running(job(1, "a", 1, 8), &[("n1", 0..8)]));
    let busy = busy.jobs([job(2, "a", 1, 1)]);
    assert_eq!(busy.judged(2, vec![start(2, 0, "n1", gpus(3..4))]), [F::Capacity]);
    assert_eq!(busy.judged(2, vec![start(2, 0, "n2", gpus(3..4))]), []);
}

#[test]
fn half_a_gang_is_not_started() {
    let world = World::new().jobs([job(1, "a", 2, 8)]);
    let found = world.spoilt(|plan| {
        plan.transactions[0].decisions.pop();
    });
    assert_eq!(found, [F::Minimum]);
}

#[test]
fn a_group_of_groups_needs_its_minimum_of_children_and_no_half_child() {
    let mut child = group(whole(1), 2);
    child.name = name("child");
    let parent = GroupSpec { groups: vec![child; 3], min: 2, count: 0, ..group(GpuAsk::None, 0) };
    let world = World::new().jobs([job_with(1, "a", vec![parent])]);
    let tasks = |n: u32| (0..n).map(|t| start(1, t, "n1", gpus(t..t + 1))).collect::<Vec<_>>();
    assert_eq!(world.judged(1, tasks(2)), [F::Minimum]);
    assert_eq!(world.judged(1, tasks(4)), []);
    assert_eq!(world.judged(1, tasks(5)), [F::Minimum]);
    assert_eq!(world.judged(1, tasks(6)), []);
    world.plan();
}

#[test]
fn a_gang_that_must_lie_in_one_rack_does() {
    let mut workers = group(whole(8), 2);
    workers.topology = Some(TopologyAsk { required: Some(name("rack")), ..TopologyAsk::default() });
    let world = World::new().jobs([job_with(1, "a", vec![workers])]);
    let wrong = vec![start(1, 0, "n1", gpus(0..8)), start(1, 1, "n3", gpus(0..8))];
    assert_eq!(world.judged(1, wrong), [F::Topology]);
    let promised = reserve(1, NOW, &[("n2", 0..8), ("n4", 0..8)]);
    assert_eq!(world.judged(1, vec![promised]), [F::Topology]);
    world.plan();
}

#[test]
fn a_gang_that_must_lie_on_one_node_or_island_does() {
    let mut split = node("n1", 8, "r1");
    split.nvlink = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
    let level = |level: &str| {
        let mut workers = group(whole(2), 2);
        workers.topology =
            Some(TopologyAsk { required: Some(name(level)), ..TopologyAsk::default() });
        World::default()
            .nodes([split.clone(), node("n2", 8, "r1")])
            .queues([queue("a", 16)])
            .jobs([job_with(1, "a", vec![workers])])
    };
    let apart = || vec![start(1, 0, "n1", gpus(0..2)), start(1, 1, "n2", gpus(0..2))];
    let across = || vec![start(1, 0, "n1", gpus(0..2)), start(1, 1, "n1", gpus(4..6))];
    assert_eq!(level("node").judged(1, apart()), [F::Topology]);
    assert_eq!(level("node").judged(1, across()), []);
    assert_eq!(level("nvlink").judged(1, across()), [F::Topology]);
    level("node").plan();
    level("nvlink").plan();
}

#[test]
fn segments_are_not_split_up() {
    let mut workers = group(whole(8), 4);
    let segment = Some(Segment { size: 2, within: name("rack") });
    workers.topology = Some(TopologyAsk { segment, ..TopologyAsk::default() });
    let world = World::new().queues([queue("c", 32)]).jobs([job_with(1, "c", vec![workers])]);
    let on = |nodes: [&str; 4]| {
        let task = |(task, node): (usize, &&str)| start(1, task as u32, node, gpus(0..8));
        nodes.iter().enumerate().map(task).collect::<Vec<_>>()
    };
    assert_eq!(world.judged(1, on(["n1", "n3", "n2", "n4"])), [F::Segment]);
    assert_eq!(world.judged(1, on(["n1", "n2", "n3", "n4"])), []);
    world.plan();
}

#[test]
fn no_more_tasks_share_a_domain_than_may() {
    let mut workers = group(whole(1), 2);
    workers.spread = Some(Spread { over: name("rack"), at_most: 1 });
    let world = World::new().jobs([job_with(1, "a", vec![workers])]);
    let wrong = vec![start(1, 0, "n1", gpus(0..1)), start(1, 1, "n2", gpus(0..1))];
    assert_eq!(world.judged(1, wrong), [F::Spread]);
    world.plan();
}

#[test]
fn near_and_away_are_kept() {
    let wish = |away| {
        let mut workers = group(whole(1), 1);
        let target = JobTarget::Name(name("job-1"));
        workers.near = vec![Near { target, within: name("rack"), away }];
        World::new().running(running(job(1, "a", 1, 1), &[("n1", 0..1)])).jobs([job_with(
            2,
            "a",
            vec![workers],
        )])
    };
    assert_eq!(wish(false).judged(2, vec![start(2, 0, "n3", gpus(0..1))]), [F::Near]);
    assert_eq!(wish(true).judged(2, vec![start(2, 0, "n2", gpus(0..1))]), [F::Near]);
    assert_eq!(wish(false).judged(2, vec![start(2, 0, "n2", gpus(0..1))]), []);
    wish(false).plan();
    wish(true).plan();
}

#[test]
fn labels_taints_lifecycle_and_models_are_minded() {
    let mut tainted = node("n1", 8, "r1");
    tainted.taints = vec![Taint { key: name("k"), value: name("v"), effect: Effect::NoSchedule }];
    let mut spot = node("n2", 8, "r1");
    spot.lifecycle = Lifecycle::Spot;
    let mut workers = group(whole(1), 1);
    workers.labels.need.insert(name("rack"), name("r1"));
    workers.models = vec![ModelAsk { model: name("H100-80GB"), speed: Milli::ONE }];
    let mut spec = job_with(1, "a", vec![workers]);
    spec.lifecycle = Some(Lifecycle::OnDemand);
    let world = World::default()
        .nodes([tainted, spot, node("n3", 8, "r2"), node_of("n4", 8, "A100-80GB", "r1")])
        .nodes([node("n5", 8, "r1")])
        .queues([queue("a", 16)])
        .jobs([spec]);
    let on = |node: &str| world.judged(1, vec![start(1, 0, node, gpus(0..1))]);
    assert_eq!(on("n1"), [F::Taint]);
    assert_eq!(on("n2"), [F::Lifecycle]);
    assert_eq!(on("n3"), [F::Label]);
    assert_eq!(on("n4"), [F::Price, F::Slices]);
    assert_eq!(on("n5"), []);
    world.plan();
}

#[test]
fn slices_are_what_the_group_asks_for() {
    let world = |ask| World::new().jobs([job_with(1, "a", vec![group(ask, 1)])]);
    let share = |gpu, share| vec![start(1, 0, "n1", vec![Slice { gpu, share }])];
    let half = GpuAsk::Fraction { milli: Milli(500), count: 1 };
    let memory = GpuAsk::Memory { bytes: Bytes::gb(30), count: 1 };
    assert_eq!(world(whole(2)).judged(1, vec![start(1, 0, "n1", gpus(0..1))]), [F::Slices]);
    assert_eq!(world(half.clone()).judged(1, share(0, Share::Fraction(Milli(400)))), [F::Slices]);
    assert_eq!(world(half.clone()).judged(1, share(0, Share::Mps(Milli(500)))), [F::Slices]);
    assert_eq!(world(half).judged(1, share(0, Share::Fraction(Milli(500)))), []);
    assert_eq!(world(memory.clone()).judged(1, share(0, Share::Fraction(Milli(374)))), [F::Slices]);
    assert_eq!(world(memory.clone()).judged(1, share(0, Share::Fraction(Milli(375)))), []);
    assert_eq!(
        world(memory).judged(1, share(9, Share::Fraction(Milli(375)))),
        [F::Price, F::Slices]
    );
}

#[test]
fn shares_of_one_gpu_are_of_one_kind_and_no_more_than_there_is() {
    let mut shared = JobSnapshot::new(job_with(
        1,
        "a",
        vec![group(GpuAsk::Fraction { milli: Milli(600), count: 1 }, 1)],
    ));
    shared.leases =
        vec![lease(0, "n1", vec![Slice { gpu: 0, share: Share::Fraction(Milli(600)) }])];
    let fraction = GpuAsk::Fraction { milli: Milli(500), count: 1 };
    let world = World::new().running(shared).jobs([
        job_with(2, "a", vec![group(fraction, 1)]),
        job_with(3, "a", vec![group(GpuAsk::Mps { percent: 20, count: 1 }, 1)]),
    ]);
    let on =
        |job, gpu, share| world.judged(job, vec![start(job, 0, "n1", vec![Slice { gpu, share }])]);
    assert_eq!(on(2, 0, Share::Fraction(Milli(500))), [F::Capacity]);
    assert_eq!(on(3, 0, Share::Mps(Milli(200))), [F::Capacity]);
    assert_eq!(on(3, 1, Share::Mps(Milli(200))), []);
    world.plan();
}

#[test]
fn shares_of_one_gpu_belong_to_one_queue_unless_the_policy_says_otherwise() {
    let half = || vec![group(GpuAsk::Fraction { milli: Milli(500), count: 1 }, 1)];
    let mut shared = JobSnapshot::new(job_with(1, "a", half()));
    let slice = |gpu, share| vec![Slice { gpu, share }];
    shared.leases = vec![lease(0, "n1", slice(0, Share::Fraction(Milli(500))))];
    let world = |sharing| {
        let jobs = [job_with(2, "b", half()), job_with(3, "a", half())];
        World::new().running(shared.clone()).jobs(jobs).with(|s| s.policy.share_gpus = sharing)
    };
    let on = |sharing, job, gpu| {
        let decisions = vec![start(job, 0, "n1", slice(gpu, Share::Fraction(Milli(500))))];
        world(sharing).judged(job, decisions)
    };
    assert_eq!(on(ShareGpus::Team, 2, 0), [F::Tenants]);
    assert_eq!(on(ShareGpus::Team, 2, 1), []);
    assert_eq!(on(ShareGpus::Team, 3, 0), []);
    assert_eq!(on(ShareGpus::Anyone, 2, 0), []);
    world(ShareGpus::Team).plan();
    world(ShareGpus::Anyone).plan();
}

#[test]
fn a_promise_lies_beside_no_share_of_another_queue_either() {
    let half = || vec![group(GpuAsk::Fraction { milli: Milli(500), count: 1 }, 1)];
    let mut shared = JobSnapshot::new(job_with(1, "a", half()));
    let slices = |gpu| vec![Slice { gpu, share: Share::Fraction(Milli(500)) }];
    shared.leases = vec![lease(0, "n1", slices(0))];
    shared.started = Some(NOW - Span::hours(1));
    let jobs = [job_with(2, "b", half()), job_with(3, "a", half())];
    let world = World::new().running(shared).jobs(jobs);
    let promise = |job, gpu, at| {
        let places = vec![Place { task: 0, node: name("n1"), slices: slices(gpu) }];
        Decision::Reserve { job: JobId::new(job), at, places, firm: false }
    };
    let soon = NOW + Span::mins(1);
    assert_eq!(world.judged(2, vec![promise(2, 0, soon)]), [F::Tenants]);
    assert_eq!(world.judged(3, vec![promise(3, 0, soon)]), []);
    // When it has ended, grace included, the GPU is there for anybody.
    assert_eq!(world.judged(2, vec![promise(2, 0, NOW + Span::hours(4))]), []);
    // What is promised keeps others away, for as long as they would run into it.
    let kept = promise(2, 1, soon);
    let both = |job: u64| vec![kept.clone(), start(job, 0, "n1", slices(1))];
    assert!(world.judged(3, both(3)).contains(&F::Tenants));
}

#[test]
fn pieces_that_somebody_else_chooses_are_of_one_queue_on_a_node() {
    let slice = || vec![group(GpuAsk::TimeSlice { of: 4, count: 1 }, 1)];
    let mut shared = JobSnapshot::new(job_with(1, "a", slice()));
    let slices = |gpu| vec![Slice { gpu, share: Share::TimeSlice(Milli(250)) }];
    shared.leases = vec![lease(0, "n1", slices(0))];
    let mut cut = node("n1", 8, "r1");
    for gpu in &mut cut.gpus[..2] {
        gpu.division = Some(Division::TimeSlice { shares: 4 });
    }
    let world = World::default()
        .nodes([cut])
        .queues([queue("a", 8), queue("b", 8)])
        .running(shared)
        .jobs([job_with(2, "b", slice())]);
    let on = |gpu| world.judged(2, vec![start(2, 0, "n1", slices(gpu))]);
    assert_eq!(on(1), [F::Tenants]);
    assert_eq!(on(2), [], "a GPU that Berth chooses");
    world.plan();
}

#[test]
fn mig_instances_start_where_they_may_and_fit_together() {
    let mig = |id, profile: &str| {
        job_with(id, "a", vec![group(GpuAsk::Mig { profile: name(profile), count: 1 }, 1)])
    };
    let slot = |profile: &str, start| {
        vec![Slice { gpu: 0, share: Share::Mig(MigSlot { profile: name(profile), start }) }]
    };
    let mut held = JobSnapshot::new(mig(1, "4g.40gb"));
    held.leases = vec![lease(0, "n1", slot("4g.40gb", 0))];
    let world =
        World::new().running(held).jobs([mig(2, "3g.40gb"), mig(3, "2g.20gb"), mig(4, "4g.40gb")]);
    let on = |job, slices| world.judged(job, vec![start(job, 0, "n1", slices)]);
    assert_eq!(on(2, slot("3g.40gb", 4)), []);
    assert_eq!(on(2, slot("3g.40gb", 0)), [F::Capacity]);
    assert_eq!(on(3, slot("2g.20gb", 5)), [F::Capacity]);
    assert_eq!(on(4, slot("4g.40gb", 4)), [F::Capacity]);
    assert_eq!(on(3, slot("1g.10gb", 4)), [F::Slices]);
    world.plan();
}

#[test]
fn a_gpu_in_mig_mode_or_failed_is_not_leased_whole() {
    let mut odd = node("n1", 3, "r1");
    odd.gpus[0].mig = Some(Vec::new());
    odd.gpus[1].health = Health::Failed;
    let world = World::default().nodes([odd]).queues([queue("a", 3)]).jobs([job(1, "a", 1, 1)]);
    let on = |gpu| world.judged(1, vec![start(1, 0, "n1", gpus(gpu..gpu + 1))]);
    assert_eq!(on(0), [F::Capacity]);
    assert_eq!(on(1), [F::Capacity]);
    assert_eq!(on(2), []);
    world.plan();
}

#[test]
fn cpu_and_memory_bind_where_a_node_says_so() {
    let mut small = node("n1", 8, "r1");
    small.cpu = Some(Cpu::cores(10));
    small.memory = Some(Bytes::gib(10));
    let mut workers = group(whole(1), 2);
    workers.cpu = Cpu::cores(6);
    workers.memory = Bytes::gib(6);
    let world = World::default()
        .nodes([small, node("n2", 8, "r1")])
        .queues([queue("a", 16)])
        .jobs([job_with(1, "a", vec![workers])]);
    let on = |other: &str| {
        let starts = vec![start(1, 0, "n1", gpus(0..1)), start(1, 1, other, gpus(1..2))];
        world.judged(1, starts)
    };
    assert_eq!(on("n1"), [F::Cpu, F::Memory]);
    assert_eq!(on("n2"), []);
    world.plan();
}

#[test]
fn a_node_that_takes_no_work_gets_none() {
    let state = |state| {
        let mut first = node("n1", 8, "r1");
        first.state = state;
        World::default()
            .nodes([first, node("n2", 8, "r1")])
            .queues([queue("a", 16)])
            .jobs([job(1, "a", 1, 8)])
    };
    let on = |world: World| world.judged(1, vec![start(1, 0, "n1", gpus(0..8))]);
    assert_eq!(on(state(NodeState::Cordoned)), [F::NodeClosed]);
    assert_eq!(on(state(NodeState::Draining)), [F::NodeClosed]);
    assert_eq!(on(state(NodeState::Failed)), [F::NodeClosed, F::Minimum]);
    assert_eq!(on(state(NodeState::Leaving { at: NOW + Span::hours(1) })), [F::NodeClosed]);
    assert_eq!(on(state(NodeState::Leaving { at: NOW + Span::hours(5) })), []);
}
