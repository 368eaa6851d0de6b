//! From which queues a job may take GPUs, and whose reservations give way to it.

use crate::fair_share;
use crate::ix::{JobIx, QueueIx};
use crate::plan::displace::right::Right;
use crate::plan::planner::Planner;

impl Planner<'_> {
    /// Jobs whose reservations give way to the job by this right: those of lower classes, of
    /// queues that must give to its own, and those beyond a quota if it is within its own; or all
    /// of other queues then.
    pub(super) fn yielding(&self, job: JobIx, right: Right, all: bool) -> Vec<JobIx> {
        let state = self.state();
        let claimant = state.jobs.get(job);
        let own = claimant.queue;
        let lower =
            |other: &JobIx| *other != job && state.jobs.get(*other).priority < claimant.priority;
        let of = |leaf: QueueIx| state.queues.get(leaf).soft_promised.iter().copied();
        match right {
            Right::Class => return of(own).filter(lower).collect(),
            Right::Across => return state.queues.leaves().flat_map(of).filter(lower).collect(),
            Right::Share | Right::Quota | Right::Both => {}
        }
        let owner = !state.queues.get(own).quota.is_empty();
        let more = &state.shape_of(job).amounts;
        let mut found = Vec::new();
        if right == Right::Both {
            found.extend(of(own).filter(lower));
        }
        let mut leaves = Vec::new();
        for mine in state.queues.path(own) {
            let by_quota = fair_share::within_quota(state, mine, more);
            let by_share = right != Right::Quota && self.shares.within(state, mine, more);
            if !by_quota && !by_share {
                continue;
            }
            for theirs in state.queues.beside(mine) {
                let gives = by_quota && fair_share::over_quota(state, theirs)
                    || by_share && self.shares.over(state, theirs);
                let yields = |other: &JobIx| {
                    let asks = &state.shape_of(*other).amounts;
                    gives || all || !fair_share::quota_holds(state, theirs, asks)
                };
                if gives || owner && by_quota {
                    leaves.clear();
                    state.queues.leaves_below(theirs, &mut leaves);
                    found.extend(leaves.iter().flat_map(|leaf| of(*leaf)).filter(yields));
                }
            }
        }
        found
    }

    /// Leaf queues that may lose something to the job by this right.
    pub(super) fn sources(&self, job: JobIx, right: Right) -> Vec<QueueIx> {
        let state = self.state();
        let known = state.jobs.get(job);
        let runs = |leaf: &QueueIx| !state.queues.get(*leaf).running.is_empty();
        let mut found = Vec::new();
        let lowest = state.queues.get(known.queue).running_priorities.keys().next();
        let below = lowest.is_some_and(|lowest| *lowest < known.priority);
        // What its own queue has to spare are members of elastic gangs.
        if !state.elastic.is_empty() || below && matches!(right, Right::Class | Right::Both) {
            found.push(known.queue);
        }
        match right {
            Right::Class => {}
            Right::Across => {
                found.clear();
                found.extend(state.queues.leaves());
            }
            Right::Share | Right::Quota | Right::Both => {
                let more = &state.shape_of(job).amounts;
                for mine in state.queues.path(known.queue) {
                    let by_quota = fair_share::within_quota(state, mine, more);
                    let by_share = right != Right::Quota && self.shares.within(state, mine, more);
                    if !by_quota && !by_share {
                        continue;
                    }
                    for theirs in state.queues.beside(mine) {
                        let over = (by_quota && fair_share::over_quota(state, theirs))
                            || (by_share && self.shares.over(state, theirs));
                        if over {
                            state.queues.leaves_below(theirs, &mut found);
                        }
                    }
                }
            }
        }
        found.retain(runs);
        found
    }

    /// Whether a queue must give to the job's, comparing the two just below their common parent.
    pub(crate) fn gives(&self, job: JobIx, from: QueueIx, right: Right) -> bool {
        let state = self.state();
        let own = state.jobs.get(job).queue;
        let (mine, theirs) = state.queues.rivals(own, from);
        if mine == theirs {
            return false;
        }
        let more = &state.shape_of(job).amounts;
        let by_quota =
            fair_share::over_quota(state, theirs) && fair_share::within_quota(state, mine, more);
        let by_share = right != Right::Quota
            && self.shares.over(state, theirs)
            && self.shares.within(state, mine, more);
        by_quota || by_share
    }
}
