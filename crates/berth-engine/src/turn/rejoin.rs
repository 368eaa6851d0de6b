//! Gangs that take a member back.

use super::Turn;
use berth_model::JobId;

impl Turn<'_> {
    /// Gives a running gang places for the members that it has lost. Returns whether it has them.
    pub fn rejoin(&mut self, job: JobId) -> bool {
        // The loss of a member put the gang on hold until its next try, which is now.
        self.release_retries();
        let Some(plan) = self.core.state.rejoin(job) else { return false };
        let (transactions, findings) = berth_core::vetted(&self.core.state, &plan);
        for finding in &findings {
            self.core.plans.put_aside += 1;
            tracing::error!(%finding, ?plan, "decisions failed the check");
        }
        findings.is_empty() && transactions.into_iter().all(|one| self.decide(one))
    }
}
