//! The passes that reclaim between queues and preempt lower classes.

use crate::fair_share;
use crate::ix::{JobIx, QueueIx};
use crate::plan::claims::known::{ClaimCache, ClaimKind};
use crate::plan::claims::turns::Turns;
use crate::plan::displace::protection::displaces_from;
use crate::plan::displace::right::Right;
use crate::plan::planner::Planner;
use berth_model::Time;
use std::collections::BTreeMap;

impl Planner<'_> {
    /// Queues within their share take from those above theirs, the neediest first.
    pub(crate) fn reclaim(&mut self) {
        self.claim(ClaimKind::Reclaim);
    }

    /// Higher classes take from lower ones of their queue, or of any where they reach across.
    pub(crate) fn preempt(&mut self) {
        self.claim(ClaimKind::Preempt);
        self.share_time();
    }

    /// Whether a queue has any claims of that kind worth looking at.
    fn may_claim(&self, kind: ClaimKind, leaf: QueueIx) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        if queue.pending.oldest.is_empty() {
            return false;
        }
        match kind {
            // One that is above its share and its quota everywhere has nothing to take back.
            ClaimKind::Reclaim => state
                .queues
                .path(leaf)
                .any(|ix| !self.shares.over(state, ix) || !fair_share::over_quota(state, ix)),
            // Only where something of a lower class runs, or a gang has grown.
            ClaimKind::Preempt => {
                let Some(top) = queue.pending.top_priority() else { return false };
                let below = queue.running_priorities.keys().next().is_some_and(|low| *low < top);
                below || !state.elastic.is_empty() || state.across(top)
            }
        }
    }

    /// By which rights the job may take from others now.
    fn rights(&mut self, kind: ClaimKind, job: JobIx) -> Vec<Right> {
        let known = self.state().jobs.get(job);
        let (queue, priority) = (known.queue, known.priority);
        match kind {
            ClaimKind::Reclaim if self.may_displace_now(job) => vec![Right::Share],
            ClaimKind::Reclaim => {
                let state = self.state();
                let more = &state.shape_of(job).amounts;
                let owns =
                    state.queues.path(queue).any(|ix| fair_share::within_quota(state, ix, more));
                if owns { vec![Right::Quota] } else { Vec::new() }
            }
            ClaimKind::Preempt if !self.may_displace_now(job) => Vec::new(),
            ClaimKind::Preempt => match self.state().across(priority) {
                true => vec![Right::Class, Right::Across],
                false => vec![Right::Class],
            },
        }
    }

    fn anything_runs(&self) -> bool {
        !self.state().ends.is_empty()
    }

    /// Whether the job has waited long enough to displace others.
    pub(super) fn may_displace_now(&mut self, job: JobIx) -> bool {
        let from = self.displaces_from(job);
        if from > self.now() {
            self.wake(from);
        }
        from <= self.now()
    }

    /// From when on the job may displace others: after its delay, or after the boot time of a pool
    /// that could serve it.
    pub(crate) fn displaces_from(&self, job: JobIx) -> Time {
        displaces_from(self.state(), job)
    }

    /// Goes through the blocked jobs, neediest queue first, and takes for them what they may.
    fn claim(&mut self, kind: ClaimKind) {
        if !self.anything_runs() {
            return;
        }
        let skipped = std::mem::take(&mut self.skipped);
        self.claiming = true;
        let all: Vec<QueueIx> = self.state().queues.leaves().collect();
        let (mut leaves, others): (Vec<QueueIx>, Vec<QueueIx>) =
            all.into_iter().partition(|leaf| self.may_claim(kind, *leaf));
        if kind == ClaimKind::Preempt {
            others
                .iter()
                .for_each(|leaf| self.draft.state.queues.get_mut(*leaf).hopeless_claims = None);
        }
        self.find_open_claims(&mut leaves, kind);
        let mut turns = Turns { leaves, sorted: false, over: true };
        let mut takes = 0;
        let (mut in_vain, mut generous) = (false, false);
        let mut cache = ClaimCache::default();
        let mut seen: BTreeMap<QueueIx, usize> = BTreeMap::new();
        while let Some(leaf) = self.turn(&mut turns) {
            // Where a claim failed after something was taken, or no GPUs being released helped, little
            // may be left for the others.
            let version =
                takes + self.helped_by_releasing.values().filter(|helps| !**helps).count();
            if in_vain
                && seen.insert(leaf, version) != Some(version)
                && !self.has_open_claims(leaf, kind, &mut cache)
            {
                self.pass(&mut turns);
                continue;
            }
            let Some(job) = self.next_claimant(leaf) else {
                self.pass(&mut turns);
                continue;
            };
            // As long as there is something to take, it is quicker to take it than to look first.
            let taken = (generous || self.may_find_victims(kind, job, &mut cache))
                && self.rights(kind, job).into_iter().any(|right| self.displace(job, right))
                || kind == ClaimKind::Preempt && self.claim_combined(job, &mut cache);
            (in_vain, generous) = (!taken, taken);
            if taken {
                takes += 1;
                turns.sorted = false;
                turns.over = true;
                cache = ClaimCache::default();
            } else {
                // The next of the same shape and class could do no better, unless this one is held
                // back for a reason of its own.
                let known = self.state().jobs.get(job);
                let (shape, priority) = (known.shape, known.priority);
                let personal = !known.preemptible()
                    || self.displaces_from(job) > self.now()
                    || !self.state().queues.get(leaf).user_limit.is_empty()
                    || self.state().shape_of(job).has_near();
                if personal {
                    self.skipped.insert(job);
                } else {
                    self.open_claims.remove(&(leaf, shape, priority));
                }
            }
        }
        self.claiming = false;
        self.skipped = skipped;
    }

    /// Takes from other queues and from lower classes of its own, for a job that neither suffices for.
    fn claim_combined(&mut self, job: JobIx, cache: &mut ClaimCache) -> bool {
        let known = self.state().jobs.get(job);
        let (queue, shape, priority) = (known.queue, known.shape, known.priority);
        let over_use = cache.over_use.get_or_insert_with(|| self.over_use());
        self.may_combine(&self.rivals(queue, over_use), queue, shape, priority)
            && self.may_displace_now(job)
            && self.displace(job, Right::Both)
    }
}
