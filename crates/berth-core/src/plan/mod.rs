//! Planning: what to do next, at the time of the last event. A plan is tried out on a draft of the
//! state and then taken back, so the state is left as it was found.
//!
//! Passes run from the least disruptive to the most: settle, share, place with backfill,
//! defragment, reclaim, pools, preempt, grow.

pub(crate) mod bounds;
mod claims;
mod decisions;
mod defragment;
pub(crate) mod displace;
pub(crate) mod fit;
mod grow;
pub(crate) mod job_set;
mod keep_promises;
pub(crate) mod order;
mod passes;
mod place;
pub(crate) mod planner;
pub(crate) mod pools;
mod rejoin;
mod repack;
mod reserve;
mod settle;
mod time_sharing;
mod units;

use crate::plan::planner::Planner;
use crate::state::State;
use crate::transaction::{Blockers, Plan};

impl State {
    /// Computes the next decisions, and leaves the state as it found it. `blockers` says what keeps
    /// jobs pending, from what the passes have tried.
    pub(crate) fn plan_with(
        &mut self,
        blockers: impl FnOnce(&mut Planner<'_>) -> Blockers,
    ) -> Plan {
        let at = self.now;
        let mut planner = Planner::new(self);
        let mark = planner.draft.mark();
        planner.run();
        let blocked = blockers(&mut planner);
        let Planner { mut draft, transactions, next, .. } = planner;
        draft.roll_back(mark);
        Plan { at, transactions, next, blocked }
    }

    /// The same for callers that do not need to know what keeps jobs pending.
    pub(crate) fn plan_without_blockers(&mut self) -> Plan {
        self.plan_with(|_| Blockers::default())
    }
}
