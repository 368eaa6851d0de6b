//! The loop itself: gather what has arrived, apply and plan, commit, then act.

mod commit;
mod purge;

use crate::clock;
use crate::error::{BootError, Fatal};
use crate::input::{Refused, Report, Request, Written};
use crate::memory::{Core, Stalled};
use crate::news::News;
use crate::recent_requests::RecentRequests;
use crate::retention::Retention;
use crate::site::{FollowUps, InitialSync, Site};
use crate::team_tree::TeamTree;
use crate::turn::{Effects, LeaseOrder, Turn};
use berth_model::{Observed, Outcome, Rejected, Span, Time};
use berth_store::{Batch, Store, Writer};
use commit::SNAPSHOT_EVERY;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Requests, and reports, that one turn takes at the most: it should end while callers still wait.
const MAX_INPUTS: usize = 2_000;
/// How long more of what a cluster tells is waited for, so that it is taken together: longer when
/// so much came the last time that more is on its way.
const LINGER: Duration = Duration::from_millis(8);
const LINGER_BUSY: Duration = Duration::from_millis(25);
const BUSY: usize = 8;
/// How often what is held is billed.
const BILL_EVERY: Span = Span::mins(1);
/// How often the loop looks at the clock although nothing is due. A longer sleep means that the
/// whole process was stopped.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long it then waits for what the site has to tell of the time in between.
const CATCH_UP: Duration = Duration::from_secs(1);
/// How long requests with a key are remembered in memory.
const REMEMBER: Span = Span::mins(10);

/// Why the initial sync failed.
#[derive(Debug)]
pub(crate) enum SyncError {
    Rejected(Rejected),
    Fatal(Fatal),
}

type Answer = (oneshot::Sender<Result<Written, Refused>>, Result<Written, Refused>);

pub(crate) struct Loop<S: Site> {
    pub core: Arc<Mutex<Core>>,
    pub requests: mpsc::Receiver<Request>,
    pub reports: mpsc::Receiver<Report<S::Observation>>,
    /// Requests that wait until the turn before them is committed.
    pub deferred: Vec<Request>,
    /// Reports that the site made while it carried out orders.
    pub follow_ups: Vec<Report<S::Observation>>,
    pub news: News,
    pub teams: watch::Sender<Arc<TeamTree>>,
    /// Counts changes of rights.
    pub rights: watch::Sender<u64>,
    pub writer: Writer,
    /// For checks of requests: all requests wait for these, so they wait for no reader.
    pub checks: Store,
    pub site: S,
    pub next_job: u64,
    pub recent: RecentRequests,
    /// The site had much to report the last time.
    pub is_busy: bool,
    /// When the core wants to be asked.
    pub wake: Option<Time>,
    pub billed: Time,
    pub snapshot_at: u64,
    pub retention: Retention,
}

impl<S: Site> Loop<S> {
    /// Turns until it is asked to stop, the log cannot be written, or the database is lost. Then
    /// nothing more is acknowledged.
    pub async fn run(self) -> Result<(), Fatal> {
        let (core, store) = (self.core.clone(), self.writer.store().clone());
        let ended = tokio::select! {
            ended = self.turns() => ended,
            // While nothing is written no commit tells, and what is read may be long gone.
            error = store.lost() => Err(Fatal::Store(error)),
        };
        if let Err(Fatal::Store(error)) = &ended {
            tracing::error!(%error, "the database is lost; the server ends");
            // Whoever asks meanwhile is told that nothing can be written.
            let stalled = Stalled { since: clock::now(), why: error.to_string(), full: false };
            lock(&core).stalled = Some(stalled);
        }
        ended
    }

    async fn turns(mut self) -> Result<(), Fatal> {
        loop {
            let (requests, reports) = self.gather().await;
            let requests = self.check(requests).await;
            let stops = requests.iter().any(|request| matches!(request, Request::Stop));
            self.turn(requests, reports).await?;
            if stops {
                return Ok(());
            }
        }
    }

