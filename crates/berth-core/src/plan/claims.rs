//! Claims: which waiting jobs may take GPUs from others, and in which order they do. Most claims
//! are in vain, and most of those are told by a few numbers before anything is tried.

use crate::cluster::node::Who;
use crate::fair_share;
use crate::index::held_gpus::Tops;
use crate::index::max_free::{Free, FreeBy};
use crate::index::may_hold::Ways;
use crate::ix::{JobIx, NodeIx, QueueIx, ShapeIx};
use crate::plan::Planner;
use crate::plan::displace::{Right, displaces_from};
use crate::queues::Vain;
use crate::state::State;
use berth_model::{Span, Time};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Waiting jobs of one queue, shape and class: what one of them may take, the next may.
#[derive(Debug, Clone, Copy)]
struct Head {
    shape: ShapeIx,
    priority: i32,
    /// No job of the shape holds its places for less.
    shortest: Span,
}

/// Which claims are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// Between queues: what is beyond a share or a quota is taken back.
    Back,
    /// From lower classes.
    Down,
}

/// Where more nodes than that have changed, what was found before does not hold any more.
const MANY: usize = 64;

/// Which queues are beyond their quota, and beyond their share, by ordinal; and how many children of
/// each are, those of no queue first.
struct Overs {
    own: Vec<(bool, bool)>,
    children: Vec<(u32, u32)>,
}

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
    /// Queues within their share take from those above theirs, the neediest first.
    pub(super) fn reclaim(&mut self) {
        self.claim(Taking::Back);
    }

    /// Higher classes take from lower ones of their queue, or of any where they reach across.
    pub(super) fn preempt(&mut self) {
        self.claim(Taking::Down);
        self.share_time();
    }

    /// Whether a queue has any claims of that kind worth looking at.
    fn may_claim(&self, taking: Taking, leaf: QueueIx) -> bool {
        let state = self.state();
        let queue = state.queues.get(leaf);
        if queue.line.oldest.is_empty() {
            return false;
        }
        match taking {
            // One that is above its share and its quota everywhere has nothing to take back.
            Taking::Back => state
                .queues
                .path(leaf)
                .any(|ix| !self.shares.over(state, ix) || !fair_share::over_quota(state, ix)),
            // Only where something of a lower class runs, or a gang has grown.
            Taking::Down => {
                let Some(top) = queue.line.top() else { return false };
                let below = queue.running_priorities.keys().next().is_some_and(|low| *low < top);
                below || !state.elastic.is_empty() || state.across(top)
            }
        }
    }

    /// By which rights the job may take from others now.
    fn rights(&mut self, taking: Taking, job: JobIx) -> Vec<Right> {
        let known = self.state().jobs.get(job);
        let (queue, priority) = (known.queue, known.priority);
        match taking {
            Taking::Back if self.may_wait_no_longer(job) => vec![Right::Share],
            Taking::Back => {
                let state = self.state();
                let more = &state.shape_of(job).amounts;
                let owns =
                    state.queues.path(queue).any(|ix| fair_share::within_quota(state, ix, more));
                if owns { vec![Right::Quota] } else { Vec::new() }
            }
            Taking::Down if !self.may_wait_no_longer(job) => Vec::new(),
            Taking::Down => match self.state().across(priority) {
                true => vec![Right::Class, Right::Across],
                false => vec![Right::Class],
            },
        }
    }

    fn anything_runs(&self) -> bool {
        !self.state().ends.is_empty()
    }

    /// Whether the job has waited long enough to displace others.
    pub(super) fn may_wait_no_longer(&mut self, job: JobIx) -> bool {
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
    fn claim(&mut self, taking: Taking) {
        if !self.anything_runs() {
            return;
        }
        let skipped = std::mem::take(&mut self.skipped);
        self.claiming = true;
        let all: Vec<QueueIx> = self.state().queues.leaves().collect();
        let (mut leaves, others): (Vec<QueueIx>, Vec<QueueIx>) =
            all.into_iter().partition(|leaf| self.may_claim(taking, *leaf));
        if taking == Taking::Down {
            others.iter().for_each(|leaf| self.draft.state.queues.get_mut(*leaf).vain = None);
        }
        self.find_hopes(&mut leaves, taking);
        let mut turns = Turns { leaves, sorted: false, over: true };
        let mut takes = 0;
        let (mut in_vain, mut generous) = (false, false);
        let mut so_far = Known::default();
        let mut seen: BTreeMap<QueueIx, usize> = BTreeMap::new();
        while let Some(leaf) = self.turn(&mut turns) {
            // Where one was in vain after something was taken, or what is loose helped nobody, little
            // may be left for the others.
            let version = takes + self.loose_helped.values().filter(|helps| !**helps).count();
            if in_vain
                && seen.insert(leaf, version) != Some(version)
                && !self.has_hopes(leaf, taking, &mut so_far)
            {
                self.pass(&mut turns);
                continue;
            }
            let Some(job) = self.next_claimant(leaf) else {
                self.pass(&mut turns);
                continue;
            };
            // As long as there is something to take, it is quicker to take it than to look first.
            let taken = (generous || self.may_be_given(taking, job, &mut so_far))
                && self.rights(taking, job).into_iter().any(|right| self.displace(job, right))
                || taking == Taking::Down && self.unite(job, &mut so_far);
            (in_vain, generous) = (!taken, taken);
            if taken {
                takes += 1;
                turns.sorted = false;
                turns.over = true;
                so_far = Known::default();
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
                    self.hopes.remove(&(leaf, shape, priority));
                }
            }
        }
        self.claiming = false;
        self.skipped = skipped;
    }

    /// What of a queue may still be claimed for.
    pub(super) fn hopes_of(&self, leaf: QueueIx) -> impl Iterator<Item = (ShapeIx, i32)> + '_ {
        let all = self.hopes.range((leaf, ShapeIx(0), i32::MIN)..);
        all.take_while(move |(of, _, _)| *of == leaf).map(|(_, shape, class)| (*shape, *class))
    }

    /// Finds what may be claimed for, and leaves out queues with nothing.
    fn find_hopes(&mut self, leaves: &mut Vec<QueueIx>, taking: Taking) {
        self.hopes.clear();
        let mark = self.draft.mark();
        self.free_loose();
        let mut so_far = Known::default();
        let overs = self.overs();
        for leaf in leaves.iter() {
            if taking == Taking::Back {
                self.hope_for_given(*leaf, &overs);
                continue;
            }
            self.hope_to_unite(*leaf, &overs);
            if self.still_vain(*leaf, &mut so_far) {
                continue;
            }
            let heads = self.heads(*leaf);
            let hopeless = self.above_nobody(*leaf, &heads, &mut so_far);
            self.remember_vain(*leaf, &heads, &hopeless);
            let hopes = heads.into_iter().zip(hopeless).filter(|(_, hopeless)| !hopeless);
            self.hopes.extend(hopes.map(|(head, _)| (*leaf, head.shape, head.priority)));
        }
        self.draft.roll_back(mark);
        if taking == Taking::Down {
            self.draft.state.cluster.settle_looks();
        }
        self.hope_for_loose(leaves);
        leaves.retain(|leaf| self.hopes_of(*leaf).next().is_some());
    }

    /// Whether nothing in a queue had anything to take from lower classes, and there is nothing new.
    fn still_vain(&self, leaf: QueueIx, so_far: &mut Known) -> bool {
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

    /// What is being stopped and promised to nobody is there for everybody.
    fn hope_for_loose(&mut self, leaves: &[QueueIx]) {
        if self.state().loose.is_empty() {
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
        examples.retain(|_, job| self.loose_helps(*job));
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
    fn has_hopes(&mut self, leaf: QueueIx, taking: Taking, so_far: &mut Known) -> bool {
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
        let loose = !self.state().loose.is_empty();
        let overs = so_far.overs.get_or_insert_with(|| self.overs());
        let rivals = self.rivals(leaf, overs);
        let unites = |head: &Head| {
            taking == Taking::Down && self.may_unite(&rivals, leaf, head.shape, head.priority)
        };
        let hopeless: Vec<bool> =
            heads.iter().zip(hopeless).map(|(head, less)| less && !unites(head)).collect();
        let mut any = false;
        for (head, hopeless) in heads.into_iter().zip(hopeless) {
            if hopeless && !(loose && self.loose_helped.get(&head.shape) != Some(&false)) {
                self.hopes.remove(&(leaf, head.shape, head.priority));
            } else {
                any = true;
            }
        }
        any
    }

    /// Takes from other queues and from lower classes of its own, for a job that neither suffices for.
    fn unite(&mut self, job: JobIx, so_far: &mut Known) -> bool {
        let known = self.state().jobs.get(job);
        let (queue, shape, priority) = (known.queue, known.shape, known.priority);
        let overs = so_far.overs.get_or_insert_with(|| self.overs());
        self.may_unite(&self.rivals(queue, overs), queue, shape, priority)
            && self.may_wait_no_longer(job)
            && self.displace(job, Right::Both)
    }

    /// Whether a shape and class within its queue's quota may claim something from other queues, and
    /// something from lower classes of its own: one GPU alone is had from one of them.
    fn may_unite(
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
            && asks.single().is_none_or(super::victims::in_blocks)
            && fair_share::within_quota(state, leaf, &asks.amounts)
            && self.is_given_by(rivals, shape)
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
    fn may_be_given(&mut self, taking: Taking, job: JobIx, so_far: &mut Known) -> bool {
        if taking == Taking::Back || self.loose_helps(job) {
            return true;
        }
        let known = self.state().jobs.get(job);
        let (queue, shape, priority) = (known.queue, known.shape, known.priority);
        let head = Head { shape, priority, shortest: self.holding(job) };
        self.above_nobody(queue, &[head], so_far) == [false]
    }

    /// Which of these no other queue has to give anything to.
    fn given_nothing(&self, leaf: QueueIx, overs: &Overs, heads: &[Head]) -> Vec<bool> {
        let rivals = self.rivals(leaf, overs);
        heads.iter().map(|head| !self.is_given_by(&rivals, head.shape)).collect()
    }

    /// The queue and those above it, and whether others beside each are beyond their quota, or
    /// beyond their share.
    fn rivals(&self, leaf: QueueIx, overs: &Overs) -> Vec<(QueueIx, bool, bool)> {
        let queues = &self.state().queues;
        let path = queues.path(leaf).map(|mine| {
            let parent = queues.get(mine).parent.map_or(0, |parent| parent.at() + 1);
            let (quota, share) = overs.own[mine.at()];
            let (quotas, shares) = overs.children[parent];
            (mine, quotas > u32::from(quota), shares > u32::from(share))
        });
        path.filter(|(_, quota, share)| *quota || *share).collect()
    }

    /// Which queues are beyond their quotas and shares as things are on the draft.
    fn overs(&self) -> Overs {
        let state = self.state();
        let none = state.queues.all.len();
        let mut overs = Overs { own: vec![(false, false); none], children: vec![(0, 0); none + 1] };
        for (ix, queue) in state.queues.live() {
            let own = (fair_share::over_quota(state, ix), self.shares.over(state, ix));
            let beside = &mut overs.children[queue.parent.map_or(0, |parent| parent.at() + 1)];
            beside.0 += u32::from(own.0);
            beside.1 += u32::from(own.1);
            overs.own[ix.at()] = own;
        }
        overs
    }

    fn is_given_by(&self, rivals: &[(QueueIx, bool, bool)], shape: ShapeIx) -> bool {
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

    /// Which of these have no lower class of their queue to take from, or none where it would help.
    /// What was found before holds unless something more is to be had since.
    fn above_nobody(&mut self, leaf: QueueIx, heads: &[Head], so_far: &mut Known) -> Vec<bool> {
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
    fn remember_vain(&mut self, leaf: QueueIx, heads: &[Head], hopeless: &[bool]) {
        let state = &mut *self.draft.state;
        let (tops, kinds) = (state.tops_for(leaf), state.cluster.kinds);
        let queue = state.queues.get_mut(leaf);
        let vain = heads.iter().zip(hopeless).filter(|(_, hopeless)| **hopeless);
        let hopeless: BTreeSet<_> = vain.map(|(head, _)| (head.shape, head.priority)).collect();
        let all = hopeless.len() == heads.len();
        let (heads, ways) = (queue.heads, queue.ways);
        queue.vain = Some(Vain { tops, heads, ways, kinds, hopeless, all });
    }

    /// Whether what is being stopped and promised to nobody may make room for the job's shape.
    pub(super) fn loose_helps(&mut self, job: JobIx) -> bool {
        let shape = self.state().jobs.get(job).shape;
        if self.state().loose.is_empty() {
            return false;
        }
        if let Some(known) = self.loose_helped.get(&shape) {
            return *known;
        }
        let mark = self.draft.mark();
        let who = self.who(job);
        // No claim is for less.
        let brief = Who { until: who.now + self.state().policy.grace + Span::ms(1), ..who };
        self.free_loose();
        let helps = !self.state().reservations.is_empty() || self.could_fit(job, &brief);
        self.draft.roll_back(mark);
        self.loose_helped.insert(shape, helps);
        helps
    }

    /// Which of two queues uses less of its share.
    fn needier(&self, a: QueueIx, b: QueueIx) -> Ordering {
        let state = self.state();
        let name = |ix| &state.queues.get(ix).spec.name;
        let by_share = self.shares.ratio(state, a).cmp(self.shares.ratio(state, b));
        by_share.then_with(|| name(a).cmp(name(b)))
    }

    /// The queue whose turn it is: the one that uses the least of its share.
    fn turn(&self, turns: &mut Turns) -> Option<QueueIx> {
        if turns.over && !turns.sorted {
            let all = 0..turns.leaves.len();
            let neediest = all.min_by(|a, b| self.needier(turns.leaves[*a], turns.leaves[*b]))?;
            let last = turns.leaves.len() - 1;
            turns.leaves.swap(neediest, last);
            turns.over = false;
        }
        turns.leaves.last().copied()
    }

    /// The queue whose turn it is has nothing more to take.
    fn pass(&self, turns: &mut Turns) {
        turns.leaves.pop();
        // Once one has passed, others are likely to: from now on it is known whose turn is next.
        if !turns.sorted {
            turns.leaves.sort_unstable_by(|a, b| self.needier(*b, *a));
            turns.sorted = true;
        }
    }
}

/// Queues that still have claims, the one whose turn it is last.
struct Turns {
    leaves: Vec<QueueIx>,
    /// All of them are in order.
    sorted: bool,
    /// The turn of the last one is over: something was taken.
    over: bool,
}

/// What holds until something is taken: what is free in one place at the most, by how long it would
/// be held; where anything has changed since claims were looked at; who has too much.
#[derive(Default)]
struct Known {
    by_hold: Option<FreeBy>,
    changed: Option<Vec<NodeIx>>,
    overs: Option<Overs>,
}

impl Known {
    fn get(&mut self, state: &State, hold: Span) -> (&Free, Time) {
        let until = held_until(state, hold);
        let by_hold = self.by_hold.get_or_insert_with(|| FreeBy::of(&state.cluster));
        (by_hold.until(&state.cluster, until), until)
    }

    fn changed(&mut self, state: &State) -> &[NodeIx] {
        self.changed.get_or_insert_with(|| state.cluster.changed())
    }
}

/// Until when a claimant would hold what it takes.
fn held_until(state: &State, hold: Span) -> Time {
    state.now + state.policy.grace + hold
}
