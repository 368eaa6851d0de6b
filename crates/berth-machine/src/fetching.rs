//! Tasks whose code or data is fetched before they start. Others start meanwhile. A task
//! that Berth stops by then never starts.

use berth_engine::LeaseStart;
use berth_model::LeaseId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::task::AbortHandle;

#[derive(Default)]
pub struct Fetching(Mutex<BTreeMap<LeaseId, Fetch>>);

struct Fetch {
    begun: Instant,
    task: Option<AbortHandle>,
}

impl Fetching {
    fn now(&self) -> MutexGuard<'_, BTreeMap<LeaseId, Fetch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is news that the data of a task is fetched.
    pub fn begin(&self, lease: LeaseId) -> bool {
        let mut all = self.now();
        if all.contains_key(&lease) {
            return false;
        }
        all.insert(lease, Fetch { begun: Instant::now(), task: None });
        true
    }

    /// By which a fetch is given up. It may be over already.
    pub fn note(&self, lease: LeaseId, task: AbortHandle) {
        if let Some(fetch) = self.now().get_mut(&lease) {
            fetch.task = Some(task);
        }
    }

    pub fn has(&self, lease: LeaseId) -> bool {
        self.now().contains_key(&lease)
    }

    /// Ends it. Says whether it was under way, or its task about to start.
    pub fn give_up(&self, lease: LeaseId) -> bool {
        let Some(fetch) = self.now().remove(&lease) else { return false };
        if let Some(task) = fetch.task {
            task.abort();
        }
        true
    }

    /// The same for a fetch that ends by itself.
    pub fn give_up_quietly(&self, lease: LeaseId) -> bool {
        self.now().remove(&lease).is_some()
    }

    /// The start of a task that was not told to stop meanwhile. What it waited for its data does not
    /// count as its running time.
    pub fn finish(&self, start: LeaseStart) -> Option<LeaseStart> {
        let fetch = self.now().remove(&start.lease)?;
        let waited = i64::try_from(fetch.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        let ends_at = start.ends_at.map(|end| end + berth_model::Span(waited));
        Some(LeaseStart { ends_at, ..start })
    }
}
