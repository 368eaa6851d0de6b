//! One list of pods under one contender.

use super::berth::Core;
use super::openb::Cluster;
use super::placer::Placer;
use crate::measure::{Clock, percentile};
use anyhow::Result;
use berth_sim::packing::{Bench, List, Policy, Progress, Ties};
use std::collections::BTreeMap;
use std::time::Duration;

/// Demands at which the cluster is looked at, in percent of its GPUs.
pub const LOOKS: [i64; 6] = [60, 80, 90, 100, 115, 130];

/// Who places the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contender {
    Rival(Policy, Ties),
    Berth(Ties),
}

impl Contender {
    pub fn name(self) -> String {
        let (name, ties) = match self {
            Contender::Rival(Policy::Random, _) => return Policy::Random.name().to_owned(),
            Contender::Rival(policy, ties) => (policy.name(), ties),
            Contender::Berth(ties) => ("Berth", ties),
        };
        match ties {
            Ties::ByName => name.to_owned(),
            Ties::Random => format!("{name}, random ties"),
        }
    }
}

/// The cluster at some demand, in percent of all GPUs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub allocated: f64,
    pub fragmented: f64,
}

#[derive(Debug, Clone)]
pub struct Outcome {
    pub looks: BTreeMap<i64, Sample>,
    pub progress: Progress,
    pub decision_p50: Duration,
    pub decision_p99: Duration,
}

struct Rival<'l> {
    bench: Bench,
    list: &'l List,
}

impl Placer for Rival<'_> {
    fn arrive(&mut self, at: usize) -> Result<Duration> {
        let clock = Clock::start(true);
        self.bench.arrive(&self.list.pods[at]);
        Ok(clock.elapsed())
    }

    fn progress(&self) -> Progress {
        *self.bench.progress()
    }

    fn fragmented_milli(&self) -> i64 {
        self.bench.fragmented_milli()
    }
}

pub fn run(who: Contender, cluster: &Cluster, list: &List, seed: u64) -> Result<Outcome> {
    let capacity = cluster.capacity_milli();
    match who {
        Contender::Rival(policy, ties) => {
            let bench = Bench::new(&cluster.nodes, &list.typical, policy, ties, seed);
            watch(&mut Rival { bench, list }, list, capacity)
        }
        Contender::Berth(ties) => watch(&mut Core::new(cluster, list, ties, seed)?, list, capacity),
    }
}

fn watch(placer: &mut dyn Placer, list: &List, capacity_milli: i64) -> Result<Outcome> {
    let mut looks = BTreeMap::new();
    let mut times = Vec::with_capacity(list.pods.len());
    let percent = |milli: i64| milli as f64 * 100.0 / capacity_milli as f64;
    for at in 0..list.pods.len() {
        times.push(placer.arrive(at)?);
        let progress = placer.progress();
        for demand in LOOKS {
            // The last pod may not quite get there: then the end is what is looked at.
            let reached = progress.arrived_milli * 100 >= demand * capacity_milli;
            if (reached || at + 1 == list.pods.len()) && !looks.contains_key(&demand) {
                let fragmented = percent(placer.fragmented_milli());
                let allocated = percent(progress.allocated_milli);
                looks.insert(demand, Sample { allocated, fragmented });
            }
        }
    }
    times.sort_unstable();
    Ok(Outcome {
        looks,
        progress: placer.progress(),
        decision_p50: percentile(&times, 500),
        decision_p99: percentile(&times, 990),
    })
}
