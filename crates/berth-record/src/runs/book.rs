//! The runs of all jobs.

use super::facts::Facts;
use super::queue::Queue;
use super::{bring, code, files};
use berth_model::JobId;
use berth_service::Service;
use berth_tracker::{Error, RunHead, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The size of the cache of jobs that have a run.
const MOST_KNOWN: usize = 10_000;

/// Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    pub(super) service: Service,
    pub(super) store: Arc<dyn Store>,
    /// The ids of runs that exist.
    known: Arc<Mutex<BTreeMap<JobId, Arc<str>>>>,
    pub(super) failures: Arc<AtomicU64>,
    pub(super) behind: Arc<AtomicU64>,
    pub(super) files_rest: Arc<files::Rest>,
    pub(super) restored: Arc<Queue>,
}

impl Runs {
    pub fn new(service: Service, store: Arc<dyn Store>) -> Runs {
        let (failures, behind) = (Arc::default(), Arc::default());
        let (known, files_rest, restored) = (Arc::default(), Arc::default(), Arc::default());
        Runs { service, store, known, failures, behind, files_rest, restored }
    }

    /// How often the update of a run failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Jobs whose runs are out of date because an update failed.
    pub fn behind(&self) -> u64 {
        self.behind.load(Ordering::Relaxed)
    }

    /// Creates the run of a job at its first request, which may come before the follower creates it.
    pub async fn prepare(&self, job: JobId) -> Result<Option<RunHead>, Error> {
        let known = self.known().get(&job).cloned();
        if let Some(run) = known {
            return self.store.run_head(&run).await;
        }
        let Some(facts) = self.facts(job).await? else { return Ok(None) };
        let head = bring::made(&*self.store, &facts, now()).await?;
        self.remember(job, &facts.run);
        Ok(Some(head))
    }

    /// Moves the run of a job to the experiment that its script sets, for example by
    /// `mlflow.set_experiment`, unless the script has logged to the run.
    pub async fn chose(&self, job: JobId, experiment: i64) -> Result<(), Error> {
        let Some(facts) = self.facts(job).await? else { return Ok(()) };
        let from = bring::moved(&*self.store, &facts, experiment).await?;
        if let Some(from) = from {
            files::moved(&self.service, &facts, from, experiment).await;
        }
        Ok(())
    }

    /// The facts of a job for its run; `None` if the job does not exist.
    pub(super) async fn facts(&self, job: JobId) -> Result<Option<Facts>, Error> {
        let found = Facts::of(&self.service, job).await;
        let mut found = found.map_err(|fault| Error::internal(fault.0.detail.clone()))?;
        // Only a new run needs the origin of its code.
        if let Some(facts) = found.as_mut().filter(|_| !self.known().contains_key(&job)) {
            facts.origin = code::origin(&self.service, facts).await;
        }
        Ok(found)
    }

    /// Remembers that the job has a run.
    pub(super) fn remember(&self, job: JobId, run: &str) {
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(job, run.into());
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, Arc<str>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since 1970, as runs have them.
pub(super) fn now() -> i64 {
    berth_engine::clock::now().0
}
