//! What a policy makes of one pod on one node: higher is better.
//!
//! The published scores are fractions cut to whole numbers; the cuts are taken here on integers, so
//! that they fall the same on every machine.

use super::node::{Node, Pod, Size};
use super::policy::Policy;
use super::typical::Typical;

/// The score, and the GPU a share would lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scored {
    pub score: i64,
    pub on: usize,
}

/// What the published scores measure CPU and GPUs against: the largest node.
const MOST_CPU: i64 = 128_000;
const MOST_GPU: i64 = 8_000;

/// The best score a node can have.
const TOP: i64 = 100;

/// For scores of 51 to 99 hundredths: the millionths at which the logistic function reaches them,
/// ln(k / (100 - k)). Below 50 it is the same with the sign turned.
const LOGIT_MICRO: [i64; 49] = [
    40_005, 80_043, 120_144, 160_343, 200_671, 241_162, 281_851, 322_773, 363_965, 405_465,
    447_312, 489_548, 532_217, 575_364, 619_039, 663_294, 708_185, 753_772, 800_119, 847_298,
    895_384, 944_462, 994_623, 1_045_969, 1_098_612, 1_152_680, 1_208_311, 1_265_666, 1_324_925,
    1_386_294, 1_450_010, 1_516_347, 1_585_627, 1_658_228, 1_734_601, 1_815_290, 1_900_959,
    1_992_430, 2_090_741, 2_197_225, 2_313_635, 2_442_347, 2_586_689, 2_751_535, 2_944_439,
    3_178_054, 3_476_099, 3_891_820, 4_595_120,
];

/// Where the logistic function reaches `score` hundredths, 1 to 99.
fn logit_micro(score: i64) -> i64 {
    match score {
        50 => 0,
        51.. => LOGIT_MICRO[score as usize - 51],
        _ => -LOGIT_MICRO[49 - score as usize],
    }
}

