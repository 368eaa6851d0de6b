//! Whose turn it is: the queue that uses the least of its share.

use crate::ix::QueueIx;
use crate::plan::planner::Planner;
use std::cmp::Ordering;

impl Planner<'_> {
    /// Which of two queues uses less of its share.
    fn needier(&self, a: QueueIx, b: QueueIx) -> Ordering {
        let state = self.state();
        let name = |ix| &state.queues.get(ix).spec.name;
        let by_share = self.shares.ratio(state, a).cmp(self.shares.ratio(state, b));
        by_share.then_with(|| name(a).cmp(name(b)))
    }

    /// The queue whose turn it is: the one that uses the least of its share.
    pub(super) fn turn(&self, turns: &mut Turns) -> Option<QueueIx> {
        if turns.over && !turns.sorted {
            let all = 0..turns.leaves.len();
            let neediest = all.min_by(|a, b| self.needier(turns.leaves[*a], turns.leaves[*b]))?;
            let last = turns.leaves.len() - 1;
            turns.leaves.swap(neediest, last);
            turns.over = false;
        }
        turns.leaves.last().copied()
    }

    /// The queue whose turn it is has nothing more to take.
    pub(super) fn pass(&self, turns: &mut Turns) {
        turns.leaves.pop();
        // Once one has passed, others are likely to: from now on it is known whose turn is next.
        if !turns.sorted {
            turns.leaves.sort_unstable_by(|a, b| self.needier(*b, *a));
            turns.sorted = true;
        }
    }
}

/// Queues that still have claims, the one whose turn it is last.
pub(crate) struct Turns {
    pub(super) leaves: Vec<QueueIx>,
    /// All of them are in order.
    pub(super) sorted: bool,
    /// The turn of the last one is over: something was taken.
    pub(super) over: bool,
}
