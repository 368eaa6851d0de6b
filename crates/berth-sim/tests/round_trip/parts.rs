//! Values of all kinds, and the parts of a cluster.

use berth_model::*;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Strategy;

/// Ordinary names and such as YAML could take for something else.
pub fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        4 => "[a-z][a-z0-9-]{0,8}",
        1 => select(vec!["007", "true", "null", "1e5", "~", "", "a: b", "# x", "é", "17_3", "-", "{x}"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ]
    .prop_map(Name::from)
}

pub fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        9 => (1_700_000_000_000i64..1_900_000_000_000).prop_map(Time),
        1 => select(vec![Time(0), Time(-1), Time::MAX, Time(i64::MIN / 8)]),
    ]
}

pub fn span() -> impl Strategy<Value = Span> {
    prop_oneof![(0i64..100_000_000).prop_map(Span), (0i64..9_000).prop_map(Span::secs)]
}

pub fn milli() -> impl Strategy<Value = Milli> {
    prop_oneof![(0i64..50_000).prop_map(Milli), (0i64..64).prop_map(Milli::whole)]
}

pub fn micros() -> impl Strategy<Value = Micros> {
    (0i64..90_000_000_000).prop_map(Micros)
}

pub fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![(0i64..5_000_000_000_000).prop_map(Bytes), (0i64..2_000).prop_map(Bytes::gib)]
}

pub fn cpu() -> impl Strategy<Value = Cpu> {
    (0i64..500_000).prop_map(Cpu)
}

pub fn labels() -> impl Strategy<Value = std::collections::BTreeMap<Name, Name>> {
    btree_map(name(), name(), 0..3)
}

pub fn policy() -> impl Strategy<Value = Policy> {
    let passes = subsequence(Pass::ALL.to_vec(), 0..=10);
    let orders = select(vec![QueueOrder::ResponseRatio, QueueOrder::Fifo, QueueOrder::Strict]);
    (1u64..9, passes, span(), orders, any::<bool>(), milli(), 0u32..9, 0u32..9).prop_map(
        |(version, passes, grace, order, credits, past_use, reservations, search)| Policy {
            version,
            passes: passes.into_iter().collect(),
            grace,
            order,
            credits,
            past_use,
            reservations,
            search,
            ..Policy::default()
        },
    )
}

/// GPU 0 is plain, so that something can run there; the others are anything.
pub fn gpu() -> impl Strategy<Value = GpuSpec> {
    let slots = select(vec![
        None,
        Some(vec![]),
        Some(vec![("3g.20gb", 4), ("1g.5gb", 0)]),
        Some(vec![("7g.40gb", 0)]),
    ]);
    let slot = |(profile, start): (&str, u8)| MigSlot { profile: Name::new(profile), start };
    let models = select(vec!["A100-40GB", "H100-80GB", "own-24GB", "odd"]);
    let plain = (models, of(bytes()), select(vec![Health::Ok, Health::Failed])).prop_map(
        |(model, memory, health)| GpuSpec {
            model: Name::new(model),
            memory: memory.unwrap_or(Bytes::gb(40)),
            health,
            mig: None,
            division: None,
        },
    );
    let divisions = select(vec![
        None,
        Some(Division::Whole),
        Some(Division::Mps { shares: 4 }),
        Some(Division::TimeSlice { shares: 10 }),
    ]);
    let mig = (slots, divisions).prop_map(move |(slots, division)| GpuSpec {
        model: Name::new("A100-40GB"),
        memory: Bytes::gb(40),
        health: Health::Ok,
        division: if slots.is_some() { division.map(|_| Division::Mig) } else { division },
        mig: slots.map(|slots| slots.into_iter().map(slot).collect()),
    });
    prop_oneof![plain, mig]
}

