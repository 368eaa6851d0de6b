//! Sets of victims on one node, and what each costs.

use crate::cluster::node::{Node, TaskAmounts};
use crate::ix::{NodeIx, TaskIx};
use crate::plan::displace::by_node::Claim;
use crate::plan::planner::Planner;
use crate::plan::units::{NodeVictim, Unit};
use berth_model::{JobId, Share, Time};
use std::cmp::Reverse;

/// A minute of one GPU: sets that lose the same but for less than that lose the same.
const STEP_OF_LOSS: i128 = 60_000 * 1_000;

/// Victims of which every set is looked at.
const MAX_IN_ALL_SETS: usize = 8;

/// Where a victim stands in the order in which they are taken: surplus first, then the queue that
/// gives first, in it the lowest class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    is_whole: bool,
    queue: usize,
    class: i32,
}

impl Order {
    /// `queues` has the place of each queue by ordinal.
    pub(super) fn of(victim: &NodeVictim, queues: &[Option<usize>]) -> Order {
        let at = queues[victim.queue.at()].unwrap_or(0);
        match victim.unit.surplus {
            true => Order { is_whole: false, queue: 0, class: i32::MIN },
            false => Order { is_whole: true, queue: at, class: victim.priority },
        }
    }
}

/// What a set costs: the cheaper one is less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    /// Stops beyond what disruption budgets allow.
    violations: u32,
    /// The last of them in the order of victims.
    last: Order,
    /// The work that is lost, in steps.
    loss: i128,
    jobs: usize,
    /// All of them in the order of victims, the last one first.
    orders: Vec<Order>,
    /// The newest first: since when the oldest runs.
    oldest: Reverse<Time>,
    ids: Vec<JobId>,
}

impl Cost {
    /// Whether no set of so many jobs, with that one last, costs less.
    pub(super) fn is_at_most(&self, last: Order, jobs: usize) -> bool {
        let own = (self.last, self.loss, self.jobs);
        // Of as many others some may be of lower classes.
        self.violations == 0 && (own < (last, 0, jobs) || own == (last, 0, 1))
    }
}

/// A set of victims on a node.
pub(super) struct Candidate {
    pub(super) cost: Cost,
    pub(super) node: NodeIx,
    pub(super) units: Vec<Unit>,
}

/// What sets are sought for.
pub(super) struct NodeSets<'p, 's, 'c> {
    pub(super) planner: &'p Planner<'s>,
    pub(super) claim: &'c Claim<'c>,
    pub(super) node: NodeIx,
    /// For so many tasks there has to be room.
    pub(super) wanted: u32,
    pub(super) order: &'c [Option<usize>],
}

