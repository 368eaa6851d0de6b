//! What jobs may take from lower classes of their queue. What was found to be in vain is stored with
//! the queue as long as it holds.

use crate::index::held_gpus::Tops;
use crate::index::may_hold::Ways;
use crate::ix::{JobIx, QueueIx};
use crate::plan::claims::known::{Head, Known, held_until};
use crate::plan::planner::Planner;
use crate::queues::Vain;
use berth_model::Span;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where more nodes than that have changed, what was found before does not hold any more.
const MANY: usize = 64;

/// What claims of one class of a queue have in common.
struct OfClass {
    priority: i32,
    across: bool,
    /// Jobs whose reservations give way.
    ways: Vec<JobIx>,
    /// The most GPUs on one node where something has changed.
    gained: Option<u32>,
}

impl Planner<'_> {
    /// Whether nothing in a queue had anything to take from lower classes, and there is nothing new.
    pub(super) fn still_vain(&self, leaf: QueueIx, so_far: &mut Known) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        let (Some(vain), Some(tops)) = (&queue.vain, &queue.tops) else { return false };
        if !vain.all || !self.holds_still(leaf, vain, tops, so_far) {
            return false;
        }
        let until = held_until(state, Span::ms(1));
        let gives_way = |job: JobIx| queue.distant.contains(&job);
        let held = tops.below(i32::MAX);
        state.cluster.most_on(so_far.changed(state), until, held, &gives_way) == 0
    }

    /// What was found about the queue's claims on lower classes, if it holds but for what is new.
    fn known_vain(&self, leaf: QueueIx, tops: &Arc<Tops>, so_far: &mut Known) -> Option<&Vain> {
        let vain = self.state().queues.get(leaf).vain.as_ref()?;
        self.holds_still(leaf, vain, tops, so_far).then_some(vain)
    }

    fn holds_still(
        &self,
        leaf: QueueIx,
        vain: &Vain,
        tops: &Arc<Tops>,
        so_far: &mut Known,
    ) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        Arc::ptr_eq(&vain.tops, tops)
            && vain.heads == queue.heads
            && vain.ways == queue.ways
            && vain.kinds == state.cluster.kinds
            && so_far.changed(state).len() <= MANY
    }

    /// Which of these have no lower class of their queue to take from, or none where it would help.
    /// What was found before holds unless something more is to be had since.
    pub(super) fn above_nobody(
        &mut self,
        leaf: QueueIx,
        heads: &[Head],
        so_far: &mut Known,
    ) -> Vec<bool> {
        let tops = self.draft.state.tops_for(leaf);
        let state = self.state();
        let queue = state.queues.get(leaf);
        let known = self.known_vain(leaf, &tops, so_far);
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
                    ways: queue.distant.iter().filter(lower).copied().collect(),
                    gained: None,
                });
            }
            let Some(of_class) = &mut of_class else { return true };
            let given = tops.below(head.priority);
            if of_class.across || given.is_none() && of_class.ways.is_empty() {
                return of_class.across;
            }
            let Some(group) = state.shapes[head.shape.at()].single() else { return true };
            if known.is_some_and(|vain| vain.hopeless.contains(&(head.shape, head.priority)))
                && let Some(g) = group.whole()
            {
                let gained = of_class.gained.get_or_insert_with(|| {
                    let until = held_until(state, Span::ms(1));
                    let gives_way = |job: JobIx| queue.distant.contains(&job);
                    state.cluster.most_on(so_far.changed(state), until, given, &gives_way)
                });
                if g > *gained {
                    return false;
                }
            }
            let free = so_far.get(state, head.shortest);
            // A job's own reservation does not stand in its way either.
            let lower = of_class.ways.len();
            let own = |job: &&JobIx| class(job) == (head.priority, head.shape);
            of_class.ways.extend(queue.distant.iter().filter(own));
            let all = Ways { jobs: &of_class.ways, promises: &state.promises };
            let may = state.cluster.may_hold(group, free, given, &all);
            of_class.ways.truncate(lower);
            may
        };
        heads.iter().map(|head| !above(head)).collect()
    }

    /// Remembers what of a queue has nothing to take from lower classes, of everything that waits.
    pub(super) fn remember_vain(&mut self, leaf: QueueIx, heads: &[Head], hopeless: &[bool]) {
        let state = &mut *self.draft.state;
        let (tops, kinds) = (state.tops_for(leaf), state.cluster.kinds);
        let queue = state.queues.get_mut(leaf);
        let vain = heads.iter().zip(hopeless).filter(|(_, hopeless)| **hopeless);
        let hopeless: BTreeSet<_> = vain.map(|(head, _)| (head.shape, head.priority)).collect();
        let all = hopeless.len() == heads.len();
        let (heads, ways) = (queue.heads, queue.ways);
        queue.vain = Some(Vain { tops, heads, ways, kinds, hopeless, all });
    }
}
