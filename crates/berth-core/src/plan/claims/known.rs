//! What a pass of claims works with: what is asked for, and what there is to take.

use crate::index::max_free::{MaxFree, MaxFreeUntil};
use crate::ix::{NodeIx, ShapeIx};
use crate::state::State;
use berth_model::{Span, Time};

/// Pending jobs of one queue, shape and class: what one of them may take, the next may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) shape: ShapeIx,
    pub(crate) priority: i32,
    /// No job of the shape holds its places for less.
    pub(super) shortest: Span,
}

/// Which claims are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimKind {
    /// Between queues: what is beyond a share or a quota is taken back.
    Reclaim,
    /// From lower classes.
    Preempt,
}

/// Which queues are beyond their quota, and beyond their share, by ordinal; and how many children of
/// each are, those of no queue first.
pub(crate) struct OverUse {
    pub(super) own: Vec<(bool, bool)>,
    pub(super) children: Vec<(u32, u32)>,
}

/// What holds until something is taken: the max-free index by how long a job would hold its places,
/// the nodes that changed since claims were last screened, and the queues that use too much.
#[derive(Default)]
pub(crate) struct ClaimCache {
    by_hold: Option<MaxFreeUntil>,
    changed: Option<Vec<NodeIx>>,
    pub(crate) over_use: Option<OverUse>,
}

impl ClaimCache {
    pub(super) fn get(&mut self, state: &State, hold: Span) -> (&MaxFree, Time) {
        let until = held_until(state, hold);
        let by_hold = self.by_hold.get_or_insert_with(|| MaxFreeUntil::of(&state.cluster));
        (by_hold.until(&state.cluster, until), until)
    }

    pub(super) fn changed(&mut self, state: &State) -> &[NodeIx] {
        self.changed.get_or_insert_with(|| state.cluster.changed())
    }
}

/// Until when a claimant would hold what it takes.
pub(crate) fn held_until(state: &State, hold: Span) -> Time {
    state.now + state.policy.grace + hold
}
