//! Events that make no sense, or hardly any: unknown ids, negative and enormous numbers, decisions
//! nobody planned.

use super::draw::{Bytes as Raw, Draw};
use super::world::{self, name, plain_group};
use berth_model::*;
use std::collections::BTreeMap;

const NUMBERS: [i64; 9] =
    [0, -1, 1, i64::MAX, i64::MIN, i64::MAX / 2, 1_000_000_007, -86_400_000, 7];
const COUNTS: [u32; 6] = [0, 1, u32::MAX, 1_000, 9, 65];

fn number(d: &mut Draw<'_>) -> i64 {
    d.pick(&NUMBERS)
}

fn count(d: &mut Draw<'_>) -> u32 {
    d.pick(&COUNTS)
}

fn span(d: &mut Draw<'_>) -> Span {
    Span(number(d))
}

/// An event against a state that looks like this.
pub fn event(bytes: &Raw, snapshot: &Snapshot, next_job: u64) -> Event {
    let mut d = Draw::new(bytes);
    let kind = d.below(22);
    match kind {
        0..=4 => Event::JobSubmitted { spec: Box::new(job(&mut d, bytes, snapshot, next_job)) },
        5 => Event::JobCancelled { job: job_id(&mut d, snapshot) },
        6..=7 => Event::JobChanged { job: job_id(&mut d, snapshot), change: change(&mut d) },
        8 => Event::LeaseStarted { lease: lease(&mut d, snapshot) },
        9 => {
            let outcome = d.pick(&[LeaseOutcome::Done, LeaseOutcome::Lost]);
            Event::LeaseEnded { lease: lease(&mut d, snapshot), outcome }
        }
        10 => Event::LeaseSaved { job: job_id(&mut d, snapshot) },
        11..=12 => Event::NodeAdded { node: Box::new(node(&mut d, bytes, snapshot)) },
        13 => {
            let states = [
                NodeState::Failed,
                NodeState::Ready,
                NodeState::Leaving { at: Time(number(&mut d)) },
            ];
            Event::NodeChanged { node: node_name(&mut d, snapshot), state: d.pick(&states) }
        }
        14 => match d.below(4) {
            3 => {
                let data = [(Name::new("c4"), Bytes(number(&mut d)))].into();
                Event::DataKept { node: node_name(&mut d, snapshot), data }
            }
            0 => Event::NodeRemoved { node: node_name(&mut d, snapshot) },
            1 => Event::QueueRemoved { queue: queue_name(&mut d, snapshot) },
            _ => Event::GpuChanged {
                node: node_name(&mut d, snapshot),
                gpu: count(&mut d),
                health: Health::Failed,
            },
        },
        15..=16 => Event::QueueSet { queue: Box::new(queue(&mut d, bytes, snapshot)) },
        17 => Event::PolicySet { policy: Box::new(policy(&mut d, bytes)) },
        18 => odd_rules(&mut d),
        19 => machines(&mut d, bytes, snapshot),
        _ => {
            let decisions = (0..1 + d.below(3)).map(|_| decision(&mut d, snapshot)).collect();
            Event::Decided { job: None, decisions }
        }
    }
}

fn job_id(d: &mut Draw<'_>, snapshot: &Snapshot) -> JobId {
    let known: Vec<JobId> = snapshot.jobs.iter().map(JobSnapshot::id).collect();
    match d.below(4) {
        0 => JobId::new(d.pick(&[0, 999, u64::MAX])),
        1 => JobId::new(1).element(count(d)),
        _ if known.is_empty() => JobId::new(1),
        _ => d.pick(&known),
    }
}

fn lease(d: &mut Draw<'_>, snapshot: &Snapshot) -> LeaseId {
    let job = job_id(d, snapshot);
    LeaseId { job, task: d.pick(&[0, 1, 2, u32::MAX]), attempt: d.pick(&[0, 1, u32::MAX]) }
}

fn node_name(d: &mut Draw<'_>, snapshot: &Snapshot) -> Name {
    let known: Vec<Name> = snapshot.nodes.iter().map(|node| node.spec.name.clone()).collect();
    if known.is_empty() || d.one_in(4) { Name::new("nowhere") } else { d.pick(&known) }
}

fn queue_name(d: &mut Draw<'_>, snapshot: &Snapshot) -> Name {
    let known: Vec<Name> = snapshot.queues.iter().map(|queue| queue.spec.name.clone()).collect();
    if known.is_empty() || d.one_in(4) { Name::new("nobody") } else { d.pick(&known) }
}

