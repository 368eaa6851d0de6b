//! Taking GPUs from running jobs: reclaim between queues, preemption inside one, classes that
//! reach across. Victims are freed on the draft in their order until the claimant fits; then only
//! those it really needs are stopped, and it is promised their places.

use super::fit::{Spot, fit};
use super::{Planner, Transaction, bound};
use crate::cluster::{Level, WHOLE};
use crate::ix::{DomainIx, JobIx, NodeIx, QueueIx, ShapeIx, TaskIx};
use crate::jobs::Standing;
use crate::nodes::Who;
use crate::shape::{Leaf, Shape, Tree};
use crate::share;
use crate::state::State;
use crate::tops::{Free, Ways};
use berth_model::{Cause, JobId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What may be taken from one queue, in the order it is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Victims {
    /// Members of elastic gangs beyond their minimum, newest first.
    surplus: Vec<Unit>,
    /// Whole jobs: lowest class, least lost work, newest, by id.
    whole: Vec<Unit>,
    /// How many of those in front have been taken in this plan.
    gone: usize,
}

/// Tasks that go together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    pub job: JobIx,
    pub tasks: Vec<u32>,
    pub surplus: bool,
}

/// Waiting jobs of one queue, shape and class: what one of them may take, the next may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub shape: ShapeIx,
    pub priority: i32,
}

/// Which claims are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// Between queues: what is beyond a share or a quota is taken back.
    Back,
    /// From lower classes.
    Down,
}

/// By which right GPUs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// The share or the quota of the claimant's queue.
    Share,
    /// A quota only: what was lent is taken back at once.
    Quota,
    /// A higher class of the same queue.
    Class,
    /// A class that reaches across queues.
    Across,
}

