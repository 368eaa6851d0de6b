//! Whether a group could lie on what is free and what may be preempted, by the indexes alone.

use crate::cluster::Cluster;
use crate::cluster::domain::Level;
use crate::index::held_gpus::{Gpus, HeldGpus};
use crate::index::max_free::MaxFree;
use crate::ix::{DomainIx, JobIx, NodeIx};
use crate::jobs::Promised;
use crate::shape::leaf::Leaf;
use berth_model::{Place, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Cluster {
    /// Whether a group of whole GPUs could lie where so much is free, so much may be taken from
    /// running jobs until then, and what is promised to these gives way: a no is certain.
    pub fn may_hold(
        &self,
        leaf: &Leaf,
        (free, until): (&MaxFree, Time),
        held: Option<&HeldGpus>,
        yielding: &YieldingPromises<'_>,
    ) -> bool {
        let Some(g) = leaf.whole() else { return true };
        let all = g.saturating_mul(leaf.min);
        let none = HeldGpus::default();
        let held = held.unwrap_or(&none);
        let gives_way = |job: JobIx| yielding.jobs.contains(&job);
        let on_one = |gpus: u32| {
            let far = |(most, _): &&(Reverse<u32>, NodeIx)| most.0 + free.node >= gpus;
            let mut nodes =
                held.most.iter().take_while(far).map(|(_, ix)| *ix).chain(yielding.nodes());
            free.node >= gpus || nodes.any(|ix| self.gpus_on(ix, until, held, &gives_way) >= gpus)
        };
        match leaf.together.required {
            Some(Level::Node | Level::Nvlink) => on_one(all),
            None if leaf.min == 1 || free.node >= g => on_one(g),
            None => {
                let far = |(most, _): &&(Reverse<u32>, NodeIx)| most.0 + free.node >= g;
                let mut nodes: Vec<NodeIx> = yielding.nodes().collect();
                nodes.extend(held.most.iter().take_while(far).map(|(_, ix)| *ix));
                nodes.sort_unstable();
                nodes.dedup();
                let mut tasks = 0;
                nodes.iter().any(|ix| {
                    tasks += self.gpus_on(*ix, until, held, &gives_way) / g.max(1);
                    tasks >= leaf.min
                })
            }
            Some(Level::Label { topology, depth }) => {
                let at = self.level_at(topology, depth);
                let nearby = free.levels[at];
                let far = |(most, _): &&(Reverse<u32>, DomainIx)| most.0 + nearby >= all;
                let held_in = held.levels.get(at).into_iter().flatten().take_while(far);
                let held_in = held_in.map(|(_, ix)| (*ix, 0));
                let mut given_in: BTreeMap<DomainIx, u32> = BTreeMap::new();
                for (node, place) in yielding.places() {
                    if let Some(domain) = self.domain_of(*node, topology, depth) {
                        *given_in.entry(domain).or_default() += place.slices.len() as u32;
                    }
                }
                let near = |(ix, given): &(DomainIx, u32)| {
                    let more = free.more.get(ix).copied().unwrap_or(0);
                    self.domains[ix.at()].uncommitted + more + held.within(*ix) + given >= all
                };
                let mut domains = held_in.chain(given_in).filter(near).map(|(ix, _)| ix);
                let tasks = |domain: DomainIx| -> u32 {
                    let nodes = self.domains[domain.at()].nodes.iter();
                    nodes.map(|ix| self.gpus_on(*ix, until, held, &gives_way) / g.max(1)).sum()
                };
                nearby >= all || domains.any(|domain| tasks(domain) >= leaf.min)
            }
        }
    }

    /// The most on one of these nodes.
    pub fn most_on(
        &self,
        nodes: &[NodeIx],
        until: Time,
        held: Option<&HeldGpus>,
        gives_way: &impl Fn(JobIx) -> bool,
    ) -> u32 {
        let none = HeldGpus::default();
        let held = held.unwrap_or(&none);
        let gpus = nodes.iter().map(|ix| self.gpus_on(*ix, until, held, gives_way));
        gpus.max().unwrap_or(0)
    }

    /// GPUs of a node that are free or may be taken, and not promised to others before the end.
    fn gpus_on(
        &self,
        ix: NodeIx,
        until: Time,
        held: &HeldGpus,
        gives_way: &impl Fn(JobIx) -> bool,
    ) -> u32 {
        let node = self.node(ix);
        if !node.open() {
            return 0;
        }
        let at = held.nodes.binary_search_by_key(&ix, |(ix, _)| *ix);
        let mut gpus = at.map_or(Gpus::default(), |at| held.nodes[at].1);
        for (at, _) in node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.is_free()) {
            gpus.add(at as u32);
        }
        let mut kept = node.promised_slots.iter().filter(|kept| kept.from < until);
        gpus.first &= !kept
            .by_ref()
            .fold(0, |all, kept| if gives_way(kept.job) { all } else { all | kept.gpus });
        gpus.count()
    }
}

/// Jobs whose promises give way.
pub(crate) struct YieldingPromises<'a> {
    pub jobs: &'a [JobIx],
    pub promises: &'a BTreeMap<JobIx, Promised>,
}

impl YieldingPromises<'_> {
    fn places(&self) -> impl Iterator<Item = &(NodeIx, Place)> {
        self.jobs.iter().filter_map(|job| self.promises.get(job)).flat_map(|p| &p.places)
    }

    fn nodes(&self) -> impl Iterator<Item = NodeIx> {
        self.places().map(|(node, _)| *node)
    }
}
