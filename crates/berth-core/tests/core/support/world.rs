//! Small random worlds: nodes, queue trees, jobs, pools and policies from bytes.

use super::draw::{Bytes as Raw, Draw};
use berth_model::*;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy as Generator;
use std::collections::{BTreeMap, BTreeSet};

pub const MODELS: [&str; 3] = ["H100-80GB", "A100-40GB", "L4-24GB"];

/// A world and what happens to it, as bytes.
#[derive(Debug, Clone)]
pub struct Tale {
    pub policy: Raw,
    pub nodes: Vec<Raw>,
    pub queues: Vec<Raw>,
    pub jobs: Vec<Raw>,
    pub steps: Vec<Raw>,
}

/// Tales with at most so many jobs at the start and steps after it.
pub fn tales(jobs: usize, steps: usize) -> impl Generator<Value = Tale> {
    let raw = any::<Raw>;
    let parts =
        (raw(), vec(raw(), 1..=8), vec(raw(), 1..=5), vec(raw(), 1..=jobs), vec(raw(), 1..=steps));
    parts.prop_map(|(policy, nodes, queues, jobs, steps)| Tale {
        policy,
        nodes,
        queues,
        jobs,
        steps,
    })
}

pub fn name(kind: &str, number: usize) -> Name {
    Name::from(format!("{kind}{number}"))
}

pub fn gpu(model: &str) -> GpuSpec {
    let memory = catalog(model).map_or(Bytes::gb(24), |info| info.memory);
    GpuSpec { model: Name::new(model), memory, health: Health::Ok, mig: None, division: None }
}

