//! Rules that come after the pods that they mean.

use crate::constraints::dynamic::{Locks, PodQuery};
use crate::state::ClusterState;
use berth_engine::Turn;
use berth_model::JobId;

impl ClusterState {
    /// The labels of a pod that waits have changed: other rules may mean it now.
    pub(in crate::state) fn relabelled(&mut self, turn: &mut Turn<'_>, job: JobId) {
        self.constrain(turn, job);
        self.constrained_jobs.take_back(job);
    }

    /// Locks what new queries mean of the jobs that were released before there were these. Of two
    /// that clash by that the one that was released last waits again.
    pub(super) fn lock_newly_queried(&mut self, turn: &mut Turn<'_>, new_queries: &[PodQuery]) {
        if new_queries.is_empty() {
            return;
        }
        let mut released = self.constrained_jobs.released(None);
        for job in &released {
            let index = &self.constrained_jobs.index;
            let mut more = Locks::default();
            for view in self.views(*job) {
                for query in new_queries {
                    if index.means(query, view) {
                        more.writes.insert(query.clone());
                    }
                    if matches!(query, PodQuery::Carrying(rule) if index.is_meant(rule, view)) {
                        more.reads.insert(query.clone());
                    }
                }
            }
            if let Some(constrained) = self.constrained_jobs.waiting.get_mut(job) {
                constrained.locks.reads.extend(more.reads);
                constrained.locks.writes.extend(more.writes);
            }
        }
        // The places that are promised to a job have been worked out, so it goes first.
        released.sort_by_key(|job| {
            let since = self.constrained_jobs.waiting.get(job).and_then(|known| known.since);
            (!turn.core.state.is_promised(*job), since, self.queue_order(*job).1, *job)
        });
        self.constrained_jobs.take_back_clashing(&released);
    }
}
