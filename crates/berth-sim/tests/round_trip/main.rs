//! Any snapshot, written and read, is the same snapshot.

mod parts;

use berth_model::*;
use berth_sim::world::{World, write, write_json};
use parts::*;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Strategy;
use std::collections::BTreeSet;

fn ask() -> impl Strategy<Value = GpuAsk> {
    let count = 1u32..3;
    prop_oneof![
        Just(GpuAsk::None),
        count.clone().prop_map(|count| GpuAsk::Whole { count }),
        (1i64..=1_000, count.clone())
            .prop_map(|(n, count)| GpuAsk::Fraction { milli: Milli(n), count }),
        (bytes(), count.clone()).prop_map(|(bytes, count)| GpuAsk::Memory { bytes, count }),
        (name(), count.clone()).prop_map(|(profile, count)| GpuAsk::Mig { profile, count }),
        (1u32..=100, count.clone()).prop_map(|(percent, count)| GpuAsk::Mps { percent, count }),
        (1u32..9, count).prop_map(|(of, count)| GpuAsk::TimeSlice { of, count }),
    ]
}

fn leaf() -> impl Strategy<Value = GroupSpec> {
    let target = prop_oneof![
        name().prop_map(JobTarget::Name),
        (name(), name()).prop_map(|(key, value)| JobTarget::Label { key, value })
    ];
    let near = (target, name(), any::<bool>()).prop_map(|(target, within, away)| Near {
        target,
        within,
        away,
    });
    let topology =
        (of(name()), of(name()), of((1u32..9, name()))).prop_map(|(within, required, segment)| {
            TopologyAsk {
                within,
                required,
                preferred: None,
                segment: segment.map(|(size, within)| Segment { size, within }),
            }
        });
    let toleration = (name(), of(name())).prop_map(|(key, value)| Toleration { key, value });
    let model = (name(), milli()).prop_map(|(model, speed)| ModelAsk { model, speed });
    let sizes = (name(), 0u32..4, 0u32..4, ask(), cpu(), bytes());
    let where_to = (of(topology), vec(near, 0..4), vec(toleration, 0..2), vec(model, 0..3));
    (sizes, where_to, labels(), of(bytes())).prop_map(|(sizes, places, need, min_gpu_memory)| {
        let (name, count, min, gpus, cpu, memory) = sizes;
        let (topology, near, tolerations, models) = places;
        let spread = (min == 2).then(|| Spread { over: name.clone(), at_most: 3 });
        let weights = need.keys().map(|key| (key.clone(), min as i32 - 1)).collect();
        let counted = need.keys().map(|key| (key.clone(), i64::from(count) + 1)).collect();
        let names: BTreeSet<Name> = need.values().cloned().collect();
        let nodes = (count == 2).then(|| NodeAsk {
            only: (min == 1).then(|| names.clone()),
            never: names.clone(),
            prefer: names,
        });
        let labels = LabelAsk { need: need.clone(), prefer: need, weights };
        GroupSpec {
            name,
            count,
            min,
            groups: vec![],
            gpus,
            models,
            min_gpu_memory,
            cpu,
            memory,
            topology,
            spread,
            labels,
            tolerations,
            near,
            counted,
            nodes,
        }
    })
}

fn group() -> impl Strategy<Value = GroupSpec> {
    leaf().prop_recursive(2, 6, 3, |inner| {
        (leaf(), vec(inner, 1..3)).prop_map(|(own, groups)| GroupSpec { count: 0, groups, ..own })
    })
}

fn dependency() -> impl Strategy<Value = Dependency> {
    let kinds = select(vec![After::Ok, After::Any, After::NotOk, After::Start]);
    let job = prop_oneof![
        name().prop_map(JobRef::Name),
        (1u64..99, of(0u32..9)).prop_map(|(number, element)| JobRef::Id(JobId { number, element }))
    ];
    (kinds, job).prop_map(|(after, job)| Dependency { after, job })
}