fn job(d: &mut Draw<'_>, bytes: &Raw, snapshot: &Snapshot, next_job: u64) -> JobSpec {
    let queue = queue_name(d, snapshot);
    let mut turned = *bytes;
    turned.rotate_left(7);
    let mut spec = world::job(next_job, &turned, &[queue], snapshot.now);
    match d.below(14) {
        0 => spec.time_limit = Some(span(d)),
        1 => spec.deadline = Some(Time(number(d))),
        2 => spec.restart_cost = Some(span(d)),
        3 => spec.grace = Some(span(d)),
        4 => spec.min_runtime = Some(span(d)),
        5 => spec.preempt_after = Some(span(d)),
        6 => spec.submitted = Time(number(d)),
        7 => spec.begin = Some(Time(number(d))),
        8 => spec.priority = d.pick(&[i32::MIN, i32::MAX]),
        9 => {
            let elements = d.pick(&[vec![], vec![1, 1], vec![u32::MAX], vec![0, 7]]);
            spec.array = Some(ArraySpec { elements, at_most: d.maybe(2, &[0, u32::MAX]) });
        }
        10 => spec.id = d.pick(&[JobId::new(u64::MAX), JobId::new(1), spec.id.element(3)]),
        11 => spec.groups = d.pick(&[vec![], vec![nested(40)], vec![nested(3), nested(0)]]),
        12 => {
            spec.after.push(Dependency { after: After::Ok, job: JobRef::Id(spec.id) });
            spec.after.push(Dependency { after: After::Any, job: JobRef::Name(spec.name.clone()) });
        }
        _ => {}
    }
    if let Some(group) = spec.groups.first_mut() {
        spoil(d, group);
    }
    spec
}

/// Groups in groups.
fn nested(depth: usize) -> GroupSpec {
    let mut group = plain_group(1, GpuAsk::Whole { count: 1 });
    for _ in 0..depth {
        let mut outer = plain_group(0, GpuAsk::None);
        outer.min = 1;
        outer.groups = vec![group];
        group = outer;
    }
    group
}

fn spoil(d: &mut Draw<'_>, group: &mut GroupSpec) {
    match d.below(14) {
        0 => group.count = count(d),
        1 => group.min = count(d),
        2 => group.gpus = GpuAsk::Whole { count: count(d) },
        3 => group.gpus = GpuAsk::Fraction { milli: Milli(number(d)), count: count(d) },
        4 => group.gpus = GpuAsk::Memory { bytes: Bytes(number(d)), count: count(d) },
        5 => {
            let profile = Name::new(d.pick(&["", "1g.5gb", "9g.1tb"]));
            group.gpus = GpuAsk::Mig { profile, count: count(d) };
        }
        6 => group.gpus = GpuAsk::Mps { percent: count(d), count: count(d) },
        7 => group.gpus = GpuAsk::TimeSlice { of: count(d), count: count(d) },
        8 => group.cpu = Cpu(number(d)),
        9 => group.memory = Bytes(number(d)),
        10 => group.min_gpu_memory = Some(Bytes(number(d))),
        11 => {
            let model = Name::new(d.pick(&["H100-80GB", "no such GPU", ""]));
            group.models = vec![ModelAsk { model, speed: Milli(number(d)) }];
        }
        12 => {
            let level = Name::new(d.pick(&["rack", "shelf", "node", ""]));
            let segment = Segment { size: count(d), within: level.clone() };
            let spread = Spread { over: level.clone(), at_most: count(d) };
            group.topology = Some(TopologyAsk {
                within: d.maybe(2, &[Name::new("ib")]),
                preferred: d.maybe(2, std::slice::from_ref(&level)),
                required: Some(level),
                segment: d.maybe(2, &[segment]),
            });
            group.spread = d.maybe(2, &[spread]);
        }
        _ => {}
    }
}

fn change(d: &mut Draw<'_>) -> JobChange {
    match d.below(8) {
        6 => JobChange::Turn(d.one_in(2)),
        7 => JobChange::Budgets((0..d.below(3)).map(|at| name("b", at)).collect()),
        4 => JobChange::Nodes(vec![None; d.below(4)]),
        0 => JobChange::Priority(d.pick(&[i32::MIN, i32::MAX])),
        1 => JobChange::Queue(Name::new("nobody")),
        2 => JobChange::Deadline(Some(Time(number(d)))),
        3 => JobChange::TimeLimit(span(d)),
        _ => JobChange::Hold(true),
    }
}

