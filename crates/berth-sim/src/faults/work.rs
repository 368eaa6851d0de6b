//! The made-up jobs of a case.

use super::world::{MODELS, between, one_of};
use crate::random::Rng;
use berth_model::{
    After, ArraySpec, Bytes, Dependency, GpuAsk, GroupSpec, JobId, JobRef, JobSpec, LabelAsk,
    Lifecycle, Milli, ModelAsk, Name, QueueSpec, Span, Spread, Time, TopologyAsk,
};
use std::collections::{BTreeMap, BTreeSet};

/// A job that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub at: Time,
    pub spec: JobSpec,
    pub runs: Span,
    /// Its tasks fail at their end rather than end well.
    pub fails: bool,
}

/// What jobs can ask for in this world.
pub(super) struct Choices {
    /// Queues that take jobs.
    leaves: Vec<Name>,
    /// Whether there are racks and zones to be bound to.
    racks: bool,
}

impl Choices {
    pub fn new(queues: &[QueueSpec], racks: bool) -> Choices {
        let above = |name: &Name| queues.iter().any(|queue| queue.parent.as_ref() == Some(name));
        let leaves = queues.iter().map(|queue| queue.name.clone()).filter(|name| !above(name));
        Choices { leaves: leaves.collect(), racks }
    }
}

/// A MIG profile with the model that has it: asked for without its model, one of them would be
/// refused while no node of that model is there.
const PROFILES: [(&str, &str); 5] = [
    ("A100-40GB", "1g.5gb"),
    ("A100-40GB", "3g.20gb"),
    ("H100-80GB", "1g.10gb"),
    ("H100-80GB", "2g.20gb"),
    ("H100-80GB", "4g.40gb"),
];

fn ask(rng: &mut Rng) -> (GpuAsk, Vec<ModelAsk>) {
    let only = |model: &str| vec![ModelAsk { model: Name::new(model), speed: Milli::ONE }];
    let asked = match rng.below(10) {
        0 => GpuAsk::Fraction { milli: Milli(one_of(rng, &[500, 250, 300])), count: 1 },
        1 => GpuAsk::Mps { percent: one_of(rng, &[25, 60]), count: 1 },
        2 => GpuAsk::TimeSlice { of: one_of(rng, &[2, 3]), count: 1 },
        3 => {
            let (model, profile) = one_of(rng, &PROFILES);
            let count = one_of(rng, &[1, 1, 2]);
            return (GpuAsk::Mig { profile: Name::new(profile), count }, only(model));
        }
        4 => GpuAsk::Memory { bytes: Bytes::gb(one_of(rng, &[10, 24])), count: 1 },
        _ => GpuAsk::Whole { count: one_of(rng, &[1, 1, 2, 4]) },
    };
    let models = if rng.below(6) == 0 { only(one_of(rng, &MODELS)) } else { Vec::new() };
    (asked, models)
}

fn topology(rng: &mut Rng, choices: &Choices) -> Option<TopologyAsk> {
    if rng.below(3) != 0 {
        return None;
    }
    let levels: &[&str] = if choices.racks { &["rack", "rack", "zone", "node"] } else { &["node"] };
    let required = Some(Name::new(one_of(rng, levels)));
    Some(TopologyAsk { required, ..TopologyAsk::default() })
}

fn spread(rng: &mut Rng, choices: &Choices) -> Option<Spread> {
    if rng.below(8) != 0 {
        return None;
    }
    let levels: &[&str] = if choices.racks { &["rack", "node"] } else { &["node"] };
    Some(Spread { over: Name::new(one_of(rng, levels)), at_most: between(rng, 1, 2) as u32 })
}

fn group(rng: &mut Rng, name: &str, choices: &Choices) -> GroupSpec {
    let count = one_of(rng, &[1, 1, 2, 3, 4]);
    let min = if rng.below(3) == 0 { between(rng, 1, u64::from(count)) as u32 } else { count };
    let (gpus, models) = ask(rng);
    GroupSpec {
        name: Name::new(name),
        count,
        min,
        groups: Vec::new(),
        gpus,
        models,
        min_gpu_memory: None,
        cpu: Default::default(),
        memory: Bytes::ZERO,
        topology: topology(rng, choices),
        spread: spread(rng, choices),
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

/// Like groups side by side, of which not all are needed.
fn nested(rng: &mut Rng, choices: &Choices) -> GroupSpec {
    let child = group(rng, "replica", choices);
    let above = GroupSpec { name: Name::new("replicas"), ..group(rng, "replicas", choices) };
    GroupSpec {
        count: 0,
        min: between(rng, 1, 2) as u32,
        groups: vec![child; 2],
        gpus: GpuAsk::None,
        models: Vec::new(),
        spread: None,
        ..above
    }
}

fn groups(rng: &mut Rng, choices: &Choices) -> Vec<GroupSpec> {
    if rng.below(12) == 0 {
        return vec![nested(rng, choices)];
    }
    let mut groups = vec![group(rng, "workers", choices)];
    if rng.below(5) == 0 {
        groups.push(group(rng, "servers", choices));
    }
    groups
}

/// Jobs come after ones with smaller numbers, which may not be there yet or never come.
fn after(rng: &mut Rng, id: u64) -> Vec<Dependency> {
    if id == 1 || rng.below(4) != 0 {
        return Vec::new();
    }
    let on = between(rng, 1, id - 1);
    let job = match rng.below(3) {
        0 => JobRef::Name(Name::from(format!("j{on}"))),
        _ => JobRef::Id(JobId::new(on)),
    };
    let after = one_of(rng, &[After::Ok, After::Ok, After::Any, After::NotOk, After::Start]);
    vec![Dependency { after, job }]
}

pub(super) fn arrival(rng: &mut Rng, id: u64, at: Time, choices: &Choices) -> Arrival {
    let groups = groups(rng, choices);
    let array = (rng.below(6) == 0).then(|| ArraySpec {
        elements: (0..between(rng, 2, 4) as u32).collect(),
        at_most: one_of(rng, &[None, Some(1), Some(2)]),
    });
    let runs = Span::secs(one_of(rng, &[60, 600, 1_800, 3_600, 7_200]));
    let deadline = (rng.below(5) == 0).then(|| at + runs + Span::mins(one_of(rng, &[5, 60, 240])));
    let begin = (rng.below(8) == 0).then(|| at + Span::mins(one_of(rng, &[5, 60])));
    let lifecycle = one_of(rng, &[None, None, None, None, Some(Lifecycle::OnDemand)]);
    let spec = JobSpec {
        id: JobId::new(id),
        name: Name::from(format!("j{id}")),
        queue: one_of(rng, &choices.leaves),
        user: Name::new(one_of(rng, &["ada", "bob"])),
        project: Name::new("p"),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: one_of(rng, &[10, 50, 50, 50, 100, 1_000]),
        preemptible: rng.below(5) != 0,
        lifecycle,
        submitted: at,
        time_limit: Some(runs + one_of(rng, &[Span::hours(1), Span::mins(1), Span::secs(-30)])),
        deadline,
        restart_cost: None,
        grace: None,
        min_runtime: None,
        preempt_after: None,
        array,
        after: after(rng, id),
        singleton: false,
        begin,
        hold: false,
        groups,
        data: BTreeSet::new(),
    };
    Arrival { at, spec, runs, fails: rng.below(8) == 0 }
}