fn job(number: u64) -> impl Strategy<Value = JobSnapshot> {
    let names = (name(), name(), name(), name(), labels());
    let times = (time(), of(span()), of(time()), of(span()), of(span()), of(time()));
    let array = of((vec(0u32..99, 1..5), of(1u32..5)));
    let spec = (names, times, -5i32..1_100, any::<[bool; 3]>(), array, vec(dependency(), 0..3));
    let run = (of(time()), of(time()), of(time()), span(), of(span()), 0u32..3, vec(time(), 0..2));
    let more = (any::<[bool; 4]>(), of("\\PC{0,9}"), btree_map(0u32..9, 1u32..4, 0..3), 0u32..3);
    (spec, vec(group(), 1..3), run, more).prop_map(move |(spec, groups, run, more)| {
        let ((name, user, project, experiment, labels), times, priority, flags, array, after) =
            spec;
        let (submitted, time_limit, deadline, grace, preempt_after, begin) = times;
        let array = array.map(|(elements, at_most)| ArraySpec { elements, at_most });
        let element = array.as_ref().filter(|_| flags[2]).map(|array| array.elements[0]);
        let spec = JobSpec {
            id: JobId::new(number),
            name,
            queue: Name::new("q0"),
            user,
            project,
            experiment,
            labels,
            priority,
            preemptible: flags[0],
            lifecycle: flags[1].then_some(Lifecycle::Reserved),
            submitted,
            time_limit,
            deadline,
            restart_cost: time_limit,
            grace,
            min_runtime: grace,
            preempt_after,
            array,
            after,
            singleton: flags[1],
            begin,
            hold: flags[2],
            groups,
            data: (0..priority.rem_euclid(3)).map(|n| Name::from(format!("d{n}.dir"))).collect(),
        };
        let (first_start, started, last_checkpoint, saved, estimate, displaced, pauses) = run;
        let ([paused, released, failed, cancelled], set_aside, attempts, moved) = more;
        JobSnapshot {
            element,
            attempts,
            first_start,
            started,
            last_checkpoint,
            saved,
            estimate,
            stale_since: first_start,
            displaced,
            moved,
            pauses,
            paused,
            released,
            failed,
            cancelled,
            set_aside,
            waits_turn: moved % 2 == 1,
            budgets: (0..displaced % 3).map(|n| Name::from(format!("b{n}"))).collect(),
            done: vec![moved],
            ..JobSnapshot::new(spec)
        }
    })
}

type Held = (usize, usize, u32, [bool; 3], Time, Micros, usize);

/// Leases as drawn, kept where a GPU is free and the task is not placed yet.
fn hold(snapshot: &mut Snapshot, held: Vec<Held>) {
    let mut taken = std::collections::BTreeSet::new();
    for (job, node, gpu, flags, since, price, cause) in held {
        let (jobs, nodes) = (snapshot.jobs.len(), snapshot.nodes.len());
        if jobs == 0 || nodes == 0 {
            return;
        }
        let node = &snapshot.nodes[node % nodes].spec;
        let ids: Vec<JobId> = snapshot.jobs.iter().map(JobSnapshot::id).collect();
        let job = &mut snapshot.jobs[job % jobs];
        let tasks: u32 = job.spec.groups.iter().flat_map(GroupSpec::leaves).map(|g| g.count).sum();
        let whole_array = job.spec.array.is_some() && job.element.is_none();
        let task = gpu % tasks.max(1);
        if tasks == 0
            || gpu as usize >= node.gpus.len()
            || whole_array
            || job.leases.iter().any(|lease| lease.task == task)
            || !taken.insert((node.name.clone(), gpu))
        {
            continue;
        }
        let share = match (flags[0], gpu % 3) {
            (true, 0) => Share::Mps(Milli(250)),
            (true, 1) => Share::TimeSlice(Milli(333)),
            (true, _) => Share::Fraction(Milli(i64::from(gpu) + 500)),
            (false, _) => Share::Whole,
        };
        job.leases.push(LeaseSnapshot {
            task,
            attempt: gpu,
            node: node.name.clone(),
            slices: vec![Slice { gpu, share }],
            price,
            since,
            billed: since,
            bound: flags[1],
            stopping: flags[2].then(|| StopSnapshot {
                cause: Cause::ALL[cause % Cause::ALL.len()],
                for_job: ids.get(cause).copied(),
                until: since,
            }),
        });
    }
}

fn offering() -> impl Strategy<Value = Offering> {
    let machine = (name(), 1u32..9, bytes(), of(cpu()), of(bytes()), name());
    (machine, micros(), span(), 0i64..9, of(time())).prop_map(
        |((instance, gpus, memory_per_gpu, cpu, memory, zone), price, boot, n, until)| Offering {
            instance,
            gpus,
            model: Name::new("L4-24GB"),
            memory_per_gpu,
            cpu,
            memory,
            zone,
            lifecycle: Lifecycle::Spot,
            price,
            boot,
            interruptions: n,
            unavailable_until: until,
        },
    )
}

