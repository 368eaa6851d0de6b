//! The thread that turns the loop.

use super::input::{Input, Refused, Written};
use super::recent::Recent;
use super::retain::Retention;
use super::site::{Said, Site};
use super::turn::{Order, Told, Turn};
use super::{Core, Handle, Stalled, Tree};
use crate::clock;
use berth_api::wire;
use berth_model::{Outcome, Rejected, Span, Time};
use berth_store::{Batch, Retry, Writer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Inputs that are taken together, at the most: a turn should end while people still wait.
const MOST_INPUTS: usize = 2_000;
/// How long more of what a cluster tells is waited for, so that it is taken together: longer when
/// so much came the last time that more is on its way.
const LINGER: Duration = Duration::from_millis(8);
const LINGER_BUSY: Duration = Duration::from_millis(25);
const BUSY: usize = 8;
/// How often what is held is billed.
const BILL_EVERY: Span = Span::mins(1);
/// Events between two snapshots, at the least. A snapshot is of everything, so the more jobs there
/// are the more has to happen before the next one pays.
const SNAPSHOT_EVERY: u64 = 20_000;
const PER_JOB: u64 = 4;
/// Jobs of a snapshot that are written together.
const JOBS_PER_PART: usize = 500;
/// Between two tries to write, at the most. Until the next one, everybody who wants something
/// written is refused, also when the database has long been back.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long requests with a key are remembered in memory.
const REMEMBER: Span = Span::mins(10);

/// Why the loop had to end. Jobs go on; another server takes them over.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    #[error("the log cannot be written any more: {0}")]
    Store(#[source] berth_store::Error),
}

/// Why the loop could not begin.
#[derive(Debug)]
pub(super) enum Greeting {
    Rejected(Rejected),
    Fatal(Fatal),
}

type Answer = (oneshot::Sender<Result<Written, Refused>>, Result<Written, Refused>);

pub(super) struct Loop {
    pub core: Arc<Mutex<Core>>,
    pub inputs: mpsc::UnboundedReceiver<Input>,
    /// Inputs that have to wait for the turn before them to be committed.
    pub later: Vec<Input>,
    pub news: broadcast::Sender<Arc<wire::Event>>,
    pub tree: watch::Sender<Arc<Tree>>,
    pub writer: Writer,
    pub site: Box<dyn Site>,
    pub next_job: u64,
    pub recent: Recent,
    /// Much was told the last time.
    pub is_busy: bool,
    /// When the core wants to be asked.
    pub wake: Option<Time>,
    pub billed: Time,
    pub snapshot_at: u64,
    pub retention: Retention,
}

impl Loop {
    /// Turns until it is told to stop, or the log cannot be written.
    pub async fn run(mut self) -> Result<(), Fatal> {
        loop {
            let inputs = self.gather().await;
            let inputs = self.checked(inputs).await;
            let stops = inputs.iter().any(|input| matches!(input, Input::Stop));
            self.turn(inputs).await?;
            if stops {
                return Ok(());
            }
        }
    }

    /// What has arrived, as far as it can be taken together.
    async fn gather(&mut self) -> Vec<Input> {
        let mut inputs = std::mem::take(&mut self.later);
        if inputs.is_empty() {
            inputs.extend(self.wait().await);
            if inputs.iter().any(|input| matches!(input, Input::Told(_))) {
                // Nobody waits for an answer, and each commit costs as much as many of these.
                let linger = if self.is_busy { LINGER_BUSY } else { LINGER };
                tokio::time::sleep(linger).await;
            }
        }
        while inputs.len() < MOST_INPUTS
            && let Ok(more) = self.inputs.try_recv()
        {
            inputs.push(more);
        }
        let told = inputs.iter().filter(|input| matches!(input, Input::Told(_))).count();
        self.is_busy = told >= BUSY;
        self.later = inputs.split_off(together(&inputs));
        inputs
    }

    /// Refuses what does not fit with what is there.
    async fn checked(&mut self, inputs: Vec<Input>) -> Vec<Input> {
        let mut fit = Vec::with_capacity(inputs.len());
        for input in inputs {
            let Input::Write(mut write, answer) = input else {
                fit.push(input);
                continue;
            };
            let check = write.check.take();
            match check {
                None => fit.push(Input::Write(write, answer)),
                Some(check) => match check(self.writer.store().clone()).await {
                    Ok(()) => fit.push(Input::Write(write, answer)),
                    Err(problem) => drop(answer.send(Err(Refused::Unmet(problem)))),
                },
            }
        }
        fit
    }

    /// Applies what the site has to say when the server starts, before anybody else.
    pub async fn greet(&mut self) -> Result<(), Greeting> {
        let (batch, told) = {
            let mut core = lock(&self.core);
            let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, clock::now());
            let said = self.site.greet(&mut turn).map_err(Greeting::Rejected)?;
            // Without an event the core does not know what time it is. The first turn, which is due
            // at once, tells it, and plans.
            if said == Said::All && !turn.batch.events.is_empty() {
                turn.try_again();
                if self.billed + BILL_EVERY <= turn.at {
                    self.billed = turn.bill();
                }
                self.wake = turn.plan();
            }
            turn.finish_turn()
        };
        self.commit(&batch).await.map_err(Greeting::Fatal)?;
        self.show_tree(&batch);
        self.tell(told, Vec::new(), None);
        Ok(())
    }

    /// Waits for an input, or until it is time to look.
    async fn wait(&mut self) -> Option<Input> {
        let billing = Some(self.billed + BILL_EVERY);
        let until = [self.wake, billing, self.next_try(), self.retention.due()];
        let until = until.into_iter().flatten().min().expect("billing is always due some time");
        let left = (until - clock::now()).0.max(0).unsigned_abs();
        tokio::select! {
            input = self.inputs.recv() => Some(input.unwrap_or(Input::Stop)),
            () = tokio::time::sleep(Duration::from_millis(left)) => None,
        }
    }

    fn next_try(&self) -> Option<Time> {
        lock(&self.core).retries.first().map(|(at, _)| *at)
    }

    pub(super) async fn turn(&mut self, inputs: Vec<Input>) -> Result<(), Fatal> {
        let (batch, told, answers) = self.apply(inputs);
        self.commit(&batch).await?;
        self.show_tree(&batch);
        let seq = batch.events.last().map(|event| event.seq);
        self.tell(told, answers, seq);
        if self.writer.last_seq() >= self.snapshot_at + SNAPSHOT_EVERY && self.snapshot_pays() {
            self.snapshot().await?;
        }
        self.let_go().await
    }

    /// Whether enough has happened for the number of jobs that would be written again.
    fn snapshot_pays(&self) -> bool {
        let jobs = lock(&self.core).jobs.len() as u64;
        self.writer.last_seq() >= self.snapshot_at + jobs * PER_JOB
    }

    /// Everything that needs the state, in one go.
    fn apply(&mut self, inputs: Vec<Input>) -> (Batch, Told, Vec<Answer>) {
        let now = clock::now();
        let mut core = lock(&self.core);
        self.recent.forget(now - REMEMBER);
        let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, now);
        let mut answers = Vec::new();
        for input in inputs {
            match input {
                Input::Write(write, answer) => answers.push((answer, turn.write(*write))),
                Input::Observed(observed) => turn.observe(observed),
                Input::NotStarted { lease, why } => turn.not_started(lease, why),
                Input::Told(news) => news(&mut turn),
                Input::Stop => {}
            }
        }
        turn.try_again();
        let is_asked_for = self.wake.is_some_and(|wake| wake <= turn.at);
        let ends_minute = is_asked_for && is_minute_over(self.billed, turn.at);
        if ends_minute || self.billed + BILL_EVERY <= turn.at {
            self.billed = turn.bill();
        } else if is_asked_for && turn.batch.events.is_empty() {
            turn.woken();
        }
        if !turn.batch.events.is_empty() {
            self.wake = turn.plan();
        }
        let (batch, told) = turn.finish_turn();
        (batch, told, answers)
    }

    /// Commits, however long the database is away: the state is ahead of the log until then, so
    /// nothing else may happen.
    pub(super) async fn commit(&mut self, batch: &Batch) -> Result<(), Fatal> {
        let mut pause = FIRST_PAUSE;
        // What became of a snapshot says nothing about this batch, so it is found out before.
        while self.writer.is_in_doubt() {
            let Err(error) = self.writer.recover().await else { break };
            if error.retry() == Retry::Never {
                return Err(Fatal::Store(error));
            }
            self.stall(&error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        loop {
            let Err(error) = self.writer.commit(batch).await else { break };
            if error.retry() == Retry::Never {
                return Err(Fatal::Store(error));
            }
            self.stall(&error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.writer.recover().await {
                Ok(found) if found.applied => break,
                Ok(_) => {}
                Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
                Err(_) => {}
            }
        }
        lock(&self.core).stalled = None;
        Ok(())
    }

    /// Notes since when nothing can be written, and says so once: tries are many.
    fn stall(&self, error: &berth_store::Error) {
        let mut core = lock(&self.core);
        if core.stalled.is_none() {
            tracing::warn!(%error, "the log cannot be written; trying again until it can");
        }
        let since = core.stalled.as_ref().map_or_else(clock::now, |stalled| stalled.since);
        // What is wrong may change: a disk fills up while a database is away.
        let full = matches!(error, berth_store::Error::Full { .. });
        core.stalled = Some(Stalled { since, why: error.to_string(), full });
    }

    /// Before anybody is answered: whoever made a team finds it.
    fn show_tree(&self, batch: &Batch) {
        if batch.events.iter().any(|stamped| Tree::follows(&stamped.event)) {
            self.tree.send_replace(Arc::new(Tree::of(&lock(&self.core).state)));
        }
    }

    fn tell(&self, told: Told, answers: Vec<Answer>, seq: Option<u64>) {
        for (answer, result) in answers {
            // Whoever asked may have gone.
            let _ = answer.send(result);
        }
        let core = lock(&self.core);
        for order in told.orders {
            match order {
                Order::Start(lease) => self.site.start(&core, lease),
                Order::Stop { lease, cause, grace } => self.site.stop(lease, cause, grace),
                Order::Acknowledge(lease) => self.site.acknowledge(lease),
            }
        }
        for (job, outcome) in told.ended {
            if outcome == Outcome::Cancelled {
                self.site.cancelled(job);
            }
        }
        drop(core);
        let seq = seq.unwrap_or_else(|| self.writer.last_seq());
        let at = wire::At(clock::now());
        for kind in told.news {
            let _ = self.news.send(Arc::new(wire::Event { seq, at, kind }));
        }
    }

    pub(super) async fn snapshot(&mut self) -> Result<(), Fatal> {
        let outline = lock(&self.core).state.outline();
        // Nobody else changes the state, so others may look at it between two parts.
        let core = &self.core;
        let jobs = |after| lock(core).state.job_snapshots(after, JOBS_PER_PART);
        match self.writer.snapshot(&outline, jobs).await {
            Ok(()) => self.snapshot_at = outline.seq,
            Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
            // A snapshot only makes the next start faster.
            Err(error) => tracing::warn!(%error, "no snapshot was written"),
        }
        Ok(())
    }
}

/// How many inputs can be taken together. One that depends on what is in the store waits until
/// what comes before it is there.
fn together(inputs: &[Input]) -> usize {
    let mut changes = false;
    let waits = inputs.iter().position(|input| {
        let Input::Write(write, _) = input else { return false };
        let waits = changes && write.check.is_some();
        changes |= !write.documents.changes.is_empty();
        waits
    });
    waits.unwrap_or(inputs.len())
}

/// The core asks for the end of a minute where a budget may be used up by then.
pub(super) fn is_minute_over(billed: Time, now: Time) -> bool {
    let minute = |at: Time| at.0.div_euclid(Span::mins(1).0);
    minute(billed) < minute(now)
}

fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    pub(super) fn new(
        inputs: mpsc::UnboundedSender<Input>,
        core: Arc<Mutex<Core>>,
        news: broadcast::Sender<Arc<wire::Event>>,
        tree: watch::Receiver<Arc<Tree>>,
    ) -> Handle {
        Handle { inputs, core, news, tree }
    }
}
