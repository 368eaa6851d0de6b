//! The made-up cluster of a case: nodes in racks and zones, machines that can be bought, a tree of
//! queues with limits and budgets.

use crate::random::Rng;
use berth_model::{
    Amount, Budget, BudgetAction, BudgetPeriod, Bytes, GpuQuota, GpuSpec, Health, Lifecycle,
    Micros, Milli, Name, NodeSpec, NodeState, Offering, PoolSpec, QueueSpec, Quota, Span,
};
use std::collections::BTreeMap;

pub(super) const MODELS: [&str; 2] = ["H100-80GB", "A100-40GB"];
const ZONES: [&str; 2] = ["z0", "z1"];

pub(super) fn one_of<T: Clone>(rng: &mut Rng, among: &[T]) -> T {
    among[rng.below(among.len() as u64) as usize].clone()
}

pub(super) fn between(rng: &mut Rng, from: u64, to: u64) -> u64 {
    from + rng.below(to - from + 1)
}

pub(super) fn within(rng: &mut Rng, span: Span) -> Span {
    Span(rng.below(span.0.max(1) as u64) as i64)
}

pub(super) fn zone(rng: &mut Rng) -> Name {
    Name::new(one_of(rng, &ZONES))
}

fn price(rng: &mut Rng) -> Micros {
    one_of(rng, &[Micros(2_500_000), Micros(1_299_709), Micros(7), Micros(0), Micros(333_333)])
}

pub(super) fn prices(rng: &mut Rng) -> BTreeMap<Name, Micros> {
    MODELS.iter().map(|model| (Name::new(model), price(rng))).collect()
}

pub(super) fn topologies(rng: &mut Rng) -> BTreeMap<Name, Vec<Name>> {
    if rng.below(2) == 0 {
        return BTreeMap::new();
    }
    BTreeMap::from([(Name::new("default"), vec![Name::new("zone"), Name::new("rack")])])
}

fn memory(model: &Name) -> Bytes {
    berth_model::catalog(model).map_or(Bytes::gb(40), |info| info.memory)
}

/// Where a machine stands. Racks are named after their zone, so that no two zones share one.
fn labels(rng: &mut Rng, zone: &Name) -> BTreeMap<Name, Name> {
    let rack = Name::from(format!("{zone}-r{}", rng.below(2)));
    BTreeMap::from([(Name::new("zone"), zone.clone()), (Name::new("rack"), rack)])
}

pub(super) fn node(rng: &mut Rng, at: u64) -> NodeSpec {
    let model = Name::new(one_of(rng, &MODELS));
    let memory = memory(&model);
    let gpus = one_of(rng, &[2usize, 4, 4, 8]);
    let gpu = GpuSpec { model, memory, health: Health::Ok, mig: None, division: None };
    let mut gpus = vec![gpu; gpus];
    // MIG is on for some, and nothing has been cut yet.
    if rng.below(5) == 0 {
        gpus[0].mig = Some(Vec::new());
    }
    // A price of the node's own is one that its GPUs share without a remainder.
    let own = (rng.below(3) == 0).then(|| Micros(price(rng).0 * gpus.len() as i64));
    let zone = zone(rng);
    NodeSpec {
        name: Name::from(format!("n{at}")),
        gpus,
        cpu: None,
        memory: None,
        labels: labels(rng, &zone),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: own,
        pool: None,
        lifecycle: if rng.below(3) == 0 { Lifecycle::Spot } else { Lifecycle::OnDemand },
        tasks: None,
        counted: BTreeMap::new(),
    }
}

/// None in every second world.
pub(super) fn pools(rng: &mut Rng) -> Vec<PoolSpec> {
    if rng.below(2) == 0 {
        return Vec::new();
    }
    let max = between(rng, 1, 3) as u32;
    let min = if rng.below(4) == 0 { 1 } else { 0 };
    let mut offerings = vec![offering(rng, Lifecycle::Spot)];
    if rng.below(3) != 0 {
        offerings.push(offering(rng, Lifecycle::OnDemand));
    }
    let labels = BTreeMap::new();
    vec![PoolSpec { name: Name::new("cloud"), min, max, offerings, labels }]
}

fn offering(rng: &mut Rng, lifecycle: Lifecycle) -> Offering {
    let model = Name::new(one_of(rng, &MODELS));
    let gpus = one_of(rng, &[2, 4, 8]);
    Offering {
        instance: Name::from(format!("{gpus}x{model}")),
        gpus,
        memory_per_gpu: memory(&model),
        model,
        cpu: None,
        memory: None,
        zone: zone(rng),
        lifecycle,
        price: Micros(price(rng).0 * i64::from(gpus)),
        boot: one_of(rng, &[Span::mins(2), Span::mins(10), Span::ZERO]),
        interruptions: if lifecycle == Lifecycle::Spot { 50 } else { 0 },
        unavailable_until: None,
    }
}

/// One to three queues for jobs, some of them below one that has none of its own.
pub(super) fn queues(rng: &mut Rng) -> Vec<QueueSpec> {
    let leaves: Vec<QueueSpec> = (0..between(rng, 1, 3)).map(|at| queue(rng, at)).collect();
    if rng.below(3) != 0 {
        return leaves;
    }
    let top = QueueSpec { budget: budget(rng), limit: limit(rng), ..QueueSpec::new("top") };
    let mut all = vec![top];
    all.extend(leaves.into_iter().map(|leaf| match rng.below(3) {
        0 => leaf,
        _ => QueueSpec { parent: Some(Name::new("top")), ..leaf },
    }));
    // A queue without any below it could take jobs, and this one is to have none.
    if all.iter().all(|queue| queue.parent.is_none()) {
        all.remove(0);
    }
    all
}

fn gpus(of: i64) -> Quota {
    let total = Some(Amount::Of(Milli::whole(of)));
    Quota { gpu: GpuQuota { total, ..GpuQuota::default() }, ..Quota::default() }
}

fn limit(rng: &mut Rng) -> Quota {
    match rng.below(4) {
        0 => gpus(between(rng, 2, 8) as i64),
        _ => Quota::default(),
    }
}

fn budget(rng: &mut Rng) -> Option<Budget> {
    if rng.below(3) != 0 {
        return None;
    }
    let action = one_of(
        rng,
        &[
            BudgetAction::Notify,
            BudgetAction::Block,
            BudgetAction::LowerPriority,
            BudgetAction::Pause,
        ],
    );
    let limit = one_of(rng, &[Micros(1), Micros(500_000), Micros(3_000_000), Micros(20_000_000)]);
    let per = one_of(rng, &[BudgetPeriod::Day, BudgetPeriod::Once]);
    Some(Budget { limit, per, action, thresholds: vec![Milli(500)] })
}

fn queue(rng: &mut Rng, at: u64) -> QueueSpec {
    let quota = gpus(between(rng, 0, 8) as i64);
    let (limit, budget) = (limit(rng), budget(rng));
    QueueSpec { quota, limit, budget, ..QueueSpec::new(&format!("q{at}")) }
}
