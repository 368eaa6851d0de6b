//! Small worlds from a seed, and what befalls them. Every part can be left out, so that a tale
//! that fails can be made shorter.

use crate::chance::Chance;
use berth_model::{
    Amount, ArraySpec, Bytes, Event, GpuAsk, GpuQuota, GpuSpec, GroupSpec, Health, JobChange,
    JobId, JobSpec, LabelAsk, Lifecycle, Micros, Milli, Name, NodeSpec, NodeState, Policy,
    QueueSpec, Quota, Span, Time,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    #[default]
    Small,
    Medium,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Size::Small => "small",
            Size::Medium => "medium",
        })
    }
}

/// How often, in a thousand, something happens to a report or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise {
    pub lost: u64,
    pub late: u64,
    pub doubled: u64,
    /// Starts that fail.
    pub failing: u64,
}

/// A job that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub at: Time,
    pub spec: JobSpec,
    pub runs: Span,
    /// Its tasks fail at their end rather than end well.
    pub fails: bool,
}

/// Something that befalls the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blow {
    /// The node dies, and comes back that much later.
    Dies { node: Name, back: Span },
    /// The node leaves with notice, and another of its name comes that much later.
    Leaves { node: Name, notice: Span, back: Span },
    /// Drained by an operator, and opened again that much later.
    Drained { node: Name, back: Span },
    /// The GPU breaks, and is repaired that much later.
    Breaks { node: Name, gpu: u32, back: Span },
    /// An operator's or user's word.
    Said(Event),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tale {
    pub seed: u64,
    pub size: Size,
    pub start: Time,
    pub policy: Policy,
    pub prices: BTreeMap<Name, Micros>,
    pub nodes: Vec<NodeSpec>,
    pub queues: Vec<QueueSpec>,
    pub jobs: Vec<Arrival>,
    pub blows: Vec<(Time, Blow)>,
    pub noise: Noise,
    /// Steps of the loop before which it crashes.
    pub crashes: BTreeSet<u64>,
    /// Nothing befalls the cluster after that; what runs runs out.
    pub calm: Time,
}

const MODELS: [&str; 2] = ["H100-80GB", "A100-40GB"];

fn one_of<T: Clone>(chance: &mut Chance, among: &[T]) -> T {
    among[chance.below(among.len() as u64) as usize].clone()
}

fn between(chance: &mut Chance, from: u64, to: u64) -> u64 {
    from + chance.below(to - from + 1)
}

fn within(chance: &mut Chance, span: Span) -> Span {
    Span(chance.below(span.0.max(1) as u64) as i64)
}

impl Tale {
    pub fn new(seed: u64, size: Size) -> Tale {
        let start = Time(1_794_733_200_000);
        let mut c = Chance::of(seed, 1);
        let (nodes, jobs, blows, crashes) = match size {
            Size::Small => ((2, 4), (3, 10), (2, 10), (0, 6)),
            Size::Medium => ((5, 12), (15, 40), (10, 30), (2, 12)),
        };
        let day = Span::hours(6);
        let nodes: Vec<NodeSpec> =
            (0..between(&mut c, nodes.0, nodes.1)).map(|at| node(&mut c, at)).collect();
        let queues: Vec<QueueSpec> =
            (0..between(&mut c, 1, 3)).map(|at| queue(&mut c, at)).collect();
        let arrivals: Vec<Arrival> = (1..=between(&mut c, jobs.0, jobs.1))
            .map(|id| arrival(&mut c, id, start + within(&mut Chance::of(seed, id), day), &queues))
            .collect();
        let blows = (0..between(&mut c, blows.0, blows.1))
            .map(|_| (start + within(&mut c, day), blow(&mut c, &nodes, &arrivals)))
            .collect();
        let noise = Noise {
            lost: one_of(&mut c, &[0, 50, 150]),
            late: one_of(&mut c, &[0, 100, 400]),
            doubled: one_of(&mut c, &[0, 100, 300]),
            failing: one_of(&mut c, &[0, 30, 150]),
        };
        let crashes = (0..between(&mut c, crashes.0, crashes.1)).map(|_| c.below(500)).collect();
        let prices = MODELS.iter().map(|model| (Name::new(model), price(&mut c))).collect();
        let policy = policy(&mut c);
        let calm = start + day;
        Tale {
            seed,
            size,
            start,
            policy,
            prices,
            nodes,
            queues,
            jobs: arrivals,
            blows,
            noise,
            crashes,
            calm,
        }
    }
}

fn price(c: &mut Chance) -> Micros {
    one_of(c, &[Micros(2_500_000), Micros(1_299_709), Micros(7), Micros(0), Micros(333_333)])
}

fn policy(c: &mut Chance) -> Policy {
    Policy {
        grace: one_of(c, &[Span::mins(5), Span::secs(30), Span::ZERO]),
        stale: one_of(c, &[Span::secs(60), Span::mins(10), Span::ZERO]),
        time_sharing: c.below(4) == 0,
        quantum: one_of(c, &[Span::mins(30), Span::mins(5)]),
        reservations: between(c, 0, 2) as u32,
        min_runtime: one_of(c, &[Span::ZERO, Span::mins(5)]),
        ..Policy::default()
    }
}

