//! Services by which the tasks of a job find each other: created with the first pod of a job, and
//! deleted after its end.

use berth_model::JobId;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Services that were made, for as long as their jobs are there.
#[derive(Default)]
pub struct Services(Mutex<BTreeSet<(JobId, String)>>);

impl Services {
    /// Whether it was not known before.
    pub(super) fn add(&self, job: JobId, path: String) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((job, path))
    }

    pub(super) fn remove(&self, job: JobId, path: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(job, path.to_owned()));
    }

    /// Takes out those whose jobs have ended.
    pub(super) fn ended(&self, is_live: impl Fn(JobId) -> bool) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = all.extract_if(.., |(job, _)| !is_live(*job));
        ended.map(|(_, path)| path).collect()
    }
}