impl Right {
    fn cause(self, unit: &Unit) -> Cause {
        match self {
            _ if unit.surplus => Cause::Shrink,
            Right::Share | Right::Quota => Cause::Reclaim,
            Right::Class => Cause::Preempt,
            Right::Across => Cause::Across,
        }
    }
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
                .any(|ix| !self.shares.over(state, ix) || !share::over_quota(state, ix)),
            // Only where something of a lower class runs, or a gang has grown.
            Taking::Down => {
                let top =
                    queue.line.shapes.values().filter_map(|line| line.priorities.keys().last());
                let Some(top) = top.max().copied() else { return false };
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
                let owns = state.queues.path(queue).any(|ix| share::within_quota(state, ix, more));
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
        let leaves = self.state().queues.leaves();
        let mut leaves: Vec<QueueIx> =
            leaves.filter(|leaf| self.may_claim(taking, *leaf)).collect();
        self.bar_hopeless(&mut leaves, taking);
        // Nothing changes whose turn it is until something is taken.
        let mut turn = None;
        let mut takes = 0;
        let mut seen: BTreeMap<QueueIx, u32> = BTreeMap::new();
        while !leaves.is_empty() {
            let at = turn.take().unwrap_or_else(|| self.neediest(&leaves));
            let leaf = leaves[at];
            // What was taken may have left those it could take from with nothing to give.
            let known = seen.insert(leaf, takes).unwrap_or(0);
            if taking == Taking::Back && known < takes && !self.is_given(leaf) {
                leaves.swap_remove(at);
                continue;
            }
            let Some(job) = self.next_claimant(leaf) else {
                leaves.swap_remove(at);
                continue;
            };
            let rights = self.rights(taking, job);
            let taken = rights.into_iter().any(|right| self.displace(job, right));
            if taken {
                takes += 1;
            } else {
                turn = Some(at);
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
                    self.hopes.remove(&(leaf, Head { shape, priority }));
                }
            }
        }
        self.claiming = false;
        self.skipped = skipped;
    }

    /// What of a queue may still be claimed for.
    pub(super) fn hopes_of(&self, leaf: QueueIx) -> impl Iterator<Item = Head> + '_ {
        let none = Head { shape: ShapeIx(0), priority: i32::MIN };
        let all = self.hopes.range((leaf, none)..).take_while(move |(of, _)| *of == leaf);
        all.map(|(_, head)| *head)
    }

    /// Rules out what nobody gives anything to, by queue, shape and class, and the queues of which
    /// nothing is left.
    fn bar_hopeless(&mut self, leaves: &mut Vec<QueueIx>, taking: Taking) {
        let mark = self.draft.mark();
        self.free_loose();
        let mut found: Vec<(QueueIx, Head)> = Vec::new();
        self.hopes.clear();
        let mut free = FreeTops::default();
        for leaf in leaves.iter() {
            let heads = self.heads(*leaf);
            let verdicts = match taking {
                Taking::Back => self.given_nothing(*leaf, &heads),
                Taking::Down => self.above_nobody(*leaf, &heads, &mut free),
            };
            for (head, hopeless) in heads.into_iter().zip(verdicts) {
                if hopeless {
                    found.push((*leaf, head));
                } else {
                    self.hopes.insert((*leaf, head));
                }
            }
        }
        self.draft.roll_back(mark);
        if !self.state().loose.is_empty() {
            for (leaf, head) in found {
                let line = &self.state().queues.get(leaf).line;
                if line.first(head.shape, head.priority).is_some_and(|job| self.loose_helps(job)) {
                    self.hopes.insert((leaf, head));
                }
            }
        }
        leaves.retain(|leaf| self.hopes_of(*leaf).next().is_some());
    }

    /// What waits in a queue, by shape and class.
    fn heads(&self, leaf: QueueIx) -> Vec<Head> {
        let shapes = self.state().queues.get(leaf).line.shapes.iter();
        let heads = shapes.flat_map(|(shape, line)| {
            let priorities = line.priorities.keys().rev();
            priorities.map(|priority| Head { shape: *shape, priority: *priority })
        });
        heads.collect()
    }

    /// Whether another queue has anything to give to one of the queue's jobs that are still tried.
    fn is_given(&self, leaf: QueueIx) -> bool {
        let heads: Vec<Head> = self.hopes_of(leaf).collect();
        self.given_nothing(leaf, &heads).contains(&false)
            || heads.iter().any(|head| !self.loose_in_vain.contains(&head.shape))
                && !self.state().loose.is_empty()
    }

    /// Which of these no other queue has to give anything to.
    fn given_nothing(&self, leaf: QueueIx, heads: &[Head]) -> Vec<bool> {
        let state = self.state();
        if !state.elastic.is_empty() {
            return vec![false; heads.len()];
        }
        let rivals: Vec<(QueueIx, bool, bool)> = state
            .queues
            .path(leaf)
            .map(|mine| {
                let over_quota = |theirs| share::over_quota(state, theirs);
                let quota = state.queues.beside(mine).any(over_quota);
                let share = state.queues.beside(mine).any(|theirs| self.shares.over(state, theirs));
                (mine, quota, share)
            })
            .collect();
        let given = |head: &Head| {
            let more = &state.shapes[head.shape.at()].amounts;
            rivals.iter().any(|(mine, quota, share)| {
                (*quota && share::within_quota(state, *mine, more))
                    || (*share && self.shares.within(state, *mine, more))
            })
        };
        heads.iter().map(|head| !given(head)).collect()
    }

    /// Which of these have no lower class of their queue to take from, or none where it would help.
    fn above_nobody(&mut self, leaf: QueueIx, heads: &[Head], free: &mut FreeTops) -> Vec<bool> {
        let tops = self.draft.state.tops(leaf);
        let state = self.state();
        let queue = state.queues.get(leaf);
        let distant = &queue.distant;
        let mut above = |head: &Head| {
            if state.across(head.priority) {
                return true;
            }
            let given = tops.below(head.priority);
            let lower = |job: &&JobIx| state.jobs.get(**job).priority < head.priority;
            let yielding: Vec<JobIx> = distant.iter().filter(lower).copied().collect();
            if given.is_none() && yielding.is_empty() {
                return false;
            }
            let Some(group) = state.shapes[head.shape.at()].single() else { return true };
            let Some(job) = queue.line.first(head.shape, head.priority) else { return false };
            let free = free.get(state, self.holding(job));
            // Its own promise does not stand in its way either.
            let jobs = yielding.into_iter().chain([job]).collect();
            let ways = Ways { jobs, promises: &state.promises };
            state.cluster.may_hold(group, free, given, &ways)
        };
        heads.iter().map(|head| !above(head)).collect()
    }

    /// Whether what is being stopped and promised to nobody may make room for the job's shape.
    fn loose_helps(&mut self, job: JobIx) -> bool {
        let shape = self.state().jobs.get(job).shape;
        if self.state().loose.is_empty() || self.loose_in_vain.contains(&shape) {
            return false;
        }
        let mark = self.draft.mark();
        let who = self.who(job);
        // No claim is for less.
        let brief = Who { until: who.now + self.state().policy.grace + Span::ms(1), ..who };
        let any = self.free_loose();
        let helps = any && (!self.state().reservations.is_empty() || self.could_fit(job, &brief));
        self.draft.roll_back(mark);
        if !helps {
            self.loose_in_vain.insert(shape);
        }
        helps
    }

    /// The place of the queue that uses the least of its share.
    fn neediest(&self, leaves: &[QueueIx]) -> usize {
        let state = self.state();
        let mut best = (self.shares.ratio(state, leaves[0]), 0);
        for (at, leaf) in leaves.iter().enumerate().skip(1) {
            let ratio = self.shares.ratio(state, *leaf);
            let name = |at: usize| &state.queues.get(leaves[at]).spec.name;
            let order = ratio.cmp(best.0).then_with(|| name(at).cmp(name(best.1)));
            if order == std::cmp::Ordering::Less {
                best = (ratio, at);
            }
        }
        best.1
    }

    /// Frees GPUs for the job by this right, if that makes it start.
    pub(super) fn displace(&mut self, job: JobIx, right: Right) -> bool {
        let state = self.state();
        if !state.shape_of(job).possible {
            return false;
        }
        let between = matches!(right, Right::Share | Right::Quota);
        // One that goes after all others takes nothing from them.
        let own = state.jobs.get(job).queue;
        if between && state.queues.path(own).any(|ix| state.queues.get(ix).lowered()) {
            return false;
        }
        // What other queues give up does not help against the bounds of its own.
        if between && !bound(state, job, false).is_empty() {
            return false;
        }
        let queues = self.sources(job, right);
        let mark = self.draft.mark();
        let who = self.claimant(job);
        if self.loose_helps(job) {
            self.free_loose();
            let spots = self.fits_claim(job, who);
            self.draft.roll_back(mark);
            if let Some(spots) = spots {
                return self.seize(job, right, Vec::new(), &spots, &[]);
            }
        }
        self.draft.roll_back(mark);
        // Reservations that have to give way are no reason to stop anybody else.
        let mut yielding = if between && queues.is_empty() {
            Vec::new()
        } else {
            self.yielding(job, right, false)
        };
        if queues.is_empty() && yielding.is_empty() {
            return false;
        }
        let mut found = self.without_promises(job, right, &queues, who, &mut yielding);
        self.draft.roll_back(mark);
        if found.is_none() && !queues.is_empty() {
            // What an owner takes from others may have been reserved by anybody.
            let mut all = self.yielding(job, right, true);
            if all.len() > yielding.len() {
                found = self.without_promises(job, right, &queues, who, &mut all);
                self.draft.roll_back(mark);
                yielding = all;
            }
        }
        let Some((units, spots)) = found else {
            self.wake_for_protected(job, &queues);
            return false;
        };
        for other in &yielding {
            self.draft.unpromise(*other);
        }
        self.free_loose();
        let (units, spots) = self.prune(job, who, units, spots);
        self.draft.roll_back(mark);
        self.seize(job, right, units, &spots, &yielding)
    }

    /// Looks again when the first of those that have not had their minimum run time has had it.
    fn wake_for_protected(&mut self, job: JobIx, queues: &[QueueIx]) {
        let state = self.state();
        let running = queues.iter().flat_map(|queue| state.queues.get(*queue).running.values());
        let until = running
            .filter(|other| **other != job && state.jobs.get(**other).preemptible())
            .map(|other| self.protected(*other))
            .filter(|until| *until > state.now)
            .min();
        if let Some(until) = until {
            self.wake(until);
        }
    }

    /// Jobs whose reservations give way to the job by this right: those of lower classes, of
    /// queues that must give to its own, and those beyond a quota if it is within its own; or all
    /// of other queues then.
    fn yielding(&self, job: JobIx, right: Right, all: bool) -> Vec<JobIx> {
        let state = self.state();
        let claimant = state.jobs.get(job);
        let own = claimant.queue;
        let lower =
            |other: &JobIx| *other != job && state.jobs.get(*other).priority < claimant.priority;
        let of = |leaf: QueueIx| state.queues.get(leaf).distant.iter().copied();
        match right {
            Right::Class => return of(own).filter(lower).collect(),
            Right::Across => return state.queues.leaves().flat_map(of).filter(lower).collect(),
            Right::Share | Right::Quota => {}
        }
        let owner = !state.queues.get(own).quota.is_empty();
        let more = &state.shape_of(job).amounts;
        let mut found = Vec::new();
        for leaf in state.queues.leaves().filter(|leaf| *leaf != own) {
            if state.queues.get(leaf).distant.is_empty() {
                continue;
            }
            let (mine, theirs) = state.queues.rivals(own, leaf);
            if mine == theirs {
                continue;
            }
            if self.gives(job, leaf, right) {
                found.extend(of(leaf));
            } else if owner && share::within_quota(state, mine, more) {
                found.extend(of(leaf).filter(|other| {
                    all || !share::quota_holds(state, theirs, &state.shape_of(*other).amounts)
                }));
            }
        }
        found
    }

    /// Whether the job fits once these reservations have given way: as it is, or with victims.
    /// Free GPUs that are reserved are nobody's to reclaim: where they would do, none gives way.
    fn without_promises(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
        yielding: &mut Vec<JobIx>,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let mark = self.draft.mark();
        for other in yielding.iter() {
            self.draft.unpromise(*other);
        }
        self.free_loose();
        if !yielding.is_empty()
            && let Some(spots) = self.fits_claim(job, who)
        {
            if matches!(right, Right::Class | Right::Across) {
                return Some((Vec::new(), spots));
            }
            yielding.clear();
            self.draft.roll_back(mark);
            self.free_loose();
        }
        if queues.is_empty() { None } else { self.find_victims(job, right, queues, who) }
    }

    /// Like tasks of several GPUs are made room for node by node, everything else in the order of
    /// the victims.
    fn find_victims(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let blocks = shape.single().filter(|leaf| in_blocks(leaf));
        if blocks.is_some_and(|leaf| !self.room_in_all(leaf, queues)) {
            return None;
        }
        if blocks.is_none() {
            return self.greedy(job, right, queues, who, &[true, false]);
        }
        let mark = self.draft.mark();
        if !self.state().elastic.is_empty() {
            let found = self.greedy(job, right, queues, who, &[true]);
            if found.is_some() {
                return found;
            }
            self.draft.roll_back(mark);
        }
        let found = self.by_node(job, right, queues, who);
        // Where no queue stops giving on the way, every node that could help has been tried.
        if found.is_some() || matches!(right, Right::Class | Right::Across) {
            return found;
        }
        self.draft.roll_back(mark);
        self.greedy(job, right, queues, who, &[true, false])
    }

    /// Whether the group would fit if everything these queues may lose were gone: by counting,
    /// and so an upper bound.
    fn room_in_all(&self, leaf: &Leaf, queues: &[QueueIx]) -> bool {
        let state = self.state();
        let cluster = &state.cluster;
        let g = leaf.whole().unwrap_or(1).max(1);
        let mut gains = Gains { state, leaf, g, by_domain: BTreeMap::new() };
        if gains.suffice_without() {
            return true;
        }
        if let [queue] = queues {
            let mut held = state.queues.get(*queue).on_nodes.iter();
            return held.any(|(node, gpu)| gains.add(*node, *gpu));
        }
        let mut held = vec![0; cluster.nodes.len()];
        for queue in queues {
            for (node, gpu) in &state.queues.get(*queue).on_nodes {
                held[node.at()] += gpu;
            }
        }
        let mut held = held.into_iter().enumerate().filter(|(_, gpu)| *gpu > 0);
        held.any(|(node, gpu)| gains.add(NodeIx(node as u32), gpu))
    }

    /// The claimant holds what it takes from the end of the grace on.
    fn claimant(&self, job: JobIx) -> Who {
        let mut who = self.who(job);
        who.until = who.until + self.state().policy.grace;
        who
    }

    /// Frees, on the draft, what is being stopped and promised to nobody; whether there is any.
    fn free_loose(&mut self) -> bool {
        let loose: Vec<TaskIx> = self.state().loose.iter().copied().collect();
        for task in &loose {
            self.draft.close(*task);
        }
        !loose.is_empty()
    }

    /// Leaf queues that may lose something to the job by this right.
    fn sources(&self, job: JobIx, right: Right) -> Vec<QueueIx> {
        let state = self.state();
        let known = state.jobs.get(job);
        let runs = |leaf: &QueueIx| !state.queues.get(*leaf).running.is_empty();
        let mut found = Vec::new();
        match right {
            Right::Class => {
                let lowest = state.queues.get(known.queue).running_priorities.keys().next();
                let below = lowest.is_some_and(|lowest| *lowest < known.priority);
                if below || !state.elastic.is_empty() {
                    found.push(known.queue);
                }
            }
            Right::Across => found.extend(state.queues.leaves()),
            Right::Share | Right::Quota => {
                // What its own queue has to spare are members of elastic gangs.
                if !state.elastic.is_empty() {
                    found.push(known.queue);
                }
                let more = &state.shape_of(job).amounts;
                for mine in state.queues.path(known.queue) {
                    let by_quota = share::within_quota(state, mine, more);
                    let by_share = right == Right::Share && self.shares.within(state, mine, more);
                    if !by_quota && !by_share {
                        continue;
                    }
                    for theirs in state.queues.beside(mine) {
                        let over = (by_quota && share::over_quota(state, theirs))
                            || (by_share && self.shares.over(state, theirs));
                        if over {
                            state.queues.leaves_below(theirs, &mut found);
                        }
                    }
                }
            }
        }
        found.retain(runs);
        found
    }

    /// Whether a queue must give to the job's, comparing the two just below their common parent.
    pub(crate) fn gives(&self, job: JobIx, from: QueueIx, right: Right) -> bool {
        let state = self.state();
        let own = state.jobs.get(job).queue;
        let (mine, theirs) = state.queues.rivals(own, from);
        if mine == theirs {
            return false;
        }
        let more = &state.shape_of(job).amounts;
        let by_quota = share::over_quota(state, theirs) && share::within_quota(state, mine, more);
        let by_share = right == Right::Share
            && self.shares.over(state, theirs)
            && self.shares.within(state, mine, more);
        by_quota || by_share
    }

    /// Whether the unit may be taken for the job now.
    fn eligible(&self, job: JobIx, unit: &Unit, right: Right) -> bool {
        let state = self.state();
        let victim = state.jobs.get(unit.job);
        if victim.standing != Standing::Running
            || self.served.contains(&unit.job)
            || unit.job == job
        {
            return false;
        }
        let claimant = state.jobs.get(job);
        let same = victim.queue == claimant.queue;
        // Surplus of its own queue is lent to it by nobody else: any waiting minimum may have it.
        if unit.surplus && same {
            return true;
        }
        if !unit.surplus && (!victim.preemptible() || self.protected(unit.job) > state.now) {
            return false;
        }
        match right {
            Right::Class => same && victim.priority < claimant.priority,
            Right::Across => victim.priority < claimant.priority,
            // What reaches across is not reclaimed by what it reaches over.
            Right::Share | Right::Quota => {
                let over = state.across(victim.priority) && claimant.priority < victim.priority;
                !same && !over && self.gives(job, victim.queue, right)
            }
        }
    }

    /// Until when a running job is no victim.
    pub(crate) fn protected(&self, job: JobIx) -> Time {
        protected(self.state(), job)
    }

    /// The queue's victims, in their order.
    fn victims_of(&mut self, queue: QueueIx) {
        if self.victims.contains_key(&queue) {
            return;
        }
        let state = self.state();
        let mut surplus = Vec::new();
        let mut whole: Vec<(i32, i128, std::cmp::Reverse<Time>, JobId, JobIx)> = Vec::new();
        for (id, ix) in &state.queues.get(queue).running {
            let job = state.jobs.get(*ix);
            if job.standing != Standing::Running || self.served.contains(ix) {
                continue;
            }
            let started = std::cmp::Reverse(job.started.unwrap_or(Time(0)));
            for (n, tasks) in self.surplus_of(*ix).into_iter().enumerate() {
                surplus.push((job.priority, started, *id, n, tasks, *ix));
            }
            whole.push((job.priority, state.loss(*ix), started, *id, *ix));
        }
        surplus.sort();
        whole.sort();
        let victims = Victims {
            surplus: surplus
                .into_iter()
                .map(|(.., tasks, job)| Unit { job, tasks, surplus: true })
                .collect(),
            whole: whole
                .into_iter()
                .map(|(.., job)| Unit { job, tasks: Vec::new(), surplus: false })
                .collect(),
            gone: 0,
        };
        self.victims.insert(queue, victims);
    }

    /// What a gang can give up and still hold its minimum, newest first: single tasks beyond the
    /// minimum of their group, and whole groups beyond the number it needs.
    pub(super) fn surplus_of(&self, job: JobIx) -> Vec<Vec<u32>> {
        if !self.state().elastic.contains(&self.state().jobs.get(job).id) {
            return Vec::new();
        }
        let shape = self.state().shape_of(job);
        let mut found = Vec::new();
        self.surplus_in(job, shape, &shape.tree, &mut found);
        found.reverse();
        found
    }

    fn surplus_in(&self, job: JobIx, shape: &Shape, tree: &Tree, found: &mut Vec<Vec<u32>>) {
        let known = self.state().jobs.get(job);
        let live = |leaf: &Leaf| -> Vec<u32> {
            let all = leaf.first..leaf.first + leaf.count;
            all.filter(|task| self.is_live(job, *task)).collect()
        };
        match tree {
            Tree::Leaf(at) => {
                let leaf = &shape.leaves[*at];
                let beyond = live(leaf).into_iter().skip(leaf.min as usize);
                found.extend(beyond.map(|task| vec![task]));
            }
            Tree::Group { children, min, .. } => {
                let whole = children
                    .iter()
                    .filter(|child| self.state().missing_in(known, shape, child) == 0);
                for (n, child) in whole.enumerate() {
                    if n < *min as usize {
                        self.surplus_in(job, shape, child, found);
                    } else {
                        let leaves = child.leaves();
                        found.push(leaves.iter().flat_map(|at| live(&shape.leaves[*at])).collect());
                    }
                }
            }
        }
    }

    /// Frees a unit on the draft.
    fn free(&mut self, unit: &Unit) {
        let tasks = if unit.surplus { unit.tasks.clone() } else { self.live_tasks(unit.job) };
        for task in tasks {
            self.draft.close(TaskIx { job: unit.job, task });
        }
    }

    /// Whether the job fits with what has been freed, and its queues allow it.
    fn fits_claim(&mut self, job: JobIx, who: Who) -> Option<Vec<Spot>> {
        if !bound(self.state(), job, false).is_empty() || !self.could_fit(job, &who) {
            return None;
        }
        let mark = self.draft.mark();
        let spots = fit(&mut self.draft, &self.mix, job, who).ok()?;
        if self.over_model_bound(job) {
            self.draft.roll_back(mark);
            return None;
        }
        Some(spots)
    }

    /// A quick count that rules most misfits out.
    pub(super) fn could_fit(&self, job: JobIx, who: &Who) -> bool {
        let state = self.state();
        let shape = state.shape_of(job);
        let Some(leaf) = shape.single() else { return true };
        let Some(g) = leaf.whole().filter(|_| leaf.countable(&state.cluster)) else {
            return true;
        };
        let cluster = &state.cluster;
        if !leaf.has_room(cluster, leaf.min) {
            return false;
        }
        if cluster.slots(WHOLE, &leaf.classes, g) >= leaf.min {
            return true;
        }
        let contested: u32 = cluster
            .contested
            .iter()
            .filter(|ix| leaf.classes.contains(&cluster.node(**ix).class))
            .map(|ix| cluster.node(*ix).capacity(&leaf.need, who, leaf.min))
            .sum();
        cluster.slots(WHOLE, &leaf.classes, g) + contested >= leaf.min
    }

    /// Frees victims in their order until the job fits.
    fn greedy(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
        kinds: &[bool],
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let mut freed: Vec<Unit> = Vec::new();
        // Surplus of any eligible queue goes before whole jobs.
        for surplus in kinds.iter().copied() {
            let mut cursors: BTreeMap<QueueIx, usize> = queues
                .iter()
                .map(|queue| (*queue, if surplus { 0 } else { self.gone(*queue) }))
                .collect();
            while !cursors.is_empty() {
                let most = self.most_above(cursors.keys().copied());
                // Once down to its share it gives no more; of its own queue, surplus only.
                let between = matches!(right, Right::Share | Right::Quota);
                let own = most == self.state().jobs.get(job).queue;
                if between && if own { !surplus } else { !self.gives(job, most, right) } {
                    cursors.remove(&most);
                    continue;
                }
                self.victims_of(most);
                let claim = (job, right, who, shape.single());
                let Some(unit) = self.next_victim(claim, most, surplus, &mut cursors) else {
                    continue;
                };
                self.free(&unit);
                freed.push(unit);
                if let Some(spots) = self.fits_claim(job, who) {
                    return Some((freed, spots));
                }
            }
        }
        None
    }

    /// How many of a queue's whole jobs, from the first, this plan has taken for good.
    fn gone(&mut self, queue: QueueIx) -> usize {
        let Some(victims) = self.victims.get(&queue) else { return 0 };
        let taken = |unit: &Unit| {
            let job = self.state().jobs.get(unit.job);
            job.standing != Standing::Running || self.served.contains(&unit.job)
        };
        let more = victims.whole[victims.gone..].iter().take_while(|unit| taken(unit)).count();
        let victims = self.victims.get_mut(&queue).expect("just seen");
        victims.gone += more;
        victims.gone
    }

    /// The queue that uses the most of its share.
    fn most_above(&self, queues: impl Iterator<Item = QueueIx>) -> QueueIx {
        let state = self.state();
        queues
            .max_by(|a, b| {
                let by_share = self.shares.ratio(state, *a).cmp(self.shares.ratio(state, *b));
                let name = |ix: &QueueIx| &state.queues.get(*ix).spec.name;
                by_share.then_with(|| name(b).cmp(name(a)))
            })
            .expect("there is a queue")
    }

    fn next_victim(
        &self,
        (job, right, who, group): (JobIx, Right, Who, Option<&Leaf>),
        queue: QueueIx,
        surplus: bool,
        cursors: &mut BTreeMap<QueueIx, usize>,
    ) -> Option<Unit> {
        let victims = &self.victims[&queue];
        let list = if surplus { &victims.surplus } else { &victims.whole };
        let cursor = cursors.get_mut(&queue).expect("a cursor");
        while let Some(unit) = list.get(*cursor) {
            *cursor += 1;
            let open = self.state().jobs.get(unit.job).live() > 0
                && (!surplus || self.is_live(unit.job, unit.tasks[0]));
            if open && self.eligible(job, unit, right) && self.helps(unit, &who, group) {
                return Some(unit.clone());
            }
        }
        cursors.remove(&queue);
        None
    }

    /// Whether anything the unit holds would be there for the group: not what is promised to others.
    fn helps(&self, unit: &Unit, who: &Who, group: Option<&Leaf>) -> bool {
        let Some(group) = group.filter(|group| group.whole().is_some()) else { return true };
        let cluster = &self.state().cluster;
        let counts = |task: u32| !unit.surplus || unit.tasks.contains(&task);
        let mut leases = self.state().jobs.get(unit.job).leases();
        leases.any(|(task, lease)| {
            let node = cluster.node(lease.node);
            counts(task)
                && group.classes.contains(&node.class)
                && node.admits(who)
                && (node.kept.is_empty()
                    || lease.slices.iter().any(|slice| !node.is_kept(slice.gpu, who)))
        })
    }

    fn is_live(&self, job: JobIx, task: u32) -> bool {
        let lease = self.state().jobs.get(job).tasks[task as usize].lease.as_ref();
        lease.is_some_and(|lease| lease.stopping.is_none())
    }

    /// Where victims in their order free GPUs in the wrong places: goes node by node, those first
    /// that cost the least work for each task they make room for.
    fn by_node(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        who: Who,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let shape = self.state().shapes[self.state().jobs.get(job).shape.at()].clone();
        let leaf = shape.single()?;
        let g = i64::from(leaf.whole()?) * 1_000;
        let (units, mut on_node) = self.units_by_node(job, right, queues, leaf, g);
        // What one task would cost on each node: the cheapest victims until it fits.
        let mut costs: Vec<(i128, usize, NodeIx)> = Vec::new();
        for (node, victims) in &mut on_node {
            victims.sort_by_key(|(loss, at)| {
                (*loss, self.state().jobs.get(units[*at].job).id, units[*at].tasks.clone())
            });
            let target = self.state().cluster.node(*node);
            if !leaf.classes.contains(&target.class) || !leaf.suits(target) {
                continue;
            }
            let mut room = i64::from(target.free_whole()) * 1_000;
            let (mut cost, mut count) = (0, 0);
            for (loss, at) in victims.iter() {
                if room >= g {
                    break;
                }
                room += self.held_on(&units[*at], *node);
                cost += loss;
                count += 1;
            }
            if room >= g {
                costs.push((cost, count, *node));
            }
        }
        costs.sort_unstable();
        let cluster = &self.state().cluster;
        let mut by_domain: BTreeMap<DomainIx, Vec<(i128, NodeIx)>> = BTreeMap::new();
        for (cost, _, node) in costs {
            let domain = match leaf.together.required {
                Some(Level::Label { topology, depth }) => cluster.domain_of(node, topology, depth),
                _ => Some(WHOLE),
            };
            if let Some(domain) = domain {
                by_domain.entry(domain).or_default().push((cost, node));
            }
        }
        // Domains by what the cheapest nodes in them would cost.
        let mut plans: Vec<(i128, NodeIx, Vec<NodeIx>)> = Vec::new();
        for nodes in by_domain.into_values() {
            let cost = nodes.iter().take(leaf.min as usize).map(|(cost, _)| cost).sum();
            let nodes: Vec<NodeIx> = nodes.into_iter().map(|(_, node)| node).collect();
            plans.push((cost, nodes[0], nodes));
        }
        plans.sort();
        for (_, _, nodes) in plans {
            let mark = self.draft.mark();
            let mut freed: Vec<Unit> = Vec::new();
            for node in nodes {
                for (_, at) in &on_node[&node] {
                    let unit = &units[*at];
                    let target = self.state().cluster.node(node);
                    if target.capacity(&leaf.need, &who, leaf.min) >= leaf.min {
                        break;
                    }
                    if freed.contains(unit) || self.state().jobs.get(unit.job).live() == 0 {
                        continue;
                    }
                    if unit.surplus && !self.is_live(unit.job, unit.tasks[0]) {
                        continue;
                    }
                    // Taking one may have brought its queue down to its share.
                    if !self.eligible(job, unit, right) {
                        continue;
                    }
                    self.free(unit);
                    freed.push(unit.clone());
                    if let Some(spots) = self.fits_claim(job, who) {
                        return Some((freed, spots));
                    }
                }
            }
            self.draft.roll_back(mark);
        }
        None
    }

    /// The victims on nodes where they and what is free make room for a task, with what each
    /// would lose.
    fn units_by_node(
        &self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        leaf: &Leaf,
        g: i64,
    ) -> (Vec<Unit>, OnNodes) {
        let state = self.state();
        let mut units: Vec<Unit> = Vec::new();
        type Found = Option<(i128, usize)>;
        let mut known: BTreeMap<(JobId, Option<u32>), Found> = BTreeMap::new();
        let mut on_node: OnNodes = BTreeMap::new();
        let from: BTreeSet<QueueIx> = queues.iter().copied().collect();
        let held = queues.iter().flat_map(|queue| state.queues.get(*queue).on_nodes.keys());
        let mut nodes: Vec<NodeIx> = held.copied().collect();
        if queues.len() > 1 {
            nodes.sort_unstable();
            nodes.dedup();
        }
        for node_ix in nodes {
            let node = state.cluster.node(node_ix);
            if !node.open() || !leaf.classes.contains(&node.class) || !leaf.suits(node) {
                continue;
            }
            let taken = node.held.iter().filter(|(queue, _)| from.contains(queue));
            let room =
                taken.map(|(_, gpu)| gpu).sum::<i64>() + i64::from(node.free_whole()) * 1_000;
            if room < g {
                continue;
            }
            let mut here: Vec<(i128, usize)> = Vec::new();
            for task in &node.tasks {
                let victim = state.jobs.get(task.job);
                if !from.contains(&victim.queue) || !self.is_live(task.job, task.task) {
                    continue;
                }
                let spare = self.surplus_of(task.job);
                let spare = spare.into_iter().find(|tasks| tasks.contains(&task.task));
                let surplus = spare.is_some();
                let tasks = spare.unwrap_or_default();
                let key = (victim.id, tasks.first().copied());
                let found = *known.entry(key).or_insert_with(|| {
                    let unit = Unit { job: task.job, tasks, surplus };
                    self.eligible(job, &unit, right).then(|| {
                        let loss = if surplus { 0 } else { state.loss(task.job) };
                        units.push(unit);
                        (loss, units.len() - 1)
                    })
                });
                here.extend(found.filter(|unit| !here.contains(unit)));
            }
            if !here.is_empty() {
                on_node.insert(node_ix, here);
            }
        }
        (units, on_node)
    }

    fn held_on(&self, unit: &Unit, node: NodeIx) -> i64 {
        let known = self.state().jobs.get(unit.job);
        known
            .leases()
            .filter(|(task, lease)| {
                lease.node == node && (!unit.surplus || unit.tasks.contains(task))
            })
            .map(|(_, lease)| lease.charge.gpu)
            .sum()
    }

    /// Leaves out whoever is not needed, last taken first.
    fn prune(
        &mut self,
        job: JobIx,
        who: Who,
        units: Vec<Unit>,
        spots: Vec<Spot>,
    ) -> (Vec<Unit>, Vec<Spot>) {
        let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
        let touches = |planner: &Self, unit: &Unit| {
            planner.state().jobs.get(unit.job).leases().any(|(task, lease)| {
                nodes.contains(&lease.node) && (!unit.surplus || unit.tasks.contains(&task))
            })
        };
        let base = self.draft.mark();
        let near: Vec<Unit> = units.iter().filter(|unit| touches(self, unit)).cloned().collect();
        let (mut needed, mut spots) = match self.fits_without(job, who, &near, None) {
            Some(found) => (near, found),
            None => (units, spots),
        };
        self.draft.roll_back(base);
        // Beyond some number the ones on the chosen nodes are as good as needed.
        const FEW: usize = 64;
        let mut at = needed.len();
        while at > 0 && needed.len() <= FEW && needed.len() > 1 {
            at -= 1;
            if let Some(found) = self.fits_without(job, who, &needed, Some(at)) {
                needed.remove(at);
                spots = found;
            }
            self.draft.roll_back(base);
        }
        (needed, spots)
    }

    fn fits_without(
        &mut self,
        job: JobIx,
        who: Who,
        units: &[Unit],
        without: Option<usize>,
    ) -> Option<Vec<Spot>> {
        for (at, unit) in units.iter().enumerate() {
            if Some(at) != without {
                self.free(unit);
            }
        }
        self.fits_claim(job, who)
    }

    /// Stops the victims and promises the job their places, as one transaction.
    fn seize(
        &mut self,
        job: JobIx,
        right: Right,
        units: Vec<Unit>,
        spots: &[Spot],
        yielding: &[JobIx],
    ) -> bool {
        let id = self.state().jobs.get(job).id;
        let loose = self.state().loose.len();
        let mut decisions = Vec::new();
        for unit in &units {
            let tasks = if unit.surplus { unit.tasks.clone() } else { self.live_tasks(unit.job) };
            let grace = self.state().jobs.get(unit.job).grace(&self.state().policy);
            decisions.extend(self.stop(unit.job, &tasks, right.cause(unit), Some(id), grace));
        }
        let at = self.free_at(spots);
        let moved = self.in_the_way(job, at, spots, yielding);
        for other in &moved {
            self.draft.unpromise(*other);
            let job = self.state().jobs.get(*other).id;
            decisions.push(berth_model::Decision::Unreserve { job });
        }
        let kept = !moved.is_empty() || self.state().promises.contains_key(&job);
        let decision = self.reserve(job, at, spots, true);
        // What was kept for it elsewhere, or is freed beside what it needs, is there for others.
        if kept || self.state().loose.len() > loose {
            self.loose_in_vain.clear();
        }
        decisions.push(decision);
        for other in moved {
            if let Some((at, spots)) = self.earliest(other) {
                decisions.push(self.reserve(other, at, &spots, false));
            }
        }
        self.served.insert(job);
        self.transactions.push(Transaction { job: Some(id), decisions });
        true
    }

    /// Those of the jobs whose reservations overlap with what the job takes from that time on.
    fn in_the_way(&self, job: JobIx, at: Time, spots: &[Spot], yielding: &[JobIx]) -> Vec<JobIx> {
        let state = self.state();
        let to = at + self.holding(job);
        let mut found = BTreeSet::new();
        for spot in spots {
            let node = state.cluster.node(spot.node);
            let spare = node.spec.cpu.is_some() || node.spec.memory.is_some();
            for kept in node.kept.iter().filter(|kept| yielding.contains(&kept.job)) {
                let gpu = |gpu: u32| spot.slices.iter().any(|slice| slice.gpu == gpu);
                let overlaps = kept.from < to
                    && at < kept.to
                    && (spare || kept.slices.iter().any(|slice| gpu(slice.gpu)));
                if overlaps {
                    found.insert((state.jobs.get(kept.job).id, kept.job));
                }
            }
        }
        found.into_iter().map(|(_, job)| job).collect()
    }

    /// When the last of the places is free of what is being stopped there.
    pub(super) fn free_at(&self, spots: &[Spot]) -> Time {
        let state = self.state();
        let mut at = state.now;
        let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
        for node in nodes {
            for task in &state.cluster.node(node).tasks {
                let lease = state.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
                let stop = lease.and_then(|lease| lease.stopping.as_ref());
                if let Some(stop) = stop {
                    at = at.max(stop.until);
                }
            }
        }
        at
    }

    /// Time sharing: pauses a long job that has had its quantum for short ones of its queue.
    fn share_time(&mut self) {
        let policy = self.state().policy.clone();
        let leaves: Vec<QueueIx> = self
            .state()
            .queues
            .leaves()
            .filter(|leaf| {
                let queue = self.state().queues.get(*leaf);
                queue.spec.time_sharing.unwrap_or(policy.time_sharing)
                    && !queue.line.oldest.is_empty()
                    && !queue.running.is_empty()
            })
            .collect();
        for leaf in leaves {
            let running: Vec<JobIx> =
                self.state().queues.get(leaf).running.values().copied().collect();
            for victim in running {
                self.pause_for_shorter(leaf, victim, &policy);
            }
        }
    }

    fn pause_for_shorter(&mut self, leaf: QueueIx, victim: JobIx, policy: &berth_model::Policy) {
        let state = self.state();
        let known = state.jobs.get(victim);
        let day = state.now - Span::days(1);
        let had = known.started.map_or(Span::ZERO, |started| state.now - started);
        let pauses = known.pauses.iter().filter(|at| **at > day).count() as u32;
        if known.standing != Standing::Running
            || self.served.contains(&victim)
            || !known.preemptible()
            || known.last_checkpoint.is_none()
        {
            return;
        }
        // It is looked at again when it has had its time, and the earliest pause is a day past.
        let mut from =
            (known.started.unwrap_or(state.now) + policy.quantum).max(self.protected(victim));
        if pauses >= policy.pauses_per_day {
            let first = known.pauses.iter().filter(|at| **at > day).min();
            let Some(first) = first else { return };
            from = from.max(*first + Span::days(1));
        }
        if from > state.now {
            self.wake(from);
            return;
        }
        let held = known.held_gpu();
        let left = (known.estimate_left() - had).max(Span::mins(1));
        let work = i128::from(held) * i128::from(left.0);
        let (priority, cost) = (known.priority, known.restart_cost(policy));
        let waiting: Vec<JobIx> = state
            .queues
            .get(leaf)
            .line
            .oldest
            .iter()
            .map(|(_, _, ix)| *ix)
            .filter(|ix| {
                let job = state.jobs.get(*ix);
                let asks = state.shape_of(*ix).amounts.gpu;
                let own = i128::from(asks) * i128::from(job.estimate_left().0);
                job.priority == priority
                    && asks > 0
                    && asks <= held
                    && own * 4 < work
                    && !self.served.contains(ix)
                    && !state.promises.get(ix).is_some_and(|promised| promised.firm)
            })
            .take(64)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let mark = self.draft.mark();
        let places: Vec<Spot> = known_places(state, victim);
        for task in self.live_tasks(victim) {
            self.draft.close(TaskIx { job: victim, task });
        }
        for job in &waiting {
            self.draft.unpromise(*job);
        }
        let mut chosen: Vec<(JobIx, Vec<Spot>)> = Vec::new();
        let mut filled = 0;
        for job in waiting {
            let who = self.claimant(job);
            if let Some(spots) = self.fits_claim(job, who) {
                filled += self.state().shape_of(job).amounts.gpu;
                chosen.push((job, spots));
            }
        }
        let saved = i128::from(filled) * i128::from(left.0);
        let pays = saved > i128::from(held) * i128::from(cost.0);
        self.draft.roll_back(mark);
        if filled * 2 < held || !pays {
            return;
        }
        let grace = self.state().jobs.get(victim).grace(policy);
        let first = self.state().jobs.get(chosen[0].0).id;
        let tasks = self.live_tasks(victim);
        let mut decisions = self.stop(victim, &tasks, Cause::TimeShare, Some(first), grace);
        let mut back = self.now();
        for (job, spots) in &chosen {
            let at = self.free_at(spots);
            let decision = self.reserve(*job, at, spots, true);
            decisions.push(decision);
            self.served.insert(*job);
            back = back.max(at + self.holding(*job));
        }
        // The paused job goes on in its old place when they are through.
        let decision = self.reserve(victim, back, &places, false);
        decisions.push(decision);
        self.served.insert(victim);
        self.transactions.push(Transaction { job: Some(first), decisions });
    }
}

