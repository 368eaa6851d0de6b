//! Pending jobs are reconsidered when nodes offer other kinds of GPUs than before.

use super::{ClusterState, Uid};
use crate::view::GangKey;
use berth_engine::Turn;
use berth_model::{Event, GroupSpec, JobId};

impl ClusterState {
    /// Pods that were refused may be welcome now, and a resource may mean something else. That is
    /// rare, so everything that waits is looked at.
    pub(super) fn reconsider(&mut self, turn: &mut Turn<'_>) {
        if !self.nodes.has_other_offers() {
            return;
        }
        let refused = self.gangs.iter().filter(|(_, gang)| gang.job.is_none());
        let refused: Vec<GangKey> = refused.map(|(key, _)| key.clone()).collect();
        for key in refused {
            self.assemble_gang(turn, &key);
        }
        let waits = |job: &&JobId| {
            turn.core.jobs.get(job).is_some_and(|live| live.leases.is_empty() && !live.detail.held)
        };
        let jobs: Vec<JobId> = self.jobs.keys().filter(waits).copied().collect();
        for job in jobs {
            if self.means_something_else(turn, job) {
                self.resubmit(turn, job);
            }
        }
    }

    /// Whether the pods of a job would be made another job now.
    fn means_something_else(&self, turn: &Turn<'_>, job: JobId) -> bool {
        let Some(tasks) = self.jobs.get(&job).filter(|tasks| tasks.is_whole()) else {
            return false;
        };
        // What the pods of a gang are given hardly ever differs, and jobs that wait are many.
        let first = tasks.pods.iter().flatten().find_map(|uid| self.pods.get(uid));
        let Some((pod, request)) = first.and_then(|pod| Some((pod, pod.request()?))) else {
            return false;
        };
        let Some((ask, _)) = self.nodes.given(&pod.view.asks.gpus, &request.rules) else {
            return false;
        };
        let groups = turn.core.state.asks_of(job).unwrap_or_default();
        let mut leaves = groups.iter().flat_map(GroupSpec::leaves);
        pod.view.claims.is_empty() && !leaves.any(|group| group.gpus == ask)
    }

    fn resubmit(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let Some(tasks) = self.jobs.get(&job) else { return };
        let key = tasks.gang.clone();
        let pods: Vec<Uid> = tasks.pods.iter().flatten().cloned().collect();
        for uid in &pods {
            self.forget_task(uid);
        }
        turn.apply_observed(Event::JobCancelled { job });
        if let Some(gang) = self.gangs.get_mut(&key) {
            gang.waiting.extend(pods);
        }
        self.assemble_gang(turn, &key);
    }
}
