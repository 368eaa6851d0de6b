//! Why a job that would fit the empty cluster does not fit what is free now.

use crate::cluster::domain::{Level, WHOLE};
use crate::cluster::node::Requester;
use crate::cluster::tenants::Apart;
use crate::ix::{DomainIx, JobIx, NodeIx, TaskIx};
use crate::jobs::Lease;
use crate::plan::fit::fit;
use crate::plan::fit::spot::{Misfit, Spot};
use crate::plan::planner::Planner;
use crate::reasons::group::Group;
use crate::reasons::rooms::{Rooms, bare, on_node, suits, timeless};
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::{Micros, Milli, Name, NodeState, Reason, Reservation, Shortage, Time};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Unlike tasks that are placed one by one for a figure, at the most.
const MAX_PLACED_TASKS: u32 = 256;

impl Planner<'_> {
    /// What is short for a job that fits the empty cluster.
    pub(super) fn misfit(&mut self, job: JobIx, rooms: &Rooms) -> Vec<Reason> {
        let requester = timeless(&self.requester(job));
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let mut cut_off = false;
        let short = shape.single().is_some_and(|leaf| {
            let (state, plain) = (self.state(), bare(leaf));
            let lacks =
                |domain| rooms.tasks(state, &plain, domain, &requester, leaf.min) < leaf.min;
            lacks(WHOLE)
                || match leaf.together.required {
                    Some(Level::Label { topology, depth }) => {
                        state.cluster.domains_of(topology, depth).all(lacks)
                    }
                    _ => false,
                }
        });
        if !short {
            let mark = self.draft.mark();
            let last_tried = fit(&mut self.draft, &self.mix, job, requester);
            self.draft.roll_back(mark);
            match last_tried {
                Ok(spots) => return self.kept_from(job, &spots),
                Err(misfit) => cut_off = misfit == Misfit::CutOff,
            }
        }
        if let Some(beside) = self.beside_others(job, &shape, rooms, requester) {
            return vec![beside];
        }
        let state = self.state();
        let mut found = Vec::new();
        for leaf in &shape.leaves {
            found.extend(Group { state, rooms, leaf, requester }.reasons());
        }
        if found.is_empty() {
            self.no_common_domain(job, &shape, &shape.tree, &requester, &mut found);
        }
        if !found.is_empty() {
            return found;
        }
        if cut_off {
            return vec![Reason::SearchBound { steps: self.state().policy.search }];
        }
        vec![self.together(job, &shape, rooms, requester)]
    }

    /// There would be room if shares might lie beside those of other queues.
    fn beside_others(
        &mut self,
        job: JobIx,
        shape: &Shape,
        rooms: &Rooms,
        requester: Requester,
    ) -> Option<Reason> {
        shape.key.queue?;
        let anywhere = Requester { apart: Apart::None, ..requester };
        let mark = self.draft.mark();
        let fits = fit(&mut self.draft, &self.mix, job, anywhere).is_ok();
        self.draft.roll_back(mark);
        let state = self.state();
        let free = |requester: &Requester| {
            shape.leaves.iter().map(|leaf| rooms.free(state, leaf, requester).0).max().unwrap_or(0)
        };
        let asks = Milli(shape.amounts.gpu);
        fits.then(|| Reason::BesideOthers { asks, free: Milli(free(&anywhere) - free(&requester)) })
    }

    /// Each group fits alone, but not all of them beside each other.
    fn together(
        &mut self,
        job: JobIx,
        shape: &Shape,
        rooms: &Rooms,
        requester: Requester,
    ) -> Reason {
        let state = self.state();
        let asks = Milli(shape.amounts.gpu);
        let free = shape.leaves.iter().map(|leaf| rooms.free(state, leaf, &requester)).max();
        let free = free.unwrap_or(Milli::ZERO);
        let tasks: u32 = shape.leaves.iter().map(|leaf| leaf.min).sum();
        let all: Vec<usize> = (0..shape.leaves.len()).collect();
        let fit = self.place_some(job, shape, &all, WHOLE, &requester).min(tasks - 1);
        let short = if free < asks { Shortage::Gpu } else { Shortage::Fragments };
        Reason::NoFit { short, asks, free, tasks, fit }
    }

    /// Groups of groups that must lie together: the best domain for them.
    fn no_common_domain(
        &mut self,
        job: JobIx,
        shape: &Shape,
        tree: &Tree,
        requester: &Requester,
        found: &mut Vec<Reason>,
    ) {
        let Tree::Group { children, together, .. } = tree else { return };
        for child in children {
            self.no_common_domain(job, shape, child, requester, found);
        }
        let Some(level @ Level::Label { topology, depth }) = together.required else { return };
        let leaves = tree.leaves();
        let tasks: u32 = leaves.iter().map(|at| shape.leaves[*at].min).sum();
        let domains = self.state().cluster.domains_in_order(topology, depth);
        let mut best = (0, Name::default());
        for domain in domains {
            let fit = self.place_some(job, shape, &leaves, domain, requester);
            if fit > best.0 {
                best = (fit, self.state().cluster.domains[domain.at()].name.clone());
            }
        }
        let (fit, best) = best;
        if fit < tasks {
            let level = self.state().cluster.level_name(level);
            found.push(Reason::NoDomain { level, tasks, best, fit });
        }
    }

    /// How many tasks of these groups find a place in the domain, the largest first.
    fn place_some(
        &mut self,
        job: JobIx,
        shape: &Shape,
        leaves: &[usize],
        domain: DomainIx,
        requester: &Requester,
    ) -> u32 {
        let mark = self.draft.mark();
        let mut leaves: Vec<&Leaf> = leaves.iter().map(|at| &shape.leaves[*at]).collect();
        leaves.sort_by_key(|leaf| Reverse(leaf.gpu_milli(&self.state().cluster)));
        let mut placed = 0;
        for leaf in leaves {
            for task in leaf.first..leaf.first + leaf.min {
                let state = self.state();
                let nodes = &state.cluster.domains[domain.at()].nodes;
                let place = nodes.iter().find_map(|ix| {
                    let node = state.cluster.node(*ix);
                    let slices =
                        suits(leaf, node).then(|| node.choose(&leaf.need, requester))??;
                    Some((*ix, slices))
                });
                let Some((node, slices)) = place.filter(|_| placed < MAX_PLACED_TASKS) else {
                    break;
                };
                let lease = Lease {
                    attempt: 0,
                    node,
                    charge: state.charge_of(leaf, node, &slices),
                    price: Micros::ZERO,
                    since: state.now,
                    bound: false,
                    stopping: None,
                    slices,
                };
                self.draft.open(TaskIx { job, task }, lease);
                placed += 1;
            }
        }
        self.draft.roll_back(mark);
        placed
    }

    /// The job would fit these places if they were not kept for others, or about to go.
    fn kept_from(&self, job: JobIx, spots: &[Spot]) -> Vec<Reason> {
        let state = self.state();
        let requester = self.requester(job);
        let mut jobs = BTreeSet::new();
        let mut from = Time::MAX;
        let mut leaves_at: Option<Time> = None;
        let mut blocked: BTreeSet<&Name> = BTreeSet::new();
        for spot in spots {
            let node = state.cluster.node(spot.node);
            let need = &state.leaf_of(job, spot.task).need;
            let (cpu, memory) = node.spare(&requester);
            let crowded =
                cpu < need.cpu || memory < need.memory || !node.takes_one(need, &requester);
            for kept in node.conflicts(&requester) {
                let same = kept.slices.iter().any(|k| {
                    let mut own = spot.slices.iter();
                    own.any(|slice| node.reaches(kept, k.gpu, slice.gpu, requester.queue))
                });
                if same || crowded {
                    jobs.insert(kept.job);
                    from = from.min(kept.from.max(state.now));
                }
            }
            if let NodeState::Leaving { at } = node.spec.state
                && requester.until > at
            {
                leaves_at = leaves_at.into_iter().chain([at]).min();
            }
            let here = |nodes: &[Name]| nodes.contains(&node.spec.name);
            blocked.extend(
                reserved(state, &requester).filter(|held| here(&held.nodes)).map(|held| &held.name),
            );
        }
        let leaf = state.leaf_of(job, spots.first().map_or(0, |spot| spot.task));
        let free = timeless(&requester);
        let room = |ix: NodeIx| on_node(state, leaf, ix, &free, 1) > 0;
        let mut found = Vec::new();
        if let Some(at) = leaves_at {
            let leaving = state.cluster.live().filter(|(ix, node)| {
                matches!(node.spec.state, NodeState::Leaving { .. }) && room(*ix)
            });
            let nodes = leaving.count() as u32;
            found.push(Reason::Leaving { nodes, within: at - state.now });
        }
        for name in blocked {
            let held = &state.reservations[name];
            let nodes = held.nodes.iter().filter_map(|node| state.cluster.find(node));
            found.push(Reason::ReservedByOperator {
                name: name.clone(),
                nodes: nodes.filter(|ix| room(*ix)).count() as u32,
                from: held.from,
                to: held.to,
            });
        }
        if !jobs.is_empty() {
            found.push(Reason::ReservedForOthers { from, jobs: jobs.len() as u32 });
        }
        found
    }
}

/// Operators' reservations that `requester` would run into.
fn reserved<'a>(state: &'a State, requester: &Requester) -> impl Iterator<Item = &'a Reservation> {
    let (queue, now, until) = (requester.queue, requester.now, requester.until);
    state.reservations.values().filter(move |held| {
        state.queues.find(&held.owner) != Some(queue) && held.from < until && now < held.to
    })
}