    /// What has arrived, as far as it can be applied together.
    async fn gather(&mut self) -> (Vec<Request>, Vec<Report<S::Observation>>) {
        let mut requests = std::mem::take(&mut self.deferred);
        let mut reports = std::mem::take(&mut self.follow_ups);
        let is_observation = |report: &Report<S::Observation>| matches!(report, Report::Site(_));
        if requests.is_empty() && reports.is_empty() {
            match self.wait().await {
                Some(Arrived::Request(request)) => requests.push(request),
                Some(Arrived::Report(report)) => reports.push(report),
                None => {}
            }
            if reports.iter().any(is_observation) {
                // No caller waits for an answer, and a commit costs as much as many of these.
                let linger = if self.is_busy { LINGER_BUSY } else { LINGER };
                tokio::time::sleep(linger).await;
            }
        }
        while requests.len() < MAX_INPUTS
            && let Ok(more) = self.requests.try_recv()
        {
            requests.push(more);
        }
        while reports.len() < MAX_INPUTS
            && let Ok(more) = self.reports.try_recv()
        {
            reports.push(more);
        }
        self.is_busy = reports.iter().filter(|report| is_observation(report)).count() >= BUSY;
        self.deferred = requests.split_off(applied_together(&requests));
        (requests, reports)
    }

    /// Refuses requests whose precondition does not hold.
    async fn check(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let mut valid = Vec::with_capacity(requests.len());
        for request in requests {
            let Request::Write(mut write, answer) = request else {
                valid.push(request);
                continue;
            };
            match write.check.take() {
                None => valid.push(Request::Write(write, answer)),
                Some(check) => match check(self.checks.clone()).await {
                    Ok(()) => valid.push(Request::Write(write, answer)),
                    Err(problem) => drop(answer.send(Err(Refused::Unmet(problem)))),
                },
            }
        }
        valid
    }