/// The logistic function of `gain` whole GPUs, as a whole number of hundredths. `gain` is in
/// thousandths by weight.
fn logistic(gain: i64, weight: i64) -> i64 {
    let reaches = |score: i64| {
        i128::from(gain) * 1_000 >= i128::from(logit_micro(score)) * i128::from(weight.max(1))
    };
    let (mut low, mut high) = (0, TOP);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if reaches(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The score of a node where the pod fits. `Random` has none: every node is as good.
pub(super) fn score(policy: Policy, typical: &Typical, node: &Node, pod: &Pod) -> Scored {
    let on = if pod.is_share() { node.tightest(pod) } else { 0 };
    let score = match policy {
        Policy::Random => 0,
        Policy::DotProd => dot_product(node, pod),
        Policy::GpuClustering => clustering(node, pod),
        Policy::GpuPacking => packing(node, pod),
        Policy::BestFit => best_fit(node, pod),
        Policy::Fgd => {
            return descent(typical, node, pod, |change| logistic(-change, typical.weight));
        }
        Policy::FgdExact => return descent(typical, node, pod, |change| -change),
    };
    Scored { score, on }
}

fn dot_product(node: &Node, pod: &Pod) -> i64 {
    let (cpu, gpu) = (i128::from(MOST_CPU).pow(2), i128::from(MOST_GPU).pow(2));
    let product = i128::from(node.cpu_milli) * i128::from(pod.cpu_milli) * gpu
        + i128::from(node.free_milli()) * i128::from(pod.total_milli()) * cpu;
    let one = 2 * cpu * gpu;
    (((one - product) * i128::from(TOP)) / one) as i64
}

fn best_fit(node: &Node, pod: &Pod) -> i64 {
    let left = (node.cpu_milli - pod.cpu_milli) * MOST_GPU
        + (node.free_milli() - pod.total_milli()) * MOST_CPU;
    let one = 2 * MOST_CPU * MOST_GPU;
    (one - left) * TOP / one
}

/// A quarter of the range each: nodes with pods of this size only, with such pods among others,
/// without pods, and with others only; in each the fuller node first.
fn clustering(node: &Node, pod: &Pod) -> i64 {
    if pod.gpus == 0 {
        return 0;
    }
    let sizes = Size::ALL.iter().filter(|size| **size != Size::NoGpu);
    let kinds = sizes.filter(|size| node.by_size[**size as usize] > 0).count();
    let alike = node.by_size[pod.size() as usize] > 0;
    let quarter = TOP / 4;
    let base = match (alike, kinds) {
        (true, 1) => 3 * quarter,
        (true, _) => 2 * quarter,
        (false, 0) => quarter,
        (false, _) => 0,
    };
    base + quarter * (MOST_GPU - node.free_milli()) / MOST_GPU
}

fn packing(node: &Node, pod: &Pod) -> i64 {
    if pod.gpus == 0 {
        return 0;
    }
    let idle = node.free.iter().filter(|milli| **milli == super::WHOLE).count();
    if idle == node.free.len() {
        return TOP / 3 - idle as i64;
    }
    let mut roomy: Vec<i64> = node.roomy(pod).map(|at| node.free[at]).collect();
    roomy.sort_unstable();
    roomy.truncate(pod.gpus as usize);
    let broken = roomy.iter().filter(|milli| **milli == super::WHOLE).count() as i64;
    if broken > 0 {
        return (TOP / 2 - broken).max(TOP / 3);
    }
    let free_percent: i64 = roomy.iter().map(|milli| milli * 100 / super::WHOLE).sum();
    (TOP - free_percent / 10).max(TOP / 2)
}

/// Every GPU is a choice of its own for a share; of equals the first.
fn descent(typical: &Typical, node: &Node, pod: &Pod, score: impl Fn(i64) -> i64) -> Scored {
    if !pod.is_share() {
        return Scored { score: score(typical.change(node, pod, 0)), on: 0 };
    }
    let mut best: Option<Scored> = None;
    for on in node.roomy(pod) {
        // The same room as on an earlier GPU leads to the same score.
        if node.free[..on].contains(&node.free[on]) {
            continue;
        }
        let scored = Scored { score: score(typical.change(node, pod, on)), on };
        if best.is_none_or(|best| scored.score > best.score) {
            best = Some(scored);
        }
    }
    best.expect("the pod fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gpus: u32, gpu_milli: i64, cpu: i64) -> Pod {
        Pod { gpus, gpu_milli, cpu_milli: cpu * 1_000, memory_mib: 0, types: 0 }
    }

    fn node(free: &[i64], cpu: i64) -> Node {
        Node { free: free.to_vec(), ..Node::new("n", free.len(), 0, cpu * 1_000, 0) }
    }

    fn scores(policy: Policy, pod: Pod, nodes: &[Node]) -> Vec<i64> {
        let typical = Typical::of(&[pod]);
        nodes.iter().map(|node| score(policy, &typical, node, &pod).score).collect()
    }

    #[test]
    fn the_table_is_that_of_the_logistic_function() {
        for (at, micro) in LOGIT_MICRO.iter().enumerate() {
            let k = at as f64 + 51.0;
            assert_eq!(((k / (100.0 - k)).ln() * 1e6).round() as i64, *micro, "of {k}");
        }
        assert_eq!(logistic(0, 1), 50);
        assert_eq!(logistic(-1, 1), 49, "a half is cut, not rounded");
        assert_eq!((logistic(1_000, 1), logistic(-1_000, 1)), (73, 26));
        assert_eq!((logistic(9_000, 1), logistic(-9_000, 1)), (99, 0));
    }

    #[test]
    fn best_fit_likes_the_node_with_the_least_left() {
        let nodes = [node(&[1_000, 1_000], 64), node(&[1_000], 64), node(&[1_000], 8)];
        let found = scores(Policy::BestFit, pod(1, 1_000, 8), &nodes);
        assert!(found[0] < found[1] && found[1] < found[2], "{found:?}");
        assert_eq!(found[2], 100);
    }

    #[test]
    fn packing_likes_used_gpus_then_used_nodes_then_idle_ones() {
        let nodes = [node(&[1_000, 1_000], 64), node(&[1_000, 400], 64), node(&[1_000, 600], 64)];
        assert_eq!(scores(Policy::GpuPacking, pod(1, 500, 1), &nodes), [31, 49, 94]);
    }

    #[test]
    fn clustering_likes_nodes_with_pods_of_the_same_size_only() {
        let (share, whole) = (pod(1, 500, 1), pod(1, 1_000, 1));
        let mut nodes = vec![node(&[1_000; 3], 64); 4];
        nodes[1].take(&whole, 0);
        nodes[2].take(&whole, 0);
        nodes[2].take(&share, 1);
        nodes[3].take(&share, 0);
        let found = scores(Policy::GpuClustering, share, &nodes);
        assert!(found[1] < found[0] && found[0] < found[2] && found[2] < found[3], "{found:?}");
    }

    #[test]
    fn a_dot_product_is_low_where_little_is_free() {
        let nodes = [node(&[1_000; 8], 128), node(&[1_000], 16)];
        let found = scores(Policy::DotProd, pod(1, 1_000, 16), &nodes);
        assert!(found[0] < found[1], "{found:?}");
    }

    #[test]
    fn descent_puts_a_share_on_the_gpu_that_it_fills_up() {
        let (half, whole) = (pod(1, 500, 1), pod(1, 1_000, 1));
        let typical = Typical::of(&[half, whole]);
        let there = node(&[1_000, 500], 64);
        for policy in [Policy::Fgd, Policy::FgdExact] {
            assert_eq!(score(policy, &typical, &there, &half).on, 1);
        }
    }
}
