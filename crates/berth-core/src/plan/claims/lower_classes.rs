//! What jobs may preempt in lower classes of their queue. Claims that were found to be hopeless are
//! stored with the queue as long as that holds.

use crate::index::held_gpus::HeldByPriority;
use crate::index::may_hold::YieldingPromises;
use crate::ix::{JobIx, QueueIx};
use crate::plan::claims::known::{ClaimCache, Head, held_until};
use crate::plan::planner::Planner;
use crate::queues::HopelessClaims;
use crate::shape::leaf::Leaf;
use berth_model::Span;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where more nodes than that have changed, what was found before does not hold any more.
const MAX_CHANGED_NODES: usize = 64;

/// What claims of one class of a queue have in common.
struct OfClass {
    priority: i32,
    across: bool,
    /// Jobs whose reservations give way.
    yielding: Vec<JobIx>,
    /// The most GPUs on one node where something has changed.
    gained: Option<u32>,
}

impl Planner<'_> {
    /// Whether nothing in a queue had anything to take from lower classes, and there is nothing new.
    pub(super) fn all_claims_hopeless(&self, leaf: QueueIx, cache: &mut ClaimCache) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        let (Some(hopeless_claims), Some(held_by_priority)) =
            (&queue.hopeless_claims, &queue.held_by_priority)
        else {
            return false;
        };
        if !hopeless_claims.all || !self.is_current(leaf, hopeless_claims, held_by_priority, cache)
        {
            return false;
        }
        let until = held_until(state, Span::ms(1));
        let gives_way = |job: JobIx| queue.soft_promised.contains(&job);
        let held = held_by_priority.below(i32::MAX);
        state.cluster.most_on(cache.changed(state), until, held, &gives_way) == 0
    }

    /// What was found about the queue's claims on lower classes, if it holds but for what is new.
    fn known_hopeless(
        &self,
        leaf: QueueIx,
        held_by_priority: &Arc<HeldByPriority>,
        cache: &mut ClaimCache,
    ) -> Option<&HopelessClaims> {
        let hopeless_claims = self.state().queues.get(leaf).hopeless_claims.as_ref()?;
        self.is_current(leaf, hopeless_claims, held_by_priority, cache).then_some(hopeless_claims)
    }

    fn is_current(
        &self,
        leaf: QueueIx,
        hopeless_claims: &HopelessClaims,
        held_by_priority: &Arc<HeldByPriority>,
        cache: &mut ClaimCache,
    ) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        Arc::ptr_eq(&hopeless_claims.held_by_priority, held_by_priority)
            && hopeless_claims.pending_version == queue.pending_version
            && hopeless_claims.soft_fingerprint == queue.soft_fingerprint
            && hopeless_claims.class_version == state.cluster.class_version
            && cache.changed(state).len() <= MAX_CHANGED_NODES
    }

    /// Which of these have no lower class of their queue to take from, or none where it would help.
    /// What was found before holds unless a node offers more since.
    pub(super) fn nothing_to_preempt(
        &mut self,
        leaf: QueueIx,
        heads: &[Head],
        cache: &mut ClaimCache,
    ) -> Vec<bool> {
        let held_by_priority = self.draft.state.held_by_priority_for_pending(leaf);
        let state = self.state();
        let queue = state.queues.get(leaf);
        let known = self.known_hopeless(leaf, &held_by_priority, cache);
        let class = |job: &JobIx| {
            let known = state.jobs.get(*job);
            (known.priority, known.shape)
        };
        let mut of_class: Option<OfClass> = None;
        let mut above = |head: &Head| {
            if of_class.as_ref().is_none_or(|of_class| of_class.priority != head.priority) {
                // Reservations of lower classes give way.
                let lower = |job: &&JobIx| class(job).0 < head.priority;
                of_class = Some(OfClass {
                    priority: head.priority,
                    across: state.across(head.priority),
                    yielding: queue.soft_promised.iter().filter(lower).copied().collect(),
                    gained: None,
                });
            }
            let Some(of_class) = &mut of_class else { return true };
            let given = held_by_priority.below(head.priority);
            // Jobs without GPUs hold CPU and memory, which are not counted here.
            let others = |group: Option<&Leaf>| {
                let runs =
                    queue.running_priorities.keys().next().is_some_and(|of| *of < head.priority);
                runs && group.is_none_or(|group| !group.countable(&state.cluster))
            };
            let group = state.shapes[head.shape.at()].single();
            let nothing = given.is_none() && of_class.yielding.is_empty();
            if of_class.across || nothing && !others(group) {
                return of_class.across;
            }
            let Some(group) = group else { return true };
            if known.is_some_and(|hopeless_claims| {
                hopeless_claims.hopeless.contains(&(head.shape, head.priority))
            }) && let Some(g) = group.whole()
            {
                let gained = of_class.gained.get_or_insert_with(|| {
                    let until = held_until(state, Span::ms(1));
                    let gives_way = |job: JobIx| queue.soft_promised.contains(&job);
                    state.cluster.most_on(cache.changed(state), until, given, &gives_way)
                });
                if g > *gained {
                    return false;
                }
            }
            let free = cache.get(state, head.shortest);
            // A job's own reservation does not stand in its way either.
            let lower = of_class.yielding.len();
            let own = |job: &&JobIx| class(job) == (head.priority, head.shape);
            of_class.yielding.extend(queue.soft_promised.iter().filter(own));
            let all = YieldingPromises { jobs: &of_class.yielding, promises: &state.promises };
            let may = state.cluster.may_hold(group, free, given, &all);
            of_class.yielding.truncate(lower);
            may
        };
        heads.iter().map(|head| !above(head)).collect()
    }

    /// Remembers what of a queue has nothing to take from lower classes, of everything that waits.
    pub(super) fn store_hopeless(&mut self, leaf: QueueIx, heads: &[Head], hopeless: &[bool]) {
        let state = &mut *self.draft.state;
        let (held_by_priority, class_version) =
            (state.held_by_priority_for_pending(leaf), state.cluster.class_version);
        let queue = state.queues.get_mut(leaf);
        let hopeless_claims = heads.iter().zip(hopeless).filter(|(_, hopeless)| **hopeless);
        let hopeless: BTreeSet<_> =
            hopeless_claims.map(|(head, _)| (head.shape, head.priority)).collect();
        let all = hopeless.len() == heads.len();
        let (pending_version, soft_fingerprint) = (queue.pending_version, queue.soft_fingerprint);
        queue.hopeless_claims = Some(HopelessClaims {
            held_by_priority,
            pending_version,
            soft_fingerprint,
            class_version,
            hopeless,
            all,
        });
    }
}
