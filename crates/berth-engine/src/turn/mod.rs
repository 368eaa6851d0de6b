//! One turn of the loop: what is applied together, and committed together.

mod booking;
mod early;
mod rejoin;

use crate::clock::{self, Jump};
use crate::input::{Act, Refused, Write, Written};
use crate::live::{Detail, LiveJob};
use crate::memory::Core;
use crate::outcome::{self, stop_message};
use crate::recent_requests::RecentRequests;
use crate::{job_state, notices, rows};
use berth_api::wire;
use berth_core::Transaction;
use berth_model::{
    Cause, Decision, Event, JobChange, JobId, JobRequest, LeaseId, LeaseOutcome, Outcome, Rejected,
    Span, Stamped, Time,
};
use berth_model::{Ended, Observed};
use berth_store::{AuditEntry, Batch, IdempotencyRow, LeaseRow};
use std::collections::{BTreeMap, BTreeSet};

/// Plans at one moment. Each either changes something or is the last one; a sound core needs a
/// handful.
const PLANS_AT_ONCE: u32 = 64;

/// What a driver has to do once the turn is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOrder {
    Start(LeaseId),
    Stop {
        lease: LeaseId,
        cause: Cause,
        grace: Span,
    },
    /// How long it may run has changed.
    Limit(LeaseId),
    /// Its end is in the log.
    Acknowledge(LeaseId),
}

/// What follows once the turn is committed: orders for the site, and events for subscribers.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub orders: Vec<LeaseOrder>,
    pub events: Vec<wire::EventKind>,
    pub ended: Vec<(JobId, Outcome)>,
    /// Somebody has other rights than before.
    pub rights: bool,
}

