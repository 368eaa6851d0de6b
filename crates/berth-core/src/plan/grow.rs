//! Growing elastic gangs on GPUs that no waiting minimum could use now. It is the last pass, and
//! what it gives is taken back first.

use crate::amounts::Amounts;
use crate::cluster::domain::Level;
use crate::ix::{DomainIx, JobIx};
use crate::jobs::Standing;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::shape::Shape;
use crate::shape::tree::Tree;
use crate::transaction::Transaction;
use berth_model::{Decision, JobId};
use std::cmp::Reverse;

impl Planner<'_> {
    pub(super) fn grow(&mut self) {
        let state = self.state();
        let mut elastic: Vec<(Reverse<i32>, berth_model::Time, JobId, JobIx)> = state
            .elastic
            .iter()
            .filter_map(|id| {
                let ix = state.jobs.find(*id)?;
                let job = state.jobs.get(ix);
                let fits = job.standing == Standing::Running
                    && job.stale_since.is_none()
                    && job.done == 0
                    && !job.failed
                    && !job.cancelled
                    && !self.shrinking(ix)
                    && !self.halved(ix);
                fits.then_some((Reverse(job.priority), job.spec.submitted, *id, ix))
            })
            .collect();
        elastic.sort();
        for (_, _, id, ix) in elastic {
            let mut spots = Vec::new();
            let shape = self.state().shapes[self.state().jobs.get(ix).shape.at()].clone();
            self.grow_in(ix, &shape, &shape.tree, crate::cluster::domain::WHOLE, &mut spots);
            if spots.is_empty() {
                continue;
            }
            let state = self.state();
            let job = state.jobs.get(ix);
            let decisions = spots
                .iter()
                .map(|spot| {
                    let cpu = state.leaf_of(ix, spot.task).need.cpu;
                    Decision::Start {
                        lease: job.lease_id(spot.task, job.tasks[spot.task as usize].attempts),
                        node: state.cluster.node(spot.node).spec.name.clone(),
                        slices: spot.slices.clone(),
                        price: state.price_of(spot.node, &spot.slices, cpu),
                        resume: false,
                    }
                })
                .collect();
            // A gang that starts in this plan grows in the same transaction.
            let own = self.transactions.iter_mut().find(|transaction| {
                transaction.job == Some(id)
                    && matches!(transaction.decisions.first(), Some(Decision::Start { .. }))
            });
            match own {
                Some(transaction) => transaction.decisions.extend::<Vec<Decision>>(decisions),
                None => self.transactions.push(Transaction { job: Some(id), decisions }),
            }
        }
    }

    /// Grows the groups that run by single tasks, and adds groups the job can do without.
    fn grow_in(
        &mut self,
        ix: JobIx,
        shape: &Shape,
        tree: &Tree,
        home: DomainIx,
        spots: &mut Vec<Spot>,
    ) {
        match tree {
            Tree::Leaf(at) => {
                while let Some(more) = self.more(ix, *at, home) {
                    spots.extend(more);
                }
            }
            // Where all must lie on one node, no member is added: the node was chosen for the
            // minimum.
            Tree::Group { together, .. }
                if matches!(together.required, Some(Level::Node | Level::Nvlink)) => {}
            Tree::Group { children, together, .. } => {
                let home = self.home_of(ix, shape, tree, together.required, home);
                for child in children {
                    let state = self.state();
                    let known = state.jobs.get(ix);
                    if state.missing_in(known, shape, child) == 0 {
                        self.grow_in(ix, shape, child, home, spots);
                    } else if self.none_live(ix, shape, child) && self.allows(ix, shape, child) {
                        let requester = self.rest_of(ix);
                        let mark = self.draft.mark();
                        let found = super::fit::fit_group(
                            &mut self.draft,
                            &self.mix,
                            ix,
                            requester,
                            child,
                            home,
                        );
                        if self.overdraws(ix) {
                            self.draft.roll_back(mark);
                        } else {
                            spots.extend(found.into_iter().flatten());
                        }
                    }
                }
            }
        }
    }

    pub(super) fn none_live(&self, ix: JobIx, shape: &Shape, tree: &Tree) -> bool {
        let job = self.state().jobs.get(ix);
        tree.leaves().iter().all(|at| {
            let leaf = &shape.leaves[*at];
            let range = leaf.first as usize..(leaf.first + leaf.count) as usize;
            job.tasks[range].iter().all(|task| task.lease.is_none())
        })
    }

    /// Whether the queues allow a group's minimum on top.
    fn allows(&self, ix: JobIx, shape: &Shape, tree: &Tree) -> bool {
        let mut more = Amounts::default();
        for at in tree.leaves() {
            let leaf = &shape.leaves[at];
            let min = i64::from(leaf.min);
            more.gpu += leaf.gpu_milli(&self.state().cluster) * min;
            more.cpu += leaf.need.cpu * min;
            more.memory += leaf.need.memory * min;
        }
        self.may_hold(ix, &more)
    }

    pub(super) fn may_hold(&self, ix: JobIx, more: &Amounts) -> bool {
        let state = self.state();
        let job = state.jobs.get(ix);
        let mut exceeded = Vec::new();
        super::bounds::exceeded(state, job.queue, &job.spec.user, more, &mut exceeded);
        exceeded.is_empty()
            && (job.preemptible() || crate::fair_share::within_quota(state, job.queue, more))
    }

    /// The domain a group lies in by what of it runs.
    pub(super) fn home_of(
        &self,
        ix: JobIx,
        shape: &Shape,
        tree: &Tree,
        level: Option<Level>,
        outer: DomainIx,
    ) -> DomainIx {
        let Some(Level::Label { topology, depth }) = level else { return outer };
        let leaves = tree.leaves();
        let state = self.state();
        let lease =
            state.jobs.get(ix).leases().find(|(task, _)| leaves.contains(&shape.leaf_of(*task)));
        lease
            .and_then(|(_, lease)| state.cluster.domain_of(lease.node, topology, depth))
            .unwrap_or(outer)
    }

    /// The job is in the middle of its run.
    pub(super) fn rest_of(&self, ix: JobIx) -> crate::cluster::node::Requester {
        let mut requester = self.requester(ix);
        if let Some(started) = self.state().jobs.get(ix).started {
            requester.until = requester.until - (self.now() - started);
        }
        requester
    }

    /// Whether a group that the job can do without has lost members and is below its own minimum.
    fn halved(&self, job: JobIx) -> bool {
        let state = self.state();
        let known = state.jobs.get(job);
        state.shape_of(job).leaves.iter().any(|leaf| {
            let own = leaf.first as usize..(leaf.first + leaf.count) as usize;
            let counts = known.tasks[own].iter().filter(|task| task.done || task.lease.is_some());
            (1..leaf.min as usize).contains(&counts.count())
        })
    }

    /// A gang that gives members up now does not take others at once.
    fn shrinking(&self, job: JobIx) -> bool {
        self.state().jobs.get(job).stopping > 0
    }

    /// What one more task of a group takes, or one more segment.
    pub(super) fn amounts_of_one(&self, ix: JobIx, leaf: usize) -> Amounts {
        let state = self.state();
        let group = &state.shape_of(ix).leaves[leaf];
        let n = group.together.segment.map_or(1, |(size, _)| i64::from(size));
        Amounts {
            gpu: group.gpu_milli(&state.cluster) * n,
            cpu: group.need.cpu.saturating_mul(n),
            memory: group.need.memory.saturating_mul(n),
            ..Amounts::default()
        }
    }

    fn more(&mut self, ix: JobIx, leaf: usize, home: DomainIx) -> Option<Vec<Spot>> {
        let state = self.state();
        let group = &state.shape_of(ix).leaves[leaf];
        if group.count == group.min {
            return None;
        }
        if !self.may_hold(ix, &self.amounts_of_one(ix, leaf)) {
            return None;
        }
        let requester = self.rest_of(ix);
        let mark = self.draft.mark();
        let spots = super::fit::fit_more(&mut self.draft, &self.mix, ix, requester, leaf, home)?;
        if self.overdraws(ix) {
            self.draft.roll_back(mark);
            return None;
        }
        Some(spots)
    }
}
