//! Times before which a running job is no victim, and a pending one no claimant.

use crate::ix::{JobIx, QueueIx};
use crate::jobs::Standing;
use crate::plan::planner::Planner;
use crate::state::State;
use berth_model::{Span, Time};

impl Planner<'_> {
    /// Looks again when the first of those that have not had their minimum run time has had it.
    pub(super) fn wake_for_protected(&mut self, job: JobIx, queues: &[QueueIx]) {
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
            .flat_map(|other| [self.protected(*other), cooldown_end(state, *other)])
            .filter(|until| *until > state.now)
            .min();
        if let Some(until) = until {
            self.wake(until);
        }
    }

    /// Until when a running job is no victim.
    pub(crate) fn protected(&self, job: JobIx) -> Time {
        protected(self.state(), job)
    }
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
        crate::plan::pools::offering::boot_for(state, job).unwrap_or(Span::ZERO)
    });
    known.spec.submitted + delay
}

/// Until when a running job may not be stopped for another: the end of its minimum run time. A job
/// that has given way before is protected at the moment it starts again, so that no job is stopped
/// twice at the same time.
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
pub(crate) fn cooldown_end(state: &State, job: JobIx) -> Time {
    let known = state.jobs.get(job);
    let rest = if known.displaced > 0 { state.policy.quantum } else { Span::ZERO };
    known.started.map_or(state.now, |started| started + rest)
}