pub struct Turn<'a> {
    pub core: &'a mut Core,
    recent: &'a mut RecentRequests,
    next_job: &'a mut u64,
    pub at: Time,
    pub(crate) batch: Batch,
    pub(crate) effects: Effects,
    /// Their rows are written.
    touched: BTreeSet<JobId>,
    leases: BTreeMap<LeaseId, LeaseRow>,
    /// These have cost more, and may have changed otherwise too.
    billed: BTreeSet<LeaseId>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        core: &'a mut Core,
        recent: &'a mut RecentRequests,
        next_job: &'a mut u64,
        now: Time,
    ) -> Turn<'a> {
        let at = now.max(core.state.now());
        let (batch, effects) = (Batch::default(), Effects::default());
        let (touched, leases, billed) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        Turn { core, recent, next_job, at, batch, effects, touched, leases, billed }
    }

    /// Applies all that a caller asks for, or nothing of it.
    pub fn write(&mut self, write: Write) -> Result<Written, Refused> {
        let key = write.once.as_ref().map(|once| (once.user.clone(), once.key.clone()));
        if let (Some(once), Some(key)) = (&write.once, &key)
            && let Some((fingerprint, written)) = self.recent.get(key)
        {
            let same = *fingerprint == once.fingerprint;
            let again = Written { repeated: true, ..written.clone() };
            return if same { Ok(again) } else { Err(Refused::KeyReused) };
        }
        write.documents.check().map_err(|why| Refused::Unkeepable(why.to_string()))?;
        let job = self.act(write.act)?;
        // The last use of a token leaves rights as they are.
        let changes_rights = write.documents.changes_rights();
        self.effects.rights |= changes_rights;
        let rights = write.audit.is_none() && changes_rights;
        self.batch.changes.extend(write.documents.changes);
        self.batch.notices.extend(write.documents.notices);
        // No change of rights goes without an audit row: the row is what vouches for it.
        let audit = write.audit.or_else(|| rights.then(|| rights_audit(self.at)));
        if let Some(mut audit) = audit {
            audit.at = self.at;
            if let Some(job) = job {
                audit.target = format!("job {job}");
            }
            self.batch.audit.push(audit);
        }
        let written = Written { job, at: self.at, seq: self.core.state.seq(), repeated: false };
        if let (Some(once), Some(key)) = (write.once, key) {
            self.batch.idempotency.push(IdempotencyRow {
                user: once.user,
                key: once.key,
                at: self.at,
                fingerprint: once.fingerprint.clone(),
                status: once.status,
                body: (once.answer)(job),
            });
            self.recent.insert(key, once.fingerprint, written.clone());
        }
        Ok(written)
    }

    fn act(&mut self, act: Act) -> Result<Option<JobId>, Refused> {
        match act {
            Act::Nothing => {}
            Act::Submit(request) => return self.submit(*request).map(Some),
            Act::Cancel { job, now } => {
                self.apply(Event::JobCancelled { job }).map_err(Refused::Rejected)?;
                for id in self.matching(job) {
                    let live = self.core.jobs.get_mut(&id).expect("just found");
                    live.kill |= now;
                    // What it waited for last is not how it has ended.
                    if live.leases.is_empty() {
                        live.row.reason = stop_message(Cause::Cancelled).to_owned();
                    }
                }
            }
            Act::EndEarly { job, why } => self.end_early(job, why)?,
            Act::Change { job, changes } => {
                // Of an array, every element that has not ended. A job that is not there is refused.
                let mut jobs = self.matching(job);
                if jobs.is_empty() {
                    jobs.push(job);
                }
                let of = |change: &JobChange| -> Vec<Event> {
                    let event =
                        |job: &JobId| Event::JobChanged { job: *job, change: change.clone() };
                    jobs.iter().map(event).collect()
                };
                self.all(changes.iter().flat_map(of).collect()).map_err(Refused::Rejected)?;
                for job in jobs {
                    self.park_again(job);
                }
            }
            Act::Events(events) => self.all(events).map_err(Refused::Rejected)?,
            Act::Amend(amend) => {
                let events = amend(&self.core.state).map_err(Refused::Unmet)?;
                self.all(events).map_err(Refused::Rejected)?;
            }
        }
        Ok(None)
    }

    /// Takes a job in and gives it its number.
    pub fn submit(&mut self, request: JobRequest) -> Result<JobId, Refused> {
        let id = JobId::new(*self.next_job);
        let spec = request.spec(id, self.at);
        let live = rows::submitted(&spec, request);
        keepable(&live)?;
        self.apply(Event::JobSubmitted { spec: Box::new(spec) }).map_err(Refused::Rejected)?;
        *self.next_job += 1;
        for job in live {
            self.core.tallies.submitted(&job.row.team);
            self.touched.insert(job.row.id);
            if job.budget().is_some() {
                self.core.budgeted.insert(job.row.id);
            }
            self.core.jobs.insert(job.row.id, job);
        }
        Ok(id)
    }

    /// Applies all of them, or none: what depends on each other is tried on a copy first.
    pub fn all(&mut self, events: Vec<Event>) -> Result<(), Rejected> {
        if events.len() > 1 {
            let mut copy = self.core.state.clone();
            for event in &events {
                let seq = copy.seq() + 1;
                let _ = copy.apply(&Stamped { seq, at: self.at, event: event.clone() })?;
            }
        }
        events.into_iter().try_for_each(|event| self.apply(event))
    }

    /// The job, or all elements of an array.
    fn matching(&self, job: JobId) -> Vec<JobId> {
        let of_array = |id: &&JobId| id.number == job.number && job.element.is_none();
        let from = JobId { number: job.number, element: None };
        let after = JobId { number: job.number + 1, element: None };
        let all = self.core.jobs.range(from..after).map(|(id, _)| id);
        all.filter(|id| **id == job || of_array(id)).copied().collect()
    }

    /// Takes in what a driver has seen, as of the time when it happened. That is now, or earlier
    /// where the server was away. Nothing is earlier than what is in the log.
    pub(crate) fn observe_then(&mut self, observed: Observed) {
        let now = self.at;
        // The clock on the wall may have been set since the driver has read it.
        let by_uptime = match &observed {
            Observed::Ended(ended) => ended.uptime_ms.map(clock::of_uptime),
            Observed::Started { .. } | Observed::Ready { .. } => None,
        };
        let then = by_uptime.unwrap_or_else(|| clock::of_wall(observed.at()));
        self.at = then.clamp(self.core.state.now().min(now), now);
        self.observe(observed);
        self.at = now;
    }

    /// Records that somebody has set the clock of the machine. The server's time goes on as if
    /// nobody had.
    pub(crate) fn note_jump(&mut self, jump: Jump) {
        let Jump { at, by } = jump;
        let way = if by < Span::ZERO { "back" } else { "ahead" };
        let by = Span(by.0.abs());
        tracing::warn!(%at, %by, "the clock of this machine was set {way}; Berth does not follow");
        self.note("clock_set", format!("{by} {way}"));
    }

    /// Puts into the audit log what the server has noticed or done by itself.
    pub fn note(&mut self, what: &str, target: String) {
        self.batch.audit.push(AuditEntry {
            at: self.at,
            who: "berth".to_owned(),
            token: String::new(),
            from: "server".to_owned(),
            method: String::new(),
            what: what.to_owned(),
            target,
            outcome: "ok".to_owned(),
            detail: "{}".to_owned(),
        });
    }

    /// Takes in what a driver has seen.
    pub fn observe(&mut self, observed: Observed) {
        let lease = observed.lease();
        if !self.core.jobs.get(&lease.job).is_some_and(|job| job.leases.contains_key(&lease)) {
            // Its end is in the log already.
            if matches!(observed, Observed::Ended(_)) {
                self.effects.orders.push(LeaseOrder::Acknowledge(lease));
            }
            return;
        }
        match observed {
            Observed::Started { lease, .. } => self.started(lease),
            Observed::Ready { lease, .. } => {
                let job = self.core.jobs.get_mut(&lease.job).expect("just found");
                job.detail.ready = true;
                self.touched.insert(lease.job);
            }
            Observed::Ended(ended) => self.ended(&ended),
        }
    }

    fn started(&mut self, lease: LeaseId) {
        let known = self.core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        if known.is_some_and(|lease| lease.row.started.is_none()) {
            self.apply_observed(Event::LeaseStarted { lease });
        }
    }

    /// A task has ended: told to the core as what it means for the job.
    fn ended(&mut self, ended: &Ended) {
        let lease = ended.lease;
        let mut exit = outcome::exit(ended);
        if ended.started_at.is_some() {
            self.started(lease);
        }
        let (at, stopping) = (self.at, self.stop_cause(lease));
        let job = self.core.jobs.get_mut(&lease.job).expect("it was found before");
        let mut verdict = outcome::judge(ended, &mut job.detail, at);
        if ended.asked == Some(Cause::TimeLimit) && stopping.is_none() {
            // Its supervisor kept the limit while the server was away, so the core does not know.
            verdict.outcome = LeaseOutcome::Failed;
        }
        if let Some(why) = early::good_end(ended, &job.detail) {
            verdict.outcome = LeaseOutcome::Done;
            exit.text = why;
        }
        // Those that had to end with it do not hide the one that failed.
        if ended.asked != Some(Cause::PeerFailed) {
            job.detail.exit = Some(exit.clone());
            job.row.reason = outcome::in_short(&exit.text).to_owned();
        }
        if let Some(live) = job.leases.get_mut(&lease) {
            live.row.exit = serde_json::to_string(&exit).ok();
        }
        if let Some(again_at) = verdict.again_at {
            self.wait_until(lease.job, again_at);
        }
        self.apply_observed(Event::LeaseEnded { lease, outcome: verdict.outcome });
        self.effects.orders.push(LeaseOrder::Acknowledge(lease));
    }

    /// Puts the job on hold until its next try. `held` stays as it was, because no user asked for
    /// this hold: a user who pauses the job meanwhile keeps it paused beyond the next try.
    fn wait_until(&mut self, id: JobId, again_at: Time) {
        let held = self.core.jobs.get(&id).is_some_and(|job| job.detail.held);
        let change = JobChange::Hold(true);
        self.apply_observed(Event::JobChanged { job: id, change });
        let Some(job) = self.core.jobs.get_mut(&id) else { return };
        job.detail.held = held;
        if let Some(earlier) = job.detail.again_at.replace(again_at) {
            self.core.retries.remove(&(earlier, id));
        }
        self.core.retries.insert((again_at, id));
    }

    /// A driver could not begin with a lease.
    pub fn not_started(&mut self, lease: LeaseId, why: String) {
        let mut ended = Ended::not_started(lease, self.at, why);
        ended.asked = self.stop_cause(lease);
        self.observe(Observed::Ended(Box::new(ended)));
    }

    /// The machine could not begin with a lease: the job goes back to waiting, and is tried again
    /// after a pause. That is no try of the job's.
    pub fn trouble(&mut self, lease: LeaseId, why: String) {
        let mut ended = Ended::trouble(lease, self.at, why);
        ended.asked = self.stop_cause(lease);
        self.observe(Observed::Ended(Box::new(ended)));
    }

    /// Changes what is kept of a job beside what the core knows.
    pub fn amend_detail(&mut self, job: JobId, change: impl FnOnce(&mut Detail)) {
        if let Some(live) = self.core.jobs.get_mut(&job) {
            change(&mut live.detail);
            self.touched.insert(job);
        }
    }

    /// Keeps a job from starting while something it is made of is missing, or ends that. `held`
    /// stays as it was, because no user asked for this: a job that a user pauses meanwhile stays
    /// paused when it is complete.
    pub fn park(&mut self, id: JobId, park: bool) {
        let Some(job) = self.core.jobs.get(&id) else { return };
        let (held, waits) = (job.detail.held, job.detail.again_at.is_some());
        if job.detail.parked == park || (park && !job.leases.is_empty()) {
            return;
        }
        if !held && !waits {
            let change = JobChange::Hold(park);
            self.apply_observed(Event::JobChanged { job: id, change });
        }
        self.amend_detail(id, |detail| {
            detail.held = held;
            detail.parked = park;
        });
    }

    /// Parks a job again that a user has resumed: the user could not know that it misses something.
    fn park_again(&mut self, job: JobId) {
        for id in self.matching(job) {
            let detail = &self.core.jobs[&id].detail;
            if detail.parked && !detail.held {
                let change = JobChange::Hold(true);
                self.apply_observed(Event::JobChanged { job: id, change });
                self.amend_detail(id, |detail| detail.held = false);
            }
        }
    }

    /// Orders a start again, once the turn is committed.
    pub fn start_again(&mut self, lease: LeaseId) {
        self.effects.orders.push(LeaseOrder::Start(lease));
    }

    /// Says what a job waits for while it has its places.
    pub fn set_reason(&mut self, job: JobId, why: String) {
        if let Some(live) = self.core.jobs.get_mut(&job).filter(|live| live.row.reason != why) {
            live.row.reason = why;
            self.touched.insert(job);
        }
    }

    /// Why a lease was asked to stop, if it was.
    pub fn stop_cause(&self, lease: LeaseId) -> Option<Cause> {
        self.core.jobs.get(&lease.job)?.leases.get(&lease)?.stopping
    }

    /// Lets jobs that waited for their next try go on.
    pub fn release_retries(&mut self) {
        while let Some((at, id)) = self.core.retries.first().copied().filter(|due| due.0 <= self.at)
        {
            self.core.retries.remove(&(at, id));
            let Some(job) = self.core.jobs.get_mut(&id) else { continue };
            job.detail.again_at = None;
            self.touched.insert(id);
            if !job.detail.held && !job.detail.parked {
                let change = JobChange::Hold(false);
                self.apply_observed(Event::JobChanged { job: id, change });
            }
        }
    }

    /// Pauses jobs that have cost what their owner said they may.
    fn over_budget(&mut self) {
        let spent = |job: &&LiveJob| {
            let is_spent = |budget| self.core.cost(job, self.at) >= budget;
            !job.detail.held && job.budget().is_some_and(is_spent)
        };
        let budgeted = self.core.budgeted.iter().filter_map(|id| self.core.jobs.get(id));
        let jobs: Vec<JobId> = budgeted.filter(spent).map(|job| job.row.id).collect();
        for id in jobs {
            let change = JobChange::Hold(true);
            self.apply_observed(Event::JobChanged { job: id, change });
            let job = self.core.jobs.get_mut(&id).expect("just found");
            job.row.reason = "paused: it has cost what its budget allows".to_owned();
            self.batch.notices.extend(notices::of_budget_of_job(job, self.at));
        }
    }

    /// Bills what is due, before anything is planned: budgets act on it. Returns the time.
    pub fn bill(&mut self) -> Time {
        self.apply_observed(Event::BillDue);
        self.over_budget();
        self.at
    }

    /// The core asked for this moment and has to know that it has come. Only the clock goes on:
    /// moments may be many, and a bill looks at all that is held.
    pub fn advance_clock(&mut self) {
        self.apply_observed(Event::Decided { job: None, decisions: Vec::new() });
    }

    /// Does what is due by itself, and plans where anything has happened. Says whether it billed.
    pub(crate) fn settle(
        &mut self,
        wake: &mut Option<Time>,
        billed: &mut Time,
        bill_every: Span,
    ) -> bool {
        self.release_retries();
        let is_asked_for = wake.is_some_and(|wake| wake <= self.at);
        let ends_period = is_asked_for && is_period_over(*billed, self.at, bill_every);
        let owes = is_asked_for
            && (self.core.state.owes_bill(self.at)
                || self.next_spent_job().is_some_and(|at| at <= self.at));
        let bills = ends_period || owes || *billed + bill_every <= self.at;
        if bills {
            *billed = self.bill();
        } else if is_asked_for && self.batch.events.is_empty() {
            self.advance_clock();
        }
        if !self.batch.events.is_empty() {
            let later = self.at + Span::ms(1);
            let spent = self.next_spent_job().map(|at| at.max(later));
            *wake = self.plan().into_iter().chain(spent).min();
        }
        bills
    }

    /// When the first job will have cost what it may.
    fn next_spent_job(&self) -> Option<Time> {
        let running = self.core.budgeted.iter().filter_map(|id| self.core.jobs.get(id));
        let running = running.filter(|job| !job.leases.is_empty() && !job.detail.held);
        let moments = running.filter_map(|job| {
            let left = job.budget()?.0.saturating_sub(job.row.cost.0).max(0);
            self.core.state.burn_of(job.row.id).reaches(berth_model::Micros(left))
        });
        moments.min()
    }

    /// Applies an event that no caller waits for, so that a refusal can only be logged. A refusal
    /// means that the loop and the core disagree about what there is.
    pub fn apply_observed(&mut self, event: Event) -> bool {
        let applied = self.apply(event.clone());
        if let Err(rejected) = &applied {
            tracing::error!(%rejected, ?event, "an observation was refused");
        }
        applied.is_ok()
    }

    fn apply(&mut self, event: Event) -> Result<(), Rejected> {
        let stamped = Stamped { seq: self.core.state.seq() + 1, at: self.at, event };
        let applied = self.core.state.apply(&stamped)?;
        self.book(&stamped.event, applied);
        self.batch.events.push(stamped);
        Ok(())
    }

    /// Plans, checks and applies what was decided, until there is nothing more to decide. Returns
    /// when the core wants to be asked again.
    pub fn plan(&mut self) -> Option<Time> {
        for _ in 0..PLANS_AT_ONCE {
            let clock = std::time::Instant::now();
            let plan = self.core.state.plan();
            let (transactions, findings) = berth_core::vetted(&self.core.state, &plan);
            let took = u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.core.plans.last_us = took;
            self.core.plans.times.add_us(took);
            for finding in findings {
                self.core.plans.put_aside += 1;
                let transaction = &plan.transactions[finding.transaction];
                tracing::error!(%finding, ?transaction, "decisions failed the check");
            }
            let taken = transactions.into_iter().map(|t| self.decide(t)).filter(|taken| *taken);
            if taken.count() == 0 {
                return plan.next;
            }
        }
        tracing::error!("plans of one moment did not come to an end");
        Some(self.at + Span::secs(1))
    }

    /// Whether anything was taken.
    fn decide(&mut self, transaction: Transaction) -> bool {
        let Transaction { job, decisions } = transaction;
        let Err(rejected) = self.apply(Event::Decided { job, decisions }) else { return true };
        // It depended on one that was put aside.
        let Some(job) = job else { return false };
        let finding = rejected.to_string();
        let decisions = vec![Decision::SetAside { job, finding }];
        self.apply(Event::Decided { job: Some(job), decisions }).is_ok()
    }

    /// Everything to be committed, and what to do then.
    pub(crate) fn finish_turn(mut self) -> (Batch, Effects) {
        self.spend();
        let mut queues = BTreeSet::new();
        for id in std::mem::take(&mut self.touched) {
            let Some(job) = self.core.jobs.get_mut(&id) else { continue };
            self.batch.jobs.push(job.refreshed());
            let state = job_state::shown_state(job);
            queues.insert(job.row.team.clone());
            self.effects.events.push(wire::EventKind::Job {
                id: id.into(),
                name: job.row.name.clone(),
                team: job.row.team.clone(),
                state,
                text: job.row.reason.clone(),
            });
            if job.row.state.is_final() {
                self.core.jobs.remove(&id);
                self.core.budgeted.remove(&id);
            }
        }
        // Who waits in a queue, or what it uses, is everybody's to see; the jobs are not.
        let queues = queues.into_iter().map(|queue| wire::EventKind::Queue { queue });
        self.effects.events.extend(queues);
        self.batch.leases.extend(std::mem::take(&mut self.leases).into_values());
        (self.batch, self.effects)
    }

    /// Has it written what jobs and leases have cost, alone where nothing else has changed: time
    /// bills all that run, and most of them only that.
    fn spend(&mut self) {
        let spent = &mut self.batch.spent;
        for id in std::mem::take(&mut self.billed) {
            let Some(job) = self.core.jobs.get(&id.job) else { continue };
            if !self.touched.contains(&id.job)
                && spent.jobs.last().is_none_or(|(last, _)| *last != id.job)
            {
                spent.jobs.push((id.job, job.row.cost));
            }
            let Some(lease) = job.leases.get(&id) else { continue };
            match self.leases.get_mut(&id) {
                Some(row) => row.cost = lease.row.cost,
                None => spent.leases.push((id, lease.row.cost)),
            }
        }
    }
}

/// The core asks for the end of a minute where a budget may be used up by then.
pub(crate) fn is_period_over(billed: Time, now: Time, every: Span) -> bool {
    let period = |at: Time| at.0.div_euclid(every.0);
    period(billed) < period(now)
}

/// What the audit log says of a change of rights that the server makes by itself.
fn rights_audit(at: Time) -> AuditEntry {
    AuditEntry {
        at,
        who: "berth".to_owned(),
        token: String::new(),
        from: "server".to_owned(),
        method: String::new(),
        what: "change_rights".to_owned(),
        target: String::new(),
        outcome: "ok".to_owned(),
        detail: "{}".to_owned(),
    }
}

/// Whether rows of new jobs could be written. Elements of an array differ in their number only.
fn keepable(jobs: &[LiveJob]) -> Result<(), Refused> {
    let jobs = jobs.iter().take(1).map(|job| job.row.clone()).collect();
    let batch = Batch { jobs, ..Batch::default() };
    batch.check().map_err(|why| Refused::Unkeepable(why.to_string()))
}
