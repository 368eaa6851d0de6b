//! By which right GPUs are taken from running jobs.

use crate::ix::QueueIx;
use crate::jobs::Job;
use crate::plan::units::Unit;
use crate::state::State;
use berth_model::Cause;

/// By which right GPUs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// The share or the quota of the claimant's queue.
    Share,
    /// A quota only: what was lent is taken back at once.
    Quota,
    /// A higher class of the same queue.
    Class,
    /// What its queue may claim from others, and its class in its own: where neither suffices alone.
    Both,
    /// A class that reaches across queues.
    Across,
}

impl Right {
    pub(super) fn cause(self, unit: &Unit, same_queue: bool) -> Cause {
        match self {
            _ if unit.surplus => Cause::Shrink,
            Right::Both if same_queue => Cause::Preempt,
            Right::Share | Right::Quota | Right::Both => Cause::Reclaim,
            Right::Class => Cause::Preempt,
            Right::Across => Cause::Across,
        }
    }

    /// Whether it reaches what is of that queue and class, whole or surplus, for the claimant.
    pub(super) fn reaches(
        self,
        state: &State,
        claimant: &Job,
        (queue, priority, surplus): (QueueIx, i32, bool),
        gives: impl Fn(QueueIx) -> bool,
    ) -> bool {
        let same = queue == claimant.queue;
        // No other queue has a claim to the surplus of the claimant's own queue, so the minimum of
        // any job that waits there may take it.
        if surplus && same {
            return true;
        }
        match self {
            Right::Class => same && priority < claimant.priority,
            Right::Both if same => priority < claimant.priority,
            Right::Across => priority < claimant.priority,
            // What reaches across is not reclaimed by what it reaches over.
            Right::Share | Right::Quota | Right::Both => {
                let over = state.across(priority) && claimant.priority < priority;
                !same && !over && gives(queue)
            }
        }
    }
}
