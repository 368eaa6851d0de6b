//! What a pass of claims knows: what is asked for, and what is to be had.

use crate::index::max_free::{MaxFree, MaxFreeUntil};
use crate::ix::{NodeIx, ShapeIx};
use crate::state::State;
use berth_model::{Span, Time};

/// Waiting jobs of one queue, shape and class: what one of them may take, the next may.
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

/// What holds until something is taken: what is free in one place at the most, by how long it would
/// be held; where anything has changed since claims were looked at; who has too much.
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
