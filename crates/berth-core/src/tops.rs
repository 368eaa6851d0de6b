//! How much there is in one place at the most: of what is free, and of what a queue's jobs hold.
//! Two numbers that are quickly had tell that most claims are in vain before any is tried.

use crate::cluster::{Cluster, Level, WHOLE};
use crate::ix::{DomainIx, NodeIx, QueueIx};
use crate::shape::Leaf;
use crate::state::State;
use berth_model::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most on one node, in one domain of each level, and in all; in GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Top {
    node: u32,
    levels: Vec<u32>,
    all: u32,
}

/// What jobs of one queue that may have to give way hold, by priority: each entry counts those of
/// lower priorities too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tops {
    steps: Vec<(i32, Top)>,
}

impl Tops {
    /// What jobs below that priority hold.
    pub fn below(&self, priority: i32) -> Option<&Top> {
        let at = self.steps.partition_point(|(of, _)| *of < priority);
        at.checked_sub(1).map(|at| &self.steps[at].1)
    }
}

impl Cluster {
    /// Where the levels of a topology begin in a list of all levels.
    fn level_at(&self, topology: u32, depth: u32) -> usize {
        let before = self.topologies[..topology as usize].iter().map(|(_, keys)| keys.len());
        before.sum::<usize>() + depth as usize
    }

    fn no_levels(&self) -> Vec<u32> {
        vec![0; self.topologies.iter().map(|(_, keys)| keys.len()).sum()]
    }

    /// The most GPUs that are free for somebody who would hold them until then.
    pub fn free_tops(&self, until: Time) -> Top {
        let mut node = self.sure.iter().copied().max().unwrap_or(0);
        let mut all = self.domains[WHOLE.at()].sure;
        // Where promises begin later than that, there is more than what is promised to nobody.
        let mut more: BTreeMap<DomainIx, u32> = BTreeMap::new();
        for ix in &self.contested {
            let free = self.node(*ix).free_before(until);
            let extra = free.saturating_sub(self.sure[ix.at()]);
            if extra > 0 {
                node = node.max(free);
                all += extra;
                for domain in &self.node(*ix).domains {
                    *more.entry(*domain).or_default() += extra;
                }
            }
        }
        let mut levels = self.no_levels();
        for (at, domain) in self.domains.iter().enumerate().skip(1) {
            let extra = more.get(&DomainIx(at as u32)).copied().unwrap_or(0);
            let most = &mut levels[self.level_at(domain.topology, domain.depth)];
            *most = (*most).max(domain.sure + extra);
        }
        Top { node, levels, all }
    }
}

impl State {
    /// What the queue's jobs hold that they may have to give up, kept until it changes.
    pub(crate) fn tops(&mut self, queue: QueueIx) -> Arc<Tops> {
        if let Some(known) = &self.queues.get(queue).tops {
            return known.clone();
        }
        let tops = Arc::new(self.tops_of(queue));
        self.queues.get_mut(queue).tops = Some(tops.clone());
        tops
    }

    fn tops_of(&self, queue: QueueIx) -> Tops {
        let mut held: Vec<(i32, NodeIx, i64)> = Vec::new();
        for (id, ix) in &self.queues.get(queue).running {
            let job = self.jobs.get(*ix);
            // What a gang has beyond its minimum anybody in its queue may have.
            let priority = match self.elastic.contains(id) {
                true => i32::MIN,
                false if job.preemptible() => job.priority,
                false => continue,
            };
            for (_, lease) in job.leases().filter(|(_, lease)| lease.stopping.is_none()) {
                held.push((priority, lease.node, lease.charge.gpu));
            }
        }
        held.sort_unstable();
        let mut nodes: BTreeMap<NodeIx, i64> = BTreeMap::new();
        let mut domains = vec![0; self.cluster.domains.len()];
        let (mut node, mut levels, mut all) = (0, self.cluster.no_levels(), 0);
        let gpus = |milli: i64| (milli.saturating_add(999) / 1_000) as u32;
        let mut steps: Vec<(i32, Top)> = Vec::new();
        for of_priority in held.chunk_by(|a, b| a.0 == b.0) {
            for (_, at, gpu) in of_priority {
                let here = nodes.entry(*at).or_default();
                *here += gpu;
                node = node.max(gpus(*here));
                all += gpu;
                for domain in self.cluster.node(*at).domains.iter().filter(|ix| **ix != WHOLE) {
                    let here: &mut i64 = &mut domains[domain.at()];
                    *here += gpu;
                    let domain = &self.cluster.domains[domain.at()];
                    let level = self.cluster.level_at(domain.topology, domain.depth);
                    levels[level] = levels[level].max(gpus(*here));
                }
            }
            steps.push((of_priority[0].0, Top { node, levels: levels.clone(), all: gpus(all) }));
        }
        Tops { steps }
    }
}

/// Whether a group of whole GPUs could lie where so much is free, so much may be taken from running
/// jobs, and so many free GPUs from those they are promised to: a no is certain.
pub(crate) fn may_hold(
    cluster: &Cluster,
    leaf: &Leaf,
    free: &Top,
    given: Option<&Top>,
    yielded: u32,
) -> bool {
    let Some(g) = leaf.whole() else { return true };
    let sum = |of: &dyn Fn(&Top) -> u32| of(free) + given.map_or(0, of) + yielded;
    let all = g.saturating_mul(leaf.min);
    let node = sum(&|top| top.node);
    node >= g
        && match leaf.together.required {
            Some(Level::Node | Level::Nvlink) => node >= all,
            Some(Level::Label { topology, depth }) => {
                let at = cluster.level_at(topology, depth);
                sum(&|top| top.levels[at]) >= all
            }
            None => sum(&|top| top.all) >= all,
        }
}