fn node(c: &mut Chance, at: u64) -> NodeSpec {
    let model = Name::new(one_of(c, &MODELS));
    let memory = berth_model::catalog(&model).map_or(Bytes::gb(40), |info| info.memory);
    let gpus = one_of(c, &[2usize, 4, 4, 8]);
    let gpu = GpuSpec { model, memory, health: Health::Ok, mig: None };
    // A price of the node's own is one that its GPUs share without a remainder.
    let own = (c.below(3) == 0).then(|| Micros(price(c).0 * gpus as i64));
    NodeSpec {
        name: Name::from(format!("n{at}")),
        gpus: vec![gpu; gpus],
        cpu: None,
        memory: None,
        labels: BTreeMap::new(),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: own,
        pool: None,
        lifecycle: if c.below(3) == 0 { Lifecycle::Spot } else { Lifecycle::OnDemand },
    }
}

fn queue(c: &mut Chance, at: u64) -> QueueSpec {
    let of = Amount::Of(Milli::whole(between(c, 0, 8) as i64));
    let quota =
        Quota { gpu: GpuQuota { total: Some(of), ..GpuQuota::default() }, ..Quota::default() };
    QueueSpec { quota, ..QueueSpec::new(&format!("q{at}")) }
}

fn ask(c: &mut Chance) -> GpuAsk {
    match c.below(8) {
        0 => GpuAsk::Fraction { milli: Milli(one_of(c, &[500, 250, 300])), count: 1 },
        1 => GpuAsk::Mps { percent: one_of(c, &[25, 60]), count: 1 },
        2 => GpuAsk::TimeSlice { of: one_of(c, &[2, 3]), count: 1 },
        _ => GpuAsk::Whole { count: one_of(c, &[1, 1, 2, 4]) },
    }
}

fn group(c: &mut Chance, name: &str) -> GroupSpec {
    let count = one_of(c, &[1, 1, 2, 3, 4]);
    let min = if c.below(3) == 0 { between(c, 1, u64::from(count)) as u32 } else { count };
    GroupSpec {
        name: Name::new(name),
        count,
        min,
        groups: Vec::new(),
        gpus: ask(c),
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Default::default(),
        memory: Bytes::ZERO,
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
    }
}

fn arrival(c: &mut Chance, id: u64, at: Time, queues: &[QueueSpec]) -> Arrival {
    let mut groups = vec![group(c, "workers")];
    if c.below(5) == 0 {
        groups.push(group(c, "servers"));
    }
    let array = (c.below(6) == 0).then(|| ArraySpec {
        elements: (0..between(c, 2, 4) as u32).collect(),
        at_most: one_of(c, &[None, Some(1), Some(2)]),
    });
    let runs = Span::secs(one_of(c, &[60, 600, 1_800, 3_600, 7_200]));
    let spec = JobSpec {
        id: JobId::new(id),
        name: Name::from(format!("j{id}")),
        queue: one_of(c, queues).name,
        user: Name::new(one_of(c, &["ada", "bob"])),
        project: Name::new("p"),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: one_of(c, &[50, 50, 100]),
        preemptible: c.below(5) != 0,
        lifecycle: None,
        submitted: at,
        time_limit: Some(runs + one_of(c, &[Span::hours(1), Span::mins(1), Span::secs(-30)])),
        deadline: None,
        restart_cost: None,
        grace: None,
        min_runtime: None,
        preempt_after: None,
        array,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups,
    };
    Arrival { at, spec, runs, fails: c.below(8) == 0 }
}

fn blow(c: &mut Chance, nodes: &[NodeSpec], jobs: &[Arrival]) -> Blow {
    let node = one_of(c, nodes);
    let job = one_of(c, jobs).spec.id;
    let back = Span::secs(one_of(c, &[5, 120, 1_800, 7_200]));
    let changed = |change| Blow::Said(Event::JobChanged { job, change });
    match c.below(12) {
        0..=2 => Blow::Dies { node: node.name, back },
        3..=4 => {
            let notice = Span::secs(one_of(c, &[0, 30, 120, 600]));
            Blow::Leaves { node: node.name, notice, back }
        }
        5 => Blow::Drained { node: node.name, back },
        6..=7 => {
            Blow::Breaks { gpu: c.below(node.gpus.len() as u64) as u32, node: node.name, back }
        }
        8 => Blow::Said(Event::JobCancelled { job }),
        9 => changed(JobChange::Hold(true)),
        10 => changed(JobChange::Priority(one_of(c, &[10, 100, 1_000]))),
        _ => {
            let prices = MODELS.iter().map(|model| (Name::new(model), price(c))).collect();
            let (speeds, watts) = (BTreeMap::new(), BTreeMap::new());
            Blow::Said(Event::ModelsSet { prices, speeds, watts })
        }
    }
}
