//! Fragmentation as Weng et al. define it (ATC 2023): what the pods one may expect could not use.

use super::node::{Node, Pod, WHOLE};
use std::collections::BTreeMap;

/// A shape of pod, and how many pods of the list have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub pod: Pod,
    pub weight: i64,
}

/// The most common shapes of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typical {
    pub kinds: Vec<Kind>,
    /// The weights' sum: what amounts are in units of.
    pub weight: i64,
}

/// Shapes are taken until they stand for this share of the list.
const COVERED_PERCENT: i64 = 95;

impl Typical {
    /// Memory makes no difference to a shape: the published measure does not look at it.
    pub fn of(pods: &[Pod]) -> Typical {
        let mut seen: BTreeMap<Pod, i64> = BTreeMap::new();
        for pod in pods {
            *seen.entry(Pod { memory_mib: 0, ..*pod }).or_default() += 1;
        }
        let mut kinds: Vec<Kind> =
            seen.into_iter().map(|(pod, weight)| Kind { pod, weight }).collect();
        kinds.sort_by_key(|kind| (-kind.weight, kind.pod));
        let (mut covered, all) = (0, pods.len() as i64);
        kinds.retain(|kind| {
            let wanted = covered * 100 < all * COVERED_PERCENT;
            covered += kind.weight;
            wanted
        });
        let weight = kinds.iter().map(|kind| kind.weight).sum();
        Typical { kinds, weight }
    }

    /// Thousandths of free GPUs that a pod could not use, summed over the shapes by their weights.
    pub fn fragments(&self, gpus: &[i64], gpu_type: u8, cpu_milli: i64) -> i64 {
        let free: i64 = gpus.iter().sum();
        if free == 0 {
            return 0;
        }
        let mut sum = 0;
        for kind in &self.kinds {
            let pod = &kind.pod;
            let of_type = pod.types == 0 || pod.types >> gpu_type & 1 == 1;
            let (mut usable, mut roomy) = (0, 0);
            if pod.gpus > 0 && of_type && cpu_milli >= pod.cpu_milli {
                for milli in gpus.iter().filter(|milli| **milli >= pod.gpu_milli) {
                    usable += milli;
                    roomy += 1;
                }
            }
            // What serves a pod without GPUs leaves every free GPU idle.
            let used = if roomy >= pod.gpus { usable } else { 0 };
            sum += (free - used) * kind.weight;
        }
        sum
    }

    pub fn fragments_of(&self, node: &Node) -> i64 {
        self.fragments(&node.free, node.gpu_type, node.cpu_milli)
    }

    /// How much the pod adds to what is fragmented on the node; a share on the GPU `on`.
    pub fn change(&self, node: &Node, pod: &Pod, on: usize) -> i64 {
        let mut gpus = node.free.clone();
        if pod.is_share() {
            gpus[on] -= pod.gpu_milli;
        } else {
            let whole = gpus.iter_mut().filter(|milli| **milli >= WHOLE);
            whole.take(pod.gpus as usize).for_each(|milli| *milli -= pod.gpu_milli);
        }
        let then = self.fragments(&gpus, node.gpu_type, node.cpu_milli - pod.cpu_milli);
        then - self.fragments_of(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gpus: u32, gpu_milli: i64, cpu: i64) -> Pod {
        Pod { gpus, gpu_milli, cpu_milli: cpu * 1_000, memory_mib: 0, types: 0 }
    }

    fn list(of: &[(Pod, usize)]) -> Vec<Pod> {
        of.iter().flat_map(|(pod, n)| std::iter::repeat_n(*pod, *n)).collect()
    }

    #[test]
    fn the_rarest_shapes_are_left_out_once_the_others_stand_for_95_percent() {
        let (half, one, eight) = (pod(1, 500, 4), pod(1, 1_000, 8), pod(8, 1_000, 64));
        let typical = Typical::of(&list(&[(half, 60), (one, 36), (eight, 4)]));
        let shapes: Vec<Pod> = typical.kinds.iter().map(|kind| kind.pod).collect();
        assert_eq!(shapes, [half, one]);
        assert_eq!(typical.weight, 96);
    }

    #[test]
    fn a_gpu_too_full_for_a_shape_counts_by_how_common_the_shape_is() {
        let typical = Typical::of(&list(&[(pod(1, 500, 1), 3), (pod(1, 1_000, 1), 1)]));
        // Half a GPU and a whole one: the shape of a whole GPU cannot use the half.
        assert_eq!(typical.fragments(&[500, 1_000], 0, 8_000), 500);
        // Nothing runs without CPU, so all that is free is fragmented for all four.
        assert_eq!(typical.fragments(&[500, 1_000], 0, 500), 1_500 * 4);
    }

    #[test]
    fn a_gang_of_gpus_that_does_not_fit_whole_can_use_none_of_them() {
        let typical = Typical::of(&list(&[(pod(2, 1_000, 1), 1)]));
        assert_eq!(typical.fragments(&[1_000, 900], 0, 8_000), 1_900);
        assert_eq!(typical.fragments(&[1_000, 1_000, 900], 0, 8_000), 900);
    }

    #[test]
    fn gpus_of_another_type_and_pods_without_gpus_leave_everything_idle() {
        let typed = Pod { types: 0b10, ..pod(1, 1_000, 1) };
        let of_type = Typical::of(&[typed]);
        assert_eq!(of_type.fragments(&[1_000], 0, 8_000), 1_000);
        assert_eq!(of_type.fragments(&[1_000], 1, 8_000), 0);
        let without = Typical::of(&[pod(0, 0, 1)]);
        assert_eq!(without.fragments(&[1_000], 0, 8_000), 1_000);
    }

    #[test]
    fn filling_up_a_used_gpu_changes_less_than_breaking_a_whole_one() {
        let typical = Typical::of(&list(&[(pod(1, 500, 1), 1), (pod(1, 1_000, 1), 1)]));
        let mut node = Node::new("a", 2, 0, 8_000, 0);
        node.free = vec![500, 1_000];
        let (used, whole) = (pod(1, 500, 1), 1);
        assert_eq!(typical.change(&node, &used, 0), -500);
        assert_eq!(typical.change(&node, &used, whole), 500);
    }
}
