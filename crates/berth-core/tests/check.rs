//! The check against what it guards from: real plans pass, and every way to spoil one is found.

use berth_core::{Finding, FindingCode, Plan, State, Transaction, check, vetted};
use berth_model::{
    After, Amount, ArraySpec, BackfillEnds, Budget, BudgetAction, BudgetPeriod, Bytes, Cause, Cpu,
    Decision, Dependency, Division, Effect, Event, GpuAsk, GpuSpec, GroupSpec, Health, JobId,
    JobRef, JobSnapshot, JobSpec, JobTarget, LabelAsk, LeaseId, LeaseOutcome, LeaseSnapshot,
    Lifecycle, Micros, MigSlot, Milli, ModelAsk, Name, Near, NodeSnapshot, NodeSpec, NodeState,
    Offering, Outcome, Pass, Place, PoolSpec, Promise, QueueSnapshot, QueueSpec, Reservation,
    Segment, Share, Slice, Snapshot, Span, Spread, Stamped, Taint, Time, TopologyAsk, catalog,
};
use std::collections::BTreeMap;

const NOW: Time = Time(1_800_000_000_000);

fn name(text: &str) -> Name {
    Name::new(text)
}

fn node_of(name: &str, gpus: u32, model: &str, rack: &str) -> NodeSpec {
    let gpu = GpuSpec {
        model: Name::new(model),
        memory: catalog(model).expect("a known model").memory,
        health: Health::Ok,
        mig: None,
        division: None,
    };
    NodeSpec {
        name: Name::new(name),
        gpus: vec![gpu; gpus as usize],
        cpu: None,
        memory: None,
        labels: BTreeMap::from([(Name::new("rack"), Name::new(rack))]),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: None,
        pool: None,
        lifecycle: Lifecycle::OnDemand,
        tasks: None,
        counted: BTreeMap::new(),
    }
}

fn node(name: &str, gpus: u32, rack: &str) -> NodeSpec {
    node_of(name, gpus, "H100-80GB", rack)
}

fn queue(name: &str, quota: i64) -> QueueSpec {
    let mut queue = QueueSpec::new(name);
    queue.quota.gpu.total = Some(Amount::Of(Milli::whole(quota)));
    queue
}

