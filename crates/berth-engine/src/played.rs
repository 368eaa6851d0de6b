//! A loop that plays a history. It has neither a clock nor a site: whoever plays says what time it is
//! and what happened then. What it applies, plans, bills and books is what the loop of a server does
//! with the same, so that a server goes on where it ends.
//!
//! It answers callers before what they asked for is on disk, because a month is written at once: a
//! history that is cut short is played again.

pub use crate::turn::LeaseOrder;

use crate::clock;
use crate::error::Fatal;
use crate::handle::{Handle, MAX_REQUESTS};
use crate::input::{Refused, Request, Write, Written};
use crate::memory::{Core, CostBook, Plans};
use crate::news::News;
use crate::recent_requests::RecentRequests;
use crate::tallies::Tallies;
use crate::team_tree::TeamTree;
use crate::turn::{Effects, Turn};
use berth_core::State;
use berth_model::{Span, Time};
use berth_store::{Batch, Store, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot, watch};

/// Events that are written together.
const TOGETHER: usize = 2_000;
/// Jobs of a snapshot that are written together.
const JOBS_PER_PART: usize = 500;

pub struct PlayedLoop {
    handle: Handle,
    requests: mpsc::Receiver<Request>,
    teams: watch::Sender<Arc<TeamTree>>,
    rights: watch::Sender<u64>,
    /// For checks of requests.
    checks: Store,
    writer: Writer,
    recent: RecentRequests,
    next_job: u64,
    wake: Option<Time>,
    billed: Time,
    bill_every: Span,
    /// What has come about and is not written yet.
    batch: Batch,
    /// What was decided and nobody has carried out yet.
    orders: Vec<LeaseOrder>,
}

impl PlayedLoop {
    /// Begins at a moment, with an empty log. What is held is billed every so often.
    ///
    /// # Panics
    ///
    /// If the log is not empty: what a server wrote is no place for a history.
    pub fn begin(store: &Store, writer: Writer, from: Time, bill_every: Span) -> PlayedLoop {
        assert_eq!(writer.last_seq(), 0, "a history is played into an empty database");
        let core = Core {
            state: State::new(),
            jobs: BTreeMap::new(),
            budgeted: BTreeSet::new(),
            retries: BTreeSet::new(),
            forecast: None,
            plans: Plans::default(),
            tallies: Tallies::default(),
            costs: CostBook::default(),
            stalled: None,
        };
        let (asked, requests) = mpsc::channel(MAX_REQUESTS);
        let (teams, shown) = watch::channel(Arc::new(TeamTree::of(&core.state)));
        let (rights, changes) = watch::channel(0);
        let core = Arc::new(Mutex::new(core));
        let handle = Handle::new(asked, core, News::since(from), shown, changes);
        PlayedLoop {
            handle,
            requests,
            teams,
            rights,
            checks: store.with_own_reader(),
            writer,
            recent: RecentRequests::default(),
            next_job: 1,
            wake: None,
            billed: from,
            bill_every,
            batch: Batch::default(),
            orders: Vec::new(),
        }
    }

    /// The way to it. Requests are taken while [`PlayedLoop::during`] runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// When it has to turn although nothing happens.
    pub fn next(&self) -> Time {
        let retry = self.handle.core().retries.first().map(|(at, _)| *at);
        let billing = self.billed + self.bill_every;
        let wake = self.wake.map(|at| self.not_for_a_bill(at));
        [wake, retry].into_iter().flatten().fold(billing, Time::min)
    }

    /// The core asks at the end of each minute what budgets have come to. That is known when a bill
    /// is cut.
    fn not_for_a_bill(&self, at: Time) -> Time {
        let ends_minute = at.0.rem_euclid(Span::mins(1).0) == 0;
        let every = self.bill_every.0;
        if ends_minute { Time((at.0 + every - 1).div_euclid(every) * every) } else { at }
    }

    /// What is to be carried out at the site. It comes of every turn, whatever that was for.
    pub fn take_orders(&mut self) -> Vec<LeaseOrder> {
        std::mem::take(&mut self.orders)
    }

    /// One turn at a time, with what happened then.
    pub async fn turn<T>(
        &mut self,
        at: Time,
        act: impl FnOnce(&mut Turn<'_>) -> T,
    ) -> Result<T, Fatal> {
        clock::play(at);
        let (done, (batch, effects)) = {
            let mut core = self.handle.core();
            let mut turn = Turn::new(&mut core, &mut self.recent, &mut self.next_job, at);
            let done = act(&mut turn);
            turn.settle(&mut self.wake, &mut self.billed, self.bill_every);
            (done, turn.finish_turn())
        };
        self.publish_teams(&batch, &effects);
        self.batch.append(batch);
        if self.batch.events.len() >= TOGETHER {
            self.commit().await?;
        }
        self.orders.extend(effects.orders);
        Ok(done)
    }

    /// Carries out what somebody asks for at a time, until they have what they wanted.
    pub async fn during<T>(
        &mut self,
        at: Time,
        asking: impl Future<Output = T>,
    ) -> Result<T, Fatal> {
        clock::play(at);
        let mut asking = pin!(asking);
        loop {
            let request = tokio::select! {
                biased;
                done = &mut asking => return Ok(done),
                Some(request) = self.requests.recv() => request,
            };
            if let Request::Write(write, answer) = request {
                self.answer(at, *write, answer).await?;
            }
        }
    }

    async fn answer(
        &mut self,
        at: Time,
        mut write: Write,
        answer: oneshot::Sender<Result<Written, Refused>>,
    ) -> Result<(), Fatal> {
        if let Some(check) = write.check.take() {
            // It looks at what is written.
            self.commit().await?;
            if let Err(problem) = check(self.checks.clone()).await {
                let _ = answer.send(Err(Refused::Unmet(problem)));
                return Ok(());
            }
        }
        let written = self.turn(at, |turn| turn.write(write)).await?;
        // Who asks next looks for users and the like in the store.
        if !self.batch.changes.is_empty() {
            self.commit().await?;
        }
        // Who asked may have gone.
        let _ = answer.send(written);
        Ok(())
    }

    /// Writes all that has come about.
    pub async fn commit(&mut self) -> Result<(), Fatal> {
        let batch = std::mem::take(&mut self.batch);
        self.writer.commit(&batch).await.map_err(Fatal::Store)?;
        self.handle.core().costs.wrote(batch.costs.len());
        Ok(())
    }

    /// Writes the rest and lets go of the database. The next server starts from a snapshot.
    pub async fn finish(mut self) -> Result<(), Fatal> {
        self.commit().await?;
        let outline = self.handle.core().state.outline();
        let handle = &self.handle;
        let jobs = |after| handle.core().state.job_snapshots(after, JOBS_PER_PART);
        self.writer.snapshot(&outline, jobs).await.map_err(Fatal::Store)?;
        self.writer.close().await.map_err(Fatal::Store)
    }

    /// As the loop of a server does: who made a team finds it.
    fn publish_teams(&self, batch: &Batch, effects: &Effects) {
        let teams = batch.events.iter().any(|stamped| TeamTree::may_change(&stamped.event));
        if teams {
            self.teams.send_replace(Arc::new(TeamTree::of(&self.handle.core().state)));
        }
        if teams || effects.rights {
            self.rights.send_modify(|count| *count += 1);
        }
    }
}