    /// Takes in what happened while no server ran, each at its time.
    pub async fn catch_up(&mut self) -> Result<(), BootError> {
        let (batch, effects) = {
            let mut core = lock(&self.core);
            let observed = self.site.meanwhile(&core)?;
            let now = clock::now();
            let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, now);
            for observed in in_time(observed) {
                turn.observe_then(observed);
            }
            turn.finish_turn()
        };
        self.commit(&batch).await.map_err(BootError::Log)?;
        self.act(effects, Vec::new());
        Ok(())
    }

    /// Applies what the site says exists when the server starts, before any request.
    pub async fn sync(&mut self) -> Result<(), SyncError> {
        let (batch, effects) = {
            let mut core = lock(&self.core);
            let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, clock::now());
            let synced = self.site.sync(&mut turn).map_err(SyncError::Rejected)?;
            // Without an event the core does not know what time it is. The first turn, which is due
            // at once, tells it, and plans.
            if synced == InitialSync::Complete && !turn.batch.events.is_empty() {
                turn.release_retries();
                if self.billed + BILL_EVERY <= turn.at {
                    self.billed = turn.bill();
                }
                self.wake = turn.plan();
            }
            turn.finish_turn()
        };
        self.commit(&batch).await.map_err(SyncError::Fatal)?;
        self.publish_teams(&batch, effects.rights);
        self.act(effects, Vec::new());
        Ok(())
    }

    /// Compares what runs at the site with what should, once, before the loop turns.
    pub fn reconcile(&mut self) -> Result<(), BootError> {
        let mut follow_ups = FollowUps::default();
        self.site.reconcile(&lock(&self.core), &mut follow_ups)?;
        self.follow_ups.extend(follow_ups.into_reports());
        Ok(())
    }

    /// Waits for an input, or until the next moment that the loop has to act by itself.
    async fn wait(&mut self) -> Option<Arrived<S::Observation>> {
        let billing = Some(self.billed + BILL_EVERY);
        let until = [self.wake, billing, self.next_retry(), self.retention.due()];
        let until = until.into_iter().flatten().min().expect("billing is always due some time");
        loop {
            let left = Duration::from_millis((until - clock::now()).0.max(0).unsigned_abs());
            let (asleep, nap) = (Instant::now(), left.min(HEARTBEAT));
            let arrived = tokio::select! {
                request = self.requests.recv() => {
                    Some(Arrived::Request(request.unwrap_or(Request::Stop)))
                }
                Some(report) = self.reports.recv() => Some(Arrived::Report(report)),
                () = tokio::time::sleep(nap) => None,
            };
            if asleep.elapsed() > nap + HEARTBEAT {
                // What ended meanwhile is on its way, and is billed up to its end.
                tokio::time::sleep(CATCH_UP).await;
            }
            if arrived.is_some() || left <= nap {
                return arrived;
            }
        }
    }

    fn next_retry(&self) -> Option<Time> {
        lock(&self.core).retries.first().map(|(at, _)| *at)
    }

    pub(crate) async fn turn(
        &mut self,
        requests: Vec<Request>,
        reports: Vec<Report<S::Observation>>,
    ) -> Result<(), Fatal> {
        let (batch, effects, answers) = self.apply(requests, reports);
        self.commit(&batch).await?;
        self.publish_teams(&batch, effects.rights);
        self.act(effects, answers);
        if self.writer.last_seq() >= self.snapshot_at + SNAPSHOT_EVERY && self.snapshot_pays() {
            self.snapshot().await?;
        }
        self.purge().await
    }

    /// Everything that needs the state, in one go.
    fn apply(
        &mut self,
        requests: Vec<Request>,
        reports: Vec<Report<S::Observation>>,
    ) -> (Batch, Effects, Vec<Answer>) {
        let now = clock::now();
        let mut core = lock(&self.core);
        self.recent.forget(now - REMEMBER);
        let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, now);
        let mut answers = Vec::new();
        for jump in clock::jumps() {
            turn.note_jump(jump);
            // The next server must not take it for a new one.
            clock::keep();
        }
        for report in tasks_first(reports) {
            match report {
                Report::Task(observed) => turn.observe_then(observed),
                Report::NotStarted { lease, why } => turn.not_started(lease, why),
                Report::Site(observation) => self.site.observe(&mut turn, observation),
            }
        }
        for request in requests {
            if let Request::Write(write, answer) = request {
                answers.push((answer, turn.write(*write)));
            }
        }
        if turn.settle(&mut self.wake, &mut self.billed, BILL_EVERY) {
            clock::keep();
        }
        let (batch, effects) = turn.finish_turn();
        (batch, effects, answers)
    }

    /// Before callers are answered, so that who made a team finds it, and who takes a right away
    /// knows that open streams are told.
    fn publish_teams(&self, batch: &Batch, rights: bool) {
        let teams = batch.events.iter().any(|stamped| TeamTree::may_change(&stamped.event));
        if teams {
            self.teams.send_replace(Arc::new(TeamTree::of(&lock(&self.core).state)));
        }
        if teams || rights {
            self.rights.send_modify(|count| *count += 1);
        }
    }

    /// After the commit: answers callers, hands orders to the site, and publishes events.
    fn act(&mut self, effects: Effects, answers: Vec<Answer>) {
        for (answer, result) in answers {
            // The caller may have gone.
            let _ = answer.send(result);
        }
        let mut follow_ups = FollowUps::default();
        let core = lock(&self.core);
        for order in effects.orders {
            match order {
                LeaseOrder::Start(lease) => self.site.start(&core, lease, &mut follow_ups),
                LeaseOrder::Stop { lease, cause, grace } => {
                    self.site.stop(lease, cause, grace, &mut follow_ups);
                }
                LeaseOrder::Limit(lease) => self.site.limit(&core, lease),
                LeaseOrder::Acknowledge(lease) => self.site.acknowledge(lease),
            }
        }
        for (job, outcome) in effects.ended {
            if outcome == Outcome::Cancelled {
                self.site.cancelled(job);
            }
        }
        drop(core);
        self.follow_ups.extend(follow_ups.into_reports());
        self.news.tell(clock::now(), effects.events);
    }
}

/// In the order in which it happened.
fn in_time(mut observed: Vec<Observed>) -> Vec<Observed> {
    observed.sort_by_key(Observed::at);
    observed
}

/// What tasks did, in the order in which it happened, and then the rest as it came.
fn tasks_first<O>(mut reports: Vec<Report<O>>) -> Vec<Report<O>> {
    reports.sort_by_key(|report| match report {
        Report::Task(observed) => (false, Some(observed.at())),
        Report::NotStarted { .. } | Report::Site(_) => (true, None),
    });
    reports
}

/// What ends a wait.
enum Arrived<O> {
    Request(Request),
    Report(Report<O>),
}

/// How many requests can be applied together. One that depends on what is in the store waits until
/// the changes before it are there.
fn applied_together(requests: &[Request]) -> usize {
    let mut changes = false;
    let waits = requests.iter().position(|request| {
        let Request::Write(write, _) = request else { return false };
        let waits = changes && write.check.is_some();
        changes |= !write.documents.changes.is_empty();
        waits
    });
    waits.unwrap_or(requests.len())
}

pub(super) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}
