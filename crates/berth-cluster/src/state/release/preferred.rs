//! What pods that are placed would like of jobs that wait.

use crate::state::Mirror;
use berth_engine::Turn;
use berth_model::JobId;

impl Mirror {
    /// Placed pods may have come or gone that would like something of those that wait. That is no
    /// more than a wish, so it is looked at by the clock and not with each of them.
    pub(super) fn heed_leanings(&mut self, turn: &mut Turn<'_>) {
        if !self.dynamics.take_leant() {
            return;
        }
        if self.dynamics.index.leanings.take_strange() {
            let liked: Vec<JobId> =
                self.untied(turn.core).filter(|job| self.is_liked(*job)).collect();
            for job in liked {
                self.dynamics.tie(job, self.order_of(job));
            }
        }
        let let_go = self.dynamics.let_go(turn.at).into_iter();
        let jobs = let_go.filter(|job| self.is_liked(*job)).collect();
        self.look_again(turn, jobs);
    }

    /// Whether placed pods would like something of a job.
    fn is_liked(&self, job: JobId) -> bool {
        self.sights(job).into_iter().any(|pod| self.dynamics.index.is_liked(pod))
    }
}
