//! Victims for tasks that CPU, memory or whatever else a node counts may keep from starting, beside
//! GPUs or without any: on each node the set that costs the least, and of all nodes the cheapest.

use crate::cluster::domain::Level;
use crate::cluster::node::Requester;
use crate::ix::{JobIx, NodeIx, QueueIx};
use crate::plan::displace::by_node::Claim;
use crate::plan::displace::right::Right;
use crate::plan::displace::victim_sets::{Candidate, NodeSets, Order};
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::{NodeVictim, Unit};
use crate::shape::leaf::Leaf;
use berth_model::GpuAsk;
use std::cmp::Reverse;

/// Nodes on which sets of victims are compared, for one task.
const MAX_COMPARED_NODES: usize = 64;

/// Of those, the sets that are tried.
const MAX_TRIED_SETS: usize = 16;

/// Tasks of one gang for which room is made in this way.
const MAX_TASKS: u32 = 256;

/// What is known of a node before its victims are looked at closely: no set there costs less.
type Bound = (Order, usize, NodeIx);

/// What came of making room for one task more.
enum MadeRoom {
    /// The whole job fits, on these places.
    Enough(Vec<Spot>),
    Some,
    None,
}

/// Whether something else than GPUs may bind the tasks of a group.
pub(super) fn is_bound(leaf: &Leaf) -> bool {
    leaf.need.ask == GpuAsk::None
        || leaf.need.cpu > 0
        || leaf.need.memory > 0
        || !leaf.need.counted.is_empty()
}

