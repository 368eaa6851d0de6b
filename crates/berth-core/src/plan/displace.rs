//! Taking GPUs from running jobs: reclaim between queues, preemption inside one, classes that
//! reach across. Victims are freed on the draft in their order until the claimant fits; then only
//! those it really needs are stopped, and it is promised their places.

use crate::amounts::{Amounts, Resource};
use crate::cluster::domain::WHOLE;
use crate::cluster::node::Who;
use crate::fair_share;
use crate::ix::{JobIx, NodeIx, QueueIx, TaskIx};
use crate::jobs::{Job, Standing};
use crate::plan::Planner;
use crate::plan::bounds::bound;
use crate::plan::fit::{Spot, fit};
use crate::plan::victims::Unit;
use crate::state::State;
use crate::transaction::Transaction;
use berth_model::{Cause, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// By which right GPUs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// The share or the quota of the claimant's queue.
    Share,
    /// A quota only: what was lent is taken back at once.
    Quota,
    /// A higher class of the same queue.
    Class,
    /// What its queue may claim from others, and its class in its own: where neither suffices alone.
    Both,
    /// A class that reaches across queues.
    Across,
}

impl Right {
    fn cause(self, unit: &Unit, same_queue: bool) -> Cause {
        match self {
            _ if unit.surplus => Cause::Shrink,
            Right::Both if same_queue => Cause::Preempt,
            Right::Share | Right::Quota | Right::Both => Cause::Reclaim,
            Right::Class => Cause::Preempt,
            Right::Across => Cause::Across,
        }
    }

    /// Whether it reaches what is of that queue and class, whole or surplus, for the claimant.
    pub(super) fn reaches(
        self,
        state: &State,
        claimant: &Job,
        (queue, priority, surplus): (QueueIx, i32, bool),
        gives: impl Fn(QueueIx) -> bool,
    ) -> bool {
        let same = queue == claimant.queue;
        // Surplus of its own queue is lent to it by nobody else: any waiting minimum may have it.
        if surplus && same {
            return true;
        }
        match self {
            Right::Class => same && priority < claimant.priority,
            Right::Both if same => priority < claimant.priority,
            Right::Across => priority < claimant.priority,
            // What reaches across is not reclaimed by what it reaches over.
            Right::Share | Right::Quota | Right::Both => {
                let over = state.across(priority) && claimant.priority < priority;
                !same && !over && gives(queue)
            }
        }
    }
}

