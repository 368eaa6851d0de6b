//! Fragmentation: how much of what is free on a node is of no use to the requests one may expect.
//!
//! The measure is that of fragmentation gradient descent: for each request of the mix, the free
//! GPUs of a node that it could not use, weighted by how common it is. Integers throughout.

use crate::cluster::gpu::Mode;
use crate::cluster::node::Node;
use crate::state::State;
use berth_model::{Micros, Name};
use std::collections::BTreeMap;

/// One kind of request in the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestKind {
    /// Thousandths of one GPU, or whole GPUs.
    pub gpu: i64,
    pub cpu: i64,
    pub memory: i64,
    pub weight: i64,
}

/// The most common requests: those that wait and those that started of late.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mix {
    pub typical: Vec<RequestKind>,
}

/// Kinds of request beyond these make no difference to the choice but cost time.
const MAX_REQUEST_KINDS: usize = 100;

/// Where the logistic function reaches 51 to 99 hundredths, in millionths: ln(k / (100 - k)).
const LOGIT_MICRO: [i64; 49] = [
    40_005, 80_043, 120_144, 160_343, 200_671, 241_162, 281_851, 322_773, 363_965, 405_465,
    447_312, 489_548, 532_217, 575_364, 619_039, 663_294, 708_185, 753_772, 800_119, 847_298,
    895_384, 944_462, 994_623, 1_045_969, 1_098_612, 1_152_680, 1_208_311, 1_265_666, 1_324_925,
    1_386_294, 1_450_010, 1_516_347, 1_585_627, 1_658_228, 1_734_601, 1_815_290, 1_900_959,
    1_992_430, 2_090_741, 2_197_225, 2_313_635, 2_442_347, 2_586_689, 2_751_535, 2_944_439,
    3_178_054, 3_476_099, 3_891_820, 4_595_120,
];

impl Mix {
    pub fn of(state: &State) -> Mix {
        let mut seen: BTreeMap<(i64, i64, i64), i64> = BTreeMap::new();
        for ask in &state.recent {
            *seen.entry((ask.gpus.0, ask.cpu.0, ask.memory.0)).or_default() += 1;
        }
        for leaf_queue in state.queues.leaves() {
            for (shape, line) in &state.queues.get(leaf_queue).pending.shapes {
                let shape = &state.shapes[shape.at()];
                if !shape.possible {
                    continue;
                }
                for leaf in &shape.leaves {
                    let key = (leaf.gpu_milli(&state.cluster), leaf.need.cpu, leaf.need.memory);
                    *seen.entry(key).or_default() += i64::from(line.count);
                }
            }
        }
        let mut typical: Vec<RequestKind> = seen
            .into_iter()
            .map(|((gpu, cpu, memory), weight)| RequestKind { gpu, cpu, memory, weight })
            .collect();
        typical.sort_by_key(|kind| (-kind.weight, kind.gpu, kind.cpu, kind.memory));
        typical.truncate(MAX_REQUEST_KINDS);
        Mix { typical }
    }

    pub fn weight(&self) -> i64 {
        self.typical.iter().map(|kind| kind.weight).sum()
    }

    /// Hundredths, 0 to 99, of how good it is that so much less is stranded: the logistic function of
    /// it in GPUs. Differences too small to mean anything come out equal, so that what is left over
    /// can decide among them; the exact amount would scatter tasks over half-used nodes.
    pub fn gain(&self, freed: i128) -> i64 {
        let micro = freed * 1_000 / i128::from(self.weight().max(1));
        let steps = |size: i128, within: bool| {
            LOGIT_MICRO.partition_point(|at| {
                let at = i128::from(*at);
                at < size || (within && at == size)
            }) as i64
        };
        if freed >= 0 { 50 + steps(micro, true) } else { 49 - steps(-micro, false) }
    }

    /// Weighted thousandths of GPUs that the mix could not use.
    pub fn fragments(&self, free: &Free<'_>) -> i128 {
        let total: i64 = free.gpus.iter().sum();
        if total == 0 {
            return 0;
        }
        let whole: i64 = free.gpus.iter().filter(|milli| **milli == 1_000).sum();
        let mut sum: i128 = 0;
        for kind in &self.typical {
            let stranded = if kind.gpu == 0 || free.cpu < kind.cpu || free.memory < kind.memory {
                total
            } else if kind.gpu < 1_000 {
                let usable: i64 = free.gpus.iter().filter(|milli| **milli >= kind.gpu).sum();
                total - usable
            } else if whole < kind.gpu {
                total
            } else {
                total - whole
            };
            sum += i128::from(stranded) * i128::from(kind.weight);
        }
        sum
    }
}

/// What is free on a node.
pub(crate) struct Free<'a> {
    pub gpus: &'a [i64],
    pub cpu: i64,
    pub memory: i64,
}

/// Free thousandths of each healthy GPU that is not cut up, by MIG or by whoever hands it out.
pub(crate) fn free_gpus(node: &Node) -> Vec<i64> {
    node.gpus
        .iter()
        .map(|gpu| {
            let is_cut = gpu.mig.is_some() || gpu.unused() != Mode::Free;
            if gpu.healthy && !is_cut { 1_000 - gpu.used } else { 0 }
        })
        .collect()
}

/// Dollars an hour of idle GPUs that the mix cannot use, by node, for the ledger.
pub(crate) fn unusable(state: &State) -> BTreeMap<Name, Micros> {
    let mix = Mix::of(state);
    let weight = i128::from(mix.weight());
    let mut found = BTreeMap::new();
    if weight == 0 {
        return found;
    }
    for (_, node) in state.cluster.live() {
        // An empty node is idle, not fragmented.
        if node.tasks.is_empty() {
            continue;
        }
        let gpus = free_gpus(node);
        let free: i64 = gpus.iter().sum();
        if free == 0 {
            continue;
        }
        let stranded =
            mix.fragments(&Free { gpus: &gpus, cpu: node.cpu_free, memory: node.memory_free });
        let idle: i128 = gpus
            .iter()
            .zip(&node.gpu_prices)
            .map(|(milli, price)| i128::from(*milli) * i128::from(price.0) / 1_000)
            .sum();
        let amount = idle * stranded / (weight * i128::from(free));
        found.insert(node.spec.name.clone(), Micros(amount as i64));
    }
    found
}
