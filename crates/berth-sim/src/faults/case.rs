//! Small worlds from a seed, and the faults injected into them. Every part can be left out, so
//! that a case that fails can be made shorter.

use super::work::{self, Arrival};
use super::world::{self, between, one_of, within};
use crate::random::Rng;
use berth_model::{
    Event, JobChange, Micros, Name, NodeSpec, Policy, PoolSpec, QueueSpec, Reservation, ShareGpus,
    Span, Time,
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
    /// Starts that fail, and machines that cannot be had.
    pub failing: u64,
}

/// A fault that is injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The node dies, and comes back that much later.
    NodeFails { node: Name, back: Span },
    /// The node leaves with notice, and another of its name comes that much later.
    NodeLeaves { node: Name, notice: Span, back: Span },
    /// All spot machines of a zone are taken back at once. Fixed ones come again.
    SpotWave { zone: Name, notice: Span, back: Span },
    /// Drained by an operator, and opened again that much later.
    NodeDrained { node: Name, back: Span },
    /// The GPU breaks, and is repaired that much later.
    GpuFails { node: Name, gpu: u32, back: Span },
    /// An operator or a user asks for something.
    Request(Event),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub seed: u64,
    pub size: Size,
    pub start: Time,
    pub policy: Policy,
    pub prices: BTreeMap<Name, Micros>,
    /// Levels that groups can be bound to; none in some worlds.
    pub topologies: BTreeMap<Name, Vec<Name>>,
    pub nodes: Vec<NodeSpec>,
    pub pools: Vec<PoolSpec>,
    /// Parents before children.
    pub queues: Vec<QueueSpec>,
    pub jobs: Vec<Arrival>,
    pub faults: Vec<(Time, Fault)>,
    pub noise: Noise,
    /// Steps of the loop before which it crashes.
    pub crashes: BTreeSet<u64>,
    /// No fault is injected after that; what runs runs out.
    pub calm: Time,
}

impl Case {
    pub fn new(seed: u64, size: Size) -> Case {
        let start = Time(1_794_733_200_000);
        let mut rng = Rng::stream(seed, 1);
        let (nodes, jobs, faults, crashes) = match size {
            Size::Small => ((2, 4), (3, 10), (2, 10), (0, 6)),
            Size::Medium => ((5, 12), (15, 40), (10, 30), (2, 12)),
        };
        let day = Span::hours(6);
        let topologies = world::topologies(&mut rng);
        let nodes: Vec<NodeSpec> =
            (0..between(&mut rng, nodes.0, nodes.1)).map(|at| world::node(&mut rng, at)).collect();
        let pools = world::pools(&mut rng);
        let queues = world::queues(&mut rng);
        let choices = work::Choices::new(&queues, !topologies.is_empty());
        let arrivals: Vec<Arrival> = (1..=between(&mut rng, jobs.0, jobs.1))
            .map(|id| {
                let at = start + within(&mut Rng::stream(seed, id), day);
                work::arrival(&mut rng, id, at, &choices)
            })
            .collect();
        let faults = (0..between(&mut rng, faults.0, faults.1))
            .map(|_| {
                let at = start + within(&mut rng, day);
                (at, fault(&mut rng, at, &nodes, &queues, &arrivals))
            })
            .collect();
        let noise = Noise {
            lost: one_of(&mut rng, &[0, 50, 150]),
            late: one_of(&mut rng, &[0, 100, 400]),
            doubled: one_of(&mut rng, &[0, 100, 300]),
            failing: one_of(&mut rng, &[0, 30, 150]),
        };
        let crashes =
            (0..between(&mut rng, crashes.0, crashes.1)).map(|_| rng.below(500)).collect();
        let prices = world::prices(&mut rng);
        let policy = policy(&mut rng);
        let calm = start + day;
        Case {
            seed,
            size,
            start,
            policy,
            prices,
            topologies,
            nodes,
            pools,
            queues,
            jobs: arrivals,
            faults,
            noise,
            crashes,
            calm,
        }
    }
}

fn policy(rng: &mut Rng) -> Policy {
    Policy {
        grace: one_of(rng, &[Span::mins(5), Span::secs(30), Span::ZERO]),
        stale: one_of(rng, &[Span::secs(60), Span::mins(10), Span::ZERO]),
        time_sharing: rng.below(4) == 0,
        quantum: one_of(rng, &[Span::mins(30), Span::mins(5)]),
        reservations: between(rng, 0, 2) as u32,
        min_runtime: one_of(rng, &[Span::ZERO, Span::mins(5)]),
        idle_after: one_of(rng, &[Span::mins(10), Span::ZERO, Span::hours(1)]),
        share_gpus: one_of(rng, &[ShareGpus::Team, ShareGpus::Team, ShareGpus::Anyone]),
        ..Policy::default()
    }
}

fn fault(
    rng: &mut Rng,
    at: Time,
    nodes: &[NodeSpec],
    queues: &[QueueSpec],
    jobs: &[Arrival],
) -> Fault {
    let node = one_of(rng, nodes);
    let job = one_of(rng, jobs).spec.id;
    let back = Span::secs(one_of(rng, &[5, 120, 1_800, 7_200]));
    let notice = Span::secs(one_of(rng, &[0, 30, 120, 600]));
    let changed = |change| Fault::Request(Event::JobChanged { job, change });
    match rng.below(15) {
        0..=2 => Fault::NodeFails { node: node.name, back },
        3..=4 => Fault::NodeLeaves { node: node.name, notice, back },
        5 => Fault::NodeDrained { node: node.name, back },
        6..=7 => {
            Fault::GpuFails { gpu: rng.below(node.gpus.len() as u64) as u32, node: node.name, back }
        }
        8 => Fault::Request(Event::JobCancelled { job }),
        9 => changed(JobChange::Hold(true)),
        10 => changed(JobChange::Priority(one_of(rng, &[10, 100, 1_000]))),
        11..=12 => Fault::SpotWave { zone: world::zone(rng), notice, back },
        13 => reserved(rng, at, node.name, queues),
        _ => {
            let prices = world::prices(rng);
            let (speeds, watts) = (BTreeMap::new(), BTreeMap::new());
            Fault::Request(Event::ModelsSet { prices, speeds, watts })
        }
    }
}

/// An operator keeps a node, for nobody or for a queue, soon or at once.
fn reserved(rng: &mut Rng, at: Time, node: Name, queues: &[QueueSpec]) -> Fault {
    let owner = match rng.below(2) {
        0 => Name::new("operator"),
        _ => one_of(rng, queues).name,
    };
    let from = at + Span::mins(one_of(rng, &[0, 10, 60]));
    let to = from + Span::mins(one_of(rng, &[5, 60, 180]));
    let name = Name::from(format!("kept-{node}-{}", at.0));
    Fault::Request(Event::ReservationSet {
        reservation: Reservation { name, owner, nodes: vec![node], from, to },
    })
}