impl NodeSets<'_, '_, '_> {
    /// The cheapest set that makes room, of those that are looked at: none in it is needless.
    pub(super) fn cheapest(&self, open: &[&NodeVictim]) -> Option<Candidate> {
        let mut open = self.in_order(open);
        let mut node = self.planner.state().cluster.node(self.node).clone();
        let mut enough = 0;
        while !self.has_room(&node) {
            self.remove(&mut node, &open.get(enough)?.1.unit);
            enough += 1;
        }
        // Of the last one's kind another may do better.
        let kind = |(is_beyond, victim): &(bool, &NodeVictim)| (*is_beyond, self.rank(victim));
        let last = kind(&open[enough.checked_sub(1)?]);
        while let Some(next) = open.get(enough).filter(|next| kind(next) == last) {
            self.remove(&mut node, &next.1.unit);
            enough += 1;
        }
        open.truncate(enough);
        let open: Vec<&NodeVictim> = open.into_iter().map(|(_, victim)| victim).collect();
        let mut sets: Vec<Vec<&NodeVictim>> = Vec::new();
        // Given back: the dearest first, or those first that hold the least.
        let dearest: Vec<usize> = (0..open.len()).rev().collect();
        sets.push(self.without_needless(node.clone(), &open, &dearest));
        let mut smallest = dearest;
        smallest.sort_by_key(|at| (self.part_of_need(open[*at]), Reverse(*at)));
        sets.push(self.without_needless(node, &open, &smallest));
        sets.extend(self.small_sets(&open));
        let priced = sets.into_iter().map(|set| (self.cost(&set), set));
        let (cost, set) = priced.min_by(|(a, _), (b, _)| a.cmp(b))?;
        let units = set.into_iter().map(|victim| victim.unit.clone()).collect();
        Some(Candidate { cost, node: self.node, units })
    }

    /// As they are taken, and whether each is beyond its budgets when those before it are taken:
    /// these come last.
    fn in_order<'v>(&self, open: &[&'v NodeVictim]) -> Vec<(bool, &'v NodeVictim)> {
        let mut open = open.to_vec();
        open.sort_by_cached_key(|victim| {
            let id = self.planner.state().jobs.get(victim.unit.job).id;
            let newest = self.planner.newest_first(&victim.unit);
            (self.rank(victim), victim.loss, newest, id, victim.unit.tasks.clone())
        });
        if self.planner.state().disruptions.is_empty() {
            return open.into_iter().map(|victim| (false, victim)).collect();
        }
        let (mut within, mut beyond): (Vec<&NodeVictim>, Vec<&NodeVictim>) = Default::default();
        for victim in open {
            let with: Vec<&Unit> =
                within.iter().map(|known| &known.unit).chain([&victim.unit]).collect();
            match self.planner.budget_violations(&with) {
                0 => within.push(victim),
                _ => beyond.push(victim),
            }
        }
        let within = within.into_iter().map(|victim| (false, victim));
        within.chain(beyond.into_iter().map(|victim| (true, victim))).collect()
    }

    fn rank(&self, victim: &NodeVictim) -> Order {
        Order::of(victim, self.order)
    }

    /// What a victim holds on the node, as the largest part of what one task asks for.
    fn part_of_need(&self, victim: &NodeVictim) -> i128 {
        let need = &self.claim.leaf.need;
        let part = |has: i64, asks: i64| match asks {
            0 => 0,
            asks => i128::from(has) * 1_000_000 / i128::from(asks),
        };
        let gpus = i64::from(self.claim.leaf.whole().unwrap_or(0)) * 1_000;
        let parts =
            [part(victim.cpu, need.cpu), part(victim.memory, need.memory), part(victim.here, gpus)];
        parts.into_iter().max().unwrap_or(0)
    }

    fn has_room(&self, node: &Node) -> bool {
        let Claim { leaf, requester, .. } = self.claim;
        node.capacity(&leaf.need, requester, self.wanted) >= self.wanted
    }

    /// What is left of the set when those that are not needed are given back, in this order.
    fn without_needless<'v>(
        &self,
        mut node: Node,
        open: &[&'v NodeVictim],
        order: &[usize],
    ) -> Vec<&'v NodeVictim> {
        let mut needed = vec![true; open.len()];
        for at in order {
            let unit = &open[*at].unit;
            let before = self.has_instances(unit).then(|| node.clone());
            self.restore(&mut node, unit);
            if self.has_room(&node) {
                needed[*at] = false;
            } else if let Some(before) = before {
                node = before;
            } else {
                self.remove(&mut node, unit);
            }
        }
        let kept = open.iter().zip(needed).filter(|(_, needed)| *needed);
        kept.map(|(victim, _)| *victim).collect()
    }

    /// Single victims that make room alone; of few victims all sets that do.
    fn small_sets<'v>(&self, open: &[&'v NodeVictim]) -> Vec<Vec<&'v NodeVictim>> {
        let node = self.planner.state().cluster.node(self.node);
        let makes_room = |set: &[&NodeVictim]| {
            let mut node = node.clone();
            set.iter().for_each(|victim| self.remove(&mut node, &victim.unit));
            self.has_room(&node)
        };
        if open.len() > MAX_IN_ALL_SETS {
            let single = open.iter().map(|victim| vec![*victim]);
            return single.filter(|set| makes_room(set)).collect();
        }
        let sets = (1..1_u32 << open.len()).map(|set| {
            let chosen = open.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
            chosen.map(|(_, victim)| *victim).collect::<Vec<&NodeVictim>>()
        });
        sets.filter(|set| makes_room(set)).collect()
    }

    fn cost(&self, set: &[&NodeVictim]) -> Cost {
        let units: Vec<&Unit> = set.iter().map(|victim| &victim.unit).collect();
        let state = self.planner.state();
        let mut ids: Vec<JobId> = units.iter().map(|unit| state.jobs.get(unit.job).id).collect();
        ids.sort();
        let first = Order { is_whole: false, queue: 0, class: i32::MIN };
        let mut orders: Vec<Order> = set.iter().map(|victim| self.rank(victim)).collect();
        orders.sort_unstable_by_key(|order| Reverse(*order));
        let oldest = units.iter().map(|unit| self.planner.newest_first(unit)).max();
        Cost {
            violations: self.planner.budget_violations(&units),
            last: orders.first().copied().unwrap_or(first),
            loss: set.iter().map(|victim| victim.loss).sum::<i128>() / STEP_OF_LOSS,
            jobs: set.len(),
            orders,
            oldest: oldest.unwrap_or(Reverse(Time(0))),
            ids,
        }
    }

    /// Whether the unit holds instances of divided GPUs, which giving and taking do not restore.
    fn has_instances(&self, unit: &Unit) -> bool {
        let mut leases = self.planner.state().jobs.get(unit.job).leases();
        leases.any(|(_, lease)| lease.slices.iter().any(|s| matches!(s.share, Share::Mig(_))))
    }

    fn remove(&self, node: &mut Node, unit: &Unit) {
        self.each_lease(unit, |task, slices, held| {
            // What a gang has to spare may be gone already when the whole of it goes.
            if node.tasks.contains(&task) {
                let held = held.bound(&node.spec);
                node.give(task, slices, held);
            }
        });
    }

    fn restore(&self, node: &mut Node, unit: &Unit) {
        self.each_lease(unit, |task, slices, held| {
            if !node.tasks.contains(&task) {
                let held = held.bound(&node.spec);
                node.take(task, slices, held);
            }
        });
    }

    /// The live leases of a unit on the node.
    fn each_lease(
        &self,
        unit: &Unit,
        mut act: impl FnMut(TaskIx, &[berth_model::Slice], TaskAmounts<'_>),
    ) {
        let state = self.planner.state();
        let job = state.jobs.get(unit.job);
        for (task, lease) in job.leases() {
            if lease.node != self.node || lease.stopping.is_some() || !unit.takes(task) {
                continue;
            }
            let counted = &state.leaf_of(unit.job, task).need.counted;
            let (cpu, memory) = (lease.charge.cpu, lease.charge.memory);
            let held = TaskAmounts { queue: job.queue, cpu, memory, counted };
            act(TaskIx { job: unit.job, task }, &lease.slices, held);
        }
    }
}
