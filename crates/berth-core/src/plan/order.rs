//! Which job of a queue goes next.

use crate::ix::{JobIx, QueueIx, ShapeIx};
use crate::jobs::Job;
use crate::plan::planner::Planner;
use crate::queues::TimedJob;
use crate::state::State;
use crate::state::pending::work_of;
use berth_model::{QueueOrder, Span, Time};
use std::cmp::{Ordering, Reverse};

/// Jobs of one list that are looked at for one short enough to slip in before a promise.
const MAX_JOBS_PER_LIST: usize = 8;

/// Which jobs are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Candidates {
    /// All that wait, but for shapes that neither fit nor may hold a reservation.
    All,
    /// All that wait.
    Every,
    /// Those not known to be unable to start now.
    Startable,
    /// Those that may have something to take from others.
    WithOpenClaims,
}

impl Planner<'_> {
    pub(super) fn order_of(&self, queue: QueueIx) -> QueueOrder {
        let state = self.state();
        state.queues.get(queue).spec.order.unwrap_or(state.policy.order)
    }

    /// The next job of a queue.
    pub(super) fn next_of(&self, queue: QueueIx, candidates: Candidates) -> Option<JobIx> {
        let order = self.order_of(queue);
        let line = &self.state().queues.get(queue).pending;
        if order == QueueOrder::ResponseRatio
            && let Some(job) = self.at_risk(queue, candidates)
        {
            return Some(job);
        }
        let mut best: Option<Candidate> = None;
        for (shape, of_shape) in &line.shapes {
            if self.barred.contains(&(queue, *shape)) {
                continue;
            }
            if candidates == Candidates::All && self.hopeless(queue, *shape) {
                continue;
            }
            let longest = match candidates {
                Candidates::All | Candidates::Every | Candidates::WithOpenClaims => None,
                Candidates::Startable => self.failed.get(shape).copied(),
            };
            let shortest = of_shape.holds.keys().next();
            if longest.is_some_and(|longest| shortest.is_none_or(|short| *short >= longest)) {
                continue;
            }
            for ((priority, work), jobs) in &of_shape.lists {
                if best.is_some_and(|(top, _, _)| priority.0 < top) {
                    break;
                }
                let depth = if longest.is_some() { MAX_JOBS_PER_LIST } else { usize::MAX };
                let fits = |(_, _, ix): &&TimedJob| {
                    self.open_to(*ix) && longest.is_none_or(|longest| self.holding(*ix) < longest)
                };
                let Some(job) = jobs.iter().take(depth).find(fits) else { continue };
                let candidate = (priority.0, *work, *job);
                let better = match best {
                    None => true,
                    Some(other) => self.before(order, candidate, other) == Ordering::Less,
                };
                if better {
                    best = Some(candidate);
                }
            }
        }
        best.map(|(_, _, (_, _, ix))| ix)
    }

    /// The next job of a queue that may have something to take from others.
    pub(super) fn next_claimant(&self, queue: QueueIx) -> Option<JobIx> {
        let order = self.order_of(queue);
        if order == QueueOrder::ResponseRatio
            && let Some(job) = self.at_risk(queue, Candidates::WithOpenClaims)
        {
            return Some(job);
        }
        let line = &self.state().queues.get(queue).pending;
        let mut best: Option<Candidate> = None;
        for (shape, class) in self.open_claims_of(queue) {
            let Some(of_shape) = line.shapes.get(&shape) else { continue };
            if best.is_some_and(|(top, _, _)| class < top) {
                continue;
            }
            let priority = Reverse(class);
            for ((_, work), jobs) in of_shape.lists.range((priority, 0)..=(priority, u32::MAX)) {
                let Some(job) = jobs.iter().find(|(_, _, ix)| self.open_to(*ix)) else { continue };
                let candidate = (class, *work, *job);
                if best.is_none_or(|other| self.before(order, candidate, other) == Ordering::Less) {
                    best = Some(candidate);
                }
            }
        }
        best.map(|(_, _, (_, _, ix))| ix)
    }

    /// Whether the shape is blocked and may hold no reservation: no reason to look at it again, but
    /// for what it may take from others or buy.
    fn hopeless(&self, queue: QueueIx, shape: ShapeIx) -> bool {
        !self.claiming
            && self.too_large_to_promise.contains(&(queue, shape))
            && self.failed.get(&shape) == Some(&Span::ZERO)
    }

    /// Whether the job is to be considered in this plan at all.
    pub(super) fn open_to(&self, job: JobIx) -> bool {
        if self.skipped.contains(job) || self.served.contains(job) {
            return false;
        }
        let state = self.state();
        if state.jobs.get(job).waits_turn {
            return false;
        }
        match state.promises.get(&job) {
            None => true,
            // What is promised for later may still be had sooner from others.
            Some(promised) => {
                self.claiming && !promised.firm && promised.at > state.now + state.policy.grace
            }
        }
    }

    pub(super) fn holding(&self, job: JobIx) -> Span {
        self.state().hold_span(self.state().jobs.get(job))
    }

    pub(super) fn failed_for(&self, shape: ShapeIx, job: JobIx) -> bool {
        self.failed.get(&shape).is_some_and(|longest| self.holding(job) >= *longest)
    }

    fn before(&self, order: QueueOrder, a: Candidate, b: Candidate) -> Ordering {
        before(order, self.now(), a, b)
    }

    /// A job within quota whose deadline is at risk and can still be met.
    fn at_risk(&self, queue: QueueIx, candidates: Candidates) -> Option<JobIx> {
        let state = self.state();
        for (latest, _, ix) in &state.queues.get(queue).pending.deadlines {
            let job = state.jobs.get(*ix);
            if !near_deadline(state, job, *latest) {
                return None;
            }
            if *latest < state.now || !self.open_to(*ix) {
                continue;
            }
            let out = match candidates {
                Candidates::WithOpenClaims => {
                    !self.open_claims.contains(&(queue, job.shape, job.priority))
                }
                _ => self.barred.contains(&(queue, job.shape)),
            };
            if out {
                continue;
            }
            if candidates == Candidates::All && self.hopeless(queue, job.shape) {
                continue;
            }
            if candidates == Candidates::Startable && self.failed_for(job.shape, *ix) {
                continue;
            }
            let amounts = &state.shape_of(*ix).amounts;
            if crate::fair_share::quota_holds(state, queue, amounts) {
                return Some(*ix);
            }
        }
        None
    }
}

