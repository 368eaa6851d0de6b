//! Small seeded cases against an exact solver: whether a gang fits at all, and how many GPUs of a
//! batch can be packed. The figures are printed at the end (`--nocapture` shows them).

#![allow(clippy::disallowed_macros, reason = "the figures are the point of these tests")]

use crate::support::drive::START;
use crate::support::world::{name, plain_group, plain_job, plain_node};
use berth_core::State;
use berth_model::*;
use good_lp::{
    Expression, Solution, SolverModel, Variable, constraint, microlp, variable, variables,
};
use std::collections::BTreeMap;

const CASES: u64 = 1_000;
const JOB: u64 = 500;

/// xorshift64*, from a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
        for _ in 0..4 {
            random.below(2);
        }
        random
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// What is free on one node.
#[derive(Debug, Clone)]
struct Room {
    node: Name,
    rack: Name,
    gpus: i64,
    /// In thousandths; `None` where CPU does not bind.
    cpu: Option<i64>,
}

/// Like tasks: how many, and what each of them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tasks {
    count: i64,
    gpus: i64,
    cpu: i64,
}

/// A cluster on which some GPUs are taken for good.
fn cluster(random: &mut Random, nodes: u64, with_cpu: bool) -> (Snapshot, Vec<Room>) {
    let mut snapshot = State::new().snapshot();
    snapshot.now = START;
    snapshot.topologies = BTreeMap::from([(Name::new("default"), vec![Name::new("rack")])]);
    let queue = QueueSpec::new("q");
    snapshot.queues = vec![QueueSnapshot {
        spec: queue,
        credits: 0,
        past_use: 0,
        spent: Micros::ZERO,
        daily: Vec::new(),
    }];
    let size = random.pick(&[8, 8, 4]);
    let mut rooms = Vec::new();
    for at in 0..nodes {
        let mut spec = plain_node(&name("n", at as usize), size, "H100-80GB");
        let rack = name("r", random.below(2) as usize);
        spec.labels.insert(Name::new("rack"), rack.clone());
        if with_cpu {
            spec.cpu = Some(random.pick(&[Cpu::cores(8), Cpu::cores(16)]));
        }
        let taken = random.pick(&[0, 0, 1, 2, 3, 5, 7]).min(size - 1);
        let room = Room {
            node: spec.name.clone(),
            rack,
            gpus: (size - taken) as i64,
            cpu: spec.cpu.map(|cpu| cpu.0),
        };
        rooms.push(room);
        if taken > 0 {
            snapshot.jobs.push(holder(at + 1, &spec.name, taken as u32));
        }
        let (since, data) = (START, BTreeMap::new());
        let node = NodeSnapshot { spec, idle_since: None, since, billed: since, data };
        snapshot.nodes.push(node);
    }
    (snapshot, rooms)
}

/// A job that holds GPUs and cannot be moved.
fn holder(id: u64, node: &Name, gpus: u32) -> JobSnapshot {
    let mut spec = plain_job(id, "q", vec![plain_group(1, GpuAsk::Whole { count: gpus })]);
    spec.preemptible = false;
    spec.submitted = START;
    let mut job = JobSnapshot::new(spec);
    job.started = Some(START);
    job.attempts.insert(0, 1);
    job.leases.push(LeaseSnapshot {
        task: 0,
        attempt: 0,
        node: node.clone(),
        slices: (0..gpus).map(|gpu| Slice { gpu, share: Share::Whole }).collect(),
        price: Micros::ZERO,
        since: START,
        billed: START,
        bound: true,
        stopping: None,
    });
    job
}

fn group_of(tasks: Tasks) -> GroupSpec {
    let mut group = plain_group(tasks.count as u32, GpuAsk::Whole { count: tasks.gpus as u32 });
    group.cpu = Cpu(tasks.cpu);
    group
}

/// Whether all the tasks fit these nodes together, exactly.
fn fit_together(rooms: &[&Room], groups: &[Tasks]) -> bool {
    let mut vars = variables!();
    let take: Vec<Vec<Variable>> = groups
        .iter()
        .map(|group| {
            let most = group.count as i32;
            rooms.iter().map(|_| vars.add(variable().integer().min(0).max(most))).collect()
        })
        .collect();
    let nothing: Expression = 0.into();
    let mut model = vars.minimise(nothing).using(microlp);
    for (at, group) in groups.iter().enumerate() {
        let placed: Expression = take[at].iter().sum();
        model = model.with(constraint!(placed == group.count as i32));
    }
    for (on, room) in rooms.iter().enumerate() {
        let sum = |each: fn(&Tasks) -> i64| -> Expression {
            groups.iter().zip(&take).map(|(group, take)| each(group) as i32 * take[on]).sum()
        };
        model = model.with(constraint!(sum(|group| group.gpus) <= room.gpus as i32));
        if let Some(cpu) = room.cpu {
            model = model.with(constraint!(sum(|group| group.cpu) <= cpu as i32));
        }
    }
    model.solve().is_ok()
}