fn node(d: &mut Draw<'_>, bytes: &Raw, snapshot: &Snapshot) -> NodeSpec {
    let mut turned = *bytes;
    turned.rotate_left(7);
    let mut spec = world::node(90, &turned);
    spec.name = node_name(d, snapshot);
    match d.below(10) {
        0 => spec.gpus = vec![world::gpu("H100-80GB"); count(d).min(70) as usize],
        1 => spec.gpus.iter_mut().for_each(|gpu| gpu.memory = Bytes(number(d))),
        2 => spec.cpu = Some(Cpu(number(d))),
        3 => spec.memory = Some(Bytes(number(d))),
        4 => spec.price = Some(Micros(number(d))),
        5 => spec.nvlink = vec![vec![count(d)], vec![0, 0]],
        6 => {
            let slot = MigSlot { profile: Name::new("1g.10gb"), start: d.pick(&[7, 255, 0]) };
            spec.gpus.iter_mut().for_each(|gpu| gpu.mig = Some(vec![slot.clone(); 2]));
        }
        7 => spec.name = Name::default(),
        8 => spec.state = NodeState::Leaving { at: Time(number(d)) },
        _ => spec.gpus.iter_mut().for_each(|gpu| gpu.model = Name::new("mystery")),
    }
    spec
}

fn queue(d: &mut Draw<'_>, bytes: &Raw, snapshot: &Snapshot) -> QueueSpec {
    let mut turned = *bytes;
    turned.rotate_left(7);
    let mut spec = world::queue(90, &turned, &[]);
    spec.name = queue_name(d, snapshot);
    let amounts =
        [Amount::Of(Milli(number(d))), Amount::Share(Milli(number(d))), Amount::Unlimited];
    let amount = d.pick(&amounts);
    match d.below(12) {
        0 => spec.quota.gpu.total = Some(amount),
        1 => spec.limit.gpu.total = Some(amount),
        2 => spec.borrow.gpu.total = Some(amount),
        3 => spec.lend.gpu.total = Some(amount),
        4 => spec.user_limit.gpu.total = Some(amount),
        5 => _ = spec.quota.gpu.models.insert(Name::new("mystery"), amount),
        6 => spec.quota.memory = Some(Amount::Of(Bytes(number(d)))),
        7 => spec.weight = Milli(number(d)),
        8 => spec.priority = d.pick(&[i32::MIN, i32::MAX]),
        9 => spec.parent = Some(queue_name(d, snapshot)),
        10 => {
            spec.min_runtime = Some(span(d));
            spec.preempt_after = Some(span(d));
        }
        _ => {
            spec.budget = Some(Budget {
                limit: Micros(number(d)),
                per: d.pick(&[BudgetPeriod::Week, BudgetPeriod::Once]),
                action: BudgetAction::Pause,
                thresholds: vec![Milli(number(d))],
            });
        }
    }
    spec
}

fn policy(d: &mut Draw<'_>, bytes: &Raw) -> Policy {
    let mut turned = *bytes;
    turned.rotate_left(7);
    let mut policy = world::policy(&turned);
    match d.below(20) {
        0 => policy.grace = span(d),
        1 => policy.stale = span(d),
        2 => policy.aging_max = span(d),
        3 => policy.default_time_limit = span(d),
        4 => policy.min_runtime = span(d),
        5 => policy.preempt_after = span(d),
        6 => policy.restart_cost = span(d),
        7 => policy.quantum = span(d),
        8 => policy.half_life = span(d),
        9 => policy.credit_cap = span(d),
        10 => policy.idle_after = span(d),
        11 if d.one_in(2) => policy.gpu_reserve = Milli(number(d)),
        11 => policy.energy = Milli(number(d)),
        12 => policy.past_use = Milli(number(d)),
        13 => policy.reservations = count(d),
        14 => policy.pauses_per_day = count(d),
        15 => policy.moves_per_hour = count(d),
        16 => policy.mix = count(d),
        17 => policy.outcomes = count(d),
        18 => policy.passes.clear(),
        _ => policy.forecast_horizon = span(d),
    }
    policy
}

