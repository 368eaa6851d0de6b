//! What queues beyond their quota or share have to give to others.

use crate::fair_share;
use crate::ix::{QueueIx, ShapeIx};
use crate::plan::claims::known::{Head, OverUse};
use crate::plan::planner::Planner;

impl Planner<'_> {
    /// Whether a shape and class within its queue's quota may claim something from other queues, and
    /// something from lower classes of its own: one GPU alone is had from one of them.
    pub(crate) fn may_combine(
        &self,
        rivals: &[(QueueIx, bool, bool)],
        leaf: QueueIx,
        shape: ShapeIx,
        priority: i32,
    ) -> bool {
        let state = self.state();
        let lowest = state.queues.get(leaf).running_priorities.keys().next();
        let asks = &state.shapes[shape.at()];
        lowest.is_some_and(|lowest| *lowest < priority)
            && asks.single().is_none_or(crate::plan::displace::gains::in_blocks)
            && fair_share::within_quota(state, leaf, &asks.amounts)
            && self.may_reclaim_from(rivals, shape)
    }

    /// Which of these no other queue has to give anything to.
    pub(super) fn nothing_to_reclaim(
        &self,
        leaf: QueueIx,
        over_use: &OverUse,
        heads: &[Head],
    ) -> Vec<bool> {
        let rivals = self.rivals(leaf, over_use);
        heads.iter().map(|head| !self.may_reclaim_from(&rivals, head.shape)).collect()
    }

    /// The queue and those above it, and whether others beside each are beyond their quota, or
    /// beyond their share.
    pub(crate) fn rivals(&self, leaf: QueueIx, over_use: &OverUse) -> Vec<(QueueIx, bool, bool)> {
        let queues = &self.state().queues;
        let path = queues.path(leaf).map(|mine| {
            let parent = queues.get(mine).parent.map_or(0, |parent| parent.at() + 1);
            let (quota, share) = over_use.own[mine.at()];
            let (quotas, shares) = over_use.children[parent];
            (mine, quotas > u32::from(quota), shares > u32::from(share))
        });
        path.filter(|(_, quota, share)| *quota || *share).collect()
    }

    /// Which queues are beyond their quotas and shares as things are on the draft.
    pub(crate) fn over_use(&self) -> OverUse {
        let state = self.state();
        let none = state.queues.all.len();
        let mut over_use =
            OverUse { own: vec![(false, false); none], children: vec![(0, 0); none + 1] };
        for (ix, queue) in state.queues.live() {
            let own = (fair_share::over_quota(state, ix), self.shares.over(state, ix));
            let beside = &mut over_use.children[queue.parent.map_or(0, |parent| parent.at() + 1)];
            beside.0 += u32::from(own.0);
            beside.1 += u32::from(own.1);
            over_use.own[ix.at()] = own;
        }
        over_use
    }

    pub(super) fn may_reclaim_from(
        &self,
        rivals: &[(QueueIx, bool, bool)],
        shape: ShapeIx,
    ) -> bool {
        let state = self.state();
        if !state.elastic.is_empty() {
            return true;
        }
        let more = &state.shapes[shape.at()].amounts;
        rivals.iter().any(|(mine, quota, share)| {
            (*quota && fair_share::within_quota(state, *mine, more))
                || (*share && self.shares.within(state, *mine, more))
        })
    }
}