/// The nodes that a gang may lie on together: all of them, or those of one rack.
fn domains(rooms: &[Room], racks: bool) -> Vec<Vec<&Room>> {
    if !racks {
        return vec![rooms.iter().collect()];
    }
    let mut found: BTreeMap<&Name, Vec<&Room>> = BTreeMap::new();
    for room in rooms {
        found.entry(&room.rack).or_default().push(room);
    }
    found.into_values().collect()
}

/// Where the plan starts the tasks of a job: node by task.
fn starts(plan: &berth_core::Plan, job: u64) -> BTreeMap<u32, (Name, usize)> {
    plan.decisions()
        .filter_map(|decision| match decision {
            Decision::Start { lease, node, slices, .. } if lease.job.number == job => {
                Some((lease.task, (node.clone(), slices.len())))
            }
            _ => None,
        })
        .collect()
}

/// What a start got wrong, if anything.
fn unsound(
    rooms: &[Room],
    groups: &[Tasks],
    racks: bool,
    starts: &BTreeMap<u32, (Name, usize)>,
) -> Option<String> {
    let wanted: i64 = groups.iter().map(|group| group.count).sum();
    if starts.len() as i64 != wanted {
        return Some(format!("{} of {wanted} tasks start", starts.len()));
    }
    let mut used: BTreeMap<&Name, (i64, i64)> = BTreeMap::new();
    for (task, (node, gpus)) in starts {
        let mut first = 0;
        let group = groups.iter().find(|group| {
            first += group.count;
            i64::from(*task) < first
        })?;
        if *gpus as i64 != group.gpus {
            return Some(format!("task {task} gets {gpus} GPUs"));
        }
        let sum = used.entry(node).or_default();
        sum.0 += group.gpus;
        sum.1 += group.cpu;
    }
    for (node, (gpus, cpu)) in &used {
        let room = rooms.iter().find(|room| room.node == **node)?;
        if *gpus > room.gpus || room.cpu.is_some_and(|has| *cpu > has) {
            return Some(format!("{node} is overfull"));
        }
    }
    let rack = |node: &Name| rooms.iter().find(|room| room.node == *node).map(|room| &room.rack);
    let mut in_racks = used.keys().map(|node| rack(node));
    let first = in_racks.next();
    if racks && !in_racks.all(|rack| Some(rack) == first) {
        return Some("it lies in two racks".to_owned());
    }
    None
}

#[test]
fn a_gang_starts_exactly_when_it_fits() {
    let (mut fits, mut refused) = (0, 0);
    for seed in 0..CASES {
        let random = &mut Random::new(seed);
        let with_cpu = random.below(3) == 0;
        let nodes = 2 + random.below(4);
        let (mut snapshot, rooms) = cluster(random, nodes, with_cpu);
        let racks = random.below(2) == 0;
        let kinds = random.pick(&[1, 1, 2, 3]);
        let groups: Vec<Tasks> = (0..kinds)
            .map(|_| Tasks {
                count: 1 + random.below(if kinds == 1 { 8 } else { 4 }) as i64,
                gpus: random.pick(&[1, 2, 3, 4, 8, 1, 2, 5]),
                cpu: if with_cpu { random.pick(&[0, 1_000, 2_500, 4_000]) } else { 0 },
            })
            .collect();
        let mut specs: Vec<GroupSpec> = groups.iter().map(|group| group_of(*group)).collect();
        let within = racks
            .then(|| TopologyAsk { required: Some(Name::new("rack")), ..TopologyAsk::default() });
        if kinds == 1 {
            specs[0].topology = within;
        } else {
            let mut outer = plain_group(0, GpuAsk::None);
            outer.min = specs.len() as u32;
            outer.groups = specs;
            outer.topology = within;
            specs = vec![outer];
        }
        let mut job = plain_job(JOB, "q", specs);
        job.submitted = START;
        snapshot.jobs.push(JobSnapshot::new(job));
        let plan = State::load(&snapshot).expect("it makes sense").plan();
        let starts = starts(&plan, JOB);
        let all = domains(&rooms, racks);
        let possible = all.iter().any(|domain| fit_together(domain, &groups));
        let told = || format!("seed {seed}: {groups:?} racks {racks} on {rooms:?}: {plan:?}");
        if starts.is_empty() {
            assert!(!possible, "a false refusal, {}", told());
            refused += 1;
        } else {
            assert!(possible, "a false acceptance, {}", told());
            assert_eq!(unsound(&rooms, &groups, racks, &starts), None, "{}", told());
            fits += 1;
        }
    }
    println!("{CASES} gangs: {fits} fit, {refused} do not, no false refusal, no false acceptance");
}