/// What is free in one place at the most, by how long it would be held: spans are rounded down to a
/// power of two, so that there are few.
#[derive(Default)]
struct FreeTops(BTreeMap<u32, Free>);

impl FreeTops {
    fn get(&mut self, state: &State, hold: Span) -> &Free {
        let power = (hold.0.max(1) as u64).ilog2();
        let until = state.now + state.policy.grace + Span(1 << power);
        self.0.entry(power).or_insert_with(|| state.cluster.free_tops(until))
    }
}

/// Victims on each node: what they lose, and which they are.
type OnNodes = BTreeMap<NodeIx, Vec<(i128, usize)>>;

/// Like tasks that need several GPUs in the right places.
fn in_blocks(leaf: &Leaf) -> bool {
    leaf.whole().is_some_and(|g| g > 1 || leaf.min > 1) && leaf.near.is_empty()
}

/// Tasks of a group for which there would be room if GPUs were given up, by the domain it must lie
/// in.
struct Gains<'a> {
    state: &'a State,
    leaf: &'a Leaf,
    g: u32,
    by_domain: BTreeMap<DomainIx, u32>,
}

impl Gains<'_> {
    /// Whether what is free would do, but for promises.
    fn suffice_without(&self) -> bool {
        let cluster = &self.state.cluster;
        match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => {
                let mut free = cluster.counted.iter().flatten();
                free.any(|free| free / self.g >= self.leaf.min)
            }
            Some(Level::Label { .. }) | None => self.leaf.has_room(cluster, self.leaf.min),
        }
    }

    /// Adds what would be given up on a node; whether that is enough now.
    fn add(&mut self, ix: NodeIx, gpu: i64) -> bool {
        let cluster = &self.state.cluster;
        let Some(free) = cluster.counted[ix.at()] else { return false };
        let slots = (i64::from(free) * 1_000 + gpu) / (i64::from(self.g) * 1_000);
        let more = (slots as u32).saturating_sub(free / self.g);
        if more == 0 || !self.leaf.classes.contains(&cluster.node(ix).class) {
            return false;
        }
        let domain = match self.leaf.together.required {
            Some(Level::Node | Level::Nvlink) => return slots >= i64::from(self.leaf.min),
            Some(Level::Label { topology, depth }) => cluster.domain_of(ix, topology, depth),
            None => Some(WHOLE),
        };
        let Some(domain) = domain else { return false };
        let gained = self.by_domain.entry(domain).or_default();
        *gained += more;
        cluster.room(domain, &self.leaf.classes, self.g) + *gained >= self.leaf.min
    }
}

