//! GPUs that preemptible jobs of a queue hold: by priority, and the nodes and domains with the most.

use crate::cluster::Cluster;
use crate::ix::{DomainIx, NodeIx};
use std::cmp::Reverse;

/// GPUs that jobs hold, by place.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldGpus {
    /// Which GPUs of each node, by node, and the nodes with the most first.
    pub(super) nodes: Vec<(NodeIx, Gpus)>,
    pub(super) most: Vec<(Reverse<u32>, NodeIx)>,
    /// The domains of each level, with the most first.
    pub(super) levels: Vec<Vec<(Reverse<u32>, DomainIx)>>,
    /// The same by domain.
    domains: Vec<u32>,
}

impl HeldGpus {
    pub(super) fn within(&self, domain: DomainIx) -> u32 {
        self.domains.get(domain.at()).copied().unwrap_or(0)
    }
}

/// GPUs of a node: a bit for each of the first 64, and how many others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gpus {
    pub(crate) first: u64,
    pub(crate) others: u32,
}

impl Gpus {
    pub(super) fn count(self) -> u32 {
        self.first.count_ones() + self.others
    }

    pub(crate) fn add(&mut self, gpu: u32) {
        match gpu {
            0..64 => self.first |= 1 << gpu,
            _ => self.others += 1,
        }
    }
}

/// GPUs that preemptible jobs of one queue hold, by priority. Each entry includes those of lower
/// priorities.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldByPriority {
    /// Only priorities below this are counted: no pending job has a higher one.
    pub(crate) top_priority: i32,
    pub(crate) steps: Vec<(i32, HeldGpus)>,
}

impl HeldByPriority {
    /// What jobs below that priority hold.
    pub fn below(&self, priority: i32) -> Option<&HeldGpus> {
        let at = self.steps.partition_point(|(of, _)| *of < priority);
        at.checked_sub(1).map(|at| &self.steps[at].1)
    }
}

impl Cluster {
    pub(crate) fn held_gpus(&self, nodes: &[(NodeIx, Gpus)]) -> HeldGpus {
        let mut most: Vec<(Reverse<u32>, NodeIx)> =
            nodes.iter().map(|(ix, gpus)| (Reverse(gpus.count()), *ix)).collect();
        most.sort_unstable();
        let mut in_domains = vec![0; self.domains.len()];
        for (ix, gpus) in nodes {
            for domain in &self.node(*ix).domains {
                in_domains[domain.at()] += gpus.count();
            }
        }
        let mut levels = vec![Vec::new(); self.levels()];
        for (at, gpus) in in_domains.iter().enumerate().skip(1).filter(|(_, gpus)| **gpus > 0) {
            let domain = &self.domains[at];
            let level = self.level_at(domain.topology, domain.depth);
            levels[level].push((Reverse(*gpus), DomainIx(at as u32)));
        }
        for level in &mut levels {
            level.sort_unstable();
        }
        HeldGpus { nodes: nodes.to_vec(), most, levels, domains: in_domains }
    }
}
