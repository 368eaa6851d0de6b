//! Victims: what a queue may have to give up, in the order it is taken, and which of it makes a job
//! start.

use crate::cluster::node::Requester;
use crate::fair_share::Ratio;
use crate::ix::{JobIx, NodeIx, QueueIx};
use crate::jobs::Standing;
use crate::plan::displace::by_room::is_bound;
use crate::plan::displace::gains::{Gains, in_blocks};
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::{QueueVictims, Unit};
use crate::shape::leaf::Leaf;
use berth_model::{GpuAsk, JobId, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Victims of which every set is looked at before a gang is left waiting.
const MAX_VICTIMS_IN_SETS: usize = 8;

impl Planner<'_> {
    /// Like tasks of several GPUs are made room for node by node, everything else in the order of
    /// the victims.
    pub(super) fn find_victims(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let blocks = shape.single().filter(|leaf| in_blocks(leaf));
        let bound = shape.single().is_some_and(is_bound);
        if blocks.is_some_and(|leaf| !self.room_in_all(leaf, queues)) && !bound {
            return None;
        }
        let mark = self.draft.mark();
        // The order between queues, and places for whole gangs of GPUs, are found below.
        let by_class = matches!(right, Right::Class | Right::Across);
        let single = shape.single().is_some_and(|leaf| leaf.min == 1);
        let without_gpus = shape.single().is_some_and(|leaf| leaf.need.ask == GpuAsk::None);
        let at_once = bound && (without_gpus || by_class && (single || blocks.is_none()));
        if at_once && let Some(found) = self.by_room(job, right, queues, requester) {
            return Some(found);
        }
        self.draft.roll_back(mark);
        if !self.state().disruptions.is_empty() {
            self.spares_budgets = true;
            let found = self.find_in_order(job, right, queues, requester);
            self.spares_budgets = false;
            if found.is_some() {
                return found;
            }
            self.draft.roll_back(mark);
        }
        let found = self.find_in_order(job, right, queues, requester);
        if found.is_some() || !bound || at_once {
            return found;
        }
        self.draft.roll_back(mark);
        self.by_room(job, right, queues, requester)
    }

    /// Victims as their order, or the GPUs of each node, suggest.
    fn find_in_order(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let blocks = shape.single().filter(|leaf| in_blocks(leaf));
        if blocks.is_some_and(|leaf| !self.room_in_all(leaf, queues)) {
            return None;
        }
        let mark = self.draft.mark();
        if blocks.is_none() {
            let found = self.greedy(job, right, queues, requester, &[true, false]);
            let is_share = shape.key.queue.is_some();
            if found.is_some() || !is_share || matches!(right, Right::Class | Right::Across) {
                return found;
            }
            self.draft.roll_back(mark);
            return self.by_gpu(job, right, queues, requester);
        }
        if !self.state().elastic.is_empty() {
            let found = self.greedy(job, right, queues, requester, &[true]);
            if found.is_some() {
                return found;
            }
            self.draft.roll_back(mark);
        }
        let found = self.by_node(job, right, queues, requester);
        // Where no queue stops giving on the way, every node that could help has been tried.
        if found.is_some() || matches!(right, Right::Class | Right::Across) {
            return found;
        }
        self.draft.roll_back(mark);
        let found = self.greedy(job, right, queues, requester, &[true, false]);
        if found.is_some() {
            return found;
        }
        self.draft.roll_back(mark);
        self.largest_first(job, right, queues, requester)
    }

    /// Where a small victim brought its queue down to its share, and a large one out of reach: the
    /// large ones first. Only among a few: of many, some were of the right size.
    fn largest_first(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        const MAX_LARGEST_FIRST: usize = 64;
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
            if units.len() > MAX_LARGEST_FIRST {
                return None;
            }
        }
        units.sort();
        let mark = self.draft.mark();
        let all: Vec<&Unit> = units.iter().map(|(.., unit)| unit).collect();
        let found = self.free_until(job, right, requester, &all);
        if found.is_some() || units.len() > MAX_VICTIMS_IN_SETS {
            return found;
        }
        // Few enough to look at every set, those first that lose the least; in each the small ones
        // first, which bring their queue down the least.
        let wanted = self.state().shape_of(job).amounts.gpu;
        let free: u32 = self.state().cluster.free_by_node.iter().flatten().sum();
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
            self.free_until(job, right, requester, &of_set)
        })
    }

    /// Frees what may be taken of these, in their order, until the job fits.
    fn free_until(
        &mut self,
        job: JobIx,
        right: Right,
        requester: Requester,
        units: &[&Unit],
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let mut freed: Vec<Unit> = Vec::new();
        for unit in units {
            if self.eligible(job, unit, right) {
                self.free(unit);
                freed.push((*unit).clone());
                if let Some(spots) = self.fits_claim(job, requester) {
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
        let mut nodes = cluster.held_by_queue.iter().enumerate();
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
    pub(super) fn victims_of(&mut self, queue: QueueIx) {
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
        let victims = QueueVictims {
            surplus: surplus
                .into_iter()
                .map(|(.., tasks, job)| Unit { job, tasks, surplus: true })
                .collect(),
            whole: whole
                .into_iter()
                .map(|(.., job)| Unit { job, tasks: Vec::new(), surplus: false })
                .collect(),
            preempted: 0,
        };
        self.victims.insert(queue, victims);
    }

    /// Frees victims in their order until the job fits.
    fn greedy(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
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
                    cursors.insert(most, self.preempted(most));
                }
                let cursor = cursors.entry(most).or_default();
                let claim = (job, right, requester, shape.single());
                let Some(unit) = self.next_victim(claim, most, surplus, cursor) else {
                    left.swap_remove(at);
                    continue;
                };
                self.free(&unit);
                freed.push(unit);
                left[at].1 = self.shares.ratio(self.state(), most);
                if let Some(spots) = self.fits_claim(job, requester) {
                    return Some((freed, spots));
                }
            }
        }
        None
    }

    /// How many of a queue's whole jobs, from the first, this plan has taken for good.
    fn preempted(&mut self, queue: QueueIx) -> usize {
        let Some(victims) = self.victims.get(&queue) else { return 0 };
        let taken = |unit: &Unit| {
            let job = self.state().jobs.get(unit.job);
            job.standing != Standing::Running || self.served.contains(unit.job)
        };
        let more = victims.whole[victims.preempted..].iter().take_while(|unit| taken(unit)).count();
        let victims = self.victims.get_mut(&queue).expect("just seen");
        victims.preempted += more;
        victims.preempted
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
        (job, right, requester, group): (JobIx, Right, Requester, Option<&Leaf>),
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
            if open && self.eligible(job, unit, right) && self.helps(unit, &requester, group) {
                return Some(unit.clone());
            }
        }
        None
    }

    /// Whether anything the unit holds would be there for the group: not what is promised to others.
    fn helps(&self, unit: &Unit, requester: &Requester, group: Option<&Leaf>) -> bool {
        let Some(group) = group.filter(|group| group.whole().is_some()) else { return true };
        let cluster = &self.state().cluster;
        let mut leases = self.state().jobs.get(unit.job).leases();
        leases.any(|(task, lease)| {
            let node = cluster.node(lease.node);
            unit.takes(task)
                && group.classes.contains(&node.class)
                && node.admits(requester)
                && (node.promised_slots.is_empty()
                    || lease.slices.iter().any(|slice| !node.is_promised_gpu(slice.gpu, requester)))
        })
    }
}
