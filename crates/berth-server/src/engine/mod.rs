//! The control loop: inputs are applied, a plan is made and checked, everything is committed in
//! one transaction, and only then is anybody told or anything done.
//!
//! One thread owns the log. What arrives while it commits is taken together in the next turn, so
//! that a thousand submissions cost a few disk writes and a few plans.
//!
//! Deliberately absent: policy. What is started or stopped is what the core decided.

mod boot;
mod input;
mod live;
mod outcome;
mod recent;
mod retain;
mod rows;
mod run;
mod site;
mod tree;
mod turn;

#[cfg(test)]
mod tests;

pub use boot::{BootError, Running, Setup, begin};
pub use input::{Act, Idempotent, Refused, Submission, Write, Written};
pub use live::{Detail, LiveJob, LiveLease};
pub use outcome::said;
pub use run::Fatal;
pub use site::{Said, Site};
pub use tree::Tree;
pub use turn::Turn;

use berth_api::wire;
use berth_core::{Forecast, State};
use berth_model::{JobId, Time};
use input::Input;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// What the loop keeps in memory, for anybody to look at. It may be a commit ahead of the store.
pub struct Core {
    pub state: State,
    /// Jobs that have not ended.
    pub jobs: BTreeMap<JobId, LiveJob>,
    /// Jobs that failed and are tried again, the next one first.
    pub retries: BTreeSet<(Time, JobId)>,
    /// When waiting jobs are likely to start, as of the last time somebody looked.
    pub forecast: Option<Arc<Forecast>>,
    /// How long the last plans took, and how often one was made.
    pub plans: Plans,
    /// Since when nothing could be committed, and why.
    pub stalled: Option<Stalled>,
}

/// The log cannot be written for the time being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    pub since: Time,
    pub why: String,
    /// It is the disk that has no room.
    pub full: bool,
}

/// How planning went.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plans {
    pub count: u64,
    pub last_us: u64,
    pub sum_us: u64,
    pub put_aside: u64,
}

/// How long somebody waits for something to be written. It is less than the command line waits for
/// an answer, so that it gets one.
const PATIENCE: Duration = Duration::from_secs(20);

/// The way to the loop.
#[derive(Clone)]
pub struct Handle {
    inputs: mpsc::UnboundedSender<Input>,
    core: Arc<Mutex<Core>>,
    news: broadcast::Sender<Arc<wire::Event>>,
    tree: watch::Receiver<Arc<Tree>>,
}

/// The way for drivers to tell what they see.
#[derive(Clone)]
pub struct Inlet(mpsc::UnboundedSender<Input>);

impl Inlet {
    pub fn observed(&self, observed: berth_node::Observed) {
        let _ = self.0.send(Input::Observed(observed));
    }

    pub fn not_started(&self, lease: berth_model::LeaseId, why: String) {
        let _ = self.0.send(Input::NotStarted { lease, why });
    }

    pub fn tell(&self, news: impl FnOnce(&mut Turn<'_>) + Send + 'static) {
        let _ = self.0.send(Input::Told(Box::new(news)));
    }
}

impl Handle {
    /// Has something written for somebody who waits. The answer comes when it is durable. While the
    /// log cannot be written nothing new is taken, and nobody is kept waiting.
    pub async fn write(&self, write: Write) -> Result<Written, Refused> {
        if let Some(stalled) = self.core().stalled.clone() {
            return Err(Refused::Stalled(stalled));
        }
        let written = tokio::time::timeout(PATIENCE, self.write_some_time(write)).await;
        written.unwrap_or_else(|_| {
            let full = self.core().stalled.as_ref().is_some_and(|stalled| stalled.full);
            Err(Refused::Unanswered { full })
        })
    }

    /// Has something written that nobody waits for, however long the database is away.
    pub async fn write_some_time(&self, write: Write) -> Result<Written, Refused> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inputs.send(Input::Write(Box::new(write), answer));
        sent.map_err(|_| Refused::Stopping)?;
        answered.await.unwrap_or(Err(Refused::Stopping))
    }

    /// Everything in memory, for a moment: nothing is planned meanwhile.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which team lies below which, as of the last commit. Nobody has to wait for it.
    pub fn tree(&self) -> Arc<Tree> {
        self.tree.borrow().clone()
    }

    /// What happens from now on.
    pub fn news(&self) -> broadcast::Receiver<Arc<wire::Event>> {
        self.news.subscribe()
    }

    /// Lets the loop end once what it has is committed. Jobs go on.
    pub fn stop(&self) {
        let _ = self.inputs.send(Input::Stop);
    }
}
