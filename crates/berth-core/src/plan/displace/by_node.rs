//! Victims for tasks of several GPUs, node by node: freeing in the order of the victims would free
//! GPUs in the wrong places.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::Requester;
use crate::ix::{DomainIx, JobIx, NodeIx, QueueIx};
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::{NodeVictim, Unit};
use crate::shape::leaf::Leaf;
use std::collections::BTreeMap;

/// A claim that room is made for.
pub(crate) struct Claim<'a> {
    pub(super) job: JobIx,
    pub(super) right: Right,
    pub(super) requester: Requester,
    pub(super) leaf: &'a Leaf,
}

impl Claim<'_> {
    /// Whether the class alone decides who gives: then no victim brings another out of reach.
    pub(super) fn owed_by_class(&self) -> bool {
        matches!(self.right, Right::Class | Right::Across)
    }

    /// Whether all tasks go to one node.
    pub(super) fn on_one_node(&self) -> bool {
        matches!(self.leaf.together.required, Some(Level::Node | Level::Nvlink))
    }

    /// For how many tasks there has to be room on a node before it counts.
    pub(super) fn at_once(&self) -> u32 {
        if self.on_one_node() { self.leaf.min } else { 1 }
    }
}

/// What came of making room on a node.
enum Cleared {
    /// The job fits.
    Enough(Vec<Spot>),
    /// One more of its tasks does.
    More,
    Nothing,
}

/// Nodes on which every set of victims is tried, for one claim. Where that many nodes do not help,
/// waiting is better than searching on.
const MAX_SEARCHED_NODES: u32 = 16;

/// Victims on a node up to which every set of them is tried.
const MAX_VICTIMS_PER_NODE: usize = 8;

/// What room costs: the highest class that gives way, where classes decide, and the work lost.
type Price = (i32, i128);

/// Nodes with what room on them would cost.
type Priced = Vec<(Price, NodeIx)>;

