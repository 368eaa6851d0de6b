//! Preferred affinity of placed pods towards jobs that are pending.

use crate::state::ClusterState;
use berth_engine::Turn;
use berth_model::JobId;

impl ClusterState {
    /// Placed pods with preferences about pending pods may have come or gone. Preferences are not
    /// urgent, so Berth checks them by the clock and not with every change.
    pub(super) fn apply_preferred_affinity(&mut self, turn: &mut Turn<'_>) {
        if !self.constrained_jobs.take_new_preferences() {
            return;
        }
        if self.constrained_jobs.index.preferred.take_unknown_terms() {
            let preferred: Vec<JobId> =
                self.unconstrained(turn.core).filter(|job| self.is_preferred(*job)).collect();
            for job in preferred {
                self.constrained_jobs.constrain(job, self.queue_order(job));
            }
        }
        let released = self.constrained_jobs.released(Some(turn.at)).into_iter();
        let jobs = released.filter(|job| self.is_preferred(*job)).collect();
        self.recheck(turn, jobs);
    }

    /// Whether placed pods have preferences about a job.
    fn is_preferred(&self, job: JobId) -> bool {
        self.views(job).into_iter().any(|pod| self.constrained_jobs.index.is_preferred(pod))
    }
}