impl Planner<'_> {
    /// Makes room for one task after the other, each where that costs the least.
    pub(super) fn by_room(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let leaf = shape.single()?;
        if matches!(leaf.together.required, Some(Level::Label { .. })) && leaf.min > 1 {
            return None;
        }
        let claim = Claim { job, right, requester, leaf };
        let rounds = if claim.on_one_node() { 1 } else { leaf.min.min(MAX_TASKS) };
        let mark = self.draft.mark();
        let mut freed: Vec<Unit> = Vec::new();
        for _ in 0..rounds {
            let is_last = claim.leaf.min == claim.at_once();
            match self.make_room(&claim, queues, &mut freed, is_last) {
                MadeRoom::Enough(spots) => return Some((freed, spots)),
                MadeRoom::Some => {}
                MadeRoom::None => break,
            }
        }
        self.draft.roll_back(mark);
        None
    }

    /// Makes room for one task more, or for all that go to one node.
    fn make_room(
        &mut self,
        claim: &Claim<'_>,
        queues: &[QueueIx],
        freed: &mut Vec<Unit>,
        is_last: bool,
    ) -> MadeRoom {
        for candidate in self.cheapest_sets(claim, queues) {
            let (mark, before) = (self.draft.mark(), freed.len());
            let room = self.capacity_on(claim, candidate.node);
            let taken = candidate.units.iter().all(|unit| {
                let is_there = self.is_available(claim, unit, freed);
                if is_there {
                    self.free(unit);
                    freed.push(unit.clone());
                }
                is_there
            });
            if taken {
                if let Some(spots) = self.fits_claim(claim.job, claim.requester) {
                    return MadeRoom::Enough(spots);
                }
                if !is_last && self.capacity_on(claim, candidate.node) > room {
                    return MadeRoom::Some;
                }
            }
            self.draft.roll_back(mark);
            freed.truncate(before);
        }
        MadeRoom::None
    }

    /// The cheapest set of victims of each node that may be among the cheapest of all, in order.
    fn cheapest_sets(&mut self, claim: &Claim<'_>, queues: &[QueueIx]) -> Vec<Candidate> {
        let mut node_victims = std::mem::take(&mut self.node_victims);
        node_victims.refresh(self.draft.state);
        let order = self.order_of_queues(claim, queues);
        let mut giving = vec![false; self.state().queues.all.len()];
        for queue in queues {
            giving[queue.at()] = self.gives(claim.job, *queue, claim.right);
        }
        let gives = |of: QueueIx| giving[of.at()];
        let mut bounds: Vec<Bound> = Vec::new();
        let mut open: Vec<NodeVictim> = Vec::new();
        for at in 0..self.state().cluster.nodes.len() as u32 {
            let ix = NodeIx(at);
            if !self.may_hold_task(claim, ix) {
                continue;
            }
            let here = node_victims.on(ix, || self.victims_on(ix));
            open.clear();
            open.extend(
                here.iter().filter(|of| self.is_open_to(claim, of, &order, gives)).cloned(),
            );
            bounds.extend(self.bound_on(claim, ix, &mut open, &order));
        }
        bounds.sort_unstable();
        let mut found: Vec<Candidate> = Vec::new();
        for (compared, (least, jobs, ix)) in bounds.into_iter().enumerate() {
            let best = found.iter().map(|candidate| &candidate.cost).min();
            let is_best = best.is_some_and(|best| best.is_at_most(least, jobs));
            if is_best || (compared >= MAX_COMPARED_NODES && best.is_some()) {
                break;
            }
            let here = node_victims.on(ix, || self.victims_on(ix));
            let open: Vec<&NodeVictim> =
                here.iter().filter(|of| self.is_open_to(claim, of, &order, gives)).collect();
            let wanted = self.capacity_on(claim, ix) + claim.at_once();
            let sets = NodeSets { planner: self, claim, node: ix, wanted, order: &order };
            found.extend(sets.cheapest(&open));
        }
        self.node_victims = node_victims;
        found.sort_by(|a, b| (&a.cost, a.node).cmp(&(&b.cost, b.node)));
        found.truncate(MAX_TRIED_SETS);
        found
    }

    /// The places of queues in the order in which they give, by ordinal, for claims between queues.
    /// A class takes the lowest class of all. Nothing for queues that do not give.
    fn order_of_queues(&self, claim: &Claim<'_>, queues: &[QueueIx]) -> Vec<Option<usize>> {
        let mut places = vec![None; self.state().queues.all.len()];
        let mut order: Vec<QueueIx> = queues.to_vec();
        if !claim.owed_by_class() {
            let name = |queue: QueueIx| &self.state().queues.get(queue).spec.name;
            order.sort_by(|a, b| {
                let ratio = |queue: QueueIx| self.shares.ratio(self.state(), queue);
                ratio(*b).cmp(ratio(*a)).then_with(|| name(*a).cmp(name(*b)))
            });
        }
        for (at, queue) in order.into_iter().enumerate() {
            places[queue.at()] = Some(if claim.owed_by_class() { 0 } else { at });
        }
        places
    }

    /// Whether a task could be on the node if enough there were gone.
    fn may_hold_task(&self, claim: &Claim<'_>, ix: NodeIx) -> bool {
        let node = self.state().cluster.node(ix);
        !node.tasks.is_empty()
            && node.admits(&claim.requester)
            && claim.leaf.classes.contains(&node.class)
            && claim.leaf.suits(node)
    }

    fn is_open_to(
        &self,
        claim: &Claim<'_>,
        victim: &NodeVictim,
        order: &[Option<usize>],
        gives: impl Fn(QueueIx) -> bool,
    ) -> bool {
        let unit = &victim.unit;
        order[victim.queue.at()].is_some()
            && self.may_be_taken(claim, victim, gives)
            && self.state().jobs.get(unit.job).live() > 0
            && (!unit.surplus || self.is_live(unit.job, unit.tasks[0]))
            && (claim.owed_by_class() || self.eligible(claim.job, unit, claim.right))
    }

    /// What the cheapest set on a node costs at the least, by CPU, memory and whole GPUs alone;
    /// nothing where all of them would not do.
    fn bound_on(
        &self,
        claim: &Claim<'_>,
        ix: NodeIx,
        open: &mut [NodeVictim],
        order: &[Option<usize>],
    ) -> Option<Bound> {
        if open.is_empty() {
            return None;
        }
        let (node, need) = (self.state().cluster.node(ix), &claim.leaf.need);
        let wanted = i64::from(self.capacity_on(claim, ix) + claim.at_once());
        let (cpu, memory) = node.spare(&claim.requester);
        let gpus = i64::from(claim.leaf.whole().unwrap_or(0)) * 1_000;
        let short = [
            need.cpu.saturating_mul(wanted).saturating_sub(cpu),
            need.memory.saturating_mul(wanted).saturating_sub(memory),
            gpus * wanted - i64::from(node.free_whole()) * 1_000,
        ];
        let gives = |victim: &NodeVictim| [victim.cpu, victim.memory, victim.here];
        let rank = |victim: &NodeVictim| Order::of(victim, order);
        open.sort_by_key(rank);
        let (mut left, mut last) = (short, rank(&open[0]));
        for victim in open.iter() {
            if left.iter().all(|short| *short <= 0) {
                break;
            }
            last = rank(victim);
            left.iter_mut().zip(gives(victim)).for_each(|(left, given)| *left -= given);
        }
        if left.iter().any(|short| *short > 0) {
            return None;
        }
        let least = |at: usize| {
            let most = open.iter().map(|victim| gives(victim)[at]).max().unwrap_or(0).max(1);
            usize::try_from(short[at].max(0).div_euclid(most)).unwrap_or(usize::MAX)
                + usize::from(short[at].max(0) % most > 0)
        };
        let jobs = (0..short.len()).map(least).max().unwrap_or(1).max(1);
        Some((last, jobs, ix))
    }

    /// Since when the unit's job runs: the newest goes first.
    pub(super) fn newest_first(&self, unit: &Unit) -> Reverse<berth_model::Time> {
        Reverse(self.state().jobs.get(unit.job).started.unwrap_or(berth_model::Time(0)))
    }
}
