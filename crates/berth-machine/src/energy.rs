//! The energy of tasks. The counters of their GPUs are read when a task begins and when it ends, so
//! that a job has what was used in its time, to a few milliseconds.

use berth_engine::clock;
use berth_figures::HeldGpu;
use berth_model::{LeaseId, Slice};
use berth_node::EnergyCounters;
use berth_service::Figures;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

pub struct Energy {
    figures: Arc<Figures>,
    counters: Arc<dyn EnergyCounters>,
    /// Tasks that were found running, until their rows have been looked for.
    found: Mutex<Vec<LeaseId>>,
    ended: Notify,
}

impl Energy {
    pub fn new(figures: Arc<Figures>, counters: Arc<dyn EnergyCounters>) -> Energy {
        Energy { figures, counters, found: Mutex::default(), ended: Notify::new() }
    }

    /// A task begins to hold parts of GPUs, or is found holding them since before the server began.
    /// This blocks: the driver takes its time.
    pub fn begin(&self, lease: LeaseId, slices: &[Slice], is_found: bool) {
        if slices.is_empty() {
            return;
        }
        self.read(slices.iter().map(|slice| slice.gpu));
        let part = |slice: &Slice| HeldGpu { gpu: slice.gpu, milli: slice.share.milli() };
        self.figures.book.meter().begin(lease, slices.iter().map(part).collect(), clock::now());
        if is_found {
            self.found().push(lease);
        }
    }

    /// A task has ended. This blocks, too.
    pub fn end(&self, lease: LeaseId) {
        let gpus = self.figures.book.meter().gpus_of(lease);
        self.read(gpus.into_iter());
        self.figures.book.meter().end(lease);
        self.ended.notify_one();
    }

    /// Waits until a task has ended since this was last awaited.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Tasks that were found since this was last asked.
    pub fn take_found(&self) -> Vec<LeaseId> {
        std::mem::take(&mut *self.found())
    }

    fn found(&self) -> MutexGuard<'_, Vec<LeaseId>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, gpus: impl Iterator<Item = u32>) {
        for gpu in gpus {
            let counter = self.counters.energy_millijoules(gpu);
            if let Some(counter) = counter.and_then(|counter| i64::try_from(counter).ok()) {
                self.figures.book.meter().read(gpu, counter, clock::now());
            }
        }
    }
}
