//! What follows when the machine cannot start a task. The lease is given back, and the job is tried
//! again after a pause. Where a trial start fails as well, it is not about that job: the node takes
//! no work until a trial goes well.

use crate::condition::Condition;
use berth_engine::Inlet;
use berth_model::{Bytes, LeaseId, Name};
use berth_node::{Driver, Trouble};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two trials: the first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often the room on the disk is looked at although nothing has failed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What this machine sees beyond its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A lease could not be started, through no fault of its job.
    Trouble { lease: LeaseId, why: String },
    /// Nothing can be started.
    Closed { why: String },
    /// Something can be started again.
    Open,
    /// A GPU is held by a process that no job explains, or is free of such again.
    Gpu { gpu: u32, held: bool },
    /// A GPU has failed, or what shares it has. These tasks were on it.
    GpuFailed { gpu: u32, why: String, leases: Vec<LeaseId> },
    /// A GPU that was held back has been checked, with what that came to.
    GpuChecked { gpu: u32, passed: bool, told: String },
    /// The versions of data on this machine, with their sizes.
    Data { kept: BTreeMap<Name, Bytes> },
}

/// Looks after the machine: one for all that report trouble.
pub struct Recovery {
    driver: Arc<Driver>,
    condition: Arc<Condition>,
    inlet: Inlet<Seen>,
    runtime: tokio::runtime::Handle,
    /// A trial is under way, or the next one waits for its time.
    is_trying: AtomicBool,
}

impl Recovery {
    pub fn new(
        driver: Arc<Driver>,
        condition: Arc<Condition>,
        inlet: Inlet<Seen>,
    ) -> Arc<Recovery> {
        let runtime = tokio::runtime::Handle::current();
        Arc::new(Recovery { driver, condition, inlet, runtime, is_trying: AtomicBool::new(false) })
    }

    /// Sees whether the machine as a whole is in trouble.
    pub fn consider(self: &Arc<Recovery>) {
        if !self.is_trying.swap(true, Ordering::SeqCst) {
            self.runtime.spawn(self.clone().try_until_well());
        }
    }

    async fn try_until_well(self: Arc<Recovery>) {
        let mut pause = FIRST_PAUSE;
        while let Err(trouble) = self.trial().await {
            let why = trouble.to_string();
            if self.condition.set_trouble(Some(trouble)) {
                tracing::error!(%why, "this machine starts nothing until it can again");
                self.inlet.site(Seen::Closed { why }).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        // Before the news: whoever meets trouble after this has it looked at again.
        self.is_trying.store(false, Ordering::SeqCst);
        if self.condition.set_trouble(None) {
            tracing::warn!("this machine can start tasks again");
            self.inlet.site(Seen::Open).await;
        }
    }

    async fn trial(&self) -> Result<(), Trouble> {
        let driver = self.driver.clone();
        tokio::task::spawn_blocking(move || driver.probe()).await.unwrap_or(Ok(()))
    }

    /// Looks at the room on the disk from time to time: nothing more is to be taken in before the
    /// last of it is gone.
    pub async fn look_around(self: Arc<Recovery>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let driver = self.driver.clone();
            let found = tokio::task::spawn_blocking(move || driver.check_room()).await;
            if matches!(found, Ok(Err(_))) {
                self.consider();
            }
        }
    }
}
