//! The ways to the loop: requests come in by a [`Handle`], observations of a site by an [`Inlet`].

use crate::input::{Refused, Report, Request, Write, Written};
use crate::memory::{Core, Stalled};
use crate::news::{Listener, News};
use crate::team_tree::TeamTree;
use berth_model::LeaseId;
use berth_model::Observed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// How long a request waits for its commit. The command line waits longer for an answer, so that
/// it gets one.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(20);
/// Requests that may wait for the loop. When so many wait, a further request waits for room until
/// its timeout, and is then refused without having been carried out.
pub(crate) const MAX_REQUESTS: usize = 8_192;

/// The way to the loop for those who ask for something.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    core: Arc<Mutex<Core>>,
    news: News,
    teams: watch::Receiver<Arc<TeamTree>>,
    rights: watch::Receiver<u64>,
}

impl Handle {
    pub(crate) fn new(
        requests: mpsc::Sender<Request>,
        core: Arc<Mutex<Core>>,
        news: News,
        teams: watch::Receiver<Arc<TeamTree>>,
        rights: watch::Receiver<u64>,
    ) -> Handle {
        Handle { requests, core, news, teams, rights }
    }

    /// Writes something for a caller who waits; the answer comes when it is durable. While the log
    /// cannot be written, or too many requests wait, the request is refused.
    pub async fn write(&self, write: Write) -> Result<Written, Refused> {
        self.write_within(write, COMMIT_TIMEOUT).await
    }

    pub(crate) async fn write_within(
        &self,
        write: Write,
        timeout: Duration,
    ) -> Result<Written, Refused> {
        if let Some(stalled) = self.core().stalled.clone() {
            return Err(Refused::Stalled(stalled));
        }
        let deadline = tokio::time::Instant::now() + timeout;
        let room = tokio::time::timeout_at(deadline, self.requests.reserve()).await;
        let Ok(room) = room else { return Err(Refused::Overloaded) };
        let (answer, answered) = oneshot::channel();
        room.map_err(|_| Refused::Stopping)?.send(Request::Write(Box::new(write), answer));
        match tokio::time::timeout_at(deadline, answered).await {
            Ok(answer) => answer.unwrap_or(Err(Refused::Stopping)),
            Err(_) => {
                let full =
                    self.core().stalled.as_ref().is_some_and(|stalled: &Stalled| stalled.full);
                Err(Refused::Unanswered { full })
            }
        }
    }

    /// Writes something in the background, however long the database is away.
    pub async fn write_eventually(&self, write: Write) -> Result<Written, Refused> {
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(Request::Write(Box::new(write), answer)).await;
        sent.map_err(|_| Refused::Stopping)?;
        answered.await.unwrap_or(Err(Refused::Stopping))
    }

    /// Everything in memory. The loop waits while the guard is held.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which team lies below which, as of the last commit. Reading it never waits for the loop.
    pub fn teams(&self) -> Arc<TeamTree> {
        self.teams.borrow().clone()
    }

    /// Changes whenever users, teams, members or tokens do, once that is committed. Who holds
    /// something open by a right looks then whether it still has it.
    pub fn rights(&self) -> watch::Receiver<u64> {
        self.rights.clone()
    }

    /// What happens from now on, or after the event of that number.
    pub fn listen(&self, after: Option<u64>) -> Listener {
        self.news.listen(after)
    }

    /// The events that are kept, and the number of the newest of them.
    pub fn listen_to_kept(&self) -> (Listener, u64) {
        self.news.listen_to_kept()
    }

    /// Ends the loop once what it has taken is committed. Jobs go on.
    pub async fn stop(&self) {
        let _ = self.requests.send(Request::Stop).await;
    }
}

/// Reports of the site that may wait for the loop. When so many wait, whoever observes more waits
/// for room.
pub(crate) const MAX_REPORTS: usize = 8_192;

/// The way to the loop for a site: what it observes of tasks, and whatever else it observes. The
/// loop itself must not use it: it would wait for itself (see [`FollowUps`](crate::FollowUps)).
pub struct Inlet<O>(mpsc::Sender<Report<O>>);

impl<O> Clone for Inlet<O> {
    fn clone(&self) -> Inlet<O> {
        Inlet(self.0.clone())
    }
}

impl<O> Inlet<O> {
    pub(crate) fn new(reports: mpsc::Sender<Report<O>>) -> Inlet<O> {
        Inlet(reports)
    }

    /// Reports a change of a task, from a thread that may block.
    pub fn blocking_task(&self, observed: Observed) {
        let _ = self.0.blocking_send(Report::Task(observed));
    }

    /// Reports a change of a task.
    pub async fn task(&self, observed: Observed) {
        let _ = self.0.send(Report::Task(observed)).await;
    }

    /// Reports that a task could not be started.
    pub async fn not_started(&self, lease: LeaseId, why: String) {
        let _ = self.0.send(Report::NotStarted { lease, why }).await;
    }

    /// Reports anything else the site has observed.
    pub async fn site(&self, observation: O) {
        let _ = self.0.send(Report::Site(observation)).await;
    }
}
