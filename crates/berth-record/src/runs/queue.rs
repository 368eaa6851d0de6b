//! The jobs whose runs a user has restored.

use berth_model::JobId;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// The jobs of restored runs, for the follower.
#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: Mutex<BTreeSet<JobId>>,
    pub(super) news: Notify,
}

impl Queue {
    pub(super) fn put(&self, job: JobId) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        self.news.notify_one();
    }

    pub(super) fn take(&self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
