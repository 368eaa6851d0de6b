//! Where there is most: of what is free, and of what a queue's jobs hold. A few numbers that are
//! quickly had tell that most claims are in vain before any is tried.

use crate::cluster::{Cluster, Level, WHOLE};
use crate::ix::{DomainIx, JobIx, NodeIx, QueueIx};
use crate::jobs::Promised;
use crate::shape::Leaf;
use crate::state::State;
use berth_model::{Place, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most free GPUs on one node, and in one domain of each level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Free {
    node: u32,
    levels: Vec<u32>,
    /// What there is in a domain beyond what is promised to nobody.
    more: BTreeMap<DomainIx, u32>,
}

/// The same by when it would be held until: from one time at which a promise of a free GPU begins
/// to the next there is no difference.
#[derive(Debug, Clone, Default)]
pub(crate) struct FreeBy {
    times: Vec<Time>,
    /// What is promised to nobody at any time.
    sure: Free,
    steps: BTreeMap<usize, Free>,
}

impl FreeBy {
    pub fn of(cluster: &Cluster) -> FreeBy {
        let kept = cluster.contested.iter().flat_map(|ix| &cluster.node(*ix).kept);
        let mut times: Vec<Time> = kept.map(|kept| kept.from).collect();
        times.sort_unstable();
        times.dedup();
        FreeBy { times, sure: cluster.sure_tops(), steps: BTreeMap::new() }
    }

    pub fn until(&mut self, cluster: &Cluster, until: Time) -> &Free {
        let step = self.times.partition_point(|from| *from < until);
        let sure = &self.sure;
        self.steps.entry(step).or_insert_with(|| cluster.free_tops(sure, until))
    }
}

/// GPUs that jobs hold, by place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// Which GPUs of each node, by node, and the nodes with the most first.
    nodes: Vec<(NodeIx, Gpus)>,
    most: Vec<(Reverse<u32>, NodeIx)>,
    /// The domains of each level, with the most first.
    levels: Vec<Vec<(Reverse<u32>, DomainIx)>>,
    /// The same by domain.
    domains: Vec<u32>,
}

impl Held {
    fn within(&self, domain: DomainIx) -> u32 {
        self.domains.get(domain.at()).copied().unwrap_or(0)
    }
}

/// GPUs of a node: a bit for each of the first 64, and how many others.
#[derive(Debug, Clone, Copy, Default)]
struct Gpus {
    first: u64,
    others: u32,
}

impl Gpus {
    fn count(self) -> u32 {
        self.first.count_ones() + self.others
    }

    fn add(&mut self, gpu: u32) {
        match gpu {
            0..64 => self.first |= 1 << gpu,
            _ => self.others += 1,
        }
    }
}

/// What jobs of one queue that may have to give way hold, by priority: each entry counts those of
/// lower priorities too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tops {
    /// Only lower priorities than this are counted: nobody of a higher one waits.
    top: i32,
    steps: Vec<(i32, Held)>,
}