fn group(gpus: GpuAsk, count: u32) -> GroupSpec {
    GroupSpec {
        name: name("workers"),
        count,
        min: count,
        groups: Vec::new(),
        gpus,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Cpu(0),
        memory: Bytes(0),
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

fn whole(count: u32) -> GpuAsk {
    GpuAsk::Whole { count }
}

fn job_with(id: u64, queue: &str, groups: Vec<GroupSpec>) -> JobSpec {
    JobSpec {
        id: JobId::new(id),
        name: Name::from(format!("job-{id}")),
        queue: Name::new(queue),
        user: name("ada"),
        project: name("p"),
        experiment: name("e"),
        labels: BTreeMap::new(),
        priority: 50,
        preemptible: true,
        lifecycle: None,
        submitted: NOW - Span::mins(10),
        time_limit: Some(Span::hours(4)),
        deadline: None,
        restart_cost: None,
        grace: None,
        min_runtime: None,
        preempt_after: None,
        array: None,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups,
    }
}

fn job(id: u64, queue: &str, tasks: u32, gpus: u32) -> JobSpec {
    job_with(id, queue, vec![group(whole(gpus), tasks)])
}

fn lease(task: u32, node: &str, slices: Vec<Slice>) -> LeaseSnapshot {
    LeaseSnapshot {
        task,
        attempt: 0,
        node: Name::new(node),
        slices,
        price: Micros::dollars(1),
        since: NOW - Span::hours(1),
        billed: NOW - Span::hours(1),
        bound: true,
        stopping: None,
    }
}

fn gpus(range: std::ops::Range<u32>) -> Vec<Slice> {
    range.map(|gpu| Slice { gpu, share: Share::Whole }).collect()
}

/// A job that has run for an hour, one task on each of these places.
fn running(spec: JobSpec, places: &[(&str, std::ops::Range<u32>)]) -> JobSnapshot {
    let mut job = JobSnapshot::new(spec);
    job.leases = places
        .iter()
        .enumerate()
        .map(|(task, (node, range))| lease(task as u32, node, gpus(range.clone())))
        .collect();
    job.started = Some(NOW - Span::hours(1));
    job.first_start = job.started;
    job
}

#[derive(Default)]
struct World(Snapshot);

impl World {
    /// Four nodes of eight GPUs in two racks, and queues a and b with sixteen each.
    fn new() -> World {
        World::default()
            .nodes([node("n1", 8, "r1"), node("n2", 8, "r1"), node("n3", 8, "r2")])
            .nodes([node("n4", 8, "r2")])
            .queues([queue("a", 16), queue("b", 16)])
    }

    fn nodes(mut self, nodes: impl IntoIterator<Item = NodeSpec>) -> World {
        self.0.now = NOW;
        self.0.topologies = BTreeMap::from([(name("default"), vec![name("rack")])]);
        for spec in nodes {
            let since = NOW - Span::days(1);
            self.0.nodes.push(NodeSnapshot { spec, idle_since: None, since, billed: since });
        }
        self
    }

    fn queues(mut self, queues: impl IntoIterator<Item = QueueSpec>) -> World {
        for spec in queues {
            let spent = Micros(0);
            self.0.queues.push(QueueSnapshot { spec, credits: 0, past_use: 0, spent });
        }
        self
    }

    fn jobs(mut self, jobs: impl IntoIterator<Item = JobSpec>) -> World {
        self.0.jobs.extend(jobs.into_iter().map(JobSnapshot::new));
        self
    }

    fn running(mut self, job: JobSnapshot) -> World {
        self.0.jobs.push(job);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Snapshot)) -> World {
        change(&mut self.0);
        self
    }

    /// The state and its real plan, which must be right.
    fn plan(&self) -> (State, Plan) {
        let mut state = State::load(&self.0).expect("the world makes sense");
        let plan = state.plan();
        assert_eq!(check(&state, &plan), [], "a real plan: {:#?}", plan.transactions);
        (state, plan)
    }

    /// The codes found in the real plan after it was spoilt.
    fn spoilt(&self, spoil: impl FnOnce(&mut Plan)) -> Vec<FindingCode> {
        let (state, mut plan) = self.plan();
        spoil(&mut plan);
        codes(&check(&state, &plan))
    }

    /// The codes found in a plan of these decisions alone.
    fn judged(&self, job: u64, decisions: Vec<Decision>) -> Vec<FindingCode> {
        let state = State::load(&self.0).expect("the world makes sense");
        codes(&check(&state, &plan_of(job, decisions)))
    }
}

fn plan_of(job: u64, decisions: Vec<Decision>) -> Plan {
    let transaction = Transaction { job: Some(JobId::new(job)), decisions };
    Plan { at: NOW, transactions: vec![transaction], next: None, blocked: Default::default() }
}

fn codes(findings: &[Finding]) -> Vec<FindingCode> {
    let mut codes: Vec<FindingCode> = findings.iter().map(|finding| finding.code).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// The price of so many H100s.
fn price(gpus: i64) -> Micros {
    Micros(2_500_000 * gpus)
}

fn start(job: u64, task: u32, node: &str, slices: Vec<Slice>) -> Decision {
    let thousandths = |slice: &Slice| match &slice.share {
        Share::Whole => 1_000,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => milli.0,
        Share::Mig(slot) => {
            slot.profile.as_str()[..1].parse::<i64>().expect("a profile") * 1_000 / 7
        }
    };
    let milli: i64 = slices.iter().map(thousandths).sum();
    Decision::Start {
        lease: LeaseId { job: JobId::new(job), task, attempt: 0 },
        node: Name::new(node),
        slices,
        price: Micros(2_500_000 * milli / 1_000),
        resume: false,
    }
}

fn stop(job: u64, task: u32, cause: Cause, for_job: Option<u64>) -> Decision {
    Decision::Stop {
        lease: LeaseId { job: JobId::new(job), task, attempt: 0 },
        cause,
        for_job: for_job.map(JobId::new),
        grace: Span::mins(5),
    }
}

fn reserve(job: u64, at: Time, places: &[(&str, std::ops::Range<u32>)]) -> Decision {
    let place = |(task, (node, range)): (usize, &(&str, std::ops::Range<u32>))| Place {
        task: task as u32,
        node: Name::new(node),
        slices: gpus(range.clone()),
    };
    let places = places.iter().enumerate().map(place).collect();
    Decision::Reserve { job: JobId::new(job), at, places, firm: true }
}

use FindingCode as F;

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

/// Queue b holds everything, half of it borrowed; a job of a waits.
fn reclaimable() -> World {
    World::new()
        .running(running(job(1, "b", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .running(running(job(2, "b", 1, 8), &[("n3", 0..8)]))
        .running(running(job(3, "b", 1, 8), &[("n4", 0..8)]))
        .jobs([job(4, "a", 1, 8)])
}

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

/// Numbers from a seed, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Whether one in so many rolls hits.
    fn hits(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize].clone()
    }
}

fn any_node(dice: &mut Dice, n: u32) -> NodeSpec {
    let model = dice.pick(&["H100-80GB", "H100-80GB", "A100-80GB", "L4-24GB"]);
    let rack = dice.pick(&["r1", "r2", "r3"]);
    let mut node = node_of(&format!("n{n}"), dice.pick(&[4, 8]), model, rack);
    if dice.hits(3) {
        node.cpu = Some(Cpu::cores(dice.pick(&[16, 64])));
        node.memory = Some(Bytes::gib(256));
    }
    if dice.hits(4) {
        let half = node.gpus.len() as u32 / 2;
        node.nvlink = vec![(0..half).collect(), (half..2 * half).collect()];
    }
    if dice.hits(8) {
        let effect = dice.pick(&[Effect::NoSchedule, Effect::PreferNoSchedule]);
        node.taints = vec![Taint { key: name("k"), value: name("v"), effect }];
    }
    if dice.hits(8) {
        node.lifecycle = Lifecycle::Spot;
    }
    if dice.hits(8) {
        node.gpus[0].health = Health::Failed;
    }
    if model == "A100-80GB" && dice.hits(2) {
        node.gpus[1].mig = Some(vec![MigSlot { profile: name("3g.40gb"), start: 0 }]);
    }
    if dice.hits(4) {
        let shares = Division::TimeSlice { shares: 2 };
        for gpu in &mut node.gpus {
            gpu.division = Some(match gpu.mig {
                Some(_) => Division::Mig,
                None => dice.pick(&[Division::Whole, Division::Whole, shares]),
            });
        }
    }
    node
}

fn any_queues(dice: &mut Dice) -> Vec<QueueSpec> {
    let amount = |dice: &mut Dice, most| Some(Amount::Of(Milli::whole(dice.roll(most) as i64)));
    let mut parent = QueueSpec::new("p");
    if dice.hits(2) {
        parent.limit.gpu.total = amount(dice, 30);
    }
    let mut queues = vec![parent];
    for leaf in ["a", "b", "c", "d"] {
        let mut queue = QueueSpec::new(leaf);
        if !dice.hits(3) {
            queue.quota.gpu.total = amount(dice, 16);
        }
        if leaf < "c" {
            queue.parent = Some(name("p"));
        }
        queue.priority = dice.pick(&[0, 0, 0, 1]);
        queue.weight = Milli::whole(dice.pick(&[1, 1, 3]));
        if dice.hits(4) {
            queue.limit.gpu.total = amount(dice, 24);
        }
        if dice.hits(6) {
            queue.borrow.gpu.total = amount(dice, 8);
        }
        if dice.hits(6) {
            queue.lend.gpu.total = amount(dice, 8);
        }
        if dice.hits(6) {
            queue.user_limit.gpu.total = amount(dice, 16);
        }
        if dice.hits(6) {
            queue.time_sharing = Some(true);
        }
        if dice.hits(8) {
            queue.quota.cpu = Some(Amount::Of(Cpu::cores(dice.roll(60) as i64)));
        }
        queues.push(queue);
    }
    queues
}

fn any_share(dice: &mut Dice, kind: u64) -> GpuAsk {
    match kind {
        0 => GpuAsk::Fraction { milli: Milli(dice.pick(&[250, 500])), count: 1 },
        1 => GpuAsk::Mps { percent: dice.pick(&[25, 60]), count: 1 },
        2 => GpuAsk::TimeSlice { of: 3, count: 1 },
        3 => {
            let profile = name(dice.pick(&["1g.10gb", "3g.40gb", "4g.40gb"]));
            GpuAsk::Mig { profile, count: 1 }
        }
        _ => GpuAsk::Memory { bytes: Bytes::gb(dice.pick(&[10, 30])), count: 1 },
    }
}

fn any_group(dice: &mut Dice, kind: Option<u64>) -> GroupSpec {
    let ask = match dice.roll(9) {
        0 => GpuAsk::None,
        1..=3 => {
            let any = dice.roll(5);
            any_share(dice, kind.unwrap_or(any))
        }
        _ => whole(dice.pick(&[1, 1, 2, 4, 8])),
    };
    let mut group = group(ask, dice.pick(&[1, 1, 2, 3, 4]));
    if dice.hits(3) {
        group.min = 1 + dice.roll(u64::from(group.count)) as u32;
    }
    if dice.hits(3) {
        group.cpu = Cpu::cores(dice.pick(&[1, 8]));
        group.memory = Bytes::gib(8);
    }
    if dice.hits(6) {
        group.models = vec![ModelAsk { model: name("H100-80GB"), speed: Milli::ONE }];
    }
    if dice.hits(10) {
        group.labels.need.insert(name("rack"), name("r1"));
    }
    if dice.hits(3) {
        group.tolerations = vec![berth_model::Toleration { key: name("k"), value: None }];
    }
    group
}

fn any_job(dice: &mut Dice, kind: Option<u64>, id: u64, at: Time) -> JobSpec {
    let mut group = any_group(dice, kind);
    let whole = group.gpus.is_whole();
    match dice.roll(8) {
        0 => {
            let level = dice.pick(&["rack", "node"]);
            let required = Some(name(level));
            if kind.is_some() {
                group.min = group.count;
            }
            group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
        }
        1 if whole => {
            let required = Some(name("nvlink"));
            group.min = group.count;
            group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
        }
        2 if group.count == 4 && whole => {
            group.min = 4;
            let segment = Some(Segment { size: 2, within: name(dice.pick(&["rack", "node"])) });
            group.topology = Some(TopologyAsk { segment, ..TopologyAsk::default() });
        }
        3 => {
            group.min = group.count;
            group.spread = Some(Spread { over: name(dice.pick(&["rack", "node"])), at_most: 1 });
        }
        4 if id > 3 && kind.is_none() => {
            let target = JobTarget::Name(Name::from(format!("job-{}", 1 + dice.roll(id))));
            group.near = vec![Near { target, within: name("rack"), away: dice.hits(2) }];
        }
        _ => {}
    }
    let mut groups = vec![group];
    if dice.hits(8) {
        groups.push(any_group(dice, kind));
    }
    let mut spec = job_with(id, dice.pick(&["a", "b", "c", "d"]), groups);
    spec.submitted = at - Span::mins(dice.roll(90) as i64);
    spec.user = name(dice.pick(&["ada", "bob"]));
    spec.priority = dice.pick(&[10, 50, 50, 50, 100, 1_000]);
    spec.preemptible = !dice.hits(6);
    spec.time_limit = Some(Span::mins(dice.pick(&[20, 90, 240, 1_000])));
    spec.grace = dice.pick(&[None, None, Some(Span::secs(20))]);
    spec.min_runtime = dice.pick(&[None, None, None, Some(Span::mins(40))]);
    spec.hold = dice.hits(20);
    if dice.hits(12) {
        spec.begin = Some(at + Span::mins(30));
    }
    if dice.hits(12) && id > 1 {
        let job = JobRef::Id(JobId::new(1 + dice.roll(id - 1)));
        spec.after = vec![Dependency { after: dice.pick(&[After::Any, After::Start]), job }];
    }
    if dice.hits(16) {
        spec.array = Some(ArraySpec { elements: (0..4).collect(), at_most: Some(2) });
    }
    spec
}

/// A state driven by what a seed makes happen; every plan on the way must pass.
struct Drive {
    dice: Dice,
    state: State,
    now: Time,
    jobs: u64,
    /// The one kind of share its jobs ask for; in a wild world they ask for anything.
    kind: Option<u64>,
    seed: u64,
}

impl Drive {
    fn new(seed: u64, wild: bool) -> Drive {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let kind = Some(dice.roll(4)).filter(|_| !wild);
        let n = 3 + dice.roll(6) as u32;
        let nodes: Vec<NodeSpec> = (0..n).map(|n| any_node(&mut dice, n)).collect();
        let mut world = World::default().nodes(nodes).queues(any_queues(&mut dice));
        world.0.policy.reservations = 1 + dice.roll(3) as u32;
        if dice.hits(3) {
            world.0.policy.backfill = BackfillEnds::Estimates;
        }
        if dice.hits(4) {
            world.0.policy.aging_max = Span::hours(1);
        }
        if dice.hits(5) {
            world.0.policy.passes.remove(&Pass::Grow);
        }
        let state = State::load(&world.0).expect("the world makes sense");
        Drive { dice, state, now: NOW, jobs: 0, kind, seed }
    }

    fn apply(&mut self, event: Event) -> bool {
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
        self.state.apply(&stamped).is_ok()
    }

    /// Plans and carries out until nothing is left to decide.
    fn settle(&mut self) {
        for _ in 0..20 {
            let plan = self.state.plan();
            let findings = check(&self.state, &plan);
            assert_eq!(
                findings,
                [],
                "seed {} at {:?}: {:#?}\n{:#?}",
                self.seed,
                self.now,
                plan.transactions,
                self.state.snapshot()
            );
            if plan.is_empty() {
                return;
            }
            for Transaction { job, decisions } in plan.transactions {
                let event = Event::Decided { job, decisions };
                let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
                if let Err(rejected) = self.state.apply(&stamped) {
                    panic!("seed {}: {rejected}: {:?}", self.seed, stamped.event);
                }
            }
        }
    }

    /// Ends what is being stopped and what is over, and lets other things happen.
    fn step(&mut self) {
        self.now = self.now + Span::mins(1 + self.dice.roll(30) as i64);
        for _ in 0..self.dice.roll(5) {
            self.jobs += 1;
            let spec = any_job(&mut self.dice, self.kind, self.jobs, self.now);
            self.apply(Event::JobSubmitted { spec: Box::new(spec) });
        }
        let snapshot = self.state.snapshot();
        for job in &snapshot.jobs {
            let ends = self.dice.hits(8);
            let outcome =
                if self.dice.hits(12) { LeaseOutcome::Failed } else { LeaseOutcome::Done };
            if !job.leases.is_empty() && self.dice.hits(5) {
                self.apply(Event::LeaseSaved { job: job.id() });
            }
            for lease in &job.leases {
                let id = LeaseId { job: job.id(), task: lease.task, attempt: lease.attempt };
                let due = lease.stopping.as_ref().is_some_and(|stop| stop.until <= self.now);
                if due {
                    self.apply(Event::LeaseEnded { lease: id, outcome: LeaseOutcome::Stopped });
                } else if ends && lease.stopping.is_none() {
                    self.apply(Event::LeaseEnded { lease: id, outcome });
                }
            }
        }
        if self.dice.hits(8) {
            let node = self.dice.pick(&snapshot.nodes).spec.name;
            let leaving = NodeState::Leaving { at: self.now + Span::mins(40) };
            let states =
                [NodeState::Ready, NodeState::Ready, NodeState::Cordoned, NodeState::Draining];
            let state = self.dice.pick(&[&states[..], &[leaving, NodeState::Failed]].concat());
            self.apply(Event::NodeChanged { node, state });
        }
        if self.kind.is_none() && self.dice.hits(20) {
            let reservation = Reservation {
                name: Name::from(format!("r{}", self.dice.roll(3))),
                owner: name(self.dice.pick(&["a", "operators"])),
                nodes: vec![self.dice.pick(&snapshot.nodes).spec.name],
                from: self.now + Span::mins(self.dice.roll(90) as i64),
                to: self.now + Span::mins(120),
            };
            self.apply(Event::ReservationSet { reservation });
        }
    }
}

fn drive(seeds: std::ops::Range<u64>, wild: bool) {
    for seed in seeds {
        let mut drive = Drive::new(seed, wild);
        for _ in 0..25 {
            drive.step();
            drive.settle();
        }
    }
}

#[test]
fn plans_of_worlds_made_from_a_seed_are_right() {
    drive(0..60, false);
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