/// A job in line with its priority and its class of work.
pub(crate) type Candidate = (i32, u32, TimedJob);

/// Which of two jobs of a queue goes first, deadlines left aside.
pub(crate) fn before(order: QueueOrder, now: Time, a: Candidate, b: Candidate) -> Ordering {
    let by_age = || (a.2.0, a.2.1).cmp(&(b.2.0, b.2.1));
    let by_class = b.0.cmp(&a.0);
    by_class.then_with(|| match order {
        QueueOrder::Fifo | QueueOrder::Strict => by_age(),
        QueueOrder::Shortest => a.1.cmp(&b.1).then_with(by_age),
        QueueOrder::ResponseRatio => {
            // wait(a) / work(a) > wait(b) / work(b), exactly.
            let wait = |job: &TimedJob| (now - job.0).0.max(0) as u128;
            let left = wait(&a.2) * work_of(b.1);
            let right = wait(&b.2) * work_of(a.1);
            right.cmp(&left).then_with(|| a.1.cmp(&b.1)).then_with(by_age)
        }
    })
}

/// Whether the latest start that meets the job's deadline is near: within a tenth of its run time,
/// or ten minutes.
pub(crate) fn near_deadline(state: &State, job: &Job, latest: Time) -> bool {
    let margin = Span((job.estimate_left().0 / 10).max(Span::mins(10).0));
    latest - margin <= state.now
}
