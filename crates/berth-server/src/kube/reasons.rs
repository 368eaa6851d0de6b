//! Why pods wait, written on the pods. What starts at once says nothing, and what has been said is
//! not said again: each word is a write to the API server.

use super::lock;
use super::mirror::Mirror;
use crate::clock;
use crate::engine::Handle;
use berth_model::{JobId, Span};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often it is looked, and how long a job waits before anybody is told.
const EVERY: Duration = Duration::from_secs(2);
const AFTER: Span = Span::secs(2);
/// Jobs that are looked at in one round: those that have waited longest.
const AT_ONCE: usize = 500;

pub async fn tell(engine: Handle, mirror: Arc<Mutex<Mirror>>) {
    loop {
        tokio::time::sleep(EVERY).await;
        for (job, why) in waiting(&engine) {
            lock(&mirror).explain(job, &why);
        }
    }
}

/// Jobs of pods that have waited for a while, each with its reasons in words.
fn waiting(engine: &Handle) -> Vec<(JobId, String)> {
    let since = clock::now() - AFTER;
    let mut core = engine.core();
    let waits = core.jobs.values().filter(|job| {
        let is_new = job.row.submitted > since;
        !is_new && !job.detail.pods.is_empty() && job.leases.is_empty()
    });
    let jobs: Vec<JobId> = waits.map(|job| job.row.id).take(AT_ONCE).collect();
    let reasons = core.state.reasons_of(&jobs);
    let words = reasons.iter().map(|reasons| {
        let all: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        all.join("; ")
    });
    jobs.into_iter().zip(words).filter(|(_, why)| !why.is_empty()).collect()
}