fn pools() -> impl Strategy<Value = (Vec<PoolSpec>, Vec<ClaimSpec>)> {
    let pool = (vec(offering(), 0..3), labels(), 0u32..9);
    let claim = (0usize..3, name(), name(), of(1u64..5), time());
    (vec(pool, 0..3), vec(claim, 0..4)).prop_map(|(pools, claims)| {
        let pools: Vec<PoolSpec> = (0..)
            .zip(pools)
            .map(|(n, (offerings, labels, max))| PoolSpec {
                name: Name::from(format!("p{n}")),
                min: 0,
                max,
                offerings,
                labels,
            })
            .collect();
        let claims = (0..)
            .zip(claims)
            .filter(|(_, (pool, ..))| *pool < pools.len())
            .map(|(n, (pool, instance, zone, job, since))| ClaimSpec {
                name: Name::from(format!("c{n}")),
                pool: pools[pool].name.clone(),
                instance: pools[pool].offerings.first().map_or(instance, |o| o.instance.clone()),
                zone,
                lifecycle: Lifecycle::OnDemand,
                for_job: job.map(JobId::new),
                since,
            })
            .collect();
        (pools, claims)
    })
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let cluster = ((0usize..5).prop_flat_map(|n| (0..n).map(node).collect::<Vec<_>>()), pools());
    let queues = (1usize..5).prop_flat_map(|n| (0..n).map(queue).collect::<Vec<_>>());
    let jobs = (0u64..5).prop_flat_map(|n| (0..n).map(|n| job(n + 1)).collect::<Vec<_>>());
    let flags = any::<[bool; 3]>();
    let held = (0usize..9, 0usize..9, 0u32..8, flags, time(), micros(), 0usize..20);
    let models = (
        btree_map(name(), micros(), 0..3),
        btree_map(name(), milli(), 0..3),
        btree_map(name(), 0i64..900, 0..3),
    );
    let class =
        (-9i32..2_000, any::<bool>()).prop_map(|(value, across)| PriorityClass { value, across });
    let rules = (policy(), of(btree_map(name(), class, 0..4)), models);
    let topologies = btree_map(name(), vec(name(), 0..3), 0..3);
    let past = (
        vec((name(), name(), 0u32..9, milli()), 0..3),
        vec(time(), 0..3),
        vec((milli(), cpu(), bytes()), 0..3),
    );
    let fixed = (time(), any::<u32>(), topologies, 0u64..9);
    (fixed, rules, cluster, queues, (jobs, vec(held, 0..12)), past).prop_map(
        |(fixed, rules, (nodes, (pools, claims)), queues, (jobs, held), past)| {
            let (now, seq, topologies, claims_made) = fixed;
            let (policy, classes, (prices, speeds, watts)) = rules;
            let (history, moves, recent) = past;
            let first = jobs.first().map(JobSnapshot::id);
            let places: Vec<Place> = nodes
                .iter()
                .filter(|node| !node.spec.gpus.is_empty())
                .map(|node| Place {
                    task: 3,
                    node: node.spec.name.clone(),
                    slices: vec![Slice { gpu: 0, share: Share::Whole }],
                })
                .collect();
            let reservation = Reservation {
                name: Name::new("r"),
                owner: Name::new("ops"),
                nodes: places.iter().map(|place| place.node.clone()).collect(),
                from: now,
                to: now,
            };
            let mut snapshot = Snapshot {
                now,
                seq: u64::from(seq),
                topologies,
                policy,
                classes: classes.unwrap_or_else(berth_sim::world::default_classes),
                prices,
                speeds,
                watts,
                nodes,
                pools,
                claims,
                claims_made,
                queues,
                history: history
                    .into_iter()
                    .map(|(user, name, runs, ratio)| History { user, name, runs, ratio })
                    .collect(),
                jobs,
                outcomes: vec![(JobId::new(900).element(1), Name::new("x"), Outcome::Cancelled)],
                reservations: vec![reservation],
                promises: first
                    .map(|job| Promise { job, at: now, places, firm: seq % 2 == 0 })
                    .into_iter()
                    .collect(),
                moves,
                recent: recent
                    .into_iter()
                    .map(|(gpus, cpu, memory)| RecentAsk { gpus, cpu, memory })
                    .collect(),
                disruptions: (0..seq % 3).map(|n| (Name::from(format!("b{n}")), n)).collect(),
            };
            hold(&mut snapshot, held);
            snapshot
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_snapshot_survives_writing_and_reading(snapshot in snapshot()) {
        for text in [write(&snapshot), write_json(&snapshot)] {
            match World::parse(&text) {
                Ok(read) => prop_assert!(read.snapshot == snapshot, "{text}\n{:#?}\n{snapshot:#?}", read.snapshot),
                Err(error) => prop_assert!(false, "{error}\n{text}"),
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\PC|\n){0,200}") {
        let _ = World::parse(&text);
    }
}
