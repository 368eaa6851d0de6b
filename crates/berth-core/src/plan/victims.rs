//! Victims: what a queue may have to give up, in the order it is taken, and which of it makes a job
//! start.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::Who;
use crate::fair_share::Ratio;
use crate::ix::{DomainIx, JobIx, NodeIx, QueueIx};
use crate::jobs::Standing;
use crate::plan::Planner;
use crate::plan::displace::Right;
use crate::plan::fit::Spot;
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::{JobId, NodeState, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What may be taken from one queue, in the order it is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Victims {
    /// Members of elastic gangs beyond their minimum, newest first.
    surplus: Vec<Unit>,
    /// Whole jobs: lowest class, least lost work, newest, by id.
    whole: Vec<Unit>,
    /// How many of those in front have been taken in this plan.
    gone: usize,
}

/// Victims of which every set is looked at before a gang is left waiting.
const FEW_TO_CHOOSE: usize = 8;

/// Tasks that go together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub job: JobIx,
    pub tasks: Vec<u32>,
    pub surplus: bool,
}

impl Unit {
    /// Whether a task of its job goes with it.
    pub fn takes(&self, task: u32) -> bool {
        !self.surplus || self.tasks.contains(&task)
    }
}

impl Planner<'_> {
    /// Like tasks of several GPUs are made room for node by node, everything else in the order of
    /// the victims.
    pub(super) fn find_victims(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let blocks = shape.single().filter(|leaf| in_blocks(leaf));
        if blocks.is_some_and(|leaf| !self.room_in_all(leaf, queues)) {
            return None;
        }
        if blocks.is_none() {
            return self.greedy(job, right, queues, who, &[true, false]);
        }
        let mark = self.draft.mark();
        if !self.state().elastic.is_empty() {
            let found = self.greedy(job, right, queues, who, &[true]);
            if found.is_some() {
                return found;
            }
            self.draft.roll_back(mark);
        }
        let found = self.by_node(job, right, queues, who);
        // Where no queue stops giving on the way, every node that could help has been tried.
        if found.is_some() || matches!(right, Right::Class | Right::Across) {
            return found;
        }
        self.draft.roll_back(mark);
        let found = self.greedy(job, right, queues, who, &[true, false]);
        if found.is_some() {
            return found;
        }
        self.draft.roll_back(mark);
        self.largest_first(job, right, queues, who)
    }

    /// Where a small victim brought its queue down to its share, and a large one out of reach: the
    /// large ones first. Only among a few: of many, some were of the right size.
    fn largest_first(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        const FEW: usize = 64;
        let mut units: Vec<(Reverse<i64>, i128, JobId, Unit)> = Vec::new();
        for queue in queues {
            self.victims_of(*queue);
            let state = self.state();
            for unit in &self.victims[queue].whole {
                let known = state.jobs.get(unit.job);
                if known.live() > 0 && self.eligible(job, unit, right) {
                    let gpus = known.leases().map(|(_, lease)| lease.charge.gpu).sum();
                    units.push((Reverse(gpus), state.loss(unit.job), known.id, unit.clone()));
                }
            }
            if units.len() > FEW {
                return None;
            }
        }
        units.sort();
        let mark = self.draft.mark();
        let all: Vec<&Unit> = units.iter().map(|(.., unit)| unit).collect();
        let found = self.free_until(job, right, who, &all);
        if found.is_some() || units.len() > FEW_TO_CHOOSE {
            return found;
        }
        // Few enough to look at every set, those first that lose the least; in each the small ones
        // first, which bring their queue down the least.
        let wanted = self.state().shape_of(job).amounts.gpu;
        let free: u32 = self.state().cluster.counted.iter().flatten().sum();
        let mut sets: Vec<(i128, u32)> = Vec::new();
        for set in 1..1_u32 << units.len() {
            let of_set = || units.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
            let freed: i64 = of_set().map(|(_, (gpus, ..))| gpus.0).sum();
            if freed + i64::from(free) * 1_000 >= wanted {
                sets.push((of_set().map(|(_, (_, loss, ..))| loss).sum(), set));
            }
        }
        sets.sort_unstable();
        sets.into_iter().find_map(|(_, set)| {
            self.draft.roll_back(mark);
            let of_set = units.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            let of_set: Vec<&Unit> = of_set.map(|(_, (.., unit))| unit).rev().collect();
            self.free_until(job, right, who, &of_set)
        })
    }

    /// Frees what may be taken of these, in their order, until the job fits.
    fn free_until(
        &mut self,
        job: JobIx,
        right: Right,
        who: Who,
        units: &[&Unit],
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let mut freed: Vec<Unit> = Vec::new();
        for unit in units {
            if self.eligible(job, unit, right) {
                self.free(unit);
                freed.push((*unit).clone());
                if let Some(spots) = self.fits_claim(job, who) {
                    return Some((freed, spots));
                }
            }
        }
        None
    }

    /// Whether the group would fit if everything these queues may lose were gone: by counting,
    /// and so an upper bound.
    fn room_in_all(&self, leaf: &Leaf, queues: &[QueueIx]) -> bool {
        let state = self.state();
        let cluster = &state.cluster;
        let g = leaf.whole().unwrap_or(1).max(1);
        let mut gains = Gains { state, leaf, g, by_domain: BTreeMap::new() };
        if gains.suffice_without() {
            return true;
        }
        if let [queue] = queues {
            let mut held = state.queues.get(*queue).on_nodes.iter();
            return held.any(|(node, gpu)| gains.add(*node, *gpu));
        }
        let from = self.among(queues);
        let mut nodes = cluster.held.iter().enumerate();
        nodes.any(|(at, held)| {
            let gpu = held.of(&from);
            gpu > 0 && gains.add(NodeIx(at as u32), gpu)
        })
    }

    /// Which queues are among these, by ordinal.
    pub(super) fn among(&self, queues: &[QueueIx]) -> Vec<bool> {
        let mut among = vec![false; self.state().queues.all.len()];
        queues.iter().for_each(|queue| among[queue.at()] = true);
        among
    }

    /// The queue's victims, in their order.
    fn victims_of(&mut self, queue: QueueIx) {
        if self.victims.contains_key(&queue) {
            return;
        }
        let state = self.state();
        let mut surplus = Vec::new();
        let mut whole: Vec<(i32, i128, Reverse<Time>, JobId, JobIx)> = Vec::new();
        for (id, ix) in &state.queues.get(queue).running {
            let job = state.jobs.get(*ix);
            if job.standing != Standing::Running || self.served.contains(*ix) {
                continue;
            }
            let started = Reverse(job.started.unwrap_or(Time(0)));
            for (n, tasks) in self.surplus_of(*ix).into_iter().enumerate() {
                surplus.push((job.priority, started, *id, n, tasks, *ix));
            }
            whole.push((job.priority, state.loss(*ix), started, *id, *ix));
        }
        surplus.sort();
        whole.sort();
        let victims = Victims {
            surplus: surplus
                .into_iter()
                .map(|(.., tasks, job)| Unit { job, tasks, surplus: true })
                .collect(),
            whole: whole
                .into_iter()
                .map(|(.., job)| Unit { job, tasks: Vec::new(), surplus: false })
                .collect(),
            gone: 0,
        };
        self.victims.insert(queue, victims);
    }

    /// What a gang can give up and still hold its minimum, newest first: single tasks beyond the
    /// minimum of their group, and whole groups beyond the number it needs.
    pub(super) fn surplus_of(&self, job: JobIx) -> Vec<Vec<u32>> {
        let state = self.state();
        // One that misses a member elsewhere has none to spare.
        if !state.elastic.contains(&state.jobs.get(job).id) || !state.whole(job) {
            return Vec::new();
        }
        let shape = self.state().shape_of(job);
        let mut found = Vec::new();
        self.surplus_in(job, shape, &shape.tree, &mut found);
        found.reverse();
        found
    }

    fn surplus_in(&self, job: JobIx, shape: &Shape, tree: &Tree, found: &mut Vec<Vec<u32>>) {
        let known = self.state().jobs.get(job);
        // What lies on a failed node is as good as lost, though nobody has said so yet.
        let lost = |task: u32| {
            let lease = known.tasks[task as usize].lease.as_deref();
            let node = lease.map(|lease| self.state().cluster.node(lease.node));
            node.is_some_and(|node| node.spec.state == NodeState::Failed)
        };
        let live = |leaf: &Leaf| -> Vec<u32> {
            let all = leaf.first..leaf.first + leaf.count;
            all.filter(|task| self.is_live(job, *task) && !lost(*task)).collect()
        };
        match tree {
            Tree::Leaf(at) => {
                let leaf = &shape.leaves[*at];
                let beyond = live(leaf).into_iter().skip(leaf.min as usize);
                found.extend(beyond.map(|task| vec![task]));
            }
            Tree::Group { children, min, .. } => {
                let whole = children
                    .iter()
                    .filter(|child| self.state().missing_in(known, shape, child) == 0);
                for (n, child) in whole.enumerate() {
                    if n < *min as usize {
                        self.surplus_in(job, shape, child, found);
                    } else {
                        let leaves = child.leaves();
                        let tasks: Vec<u32> =
                            leaves.iter().flat_map(|at| live(&shape.leaves[*at])).collect();
                        // One of which tasks have ended well would be left in part, or holds
                        // nothing any more.
                        let ended = leaves.iter().any(|at| {
                            let leaf = &shape.leaves[*at];
                            let own = leaf.first as usize..(leaf.first + leaf.count) as usize;
                            known.tasks[own].iter().any(|task| task.done)
                        });
                        found.extend((!tasks.is_empty() && !ended).then_some(tasks));
                    }
                }
            }
        }
    }

    /// Frees victims in their order until the job fits.
    fn greedy(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
        kinds: &[bool],
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let mut freed: Vec<Unit> = Vec::new();
        // Surplus of any eligible queue goes before whole jobs.
        for surplus in kinds.iter().copied() {
            // Each with how much of its share it uses, which only what is freed of it changes.
            let ratio = |queue: &QueueIx| (*queue, self.shares.ratio(self.state(), *queue));
            let mut left: Vec<(QueueIx, Ratio)> = queues.iter().map(ratio).collect();
            let mut cursors: BTreeMap<QueueIx, usize> = BTreeMap::new();
            while let Some(at) = self.most_above(&left) {
                let most = left[at].0;
                // Once down to its share it gives no more; of its own queue, surplus only.
                let own = most == self.state().jobs.get(job).queue;
                let over = match right {
                    Right::Class | Right::Across => false,
                    Right::Both if own => false,
                    _ if own => !surplus,
                    _ => !self.gives(job, most, right),
                };
                if over {
                    left.swap_remove(at);
                    continue;
                }
                self.victims_of(most);
                if !surplus && !cursors.contains_key(&most) {
                    cursors.insert(most, self.gone(most));
                }
                let cursor = cursors.entry(most).or_default();
                let claim = (job, right, who, shape.single());
                let Some(unit) = self.next_victim(claim, most, surplus, cursor) else {
                    left.swap_remove(at);
                    continue;
                };
                self.free(&unit);
                freed.push(unit);
                left[at].1 = self.shares.ratio(self.state(), most);
                if let Some(spots) = self.fits_claim(job, who) {
                    return Some((freed, spots));
                }
            }
        }
        None
    }

    /// How many of a queue's whole jobs, from the first, this plan has taken for good.
    fn gone(&mut self, queue: QueueIx) -> usize {
        let Some(victims) = self.victims.get(&queue) else { return 0 };
        let taken = |unit: &Unit| {
            let job = self.state().jobs.get(unit.job);
            job.standing != Standing::Running || self.served.contains(unit.job)
        };
        let more = victims.whole[victims.gone..].iter().take_while(|unit| taken(unit)).count();
        let victims = self.victims.get_mut(&queue).expect("just seen");
        victims.gone += more;
        victims.gone
    }

    /// The place of the queue that uses the most of its share.
    fn most_above(&self, queues: &[(QueueIx, Ratio)]) -> Option<usize> {
        let name = |ix: QueueIx| &self.state().queues.get(ix).spec.name;
        let most = queues
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| a.1.cmp(b.1).then_with(|| name(b.0).cmp(name(a.0))));
        most.map(|(at, _)| at)
    }

    fn next_victim(
        &self,
        (job, right, who, group): (JobIx, Right, Who, Option<&Leaf>),
        queue: QueueIx,
        surplus: bool,
        cursor: &mut usize,
    ) -> Option<Unit> {
        let victims = &self.victims[&queue];
        let list = if surplus { &victims.surplus } else { &victims.whole };
        while let Some(unit) = list.get(*cursor) {
            *cursor += 1;
            let open = self.state().jobs.get(unit.job).live() > 0
                && (!surplus || self.is_live(unit.job, unit.tasks[0]));
            if open && self.eligible(job, unit, right) && self.helps(unit, &who, group) {
                return Some(unit.clone());
            }
        }
        None
    }

    /// Whether anything the unit holds would be there for the group: not what is promised to others.
    fn helps(&self, unit: &Unit, who: &Who, group: Option<&Leaf>) -> bool {
        let Some(group) = group.filter(|group| group.whole().is_some()) else { return true };
        let cluster = &self.state().cluster;
        let mut leases = self.state().jobs.get(unit.job).leases();
        leases.any(|(task, lease)| {
            let node = cluster.node(lease.node);
            unit.takes(task)
                && group.classes.contains(&node.class)
                && node.admits(who)
                && (node.kept.is_empty()
                    || lease.slices.iter().any(|slice| !node.is_kept(slice.gpu, who)))
        })
    }

    pub(super) fn is_live(&self, job: JobIx, task: u32) -> bool {
        let lease = self.state().jobs.get(job).tasks[task as usize].lease.as_ref();
        lease.is_some_and(|lease| lease.stopping.is_none())
    }
}