/// Where a job's live tasks are.
pub(super) fn known_places(state: &crate::state::State, job: JobIx) -> Vec<Spot> {
    state
        .jobs
        .get(job)
        .leases()
        .filter(|(_, lease)| lease.stopping.is_none())
        .map(|(task, lease)| Spot { task, node: lease.node, slices: lease.slices.clone() })
        .collect()
}

/// From when on the job may displace others for anything but what its queue lent.
pub(crate) fn displaces_from(state: &crate::state::State, job: JobIx) -> Time {
    let known = state.jobs.get(job);
    let queue = state.queues.get(known.queue);
    let set = known.spec.preempt_after.or(queue.spec.preempt_after);
    let delay = set.unwrap_or_else(|| {
        if state.policy.preempt_after > Span::ZERO {
            return state.policy.preempt_after;
        }
        super::pools::boot_for(state, job).unwrap_or(Span::ZERO)
    });
    known.spec.submitted + delay
}

/// Until when a running job is no victim: its minimum run time.
pub(crate) fn protected(state: &crate::state::State, job: JobIx) -> Time {
    let known = state.jobs.get(job);
    let queue = state.queues.get(known.queue);
    let least = known.spec.min_runtime.or(queue.spec.min_runtime);
    let least = least.unwrap_or(state.policy.min_runtime);
    known.started.map_or(state.now, |started| started + least)
}
