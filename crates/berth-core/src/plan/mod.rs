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
pub(crate) mod order;
mod place;
pub(crate) mod planner;
pub(crate) mod pools;
mod repack;
mod reserve;
mod settle;
mod time_sharing;
mod units;

use crate::plan::planner::Planner;
use crate::state::State;
use crate::transaction::{Blockers, Plan};

impl State {
    /// Computes the next decisions. It never fails, and leaves the state as it found it: the
    /// borrow is mutable because things are tried on the state itself and rolled back.
    pub fn plan(&mut self) -> Plan {
        self.plan_and_say(true)
    }

    /// The same; where nobody asks why jobs wait, that is not worked out.
    pub(crate) fn plan_and_say(&mut self, why: bool) -> Plan {
        let at = self.now;
        let mut planner = Planner::new(self);
        let mark = planner.draft.mark();
        planner.run();
        let blocked = if why { planner.blocked() } else { Blockers::default() };
        let Planner { mut draft, transactions, next, .. } = planner;
        draft.roll_back(mark);
        Plan { at, transactions, next, blocked }
    }
}