impl Tops {
    /// What jobs below that priority hold.
    pub fn below(&self, priority: i32) -> Option<&Held> {
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

    fn levels(&self) -> usize {
        self.topologies.iter().map(|(_, keys)| keys.len()).sum()
    }

    /// The most GPUs that are free and promised to nobody.
    fn sure_tops(&self) -> Free {
        let mut levels = vec![0; self.levels()];
        for domain in self.domains.iter().skip(1) {
            let most = &mut levels[self.level_at(domain.topology, domain.depth)];
            *most = (*most).max(domain.sure);
        }
        let node = self.sure.iter().copied().max().unwrap_or(0);
        Free { node, levels, more: BTreeMap::new() }
    }

    /// The most GPUs that are free for somebody who would hold them until then: where promises
    /// begin later than that, there is more than what is promised to nobody.
    fn free_tops(&self, sure: &Free, until: Time) -> Free {
        let mut found = sure.clone();
        for ix in &self.contested {
            let free = self.node(*ix).free_before(until);
            let extra = free.saturating_sub(self.sure[ix.at()]);
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
            *most = (*most).max(domain.sure + extra);
        }
        found
    }

    /// Whether a group of whole GPUs could lie where so much is free, so much may be taken from
    /// running jobs until then, and what is promised to these gives way: a no is certain.
    pub fn may_hold(
        &self,
        leaf: &Leaf,
        (free, until): (&Free, Time),
        held: Option<&Held>,
        ways: &Ways<'_>,
    ) -> bool {
        let Some(g) = leaf.whole() else { return true };
        let all = g.saturating_mul(leaf.min);
        let none = Held::default();
        let held = held.unwrap_or(&none);
        let gives_way = |job: JobIx| ways.jobs.contains(&job);
        let on_one = |gpus: u32| {
            let far = |(most, _): &&(Reverse<u32>, NodeIx)| most.0 + free.node >= gpus;
            let mut nodes = held.most.iter().take_while(far).map(|(_, ix)| *ix).chain(ways.nodes());
            free.node >= gpus || nodes.any(|ix| self.gpus_on(ix, until, held, &gives_way) >= gpus)
        };
        match leaf.together.required {
            Some(Level::Node | Level::Nvlink) => on_one(all),
            None if leaf.min == 1 || free.node >= g => on_one(g),
            None => {
                let far = |(most, _): &&(Reverse<u32>, NodeIx)| most.0 + free.node >= g;
                let mut nodes: Vec<NodeIx> = ways.nodes().collect();
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
                for (node, place) in ways.places() {
                    if let Some(domain) = self.domain_of(*node, topology, depth) {
                        *given_in.entry(domain).or_default() += place.slices.len() as u32;
                    }
                }
                let near = |(ix, given): &(DomainIx, u32)| {
                    let more = free.more.get(ix).copied().unwrap_or(0);
                    self.domains[ix.at()].sure + more + held.within(*ix) + given >= all
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
        held: Option<&Held>,
        gives_way: &impl Fn(JobIx) -> bool,
    ) -> u32 {
        let none = Held::default();
        let held = held.unwrap_or(&none);
        let gpus = nodes.iter().map(|ix| self.gpus_on(*ix, until, held, gives_way));
        gpus.max().unwrap_or(0)
    }

    /// GPUs of a node that are free or may be taken, and not promised to others before the end.
    fn gpus_on(
        &self,
        ix: NodeIx,
        until: Time,
        held: &Held,
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
        let mut kept = node.kept.iter().filter(|kept| kept.from < until);
        gpus.first &= !kept
            .by_ref()
            .fold(0, |all, kept| if gives_way(kept.job) { all } else { all | kept.gpus });
        gpus.count()
    }
}

/// Jobs whose promises give way.
pub(crate) struct Ways<'a> {
    pub jobs: &'a [JobIx],
    pub promises: &'a BTreeMap<JobIx, Promised>,
}

impl Ways<'_> {
    fn places(&self) -> impl Iterator<Item = &(NodeIx, Place)> {
        self.jobs.iter().filter_map(|job| self.promises.get(job)).flat_map(|p| &p.places)
    }

    fn nodes(&self) -> impl Iterator<Item = NodeIx> {
        self.places().map(|(node, _)| *node)
    }
}

impl State {
    /// What the queue's jobs below that priority hold and may have to give up, kept until it changes.
    fn tops(&mut self, queue: QueueIx, top: i32) -> Arc<Tops> {
        if let Some(known) = self.queues.get(queue).tops.as_ref().filter(|tops| tops.top >= top) {
            return known.clone();
        }
        let tops = Arc::new(self.tops_of(queue, top));
        self.queues.get_mut(queue).tops = Some(tops.clone());
        tops
    }

    /// The same for what waits there.
    pub(crate) fn tops_for(&mut self, queue: QueueIx) -> Arc<Tops> {
        let top = self.queues.get(queue).line.top().unwrap_or(i32::MIN);
        self.tops(queue, top)
    }

    fn tops_of(&self, queue: QueueIx, top: i32) -> Tops {
        let mut steps: Vec<(i32, Held)> = Vec::new();
        let mut nodes: Vec<(NodeIx, Gpus)> = Vec::new();
        let held = &self.queues.get(queue).held;
        let held = held.range(..(top, NodeIx(0), 0)).map(|(key, _)| *key);
        let held: Vec<(i32, NodeIx, u32)> = held.collect();
        for of_class in held.chunk_by(|a, b| a.0 == b.0) {
            for on_node in of_class.chunk_by(|a, b| a.1 == b.1) {
                let mut gpus = Gpus::default();
                on_node.iter().for_each(|(_, _, gpu)| gpus.add(*gpu));
                nodes.push((on_node[0].1, gpus));
            }
            nodes.sort_by_key(|(node, _)| *node);
            nodes.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1.first |= next.1.first;
                    kept.1.others += next.1.others;
                }
                same
            });
            steps.push((of_class[0].0, self.cluster.held(&nodes)));
        }
        Tops { top, steps }
    }
}

impl Cluster {
    fn held(&self, nodes: &[(NodeIx, Gpus)]) -> Held {
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
        Held { nodes: nodes.to_vec(), most, levels, domains: in_domains }
    }
}