impl Planner<'_> {
    /// Frees GPUs for the job by this right, if that makes it start.
    pub(super) fn displace(&mut self, job: JobIx, right: Right) -> bool {
        let state = self.state();
        if !state.shape_of(job).possible {
            return false;
        }
        let between = matches!(right, Right::Share | Right::Quota);
        // One that goes after all others takes nothing from them.
        let own = state.jobs.get(job).queue;
        if (between || right == Right::Both)
            && state.queues.path(own).any(|ix| state.queues.get(ix).lowered())
        {
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
            let spots = self.fits_loose(job, who);
            self.draft.roll_back(mark);
            if let Some(spots) = spots {
                return self.seize(job, right, Vec::new(), &spots, &[]);
            }
            if bound(self.state(), job, false).is_empty() {
                // The others of its shape need not try: it is there for them when it is free.
                let shape = self.state().jobs.get(job).shape;
                self.loose_helped.insert(shape, false);
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
        if !self.ends_rightly(job, right, &units, &spots) {
            return false;
        }
        self.seize(job, right, units, &spots, &yielding)
    }

    /// Looks again when the first of those that have not had their minimum run time has had it.
    fn wake_for_protected(&mut self, job: JobIx, queues: &[QueueIx]) {
        let state = self.state();
        let guards = |queue: &QueueIx| state.queues.get(*queue).spec.min_runtime.is_some();
        if state.policy.min_runtime == Span::ZERO
            && state.jobs.guarded == 0
            && state.jobs.last_return + state.policy.quantum < state.now
            && !queues.iter().any(guards)
        {
            return;
        }
        let running = queues.iter().flat_map(|queue| state.queues.get(*queue).running.values());
        // One that is being stopped comes into question no more.
        let open = |other: &JobIx| {
            let other = state.jobs.get(*other);
            other.standing == Standing::Running && other.preemptible()
        };
        let until = running
            .filter(|other| **other != job && open(other))
            .flat_map(|other| [self.protected(*other), rested(state, *other)])
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
            Right::Share | Right::Quota | Right::Both => {}
        }
        let owner = !state.queues.get(own).quota.is_empty();
        let more = &state.shape_of(job).amounts;
        let mut found = Vec::new();
        if right == Right::Both {
            found.extend(of(own).filter(lower));
        }
        let mut leaves = Vec::new();
        for mine in state.queues.path(own) {
            let by_quota = fair_share::within_quota(state, mine, more);
            let by_share = right != Right::Quota && self.shares.within(state, mine, more);
            if !by_quota && !by_share {
                continue;
            }
            for theirs in state.queues.beside(mine) {
                let gives = by_quota && fair_share::over_quota(state, theirs)
                    || by_share && self.shares.over(state, theirs);
                let yields = |other: &JobIx| {
                    let asks = &state.shape_of(*other).amounts;
                    gives || all || !fair_share::quota_holds(state, theirs, asks)
                };
                if gives || owner && by_quota {
                    leaves.clear();
                    state.queues.leaves_below(theirs, &mut leaves);
                    found.extend(leaves.iter().flat_map(|leaf| of(*leaf)).filter(yields));
                }
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

    /// The claimant holds what it takes from the end of the grace on.
    pub(super) fn claimant(&self, job: JobIx) -> Who {
        let mut who = self.who(job);
        who.until = who.until + self.state().policy.grace;
        who
    }

    /// Whether the job fits with what is being stopped and promised to nobody. One task goes to one
    /// node: where many are stopped at once, not all of them are tried for each.
    fn fits_loose(&mut self, job: JobIx, who: Who) -> Option<Vec<Spot>> {
        let state = self.state();
        let shape = state.shapes[state.jobs.get(job).shape.at()].clone();
        let one = shape.single().filter(|leaf| leaf.min == 1 && leaf.whole().is_some());
        let Some(leaf) = one.filter(|leaf| leaf.countable(&state.cluster)) else {
            self.free_loose();
            return self.fits_claim(job, who);
        };
        let mut by_node: BTreeMap<NodeIx, Vec<TaskIx>> = BTreeMap::new();
        for task in &state.loose {
            let lease = state.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
            let node = lease.expect("it is being stopped").node;
            by_node.entry(node).or_default().push(*task);
        }
        let mark = self.draft.mark();
        for (node, tasks) in by_node {
            tasks.into_iter().for_each(|task| self.draft.close(task));
            let target = self.state().cluster.node(node);
            let room =
                leaf.classes.contains(&target.class) && target.capacity(&leaf.need, &who, 1) > 0;
            if room && let Some(spots) = self.fits_claim(job, who) {
                return Some(spots);
            }
            self.draft.roll_back(mark);
        }
        None
    }

    /// Frees, on the draft, what is being stopped and promised to nobody.
    pub(super) fn free_loose(&mut self) {
        let loose: Vec<TaskIx> = self.state().loose.iter().copied().collect();
        for task in loose {
            self.draft.close(task);
        }
    }

    /// Leaf queues that may lose something to the job by this right.
    pub(super) fn sources(&self, job: JobIx, right: Right) -> Vec<QueueIx> {
        let state = self.state();
        let known = state.jobs.get(job);
        let runs = |leaf: &QueueIx| !state.queues.get(*leaf).running.is_empty();
        let mut found = Vec::new();
        let lowest = state.queues.get(known.queue).running_priorities.keys().next();
        let below = lowest.is_some_and(|lowest| *lowest < known.priority);
        // What its own queue has to spare are members of elastic gangs.
        if !state.elastic.is_empty() || below && matches!(right, Right::Class | Right::Both) {
            found.push(known.queue);
        }
        match right {
            Right::Class => {}
            Right::Across => {
                found.clear();
                found.extend(state.queues.leaves());
            }
            Right::Share | Right::Quota | Right::Both => {
                let more = &state.shape_of(job).amounts;
                for mine in state.queues.path(known.queue) {
                    let by_quota = fair_share::within_quota(state, mine, more);
                    let by_share = right != Right::Quota && self.shares.within(state, mine, more);
                    if !by_quota && !by_share {
                        continue;
                    }
                    for theirs in state.queues.beside(mine) {
                        let over = (by_quota && fair_share::over_quota(state, theirs))
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
        let by_quota =
            fair_share::over_quota(state, theirs) && fair_share::within_quota(state, mine, more);
        let by_share = right != Right::Quota
            && self.shares.over(state, theirs)
            && self.shares.within(state, mine, more);
        by_quota || by_share
    }

    /// Whether the unit may be taken for the job now.
    pub(super) fn eligible(&self, job: JobIx, unit: &Unit, right: Right) -> bool {
        let state = self.state();
        let victim = state.jobs.get(unit.job);
        let of = (victim.queue, victim.priority, unit.surplus);
        let gives = |queue| self.gives(job, queue, right);
        unit.job != job
            && self.is_open(unit)
            && right.reaches(state, state.jobs.get(job), of, gives)
            && self.is_owed(job, unit, right)
    }

    /// Whether what the unit gives is owed to the claimant's queue, and would not be owed back the
    /// moment it has been given: the two would go on for ever.
    fn is_owed(&self, job: JobIx, unit: &Unit, right: Right) -> bool {
        let state = self.state();
        let (own, from) = (state.jobs.get(job).queue, state.jobs.get(unit.job).queue);
        if !matches!(right, Right::Share | Right::Quota | Right::Both) || own == from {
            return true;
        }
        let more = &state.shape_of(job).amounts;
        let rivals = state.queues.rivals(own, from);
        let mut given = Amounts::default();
        for (task, lease) in state.jobs.get(unit.job).leases() {
            if unit.takes(task) && lease.stopping.is_none() {
                given.charge(&lease.charge, 1);
            }
        }
        // It may take several models: it has a right to those within its bounds.
        let models = given.models.iter().zip(&more.models).enumerate();
        let models = models.filter(|(_, (gives, asks))| **gives > 0 && **asks > 0);
        let mut models = models.map(|(model, _)| model).peekable();
        // One that has given way before is left alone for a while by those who merely share.
        let right = if rested(state, unit.job) > state.now { Right::Quota } else { right };
        if models.peek().is_none() {
            return self.owes(rivals, right, more, &given);
        }
        models.any(|model| self.owes(rivals, right, &more.of_model(model), &given))
    }

    /// Whether theirs is beyond its quota, or its share, of something that is asked for and given,
    /// while mine stays within its own of everything.
    fn owes(
        &self,
        (mine, theirs): (QueueIx, QueueIx),
        right: Right,
        more: &Amounts,
        given: &Amounts,
    ) -> bool {
        let state = self.state();
        let queue = state.queues.get(theirs);
        let has_beyond = |bound: &dyn Fn(Resource) -> Option<i64>| {
            state.queues.resources.iter().any(|r| {
                let wanted = more.get(*r) > 0 && given.get(*r) > 0;
                wanted && bound(*r).is_some_and(|bound| queue.usage.get(*r) > bound)
            })
        };
        let in_quota = fair_share::surely_within_quota(state, mine, more);
        if in_quota && has_beyond(&|r| queue.quota.get(r)) {
            return true;
        }
        right != Right::Quota
            && self.shares.surely_within(state, mine, more)
            && has_beyond(&|r| Some(self.shares.fair(theirs, r)))
            && (in_quota || self.leaves_quota(theirs, given))
    }

    /// Whether the queue is left its quota of everything that is given. What runs within it, or
    /// would bring it below, could take back at once what is beyond another's.
    fn leaves_quota(&self, theirs: QueueIx, given: &Amounts) -> bool {
        let queue = self.state().queues.get(theirs);
        let mut named = queue.quota.named().filter(|(r, _)| given.get(*r) > 0).peekable();
        let mut is_beyond = named.peek().is_none();
        for (resource, quota) in named {
            let (gives, has) = (given.get(resource), queue.usage.get(resource));
            // What it has not used up of its quota it could claim as it is.
            if has >= quota && has - gives < quota {
                return false;
            }
            is_beyond |= has > quota;
        }
        is_beyond
    }

    /// Whether the claimant's queues stay within their quota or share with the models it gets.
    fn ends_rightly(&self, job: JobIx, right: Right, units: &[Unit], spots: &[Spot]) -> bool {
        let state = self.state();
        let known = state.jobs.get(job);
        let asks = &state.shape_of(job).amounts;
        if !matches!(right, Right::Share | Right::Quota | Right::Both) || !asks.is_open() {
            return true;
        }
        let mut more = Amounts { models: vec![0; asks.models.len()], ..asks.clone() };
        for spot in spots {
            let node = state.cluster.node(spot.node);
            for slice in &spot.slices {
                let model = node.gpus[slice.gpu as usize].model.at();
                more.models.resize(more.models.len().max(model + 1), 0);
                let gpu = &node.spec.gpus[slice.gpu as usize];
                more.models[model] += crate::cluster::gpu::share_milli(&slice.share, &gpu.model);
            }
        }
        units.iter().map(|unit| state.jobs.get(unit.job).queue).all(|from| {
            let mine = state.queues.rivals(known.queue, from).0;
            from == known.queue
                || fair_share::surely_within_quota(state, mine, &more)
                || right != Right::Quota && self.shares.surely_within(state, mine, &more)
        })
    }

    /// Whether the unit runs and may be stopped by somebody.
    pub(super) fn is_open(&self, unit: &Unit) -> bool {
        let victim = self.state().jobs.get(unit.job);
        victim.standing == Standing::Running
            && !self.served.contains(unit.job)
            && (unit.surplus || victim.preemptible() && self.protected(unit.job) <= self.now())
    }

    /// Until when a running job is no victim.
    pub(crate) fn protected(&self, job: JobIx) -> Time {
        protected(self.state(), job)
    }

    /// Frees a unit on the draft.
    pub(super) fn free(&mut self, unit: &Unit) {
        let tasks = if unit.surplus { unit.tasks.clone() } else { self.live_tasks(unit.job) };
        for task in tasks {
            self.draft.close(TaskIx { job: unit.job, task });
        }
    }

    /// Whether the job fits with what has been freed, and its queues allow it.
    pub(super) fn fits_claim(&mut self, job: JobIx, who: Who) -> Option<Vec<Spot>> {
        if !bound(self.state(), job, false).is_empty() || !self.could_fit(job, &who) {
            return None;
        }
        let mark = self.draft.mark();
        let spots = fit(&mut self.draft, &self.mix, job, who).ok()?;
        if self.overdraws(job) {
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
            planner
                .state()
                .jobs
                .get(unit.job)
                .leases()
                .any(|(task, lease)| nodes.contains(&lease.node) && unit.takes(task))
        };
        if let [unit] = units.as_slice()
            && touches(self, unit)
        {
            return (units, spots);
        }
        let base = self.draft.mark();
        let near: Vec<Unit> = units.iter().filter(|unit| touches(self, unit)).cloned().collect();
        let (mut needed, mut spots) = match self.fits_but(job, who, &near, None) {
            Some(found) => (near, found),
            None => (units, spots),
        };
        self.draft.roll_back(base);
        // Beyond some number the ones on the chosen nodes are as good as needed.
        const FEW: usize = 64;
        let mut at = needed.len();
        while at > 0 && needed.len() <= FEW && needed.len() > 1 {
            at -= 1;
            if let Some(found) = self.fits_but(job, who, &needed, Some(at)) {
                needed.remove(at);
                spots = found;
            }
            self.draft.roll_back(base);
        }
        (needed, spots)
    }

    fn fits_but(
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
            let state = self.state();
            let same = state.jobs.get(unit.job).queue == state.jobs.get(job).queue;
            let cause = right.cause(unit, same);
            decisions.extend(self.stop(unit.job, &tasks, cause, Some(id), grace));
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
            self.loose_helped.clear();
        }
        decisions.push(decision);
        for other in moved {
            // One that is being moved itself has nothing to reserve until it has stopped.
            let found = self.earliest(other).filter(|(_, spots)| !spots.is_empty());
            if let Some((at, spots)) = found {
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
            let spare = node.spec.cpu.is_some()
                || node.spec.memory.is_some()
                || node.spec.tasks.is_some()
                || !node.spec.counted.is_empty();
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
}

/// Where a job's live tasks are.
pub(super) fn known_places(state: &State, job: JobIx) -> Vec<Spot> {
    state
        .jobs
        .get(job)
        .leases()
        .filter(|(_, lease)| lease.stopping.is_none())
        .map(|(task, lease)| Spot { task, node: lease.node, slices: lease.slices.clone() })
        .collect()
}

/// From when on the job may displace others for anything but what its queue lent.
pub(crate) fn displaces_from(state: &State, job: JobIx) -> Time {
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

/// Until when a running job is no victim: its minimum run time. One that has given way before is
/// none at the very moment it starts again: nobody is stopped twice before time passes.
pub(crate) fn protected(state: &State, job: JobIx) -> Time {
    let known = state.jobs.get(job);
    let queue = state.queues.get(known.queue);
    let least = known.spec.min_runtime.or(queue.spec.min_runtime);
    let least = least.unwrap_or(state.policy.min_runtime);
    let least = if known.displaced > 0 { least.max(Span(1)) } else { least };
    known.started.map_or(state.now, |started| started + least)
}

/// From when on a running job gives way to a share alone. Shares move with what was used before:
/// without a rest two queues would hand GPUs to and fro with every small difference.
fn rested(state: &State, job: JobIx) -> Time {
    let known = state.jobs.get(job);
    let rest = if known.displaced > 0 { state.policy.quantum } else { Span::ZERO };
    known.started.map_or(state.now, |started| started + rest)
}
