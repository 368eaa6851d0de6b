//! Screening: which pending jobs may find anything to take, by a few numbers.

use crate::cluster::node::Who;
use crate::ix::{JobIx, QueueIx, ShapeIx};
use crate::plan::claims::known::{Head, Known, Overs, Taking};
use crate::plan::planner::Planner;
use berth_model::Span;
use std::collections::BTreeMap;

impl Planner<'_> {
    /// What of a queue may still be claimed for.
    pub(crate) fn hopes_of(&self, leaf: QueueIx) -> impl Iterator<Item = (ShapeIx, i32)> + '_ {
        let all = self.hopes.range((leaf, ShapeIx(0), i32::MIN)..);
        all.take_while(move |(of, _, _)| *of == leaf).map(|(_, shape, class)| (*shape, *class))
    }

    /// Finds what may be claimed for, and leaves out queues with nothing.
    pub(super) fn find_hopes(&mut self, leaves: &mut Vec<QueueIx>, taking: Taking) {
        self.hopes.clear();
        let mark = self.draft.mark();
        self.free_releasing();
        let mut so_far = Known::default();
        let overs = self.overs();
        for leaf in leaves.iter() {
            if taking == Taking::Back {
                self.hope_for_given(*leaf, &overs);
                continue;
            }
            self.hope_to_unite(*leaf, &overs);
            if self.all_claims_hopeless(*leaf, &mut so_far) {
                continue;
            }
            let heads = self.heads(*leaf);
            let hopeless = self.above_nobody(*leaf, &heads, &mut so_far);
            self.store_hopeless(*leaf, &heads, &hopeless);
            let hopes = heads.into_iter().zip(hopeless).filter(|(_, hopeless)| !hopeless);
            self.hopes.extend(hopes.map(|(head, _)| (*leaf, head.shape, head.priority)));
        }
        self.draft.roll_back(mark);
        if taking == Taking::Down {
            self.draft.state.cluster.clear_touched();
        }
        self.open_claims_on_releasing(leaves);
        leaves.retain(|leaf| self.hopes_of(*leaf).next().is_some());
    }

    /// What is being stopped and promised to nobody is there for everybody.
    fn open_claims_on_releasing(&mut self, leaves: &[QueueIx]) {
        if self.state().releasing.is_empty() {
            return;
        }
        let state = self.state();
        let mut examples: BTreeMap<ShapeIx, JobIx> = BTreeMap::new();
        let mut seen = vec![false; state.shapes.len()];
        for leaf in leaves {
            for (shape, line) in &state.queues.get(*leaf).line.shapes {
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
            let shapes = self.draft.state.queues.get(*leaf).line.shapes.iter();
            let helped = shapes.filter(|(shape, _)| examples.contains_key(shape));
            self.hopes.extend(helped.flat_map(|(shape, line)| {
                line.priorities.keys().map(|priority| (*leaf, *shape, *priority))
            }));
        }
    }

    /// What waits in a queue, by shape and class.
    fn heads(&self, leaf: QueueIx) -> Vec<Head> {
        let shapes = self.state().queues.get(leaf).line.shapes.iter();
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
    pub(super) fn has_hopes(&mut self, leaf: QueueIx, taking: Taking, so_far: &mut Known) -> bool {
        let line = &self.state().queues.get(leaf).line;
        let shortest = |shape: &ShapeIx| {
            let holds = line.shapes.get(shape).and_then(|line| line.holds.keys().next());
            holds.copied().unwrap_or(Span::ZERO)
        };
        let hopes = self.hopes_of(leaf);
        let mut heads: Vec<Head> = hopes
            .map(|(shape, priority)| Head { shape, priority, shortest: shortest(&shape) })
            .collect();
        heads.sort_by_key(|head| head.priority);
        let hopeless = match taking {
            Taking::Back => {
                let overs = so_far.overs.get_or_insert_with(|| self.overs());
                self.given_nothing(leaf, overs, &heads)
            }
            Taking::Down => self.above_nobody(leaf, &heads, so_far),
        };
        let releasing = !self.state().releasing.is_empty();
        let overs = so_far.overs.get_or_insert_with(|| self.overs());
        let rivals = self.rivals(leaf, overs);
        let unites = |head: &Head| {
            taking == Taking::Down && self.may_unite(&rivals, leaf, head.shape, head.priority)
        };
        let hopeless: Vec<bool> =
            heads.iter().zip(hopeless).map(|(head, less)| less && !unites(head)).collect();
        let mut any = false;
        for (head, hopeless) in heads.into_iter().zip(hopeless) {
            if hopeless && !(releasing && self.helped_by_releasing.get(&head.shape) != Some(&false))
            {
                self.hopes.remove(&(leaf, head.shape, head.priority));
            } else {
                any = true;
            }
        }
        any
    }

    /// What of a queue may be claimed for from its lower classes and other queues together.
    fn hope_to_unite(&mut self, leaf: QueueIx, overs: &Overs) {
        let queue = self.state().queues.get(leaf);
        let lowest = queue.running_priorities.keys().next();
        // Most queues have used up their quota, or nothing of theirs is of a lower class.
        let used_up = queue.quota.gpu.is_some_and(|quota| queue.usage.gpu >= quota);
        if used_up || lowest.is_none_or(|lowest| queue.line.top() <= Some(*lowest)) {
            return;
        }
        let rivals = self.rivals(leaf, overs);
        if rivals.is_empty() {
            return;
        }
        let mut united: Vec<(QueueIx, ShapeIx, i32)> = Vec::new();
        for (shape, line) in &self.state().queues.get(leaf).line.shapes {
            let may = |priority: &&i32| self.may_unite(&rivals, leaf, *shape, **priority);
            united.extend(line.priorities.keys().filter(may).map(|class| (leaf, *shape, *class)));
        }
        self.hopes.extend(united);
    }

    /// What of a queue others have to give something to.
    fn hope_for_given(&mut self, leaf: QueueIx, overs: &Overs) {
        let rivals = self.rivals(leaf, overs);
        let state = &self.draft.state;
        if rivals.is_empty() && state.elastic.is_empty() {
            return;
        }
        let mut given: Vec<(ShapeIx, i32)> = Vec::new();
        for (shape, line) in &state.queues.get(leaf).line.shapes {
            if self.is_given_by(&rivals, *shape) {
                given.extend(line.priorities.keys().map(|priority| (*shape, *priority)));
            }
        }
        self.hopes.extend(given.into_iter().map(|(shape, priority)| (leaf, shape, priority)));
    }

    /// Whether there may be something for the job itself: it may hold what it takes for longer than
    /// the others of its shape would.
    pub(super) fn may_be_given(&mut self, taking: Taking, job: JobIx, so_far: &mut Known) -> bool {
        if taking == Taking::Back || self.releasing_helps(job) {
            return true;
        }
        let known = self.state().jobs.get(job);
        let (queue, shape, priority) = (known.queue, known.shape, known.priority);
        let head = Head { shape, priority, shortest: self.holding(job) };
        self.above_nobody(queue, &[head], so_far) == [false]
    }

    /// Whether what is being stopped and promised to nobody may make room for the job's shape.
    pub(crate) fn releasing_helps(&mut self, job: JobIx) -> bool {
        let shape = self.state().jobs.get(job).shape;
        if self.state().releasing.is_empty() {
            return false;
        }
        if let Some(known) = self.helped_by_releasing.get(&shape) {
            return *known;
        }
        let mark = self.draft.mark();
        let who = self.who(job);
        // No claim is for less.
        let brief = Who { until: who.now + self.state().policy.grace + Span::ms(1), ..who };
        self.free_releasing();
        let helps = !self.state().reservations.is_empty() || self.could_fit(job, &brief);
        self.draft.roll_back(mark);
        self.helped_by_releasing.insert(shape, helps);
        helps
    }
}
