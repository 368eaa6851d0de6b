//! Whether a victim may be preempted for a job: whether its queue owes what it would give.

use crate::amounts::{Amounts, Resource};
use crate::fair_share;
use crate::ix::{JobIx, QueueIx};
use crate::jobs::Standing;
use crate::plan::displace::protection::cooldown_end;
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;

impl Planner<'_> {
    /// Whether the unit may be taken for the job now.
    pub(super) fn eligible(&self, job: JobIx, unit: &Unit, right: Right) -> bool {
        let state = self.state();
        let victim = state.jobs.get(unit.job);
        let of = (victim.queue, victim.priority, unit.surplus);
        let gives = |queue| self.gives(job, queue, right);
        unit.job != job
            && self.is_open(unit)
            && !(self.spares_budgets && self.exceeds_budget(unit))
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
        let right = if cooldown_end(state, unit.job) > state.now { Right::Quota } else { right };
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
    pub(super) fn stays_entitled(
        &self,
        job: JobIx,
        right: Right,
        units: &[Unit],
        spots: &[Spot],
    ) -> bool {
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

    /// Whether the unit runs and may be stopped for some other job.
    pub(super) fn is_open(&self, unit: &Unit) -> bool {
        let victim = self.state().jobs.get(unit.job);
        victim.standing == Standing::Running
            && !self.served.contains(unit.job)
            && (unit.surplus || victim.preemptible() && self.protected(unit.job) <= self.now())
    }
}