pub fn node(number: usize) -> impl Strategy<Value = NodeSnapshot> {
    let gpus =
        prop_oneof![(0usize..9, gpu()).prop_map(|(count, gpu)| vec![gpu; count]), vec(gpu(), 0..4)];
    let state = prop_oneof![
        select(vec![NodeState::Ready, NodeState::Draining, NodeState::Failed]),
        time().prop_map(|at| NodeState::Leaving { at })
    ];
    let taint = (name(), name()).prop_map(|(key, value)| Taint {
        key,
        value,
        effect: Effect::PreferNoSchedule,
    });
    let rest = (of(time()), time(), time(), select(vec![Lifecycle::Spot, Lifecycle::OnDemand]));
    let spec = (gpus, of(cpu()), of(bytes()), labels(), vec(taint, 0..2), state, of(micros()));
    (spec, of(name()), rest).prop_map(
        move |(spec, pool, (idle_since, since, billed, lifecycle))| {
            let (gpus, cpu, memory, labels, taints, state, price) = spec;
            let name = Name::from(format!("n-{number}"));
            let nvlink = if gpus.len() > 1 { vec![vec![0, 1]] } else { vec![] };
            let spec = NodeSpec {
                name,
                gpus,
                cpu,
                memory,
                labels,
                taints,
                nvlink,
                state,
                price,
                pool,
                lifecycle,
                tasks: (since.0 % 3 == 0).then_some(number as u32),
                counted: (0..since.0.rem_euclid(3))
                    .map(|n| (Name::from(format!("r/{n}")), n))
                    .collect(),
            };
            let data =
                (0..billed.0.rem_euclid(3)).map(|n| (Name::from(format!("d{n}")), Bytes(n << 30)));
            NodeSnapshot { spec, idle_since, since, billed, data: data.collect() }
        },
    )
}

pub fn amount<T: std::fmt::Debug + Clone + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Amount<T>> {
    prop_oneof![
        of.prop_map(Amount::Of),
        (0i64..2_000).prop_map(|n| Amount::Share(Milli(n))),
        Just(Amount::Unlimited)
    ]
}

pub fn quota() -> impl Strategy<Value = Quota> {
    let models = btree_map("[A-Z][0-9]{2}".prop_map(Name::from), amount(milli()), 0..3);
    (of(amount(milli())), models, of(amount(cpu())), of(amount(bytes()))).prop_map(
        |(total, models, cpu, memory)| Quota { gpu: GpuQuota { total, models }, cpu, memory },
    )
}

pub fn queue(number: usize) -> impl Strategy<Value = QueueSnapshot> {
    let budget =
        (micros(), vec((0i64..1_500).prop_map(Milli), 0..3)).prop_map(|(limit, thresholds)| {
            Budget {
                limit,
                per: BudgetPeriod::Week,
                action: BudgetAction::LowerPriority,
                thresholds,
            }
        });
    let bounds = (quota(), quota(), quota(), quota(), quota());
    let knobs = (milli(), -9i32..9, of(span()), of(any::<bool>()), of(budget));
    let money = (-5_000_000i64..5_000_000, 0i64..5_000_000, micros());
    (bounds, knobs, money).prop_map(move |(bounds, knobs, (credits, past_use, spent))| {
        let (quota, limit, borrow, lend, user_limit) = bounds;
        let (weight, priority, min_runtime, time_sharing, budget) = knobs;
        // Each below an earlier one, so that there is no circle.
        let parent = number.checked_sub(1).map(|up| Name::from(format!("q{}", up / 2)));
        let mut spec = QueueSpec::new(&format!("q{number}"));
        spec = QueueSpec {
            parent,
            quota,
            weight,
            priority,
            limit,
            borrow,
            lend,
            user_limit,
            min_runtime,
            time_sharing,
            class_limit: ClassLimit {
                researcher: budget.as_ref().map(|_| Name::new("low")),
                team_lead: None,
            },
            budget,
            ..spec
        };
        QueueSnapshot { spec, credits, past_use, spent, daily: Vec::new() }
    })
}
