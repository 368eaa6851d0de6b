//! Pods go to nodes, one by one, by one policy.

use super::node::{Node, Pod, Size, WHOLE};
use super::policy::{Policy, Ties};
use super::score::{Scored, score};
use super::typical::Typical;
use crate::random::Rng;
use std::collections::BTreeMap;

/// Where a pod went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub node: usize,
    /// The GPU a share lies on.
    pub on: usize,
}

/// What has happened so far, in thousandths of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub arrived_milli: i64,
    pub allocated_milli: i64,
    pub dropped: [u32; Size::COUNT],
}

/// What is known of a node for one shape of pod, since it last changed.
#[derive(Debug, Clone, Copy)]
struct Known {
    changes: u32,
    scored: Option<Scored>,
}

/// Nodes, and a policy that fills them.
#[derive(Debug, Clone)]
pub struct Bench {
    nodes: Vec<Node>,
    policy: Policy,
    ties: Ties,
    typical: Typical,
    random: Rng,
    progress: Progress,
    /// How often each node has changed: from 1 up, so that a 0 is never up to date.
    changes: Vec<u32>,
    /// Scores by shape and node. A pod changes one node, so nearly all of them hold.
    known: BTreeMap<Pod, Vec<Known>>,
}

impl Bench {
    /// Empty nodes; their names have to be in order.
    pub fn new(nodes: &[Node], typical: &Typical, policy: Policy, ties: Ties, seed: u64) -> Bench {
        assert!(nodes.is_sorted_by(|a, b| a.name < b.name), "nodes come in the order of names");
        Bench {
            nodes: nodes.to_vec(),
            policy,
            ties,
            typical: typical.clone(),
            // Not the numbers the list was drawn with.
            random: Rng::new(seed ^ 0x7065_7274),
            progress: Progress::default(),
            changes: vec![1; nodes.len()],
            known: BTreeMap::new(),
        }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    pub fn capacity_milli(&self) -> i64 {
        self.nodes.iter().map(|node| node.free.len() as i64 * WHOLE).sum()
    }

    /// Free GPUs the typical pods could not use, on average, in thousandths.
    pub fn fragmented_milli(&self) -> i64 {
        let sum: i64 = self.nodes.iter().map(|node| self.typical.fragments_of(node)).sum();
        sum / self.typical.weight.max(1)
    }

    /// Takes the next pod in, or drops it where it fits nowhere.
    pub fn arrive(&mut self, pod: &Pod) -> Option<Placed> {
        self.progress.arrived_milli += pod.total_milli();
        self.refresh(pod);
        let Some(placed) = self.choose(pod) else {
            self.progress.dropped[pod.size() as usize] += 1;
            return None;
        };
        self.nodes[placed.node].take(pod, placed.on);
        self.changes[placed.node] += 1;
        self.progress.allocated_milli += pod.total_milli();
        Some(placed)
    }

    /// Scores the nodes that have changed since a pod of this shape was last asked for.
    fn refresh(&mut self, pod: &Pod) {
        let none = Known { changes: 0, scored: None };
        let known = self.known.entry(*pod).or_insert_with(|| vec![none; self.nodes.len()]);
        for ((known, node), changes) in known.iter_mut().zip(&self.nodes).zip(&self.changes) {
            if known.changes == *changes {
                continue;
            }
            let fits = node.fits(pod);
            let scored = fits.then(|| score(self.policy, &self.typical, node, pod));
            *known = Known { changes: *changes, scored };
        }
    }

    fn choose(&mut self, pod: &Pod) -> Option<Placed> {
        let known = self.known.get(pod)?;
        let any = self.policy == Policy::Random || self.ties == Ties::Random;
        let mut best: Option<(Scored, usize)> = None;
        let mut equals = 0;
        for (at, known) in known.iter().enumerate() {
            let Some(scored) = known.scored else { continue };
            let than = best.map(|(best, _)| scored.score.cmp(&best.score));
            match than {
                None | Some(std::cmp::Ordering::Greater) => {
                    best = Some((scored, at));
                    equals = 1;
                }
                Some(std::cmp::Ordering::Equal) if any => {
                    equals += 1;
                    if self.random.below(equals) == 0 {
                        best = Some((scored, at));
                    }
                }
                Some(_) => {}
            }
        }
        let (scored, node) = best?;
        let mut on = scored.on;
        if self.policy == Policy::Random && pod.is_share() {
            let roomy: Vec<usize> = self.nodes[node].roomy(pod).collect();
            on = self.random.one_of(&roomy);
        }
        Some(Placed { node, on })
    }
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;

    fn pod(gpus: u32, gpu_milli: i64, cpu: i64) -> Pod {
        Pod { gpus, gpu_milli, cpu_milli: cpu * 1_000, memory_mib: 1, types: 0 }
    }

    fn nodes(n: usize) -> Vec<Node> {
        (0..n).map(|at| Node::new(&format!("n{at:03}"), 4, 0, 32_000, 1_000)).collect()
    }

    fn bench(n: usize, policy: Policy, ties: Ties, typical: &[Pod]) -> Bench {
        Bench::new(&nodes(n), &Typical::of(typical), policy, ties, 42)
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_dropped_and_counted_by_its_size() {
        let (four, two) = (pod(4, 1_000, 1), pod(2, 1_000, 1));
        let mut bench = bench(1, Policy::BestFit, Ties::ByName, &[four]);
        assert!(bench.arrive(&four).is_some());
        assert_eq!(bench.arrive(&two), None);
        let progress = bench.progress();
        assert_eq!((progress.arrived_milli, progress.allocated_milli), (6_000, 4_000));
        assert_eq!(progress.dropped[Size::Two as usize], 1);
    }

    #[test]
    fn cpu_and_memory_bind_as_well_as_gpus() {
        let heavy = pod(1, 1_000, 20);
        let mut cpu = bench(1, Policy::BestFit, Ties::ByName, &[heavy]);
        assert!(cpu.arrive(&heavy).is_some());
        assert_eq!(cpu.arrive(&heavy), None, "12 of 32 CPUs are left");
        let large = Pod { memory_mib: 1_001, ..pod(0, 0, 1) };
        assert_eq!(bench(1, Policy::BestFit, Ties::ByName, &[large]).arrive(&large), None);
    }

    #[test]
    fn equal_nodes_are_taken_by_name_or_at_random() {
        let one = pod(4, 1_000, 1);
        let order = |ties| {
            let mut bench = bench(50, Policy::Fgd, ties, &[one]);
            (0..50).map(|_| bench.arrive(&one).expect("it fits").node).collect::<Vec<_>>()
        };
        assert_eq!(order(Ties::ByName), (0..50).collect::<Vec<_>>());
        let mut random = order(Ties::Random);
        assert_ne!(random, (0..50).collect::<Vec<_>>());
        random.sort_unstable();
        assert_eq!(random, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn descent_keeps_whole_nodes_for_those_who_need_them() {
        let (share, four) = (pod(1, 500, 1), pod(4, 1_000, 4));
        let typical = [share, share, four];
        let mut bench = bench(2, Policy::FgdExact, Ties::ByName, &typical);
        for _ in 0..8 {
            assert_eq!(bench.arrive(&share).map(|placed| placed.node), Some(0));
        }
        assert!(bench.arrive(&four).is_some(), "the other node is whole");
        assert_eq!(bench.fragmented_milli(), 0);
    }

    #[test]
    fn what_is_remembered_of_a_node_never_outlives_a_change_of_it() {
        let pods: Vec<Pod> = [(1, 300, 2), (1, 1_000, 4), (2, 1_000, 8), (0, 0, 3), (1, 700, 1)]
            .map(|(gpus, milli, cpu)| pod(gpus, milli, cpu))
            .to_vec();
        let made = list(&pods, 60_000, 5);
        for policy in Policy::ALL {
            let mut bench = Bench::new(&nodes(12), &made.typical, policy, Ties::ByName, 5);
            for pod in &made.pods {
                let mut fresh = bench.clone();
                fresh.known.clear();
                assert_eq!(fresh.arrive(pod), bench.arrive(pod), "{policy:?}");
            }
            let used: i64 = bench.nodes().iter().map(|node| 4_000 - node.free_milli()).sum();
            assert_eq!(used, bench.progress().allocated_milli);
        }
    }
}
