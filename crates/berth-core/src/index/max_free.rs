//! The max-free index: the most free GPUs on one node and in one domain of each level. A few numbers
//! rule most claims out before any is tried.

use crate::cluster::Cluster;
use crate::cluster::domain::WHOLE;
use crate::ix::DomainIx;
use berth_model::Time;
use std::collections::BTreeMap;

/// The most free GPUs on one node, and in one domain of each level.
#[derive(Debug, Clone, Default)]
pub(crate) struct MaxFree {
    pub(super) node: u32,
    pub(super) levels: Vec<u32>,
    /// GPUs of a domain that are free for the time asked about although they are promised later.
    pub(super) more: BTreeMap<DomainIx, u32>,
}

/// The same by when it would be held until: from one time at which a promise of a free GPU begins
/// to the next there is no difference.
#[derive(Debug, Clone, Default)]
pub(crate) struct MaxFreeUntil {
    times: Vec<Time>,
    /// Free GPUs without a promise at any time.
    uncommitted: MaxFree,
    steps: BTreeMap<usize, MaxFree>,
}

impl MaxFreeUntil {
    pub fn of(cluster: &Cluster) -> MaxFreeUntil {
        let kept = cluster.contested.iter().flat_map(|ix| &cluster.node(*ix).promised_slots);
        let mut times: Vec<Time> = kept.map(|kept| kept.from).collect();
        times.sort_unstable();
        times.dedup();
        MaxFreeUntil { times, uncommitted: cluster.max_free_uncommitted(), steps: BTreeMap::new() }
    }

    pub fn until(&mut self, cluster: &Cluster, until: Time) -> &MaxFree {
        let step = self.times.partition_point(|from| *from < until);
        let sure = &self.uncommitted;
        self.steps.entry(step).or_insert_with(|| cluster.max_free_until(sure, until))
    }
}

impl Cluster {
    /// The most GPUs that are free and that no job has a promise of.
    fn max_free_uncommitted(&self) -> MaxFree {
        let mut levels = vec![0; self.levels()];
        for domain in self.domains.iter().skip(1) {
            let most = &mut levels[self.level_at(domain.topology, domain.depth)];
            *most = (*most).max(domain.uncommitted);
        }
        let node = self.uncommitted.iter().copied().max().unwrap_or(0);
        MaxFree { node, levels, more: BTreeMap::new() }
    }

    /// The most GPUs that are free for a job that would hold them until then. These are more than
    /// the uncommitted ones where promises begin later than that.
    fn max_free_until(&self, uncommitted: &MaxFree, until: Time) -> MaxFree {
        let mut found = uncommitted.clone();
        for ix in &self.contested {
            let free = self.node(*ix).free_before(until);
            let extra = free.saturating_sub(self.uncommitted[ix.at()]);
            if extra > 0 {
                found.node = found.node.max(free);
                for domain in &self.node(*ix).domains {
                    *found.more.entry(*domain).or_default() += extra;
                }
            }
        }
        for (ix, extra) in found.more.iter().filter(|(ix, _)| **ix != WHOLE) {
            let domain = &self.domains[ix.at()];
            let most = &mut found.levels[self.level_at(domain.topology, domain.depth)];
            *most = (*most).max(domain.uncommitted + extra);
        }
        found
    }
}