fn odd_rules(d: &mut Draw<'_>) -> Event {
    match d.below(4) {
        0 => Event::ClassesSet { classes: BTreeMap::new() },
        1 => Event::ModelsSet {
            prices: BTreeMap::from([(Name::new("H100-80GB"), Micros(number(d)))]),
            speeds: BTreeMap::from([(Name::new("A100-40GB"), Milli(number(d)))]),
            watts: BTreeMap::from([(Name::new("A100-40GB"), number(d))]),
        },
        2 => {
            let keys = [vec![], vec!["node"], vec!["rack", "rack"], vec!["rack"], vec!["shelf"]];
            let keys = d.pick(&keys).into_iter().map(Name::new).collect();
            let named = Name::new(d.pick(&["default", "ib"]));
            Event::TopologySet { topologies: BTreeMap::from([(named, keys)]) }
        }
        _ => Event::TopologySet { topologies: BTreeMap::new() },
    }
}

fn machines(d: &mut Draw<'_>, bytes: &Raw, snapshot: &Snapshot) -> Event {
    match d.below(7) {
        0 => {
            let mut pool = world::pool(d.below(2), bytes);
            pool.min = count(d);
            pool.max = count(d).min(4);
            for offering in &mut pool.offerings {
                offering.price = Micros(number(d));
                offering.boot = span(d);
                offering.interruptions = number(d);
                offering.gpus = count(d);
                offering.memory_per_gpu = Bytes(number(d));
            }
            Event::PoolSet { pool: Box::new(pool) }
        }
        1 => {
            let known: Vec<Name> = snapshot.claims.iter().map(|claim| claim.name.clone()).collect();
            let claim = if known.is_empty() { Name::new("c") } else { d.pick(&known) };
            Event::ClaimReady { claim, node: Box::new(node(d, bytes, snapshot)) }
        }
        2 => Event::ClaimFailed { claim: Name::new("c"), retry_at: Time(number(d)) },
        3 => Event::PoolRemoved { pool: name("p", d.below(4)) },
        4 => Event::ReservationRemoved { name: Name::new("nothing") },
        6 => Event::DisruptionsSet {
            budget: name("b", d.below(3)),
            allowed: d.maybe(2, &[0, 1, u32::MAX]),
        },
        _ => Event::ReservationSet {
            reservation: Reservation {
                name: Name::new("m0"),
                owner: queue_name(d, snapshot),
                nodes: vec![node_name(d, snapshot), node_name(d, snapshot)],
                from: Time(number(d)),
                to: Time(number(d)),
            },
        },
    }
}

fn slices(d: &mut Draw<'_>) -> Vec<Slice> {
    let slice = |d: &mut Draw<'_>| Slice {
        gpu: d.pick(&[0, 1, 7, u32::MAX]),
        share: match d.below(5) {
            0 => Share::Whole,
            1 => Share::Fraction(Milli(number(d))),
            2 => Share::Mps(Milli(number(d))),
            3 => Share::TimeSlice(Milli(number(d))),
            _ => Share::Mig(MigSlot {
                profile: Name::new(d.pick(&["1g.10gb", "none"])),
                start: d.pick(&[0, 6, 9, 255]),
            }),
        },
    };
    (0..d.below(3)).map(|_| slice(d)).collect()
}

fn decision(d: &mut Draw<'_>, snapshot: &Snapshot) -> Decision {
    let other = job_id(d, snapshot);
    match d.below(8) {
        0 | 1 => Decision::Start {
            lease: lease(d, snapshot),
            node: node_name(d, snapshot),
            slices: slices(d),
            price: Micros(number(d)),
            resume: false,
        },
        2 => Decision::Stop {
            lease: lease(d, snapshot),
            cause: d.pick(&Cause::ALL),
            for_job: d.maybe(2, &[other]),
            grace: span(d),
        },
        3 | 4 => {
            let place = |d: &mut Draw<'_>| Place {
                task: d.pick(&[0, 1, u32::MAX]),
                node: node_name(d, snapshot),
                slices: slices(d),
            };
            Decision::Reserve {
                job: job_id(d, snapshot),
                at: Time(number(d)),
                places: (0..d.below(3)).map(|_| place(d)).collect(),
                firm: d.one_in(2),
            }
        }
        5 => Decision::Unreserve { job: job_id(d, snapshot) },
        6 => match d.below(2) {
            0 => Decision::Return { node: node_name(d, snapshot) },
            _ => Decision::SetAside { job: job_id(d, snapshot), finding: "odd".to_owned() },
        },
        _ => Decision::Claim {
            claim: name("c", d.below(3)),
            pool: name("p", d.below(3)),
            instance: Name::new("t0"),
            zone: Name::new("z0"),
            lifecycle: Lifecycle::Spot,
            for_job: d.maybe(2, &[other]),
        },
    }
}
