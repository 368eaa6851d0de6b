//! When a job ends, how long it holds its GPUs, and what stopping it would cost.

use crate::ix::JobIx;
use crate::jobs::{Job, Lease};
use crate::state::State;
use berth_model::{Span, Time};

impl State {
    pub(crate) fn set_started(&mut self, ix: JobIx, started: Option<Time>) -> Option<Time> {
        let job = self.jobs.get_mut(ix);
        let before = job.started;
        if let Some(ends) = job.ends() {
            self.ends.remove(&(ends, job.id, ix));
        }
        job.started = started;
        if let Some(ends) = job.ends() {
            self.ends.insert((ends, job.id, ix));
        }
        if let Some(at) = started.filter(|_| job.displaced > 0) {
            self.jobs.last_return = self.jobs.last_return.max(at);
        }
        self.mark_nodes_dirty(ix);
        before
    }

    /// The GPUs the job holds come free at another time than before.
    pub(crate) fn mark_nodes_dirty(&mut self, ix: JobIx) {
        for (_, lease) in self.jobs.get(ix).leases() {
            self.cluster.mark_dirty(lease.node);
        }
        self.renew_task_ends(ix);
    }

    /// How long the job would hold what it starts on, for the promises made to others.
    pub(crate) fn hold_span(&self, job: &Job) -> Span {
        match self.policy.backfill {
            berth_model::BackfillEnds::Limits => job.limit_left() + job.grace(&self.policy),
            // An estimate of work without a limit is a guess about its order, and no end.
            berth_model::BackfillEnds::Estimates if job.time_limit.is_unlimited() => {
                job.limit_left()
            }
            berth_model::BackfillEnds::Estimates => job.estimate_left(),
        }
    }

    /// When a running job's GPUs are taken to be free again.
    pub(crate) fn expected_end(&self, job: &Job, lease: &Lease) -> Time {
        if let Some(stop) = &lease.stopping {
            return stop.until.max(self.now);
        }
        let started = job.started.unwrap_or(lease.since);
        match self.policy.backfill {
            _ if job.time_limit.is_unlimited() => started + job.limit_left(),
            berth_model::BackfillEnds::Limits => {
                // Past its limit it is being stopped, with its grace still to run.
                (started + job.limit_left()).max(self.now) + job.grace(&self.policy)
            }
            berth_model::BackfillEnds::Estimates => {
                // Slower models than asked for first take longer.
                let slowed = i128::from(job.estimate_left().0) * 1_000 / i128::from(job.speed);
                let expected = started + Span(slowed as i64);
                // An overrun is taken to last as long again as it already has.
                if expected > self.now {
                    expected
                } else {
                    self.now + (self.now - expected).max(Span::mins(1))
                }
            }
        }
    }

    /// A cost that orders victims: run time that would be lost, and restarting, times GPUs.
    pub(crate) fn loss(&self, ix: JobIx) -> i128 {
        let job = self.jobs.get(ix);
        let span = job.unsaved(self.now) + job.restart_cost(&self.policy);
        i128::from(span.0) * i128::from(job.held_gpu())
    }
}
