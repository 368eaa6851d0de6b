//! Gangs that have lost members take others in while the rest of them runs.
//!
//! This is no pass: only the site knows whether a gang can go on with another member, so it asks.

use crate::cluster::domain::{Level, WHOLE};
use crate::ix::{DomainIx, JobIx};
use crate::jobs::Standing;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::shape::Shape;
use crate::shape::tree::Tree;
use crate::state::State;
use crate::transaction::{Blockers, Plan, Transaction};
use berth_model::JobId;

impl State {
    /// The running gangs that have lost members and are below their minimum.
    pub fn short_gangs(&self) -> impl Iterator<Item = JobId> {
        self.stale.iter().copied()
    }

    /// The starts that bring a running gang back to its minimum, beside the members that run.
    /// `None` where it is not short, where it is to end, or where there is no room.
    pub fn rejoin(&mut self, job: JobId) -> Option<Plan> {
        let ix = self.jobs.find(job)?;
        let known = self.jobs.get(ix);
        let goes_on = known.standing == Standing::Running
            && known.stopping == 0
            && known.stale_since.is_some()
            && !known.hold
            && !known.failed
            && !known.cancelled;
        if !goes_on {
            return None;
        }
        let at = self.now;
        let mut planner = Planner::new(self);
        let mark = planner.draft.mark();
        let shape = planner.state().shape_of(ix).clone();
        let mut spots = Vec::new();
        let is_whole = planner.take_back(ix, &shape, &shape.tree, WHOLE, &mut spots);
        let decisions = planner.starts(ix, &spots);
        planner.draft.roll_back(mark);
        let transactions = vec![Transaction { job: Some(job), decisions }];
        let plan = Plan { at, transactions, next: None, blocked: Blockers::default() };
        (is_whole && !spots.is_empty()).then_some(plan)
    }
}

impl Planner<'_> {
    /// Finds places for what a group misses to its minimum. Returns whether it has that then.
    fn take_back(
        &mut self,
        ix: JobIx,
        shape: &Shape,
        tree: &Tree,
        home: DomainIx,
        spots: &mut Vec<Spot>,
    ) -> bool {
        match tree {
            Tree::Leaf(at) => {
                while self.misses(ix, shape, tree) {
                    let Some(more) = self.fit_missing(ix, *at, home) else { return false };
                    spots.extend(more);
                }
                true
            }
            // Which node that is depends on all of its groups at once.
            Tree::Group { together, .. }
                if matches!(together.required, Some(Level::Node | Level::Nvlink)) =>
            {
                !self.misses(ix, shape, tree)
            }
            Tree::Group { children, together, .. } => {
                let home = self.home_of(ix, shape, tree, together.required, home);
                for child in children {
                    // A group of which nothing runs is one that the gang can do without.
                    if self.misses(ix, shape, tree) && !self.none_live(ix, shape, child) {
                        self.take_back(ix, shape, child, home, spots);
                    }
                }
                !self.misses(ix, shape, tree)
            }
        }
    }

    /// Whether a group is below its minimum.
    fn misses(&self, ix: JobIx, shape: &Shape, tree: &Tree) -> bool {
        let state = self.state();
        state.missing_in(state.jobs.get(ix), shape, tree) > 0
    }

    fn fit_missing(&mut self, ix: JobIx, leaf: usize, home: DomainIx) -> Option<Vec<Spot>> {
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
