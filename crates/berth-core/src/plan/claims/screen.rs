//! Screening: which pending jobs may find anything to take, by a few numbers.

use crate::cluster::node::Requester;
use crate::ix::{JobIx, QueueIx, ShapeIx};
use crate::plan::claims::known::{ClaimCache, ClaimKind, Head, OverUse};
use crate::plan::planner::Planner;
use berth_model::Span;
use std::collections::BTreeMap;

impl Planner<'_> {
    /// What of a queue may still be claimed for.
    pub(crate) fn open_claims_of(
        &self,
        leaf: QueueIx,
    ) -> impl Iterator<Item = (ShapeIx, i32)> + '_ {
        let all = self.open_claims.range((leaf, ShapeIx(0), i32::MIN)..);
        all.take_while(move |(of, _, _)| *of == leaf).map(|(_, shape, class)| (*shape, *class))
    }

    /// Finds what may be claimed for, and leaves out queues with nothing.
    pub(super) fn find_open_claims(&mut self, leaves: &mut Vec<QueueIx>, kind: ClaimKind) {
        self.open_claims.clear();
        let mark = self.draft.mark();
        self.free_releasing();
        let mut cache = ClaimCache::default();
        let over_use = self.over_use();
        for leaf in leaves.iter() {
            if kind == ClaimKind::Reclaim {
                self.open_reclaims(*leaf, &over_use);
                continue;
            }
            self.open_combined_claims(*leaf, &over_use);
            if self.all_claims_hopeless(*leaf, &mut cache) {
                continue;
            }
            let heads = self.heads(*leaf);
            let hopeless = self.nothing_to_preempt(*leaf, &heads, &mut cache);
            self.store_hopeless(*leaf, &heads, &hopeless);
            let open_claims = heads.into_iter().zip(hopeless).filter(|(_, hopeless)| !hopeless);
            self.open_claims
                .extend(open_claims.map(|(head, _)| (*leaf, head.shape, head.priority)));
        }
        self.draft.roll_back(mark);
        if kind == ClaimKind::Preempt {
            self.draft.state.cluster.clear_touched();
        }
        self.open_claims_on_releasing(leaves);
        leaves.retain(|leaf| self.open_claims_of(*leaf).next().is_some());
    }

    /// Any queue may claim GPUs that are being released and that no job has a promise of.
    fn open_claims_on_releasing(&mut self, leaves: &[QueueIx]) {
        if self.state().releasing.is_empty() {
            return;
        }
        let state = self.state();
        let mut examples: BTreeMap<ShapeIx, JobIx> = BTreeMap::new();
        let mut seen = vec![false; state.shapes.len()];
        for leaf in leaves {
            for (shape, line) in &state.queues.get(*leaf).pending.shapes {
                if !std::mem::replace(&mut seen[shape.at()], true) {
                    let first = line.lists.values().find_map(|jobs| jobs.first());
                    examples.insert(*shape, first.expect("somebody waits").2);
                }
            }
        }
        examples.retain(|_, job| self.releasing_helps(*job));
        if examples.is_empty() {
            return;
        }
        for leaf in leaves {
            let shapes = self.draft.state.queues.get(*leaf).pending.shapes.iter();
            let helped = shapes.filter(|(shape, _)| examples.contains_key(shape));
            self.open_claims.extend(helped.flat_map(|(shape, line)| {
                line.priorities.keys().map(|priority| (*leaf, *shape, *priority))
            }));
        }
    }

    /// What waits in a queue, by shape and class.
    fn heads(&self, leaf: QueueIx) -> Vec<Head> {
        let shapes = self.state().queues.get(leaf).pending.shapes.iter();
        let heads = shapes.flat_map(|(shape, line)| {
            let shortest = line.holds.keys().next().copied().unwrap_or(Span::ZERO);
            let priorities = line.priorities.keys().rev();
            priorities.map(move |priority| Head { shape: *shape, priority: *priority, shortest })
        });
        let mut heads: Vec<Head> = heads.collect();
        heads.sort_by_key(|head| head.priority);
        heads
    }

    /// Whether there still is something for one of the queue's jobs; what there is nothing for any
    /// more is left out.
    pub(super) fn has_open_claims(
        &mut self,
        leaf: QueueIx,
        kind: ClaimKind,
        cache: &mut ClaimCache,
    ) -> bool {
        let line = &self.state().queues.get(leaf).pending;
        let shortest = |shape: &ShapeIx| {
            let holds = line.shapes.get(shape).and_then(|line| line.holds.keys().next());
            holds.copied().unwrap_or(Span::ZERO)
        };
        let open_claims = self.open_claims_of(leaf);
        let mut heads: Vec<Head> = open_claims
            .map(|(shape, priority)| Head { shape, priority, shortest: shortest(&shape) })
            .collect();
        heads.sort_by_key(|head| head.priority);
        let hopeless = match kind {
            ClaimKind::Reclaim => {
                let over_use = cache.over_use.get_or_insert_with(|| self.over_use());
                self.nothing_to_reclaim(leaf, over_use, &heads)
            }
            ClaimKind::Preempt => self.nothing_to_preempt(leaf, &heads, cache),
        };
        let releasing = !self.state().releasing.is_empty();
        let over_use = cache.over_use.get_or_insert_with(|| self.over_use());
        let rivals = self.rivals(leaf, over_use);
        let unites = |head: &Head| {
            kind == ClaimKind::Preempt && self.may_combine(&rivals, leaf, head.shape, head.priority)
        };
        let hopeless: Vec<bool> =
            heads.iter().zip(hopeless).map(|(head, less)| less && !unites(head)).collect();
        let mut any = false;
        for (head, hopeless) in heads.into_iter().zip(hopeless) {
            if hopeless && !(releasing && self.helped_by_releasing.get(&head.shape) != Some(&false))
            {
                self.open_claims.remove(&(leaf, head.shape, head.priority));
            } else {
                any = true;
            }
        }
        any
    }

    /// What of a queue may be claimed for from its lower classes and other queues together.
    fn open_combined_claims(&mut self, leaf: QueueIx, over_use: &OverUse) {
        let queue = self.state().queues.get(leaf);
        let lowest = queue.running_priorities.keys().next();
        // Most queues have used up their quota, or nothing of theirs is of a lower class.
        let used_up = queue.quota.gpu.is_some_and(|quota| queue.usage.gpu >= quota);
        if used_up || lowest.is_none_or(|lowest| queue.pending.top_priority() <= Some(*lowest)) {
            return;
        }
        let rivals = self.rivals(leaf, over_use);
        if rivals.is_empty() {
            return;
        }
        let mut united: Vec<(QueueIx, ShapeIx, i32)> = Vec::new();
        for (shape, line) in &self.state().queues.get(leaf).pending.shapes {
            let may = |priority: &&i32| self.may_combine(&rivals, leaf, *shape, **priority);
            united.extend(line.priorities.keys().filter(may).map(|class| (leaf, *shape, *class)));
        }
        self.open_claims.extend(united);
    }

    /// What of a queue others have to give something to.
    fn open_reclaims(&mut self, leaf: QueueIx, over_use: &OverUse) {
        let rivals = self.rivals(leaf, over_use);
        let state = &self.draft.state;
        if rivals.is_empty() && state.elastic.is_empty() {
            return;
        }
        let mut given: Vec<(ShapeIx, i32)> = Vec::new();
        for (shape, line) in &state.queues.get(leaf).pending.shapes {
            if self.may_reclaim_from(&rivals, *shape) {
                given.extend(line.priorities.keys().map(|priority| (*shape, *priority)));
            }
        }
        self.open_claims.extend(given.into_iter().map(|(shape, priority)| (leaf, shape, priority)));
    }

    /// Whether there may be something for the job itself: it may hold what it takes for longer than
    /// the others of its shape would.
    pub(super) fn may_find_victims(
        &mut self,
        kind: ClaimKind,
        job: JobIx,
        cache: &mut ClaimCache,
    ) -> bool {
        if kind == ClaimKind::Reclaim || self.releasing_helps(job) {
            return true;
        }
        let known = self.state().jobs.get(job);
        let (queue, shape, priority) = (known.queue, known.shape, known.priority);
        let head = Head { shape, priority, shortest: self.holding(job) };
        self.nothing_to_preempt(queue, &[head], cache) == [false]
    }

    /// Whether the job's shape may fit on GPUs that are being released and that no job has a promise
    /// of.
    pub(crate) fn releasing_helps(&mut self, job: JobIx) -> bool {
        let shape = self.state().jobs.get(job).shape;
        if self.state().releasing.is_empty() {
            return false;
        }
        if let Some(known) = self.helped_by_releasing.get(&shape) {
            return *known;
        }
        let mark = self.draft.mark();
        let requester = self.requester(job);
        // No claim is for less.
        let brief = Requester {
            until: requester.now + self.state().policy.grace + Span::ms(1),
            ..requester
        };
        self.free_releasing();
        let helps = !self.state().reservations.is_empty() || self.could_fit(job, &brief);
        self.draft.roll_back(mark);
        self.helped_by_releasing.insert(shape, helps);
        helps
    }
}