pub fn plain_node(name: &str, gpus: usize, model: &str) -> NodeSpec {
    NodeSpec {
        name: Name::new(name),
        gpus: vec![gpu(model); gpus],
        cpu: None,
        memory: None,
        labels: BTreeMap::new(),
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

pub fn node(number: usize, bytes: &Raw) -> NodeSpec {
    let mut d = Draw::new(bytes);
    let gpus = d.pick(&[4, 8, 2, 1, 3, 5, 6, 7]);
    let model = d.pick(&[MODELS[0], MODELS[0], MODELS[1], MODELS[2]]);
    let mut spec = plain_node(&name("n", number), gpus, model);
    let zone = d.below(2);
    spec.labels.insert(Name::new("zone"), name("z", zone));
    // Racks lie in zones; a few nodes are in none.
    let rack = d.below(2);
    if !d.one_in(12) {
        spec.labels.insert(Name::new("rack"), name(&format!("r{zone}"), rack));
    }
    spec.cpu = d.maybe(3, &[Cpu::cores(16), Cpu::cores(8), Cpu::cores(64)]);
    spec.memory = d.maybe(4, &[Bytes::gib(64), Bytes::gib(256)]);
    if d.one_in(6) {
        let effect = d.pick(&[Effect::NoSchedule, Effect::PreferNoSchedule, Effect::NoExecute]);
        let value = d.pick(&[Name::new("vision"), Name::default()]);
        spec.taints.push(Taint { key: Name::new("team"), value, effect });
    }
    if d.one_in(3) {
        spec.labels.insert(Name::new("disk"), Name::new("nvme"));
    }
    if d.one_in(4) && gpus >= 4 {
        spec.nvlink =
            vec![(0..gpus as u32 / 2).collect(), (gpus as u32 / 2..gpus as u32).collect()];
    }
    if d.one_in(5) && model != MODELS[2] {
        let names = MigProfile::names(model).expect("it has MIG");
        spec.gpus[0].mig = Some(vec![
            MigSlot { profile: Name::new(names[4]), start: 4 },
            MigSlot { profile: Name::new(names[0]), start: 0 },
        ]);
    }
    if d.one_in(8) {
        let last = spec.gpus.len() - 1;
        spec.gpus[last] = gpu(d.pick(&[MODELS[1], MODELS[2]]));
    }
    if d.one_in(10) {
        spec.gpus.clear();
        spec.nvlink.clear();
    }
    spec.price = d.maybe(3, &[Micros(12_250_001), Micros(0), Micros(7)]);
    spec.lifecycle = if d.one_in(5) { Lifecycle::Spot } else { Lifecycle::OnDemand };
    spec.tasks = d.maybe(4, &[2, 3, 8]);
    if d.one_in(3) {
        spec.counted.insert(Name::new("rdma/hca"), d.pick(&[4, 1, 8]));
    }
    if d.one_in(6) {
        // Somebody else hands the GPUs out.
        let ways = [
            Division::Whole,
            Division::TimeSlice { shares: 4 },
            Division::TimeSlice { shares: 2 },
            Division::Mps { shares: 3 },
        ];
        for gpu in &mut spec.gpus {
            gpu.division = Some(if gpu.mig.is_some() { Division::Mig } else { d.pick(&ways) });
        }
    }
    spec
}

fn amount(d: &mut Draw<'_>, percent: bool) -> Amount<Milli> {
    let of = d.pick(&[4, 8, 0, 1, 2, 3, 12, 16, 24]);
    let share = d.pick(&[500, 250, 0, 100, 333, 1_000]);
    match d.below(4) {
        3 if percent => Amount::Share(Milli(share)),
        _ => Amount::Of(Milli::whole(of)),
    }
}

fn total(amount: Amount<Milli>) -> Quota {
    Quota { gpu: GpuQuota { total: Some(amount), ..GpuQuota::default() }, ..Quota::default() }
}

/// The queue with that number; its parent is one of those before it.
pub fn queue(number: usize, bytes: &Raw, before: &[QueueSpec]) -> QueueSpec {
    let mut d = Draw::new(bytes);
    let mut spec = QueueSpec::new(&name("q", number));
    let depth = |queue: &QueueSpec| {
        let up = |q: &QueueSpec| before.iter().find(|b| Some(&b.name) == q.parent.as_ref());
        std::iter::successors(Some(queue), |q| up(q)).count()
    };
    let parents: Vec<&QueueSpec> = before.iter().filter(|queue| depth(queue) < 3).collect();
    let at = d.below(3);
    let parent = if at == 2 && !parents.is_empty() { Some(d.pick(&parents)) } else { None };
    spec.parent = parent.map(|parent| parent.name.clone());
    let percent = parent.is_none_or(|parent| parent.quota.gpu.total.is_some());
    if !d.one_in(4) {
        spec.quota = total(amount(&mut d, percent));
        if d.one_in(12) {
            spec.quota.gpu.total = Some(Amount::Unlimited);
        }
    }
    if d.one_in(6) {
        let of = Amount::Of(Milli::whole(d.pick(&[2, 4, 8])));
        spec.quota.gpu.models.insert(Name::new(d.pick(&MODELS)), of);
    }
    if d.one_in(8) {
        spec.quota.cpu = Some(Amount::Of(Cpu::cores(d.pick(&[8, 32]))));
    }
    spec.weight = d.pick(&[Milli(1_000), Milli(2_000), Milli(500), Milli(0)]);
    spec.priority = d.pick(&[0, 0, 0, 100, -5]);
    if d.one_in(4) {
        spec.limit = total(amount(&mut d, true));
    }
    if d.one_in(5) {
        spec.borrow = total(amount(&mut d, true));
    }
    if d.one_in(5) {
        spec.lend = total(amount(&mut d, true));
    }
    if d.one_in(8) {
        spec.user_limit = total(amount(&mut d, false));
    }
    let orders = [QueueOrder::Fifo, QueueOrder::Shortest, QueueOrder::Strict];
    spec.order = d.maybe(4, &orders);
    spec.min_runtime = d.maybe(6, &[Span::mins(10), Span::hours(2)]);
    spec.preempt_after = d.maybe(6, &[Span::secs(30), Span::mins(10)]);
    spec.time_sharing = d.maybe(5, &[true, false]);
    if d.one_in(8) {
        let actions = [
            BudgetAction::Notify,
            BudgetAction::Block,
            BudgetAction::LowerPriority,
            BudgetAction::Pause,
        ];
        spec.budget = Some(Budget {
            limit: d.pick(&[Micros::dollars(20), Micros(0), Micros::dollars(2)]),
            per: d.pick(&[BudgetPeriod::Day, BudgetPeriod::Month, BudgetPeriod::Once]),
            action: d.pick(&actions),
            thresholds: vec![Milli(500), Milli(800)],
        });
    }
    spec
}

pub fn policy(bytes: &Raw) -> Policy {
    let mut d = Draw::new(bytes);
    let mut policy = Policy::default();
    let orders = [QueueOrder::Fifo, QueueOrder::Shortest, QueueOrder::Strict];
    policy.order = d.maybe(4, &orders).unwrap_or_default();
    policy.strategy = d.maybe(5, &[Strategy::Spread]).unwrap_or_default();
    policy.backfill = d.maybe(4, &[BackfillEnds::Estimates]).unwrap_or_default();
    policy.fragmentation = !d.one_in(4);
    policy.reservations = d.pick(&[1, 1, 2, 3, 0]);
    policy.grace = d.pick(&[Span::mins(5), Span::mins(5), Span::secs(30), Span::ZERO]);
    policy.aging_max = d.pick(&[Span::hours(24), Span::hours(24), Span::mins(30), Span::ZERO]);
    policy.min_runtime = d.maybe(5, &[Span::mins(5)]).unwrap_or_default();
    policy.preempt_after = d.maybe(6, &[Span::mins(2)]).unwrap_or_default();
    policy.time_sharing = d.one_in(4);
    policy.quantum = d.pick(&[Span::mins(30), Span::mins(1)]);
    policy.moves_per_hour = d.pick(&[12, 12, 1, 0]);
    policy.energy = d.pick(&[Milli(100), Milli(0), Milli(1)]);
    policy.past_use = d.pick(&[Milli(1_000), Milli(0), Milli(3_000)]);
    policy.credits = !d.one_in(4);
    policy.half_life = d.pick(&[Span::days(7), Span::mins(10)]);
    policy.search = d.pick(&[20_000, 20_000, 10, 0]);
    policy.mix = d.pick(&[1_000, 2, 0]);
    policy.outcomes = d.pick(&[10_000, 10_000, 2]);
    policy.default_time_limit = d.pick(&[Span::hours(24), Span::hours(1)]);
    policy.stale = d.pick(&[Span::secs(60), Span::ZERO]);
    policy.share_gpus = d.maybe(4, &[ShareGpus::Anyone]).unwrap_or_default();
    if d.one_in(8) {
        let gone = d.pick(&[
            Pass::Backfill,
            Pass::Defragment,
            Pass::Reclaim,
            Pass::Preempt,
            Pass::Grow,
            Pass::Pools,
            Pass::Place,
        ]);
        policy.passes.remove(&gone);
    }
    policy
}

pub fn pool(number: usize, bytes: &Raw) -> PoolSpec {
    let mut d = Draw::new(bytes);
    let offering = |d: &mut Draw<'_>, at: usize| Offering {
        instance: name("t", at),
        gpus: d.pick(&[8, 4, 1]),
        model: Name::new(d.pick(&MODELS)),
        memory_per_gpu: Bytes::gb(d.pick(&[80, 24])),
        cpu: d.maybe(3, &[Cpu::cores(32)]),
        memory: None,
        zone: name("z", d.below(2)),
        lifecycle: d.pick(&[Lifecycle::OnDemand, Lifecycle::Spot]),
        price: Micros::dollars(d.pick(&[10, 3, 30])),
        boot: d.pick(&[Span::mins(3), Span::ZERO, Span::mins(20)]),
        interruptions: d.pick(&[0, 50]),
        unavailable_until: None,
    };
    let offerings = (0..1 + d.below(2)).map(|at| offering(&mut d, at)).collect();
    let max = d.pick(&[2, 4, 1, 0]);
    let min = d.pick(&[0, 0, 1]).min(max);
    PoolSpec { name: name("p", number), min, max, offerings, labels: BTreeMap::new() }
}

/// The machine a claim turns into.
pub fn bought(claim: &ClaimSpec, pool: Option<&PoolSpec>) -> NodeSpec {
    let offering = pool.and_then(|pool| {
        pool.offerings
            .iter()
            .find(|o| o.instance == claim.instance && o.zone == claim.zone)
            .cloned()
    });
    let (gpus, model) = offering.as_ref().map_or((1, MODELS[0]), |o| (o.gpus, &o.model));
    let mut spec = plain_node(&format!("bought-{}", claim.name), gpus as usize, model);
    spec.labels.insert(Name::new("zone"), claim.zone.clone());
    spec.pool = Some(claim.pool.clone());
    spec.lifecycle = claim.lifecycle;
    spec.cpu = offering.as_ref().and_then(|o| o.cpu);
    spec.price = offering.map(|o| o.price);
    spec
}

pub fn plain_group(count: u32, gpus: GpuAsk) -> GroupSpec {
    GroupSpec {
        name: Name::default(),
        count,
        min: count,
        groups: Vec::new(),
        gpus,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Cpu::ZERO,
        memory: Bytes::ZERO,
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

pub fn plain_job(id: u64, queue: &str, groups: Vec<GroupSpec>) -> JobSpec {
    JobSpec {
        id: JobId::new(id),
        name: name("j", id as usize),
        queue: Name::new(queue),
        user: Name::new("ada"),
        project: Name::new("chat"),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: 50,
        preemptible: true,
        lifecycle: None,
        submitted: Time(0),
        time_limit: None,
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
        data: BTreeSet::new(),
    }
}

fn ask(d: &mut Draw<'_>) -> GpuAsk {
    let whole = d.pick(&[1, 2, 4, 1, 8, 3]);
    let count = d.pick(&[1, 1, 1, 2]);
    match d.below(12) {
        6 => GpuAsk::Fraction { milli: Milli(d.pick(&[500, 250, 300, 700, 1_000])), count },
        7 => GpuAsk::Memory { bytes: Bytes::gb(d.pick(&[10, 20, 40])), count },
        8 => {
            let names =
                ["3g.40gb", "1g.10gb", "2g.20gb", "3g.20gb", "1g.5gb", "4g.40gb", "7g.40gb"];
            GpuAsk::Mig { profile: Name::new(d.pick(&names)), count }
        }
        9 => GpuAsk::Mps { percent: d.pick(&[25, 50, 60]), count },
        10 => GpuAsk::TimeSlice { of: d.pick(&[4, 2, 3]), count },
        11 => GpuAsk::None,
        _ => GpuAsk::Whole { count: whole },
    }
}

fn group(d: &mut Draw<'_>) -> GroupSpec {
    let count = d.pick(&[1, 1, 2, 3, 4, 6, 8]);
    let mut group = plain_group(count, ask(d));
    if d.one_in(3) {
        group.min = 1 + d.below(count as usize) as u32;
    }
    if d.one_in(5) {
        let speed = d.pick(&[Milli(1_000), Milli(500)]);
        group.models = vec![
            ModelAsk { model: Name::new(MODELS[0]), speed: Milli(1_000) },
            ModelAsk { model: Name::new(d.pick(&[MODELS[1], MODELS[2]])), speed },
        ];
        if let GpuAsk::Mig { .. } = group.gpus {
            group.models.clear();
        }
    }
    group.min_gpu_memory = d.maybe(8, &[Bytes::gb(40), Bytes::gb(80)]);
    group.cpu = d.maybe(3, &[Cpu::cores(4), Cpu(1_500)]).unwrap_or_default();
    group.memory = d.maybe(5, &[Bytes::gib(32)]).unwrap_or_default();
    if d.one_in(4) {
        let level = |d: &mut Draw<'_>| Name::new(d.pick(&["rack", "zone", "node", "nvlink"]));
        let mut ask = TopologyAsk::default();
        match d.below(4) {
            0 => ask.required = Some(level(d)),
            1 => ask.preferred = Some(level(d)),
            2 => {
                ask.required = Some(Name::new("zone"));
                ask.preferred = Some(Name::new("rack"));
            }
            _ => {
                let size =
                    if count.is_multiple_of(2) && group.min.is_multiple_of(2) { 2 } else { 1 };
                ask.segment = Some(Segment { size, within: level(d) });
            }
        }
        group.topology = Some(ask);
    }
    if d.one_in(10) {
        let over = Name::new(d.pick(&["rack", "zone", "node"]));
        group.spread = Some(Spread { over, at_most: 1 + d.below(3) as u32 });
    }
    if d.one_in(10) {
        group.labels.need.insert(Name::new("disk"), Name::new("nvme"));
    }
    if d.one_in(12) {
        group.labels.need.insert(Name::new("rack"), Name::new("r00"));
    }
    if d.one_in(8) {
        group.labels.prefer.insert(Name::new("disk"), Name::new("nvme"));
    }
    if d.one_in(6) {
        group.counted.insert(Name::new("rdma/hca"), d.pick(&[1, 2, 4]));
    }
    if d.one_in(10) {
        let some = || [name("n", 0), name("n", 2)].into();
        group.nodes = Some(match d.below(3) {
            0 => NodeAsk { never: some(), ..NodeAsk::default() },
            1 => NodeAsk { prefer: some(), ..NodeAsk::default() },
            _ => NodeAsk { only: Some(some()), ..NodeAsk::default() },
        });
    }
    if d.one_in(5) {
        group
            .tolerations
            .push(Toleration { key: Name::new("team"), value: d.maybe(2, &[Name::new("vision")]) });
    }
    if d.one_in(10) {
        let target = match d.below(2) {
            0 => JobTarget::Name(name("j", d.below(6))),
            _ => JobTarget::Label { key: Name::new("app"), value: Name::new("llm") },
        };
        let within = Name::new(d.pick(&["rack", "node", "zone"]));
        group.near.push(Near { target, within, away: d.one_in(2) });
    }
    group
}

fn groups(d: &mut Draw<'_>) -> Vec<GroupSpec> {
    let first = group(d);
    match d.below(8) {
        6 => {
            let mut second = group(d);
            second.name = Name::new("second");
            vec![first, second]
        }
        7 => {
            let mut outer = plain_group(0, GpuAsk::None);
            let (second, third) = (group(d), group(d));
            outer.groups = vec![first, second, third];
            outer.min = 1 + d.below(3) as u32;
            if d.one_in(2) {
                outer.topology = Some(TopologyAsk {
                    required: Some(Name::new(d.pick(&["rack", "zone"]))),
                    ..TopologyAsk::default()
                });
            }
            vec![outer]
        }
        _ => vec![first],
    }
}

/// Versions of data that jobs read and nodes keep.
pub const DATA: [&str; 3] = ["c4", "pile", "wiki"];

/// A job for one of the queues, submitted at that time.
pub fn job(id: u64, bytes: &Raw, leaves: &[Name], now: Time) -> JobSpec {
    let mut d = Draw::new(bytes);
    let queue = if leaves.is_empty() { Name::new("none") } else { d.pick(leaves) };
    let mut spec = plain_job(id, &queue, groups(&mut d));
    spec.submitted = now;
    spec.name = name("j", d.below(6));
    spec.user = Name::new(d.pick(&["ada", "bob"]));
    spec.priority = d.pick(&[50, 50, 50, 100, 10, 1_000, 77]);
    spec.preemptible = !d.one_in(5);
    let limits = [Span::hours(1), Span::mins(10), Span::hours(4), Span::mins(1), Span::hours(9)];
    spec.time_limit = if d.one_in(6) { None } else { Some(d.pick(&limits)) };
    spec.deadline = d.maybe(6, &[now + Span::hours(2), now + Span::mins(20)]);
    spec.restart_cost = d.maybe(6, &[Span::ZERO, Span::hours(1)]);
    spec.grace = d.maybe(5, &[Span::ZERO, Span::secs(10), Span::hours(1)]);
    spec.min_runtime = d.maybe(8, &[Span::mins(20)]);
    spec.preempt_after = d.maybe(8, &[Span::ZERO, Span::mins(3)]);
    spec.lifecycle = d.maybe(12, &[Lifecycle::Spot, Lifecycle::OnDemand]);
    if d.one_in(3) {
        spec.labels.insert(Name::new("app"), Name::new("llm"));
    }
    if d.one_in(7) {
        let elements = (0..1 + d.below(5) as u32).collect();
        spec.array = Some(ArraySpec { elements, at_most: d.maybe(2, &[1, 2]) });
    }
    if d.one_in(6) {
        let after = d.pick(&[After::Ok, After::Any, After::NotOk, After::Start]);
        let job = match d.below(2) {
            0 => JobRef::Id(JobId::new(id.saturating_sub(1 + d.below(3) as u64))),
            _ => JobRef::Name(name("j", d.below(6))),
        };
        spec.after.push(Dependency { after, job });
    }
    spec.singleton = d.one_in(10);
    spec.begin = d.maybe(10, &[now + Span::mins(5), now + Span::hours(1)]);
    spec.hold = d.one_in(14);
    spec.data = DATA.iter().filter(|_| d.one_in(4)).map(|name| Name::new(name)).collect();
    spec
}