/// The most GPUs of these jobs that fit, exactly. `of` says how many jobs of each kind there are.
fn packed(rooms: &[Room], kinds: &BTreeMap<Tasks, i64>) -> i64 {
    let mut vars = variables!();
    let chosen: Vec<Variable> =
        kinds.values().map(|of| vars.add(variable().integer().min(0).max(*of as i32))).collect();
    let take: Vec<Vec<Variable>> = kinds
        .iter()
        .map(|(kind, of)| {
            let most = |room: &Room| (room.gpus / kind.gpus).min(kind.count * of) as i32;
            let each = rooms.iter().map(|room| variable().integer().min(0).max(most(room)));
            each.map(|definition| vars.add(definition)).collect()
        })
        .collect();
    let total: Expression = kinds
        .keys()
        .zip(&chosen)
        .map(|(kind, chosen)| (kind.gpus * kind.count) as i32 * *chosen)
        .sum();
    let mut model = vars.maximise(total.clone()).using(microlp);
    for (at, kind) in kinds.keys().enumerate() {
        let placed: Expression = take[at].iter().sum();
        let asked: Expression = kind.count as i32 * chosen[at];
        model = model.with(constraint!(placed == asked));
    }
    for (on, room) in rooms.iter().enumerate() {
        let used: Expression =
            kinds.keys().zip(&take).map(|(kind, take)| kind.gpus as i32 * take[on]).sum();
        model = model.with(constraint!(used <= room.gpus as i32));
    }
    let solution = model.solve().expect("nothing at all is a solution");
    solution.eval(total).round() as i64
}

/// GPUs placed by an exact packer that goes through the jobs in the order given and takes each
/// that fits together with those it has taken.
fn packed_in_order(rooms: &[Room], jobs: &[Tasks]) -> i64 {
    let rooms: Vec<&Room> = rooms.iter().collect();
    let free: i64 = rooms.iter().map(|room| room.gpus).sum();
    let (mut taken, mut sum): (Vec<Tasks>, i64) = (Vec::new(), 0);
    for job in jobs {
        let asks = job.count * job.gpus;
        if sum + asks > free {
            continue;
        }
        taken.push(*job);
        if fit_together(&rooms, &taken) {
            sum += asks;
        } else {
            taken.pop();
        }
    }
    sum
}

#[test]
fn a_batch_is_packed_within_a_percent_of_an_exact_packer_in_the_same_order() {
    // Whose turn it is comes before how much is packed: a job is not left out because those behind
    // it would use more. So the packer goes through the jobs in the same order; the optimum over
    // all sets of jobs, which nobody may take, is shown beside it.
    // In millionths.
    let (mut gap, mut in_order, mut worst, mut optimal) = (0, 0, 0, 0);
    for seed in 0..CASES {
        let random = &mut Random::new(seed + 77_777);
        let nodes = 3 + random.below(3);
        let (mut snapshot, rooms) = cluster(random, nodes, false);
        snapshot.policy.passes.remove(&Pass::Backfill);
        snapshot.policy.order = QueueOrder::Fifo;
        let jobs: Vec<Tasks> = (0..6 + random.below(7))
            .map(|_| {
                // Sizes as in the Philly trace: mostly one GPU, then 8, 4 and 2, few gangs.
                let (count, gpus) = random.pick(&[
                    (1, 1),
                    (1, 1),
                    (1, 1),
                    (1, 1),
                    (1, 2),
                    (1, 4),
                    (1, 8),
                    (2, 8),
                    (2, 4),
                    (4, 2),
                    (3, 3),
                ]);
                Tasks { count, gpus, cpu: 0 }
            })
            .collect();
        for (at, job) in jobs.iter().enumerate() {
            let mut spec = plain_job(JOB + at as u64, "q", vec![group_of(*job)]);
            spec.submitted = START;
            spec.time_limit = Some(Span::hours(1));
            snapshot.jobs.push(JobSnapshot::new(spec));
        }
        let plan = State::load(&snapshot).expect("it makes sense").plan();
        let got: i64 = (0..jobs.len() as u64)
            .flat_map(|at| starts(&plan, JOB + at).into_values())
            .map(|(_, gpus)| gpus as i64)
            .sum();
        let mut kinds: BTreeMap<Tasks, i64> = BTreeMap::new();
        for job in &jobs {
            *kinds.entry(*job).or_default() += 1;
        }
        let best = packed(&rooms, &kinds);
        let ordered = packed_in_order(&rooms, &jobs);
        assert!(got <= best, "seed {seed}: {got} GPUs of at most {best}");
        let lost = |of: i64| (of - got).max(0) * 1_000_000 / of.max(1);
        gap += lost(best);
        in_order += lost(ordered);
        worst = worst.max(lost(best));
        optimal += u64::from(got == best);
    }
    let mean = |sum: i64| sum / CASES as i64;
    let percent = |ppm: i64| format!("{}.{:03} %", ppm / 10_000, ppm % 10_000 / 10);
    println!(
        "{CASES} batches: mean gap {} against the optimum over all sets of jobs (worst {}, \
         {optimal} optimal), {} against an exact packer in the same order",
        percent(mean(gap)),
        percent(worst),
        percent(mean(in_order))
    );
    assert!(mean(in_order) <= 10_000);
}