/// Like tasks that need several GPUs in the right places.
pub(super) fn in_blocks(leaf: &Leaf) -> bool {
    leaf.whole().is_some_and(|g| g > 1 || leaf.min > 1) && leaf.near.is_empty()
}

/// Tasks of a group for which there would be room if GPUs were given up, by the domain it must lie
/// in.
struct Gains<'a> {
    state: &'a State,
    leaf: &'a Leaf,
    g: u32,
    by_domain: BTreeMap<DomainIx, u32>,
}

impl Gains<'_> {
    /// Whether what is free would do, but for promises.
    fn suffice_without(&self) -> bool {
        let cluster = &self.state.cluster;
        match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => {
                let mut free = cluster.counted.iter().flatten();
                free.any(|free| free / self.g >= self.leaf.min)
            }
            Some(Level::Label { .. }) | None => self.leaf.has_room(cluster, self.leaf.min),
        }
    }

    /// Adds what would be given up on a node; whether that is enough now.
    fn add(&mut self, ix: NodeIx, gpu: i64) -> bool {
        let cluster = &self.state.cluster;
        let Some(free) = cluster.counted[ix.at()] else { return false };
        let slots = (i64::from(free) * 1_000 + gpu) / (i64::from(self.g) * 1_000);
        let more = (slots as u32).saturating_sub(free / self.g);
        if more == 0 || !self.leaf.classes.contains(&cluster.node(ix).class) {
            return false;
        }
        let domain = match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => return slots >= i64::from(self.leaf.min),
            Some(Level::Label { topology, depth }) => cluster.domain_of(ix, topology, depth),
            None => Some(WHOLE),
        };
        let Some(domain) = domain else { return false };
        let gained = self.by_domain.entry(domain).or_default();
        *gained += more;
        cluster.room(domain, &self.leaf.classes, self.g) + *gained >= self.leaf.min
    }
}