impl Planner<'_> {
    /// Where victims in their order free GPUs in the wrong places: goes node by node, those first
    /// that cost the least work for each task they make room for.
    pub(super) fn by_node(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let leaf = shape.single()?;
        let claim = Claim { job, right, requester, leaf };
        let g = i64::from(leaf.whole()?) * 1_000 * i64::from(claim.at_once());
        let mut costs = self.costs_by_node(&claim, queues, g);
        costs.sort_unstable();
        let cluster = &self.state().cluster;
        let mut by_domain: BTreeMap<(DomainIx, Option<NodeIx>), Priced> = BTreeMap::new();
        for (cost, _, node) in costs {
            let domain = match leaf.together.required {
                Some(Level::Label { topology, depth }) => cluster.domain_of(node, topology, depth),
                _ => Some(WHOLE),
            };
            if let Some(domain) = domain {
                let alone = claim.on_one_node().then_some(node);
                by_domain.entry((domain, alone)).or_default().push((cost, node));
            }
        }
        // Domains by what the cheapest nodes in them would cost.
        let mut plans: Vec<(Price, NodeIx, Vec<NodeIx>)> = Vec::new();
        for nodes in by_domain.into_values() {
            let first = || nodes.iter().take(leaf.min as usize).map(|(price, _)| *price);
            let highest = first().map(|(class, _)| class).max().unwrap_or(i32::MIN);
            let cost = (highest, first().map(|(_, loss)| loss).sum());
            let nodes: Vec<NodeIx> = nodes.into_iter().map(|(_, node)| node).collect();
            plans.push((cost, nodes[0], nodes));
        }
        plans.sort();
        let mut closely = MAX_SEARCHED_NODES;
        for (_, _, nodes) in plans {
            let mark = self.draft.mark();
            let mut freed: Vec<Unit> = Vec::new();
            for node in nodes {
                let here = self.units_on(&claim, queues, node);
                loop {
                    match self.clear(&claim, node, &here, &mut freed, &mut closely) {
                        Cleared::Enough(spots) => return Some((freed, spots)),
                        Cleared::More => {}
                        Cleared::Nothing => break,
                    }
                }
            }
            self.draft.roll_back(mark);
        }
        None
    }

    /// Makes room for one more task on a node, or for all where they go to one, or leaves it as it
    /// is. Taking one victim may bring its queue down to its share, so that the next is out of reach:
    /// where the cheapest do not suffice, every choice among them is looked at.
    fn clear(
        &mut self,
        claim: &Claim<'_>,
        node: NodeIx,
        here: &[Unit],
        freed: &mut Vec<Unit>,
        closely: &mut u32,
    ) -> Cleared {
        let room = self.capacity_on(claim, node);
        if room >= claim.leaf.min {
            return Cleared::Nothing;
        }
        let cleared = self.clear_by(claim, node, here.iter(), freed);
        let open = here.iter().filter(|unit| self.is_available(claim, unit, freed));
        let open: Vec<&Unit> = open.collect();
        let choices = 2..=MAX_VICTIMS_PER_NODE;
        let out_of_reach = matches!(cleared, Cleared::Nothing) && choices.contains(&open.len());
        if !out_of_reach || claim.owed_by_class() || *closely == 0 {
            return cleared;
        }
        *closely -= 1;
        for choice in self.choices(claim, node, &open) {
            let cleared = self.clear_by(claim, node, choice.into_iter(), freed);
            if !matches!(cleared, Cleared::Nothing) {
                return cleared;
            }
        }
        Cleared::Nothing
    }

    /// Sets of units that would make room for a task if all of them could be taken, those first that
    /// lose the least; the smallest unit of each set first, which brings its queue down the least.
    fn choices<'u>(
        &self,
        claim: &Claim<'_>,
        node: NodeIx,
        open: &[&'u Unit],
    ) -> Vec<Vec<&'u Unit>> {
        let state = self.state();
        let free = i64::from(state.cluster.free_by_node[node.at()].unwrap_or(0)) * 1_000;
        let each = i64::from(claim.leaf.whole().unwrap_or(1)).max(1) * 1_000;
        let wanted = each * i64::from(claim.at_once());
        let spare = if claim.on_one_node() { free } else { free % each };
        let loss = |unit: &Unit| if unit.surplus { 0 } else { state.loss(unit.job) };
        let all = |unit: &Unit| -> i64 {
            let leases = state.jobs.get(unit.job).leases().filter(|(task, _)| unit.takes(*task));
            leases.map(|(_, lease)| lease.charge.gpu).sum()
        };
        let mut open: Vec<(i64, i64, i128, &Unit)> = open
            .iter()
            .map(|unit| (all(unit), self.held_on(unit, node), loss(unit), *unit))
            .collect();
        open.sort_by_key(|(all, _, loss, unit)| {
            (*all, *loss, state.jobs.get(unit.job).id, unit.tasks.clone())
        });
        let mut sets: Vec<(i128, u32)> = Vec::new();
        for set in 1..1_u32 << open.len() {
            let of_set = || open.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
            let room = spare + of_set().map(|(_, (_, here, _, _))| here).sum::<i64>();
            if room >= wanted {
                sets.push((of_set().map(|(_, (_, _, loss, _))| loss).sum(), set));
            }
        }
        sets.sort_unstable();
        let units = |set: u32| {
            let chosen = open.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
            chosen.map(|(_, (_, _, _, unit))| *unit).collect()
        };
        sets.into_iter().map(|(_, set)| units(set)).collect()
    }

    /// Frees units in this order until there is room for one more task on the node; if they do not
    /// suffice, none.
    fn clear_by<'u>(
        &mut self,
        claim: &Claim<'_>,
        node: NodeIx,
        units: impl Iterator<Item = &'u Unit>,
        freed: &mut Vec<Unit>,
    ) -> Cleared {
        let (mark, before) = (self.draft.mark(), freed.len());
        let enough = (self.capacity_on(claim, node) + 1).max(claim.at_once());
        for unit in units {
            if !self.is_available(claim, unit, freed) {
                continue;
            }
            self.free(unit);
            freed.push(unit.clone());
            if let Some(spots) = self.fits_claim(claim.job, claim.requester) {
                return Cleared::Enough(spots);
            }
            if self.capacity_on(claim, node) >= enough {
                return Cleared::More;
            }
        }
        self.draft.roll_back(mark);
        freed.truncate(before);
        Cleared::Nothing
    }

    pub(super) fn capacity_on(&self, claim: &Claim<'_>, node: NodeIx) -> u32 {
        let target = self.state().cluster.node(node);
        target.capacity(&claim.leaf.need, &claim.requester, claim.leaf.min)
    }

    /// Whether the unit is still there to be taken.
    pub(super) fn is_available(&self, claim: &Claim<'_>, unit: &Unit, freed: &[Unit]) -> bool {
        !freed.contains(unit)
            && self.state().jobs.get(unit.job).live() > 0
            && (!unit.surplus || self.is_live(unit.job, unit.tasks[0]))
            && self.eligible(claim.job, unit, claim.right)
    }

    /// What one task, or all of them, would cost on each node where victims and what is free make
    /// room for it: the cheapest victims until there is.
    fn costs_by_node(
        &mut self,
        claim: &Claim<'_>,
        queues: &[QueueIx],
        g: i64,
    ) -> Vec<(Price, usize, NodeIx)> {
        let mut node_victims = std::mem::take(&mut self.node_victims);
        node_victims.refresh(self.draft.state);
        let state = self.state();
        let from = self.among(queues);
        let mut giving = vec![false; state.queues.all.len()];
        for queue in queues {
            giving[queue.at()] = self.gives(claim.job, *queue, claim.right);
        }
        let nodes: Vec<NodeIx> = match queues {
            [queue] => state.queues.get(*queue).on_nodes.keys().copied().collect(),
            _ => (0..state.cluster.nodes.len() as u32).map(NodeIx).collect(),
        };
        let mut costs: Vec<(Price, usize, NodeIx)> = Vec::new();
        for ix in nodes {
            let Some(free) = state.cluster.free_by_node[ix.at()] else { continue };
            let taken = state.cluster.held_by_queue[ix.at()].of(&from);
            let mut room = i64::from(free) * 1_000;
            if taken == 0 || taken + room < g {
                continue;
            }
            let node = state.cluster.node(ix);
            if !claim.leaf.classes.contains(&node.class) || !claim.leaf.suits(node) {
                continue;
            }
            let here = node_victims.on(ix, || self.victims_on(ix));
            let (mut highest, mut cost, mut count) = (i32::MIN, 0, 0);
            let gives = |queue: QueueIx| giving[queue.at()];
            for node_victim in here.iter().filter(|node_victim| from[node_victim.queue.at()]) {
                if room >= g {
                    break;
                }
                if self.may_be_taken(claim, node_victim, gives) {
                    room += node_victim.here;
                    if claim.owed_by_class() {
                        highest = highest.max(node_victim.class());
                    }
                    cost += node_victim.loss;
                    count += 1;
                }
            }
            if room >= g {
                costs.push(((highest, cost), count, ix));
            }
        }
        self.node_victims = node_victims;
        costs
    }

    pub(super) fn may_be_taken(
        &self,
        claim: &Claim<'_>,
        node_victim: &NodeVictim,
        gives: impl Fn(QueueIx) -> bool,
    ) -> bool {
        let state = self.state();
        let claimant = state.jobs.get(claim.job);
        let victim = (node_victim.queue, node_victim.priority, node_victim.unit.surplus);
        node_victim.open && claim.right.reaches(state, claimant, victim, gives)
    }
}
