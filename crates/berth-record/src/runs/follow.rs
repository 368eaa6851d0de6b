//! Follows the event log, and updates the run of each job that an event concerns.

use super::book::{Runs, now};
use super::due::Due;
use super::position::Position;
use super::{bring, checkpoint, files, measure};
use crate::restart::{self, caught};
use berth_engine::clock;
use berth_model::{Decision, Event, JobId, Span, Stamped, Time};
use berth_service::Fault;
use berth_store::{JobFilter, JobRow};
use berth_tracker::Error;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Events to read at once.
const PAGE: u32 = 500;
/// Jobs to update at once.
const AT_ONCE: usize = 16;
/// Elements of an array to read at once.
const ELEMENTS: u32 = 500;
/// The poll interval without a notification.
const LOOK: Duration = Duration::from_secs(2);
/// The wait after a notification, to batch more events.
const GATHER: Duration = Duration::from_millis(100);
/// The interval between two writes of the position.
const SAVE: Span = Span::secs(10);
/// Write the position after this many irrelevant events.
const SAVE_EVENTS: u64 = 2_000;
/// The maximum number of jobs to retry. Beyond it, the follower stops reading the log.
const MOST_AGAIN: usize = 1_000;
/// The delay until the energy of the last minute is stored.
const LATE: Span = Span::secs(90);
/// The maximum number of ended jobs that wait for their last figures.
const MOST_LATE: usize = 100_000;
/// An array may have changed so long after the end of an element that ended with the change.
const WITH: Span = Span::mins(1);
/// The wait before a retry.
const RETRY: Span = Span::secs(5);
const LONGEST_RETRY: Span = Span::mins(5);
/// The interval between updates of a running job's figures: a tenth of its running time.
const SOONEST: Span = Span::mins(1);
const LATEST: Span = Span::hours(1);

/// Keeps the runs of all jobs up to date, until the task is aborted.
pub fn begin(runs: Runs) -> JoinHandle<()> {
    restart::begin("the update of the runs of jobs", move || follow(runs.clone()))
}

/// Follows the log from the stored position on.
async fn follow(runs: Runs) {
    let position = loop {
        match start(&runs).await {
            Ok(position) => break position,
            Err(fault) => {
                tracing::warn!(
                    fault = fault.0.detail,
                    "cannot update the runs of jobs yet; retrying"
                );
                sleep(LOOK).await;
            }
        }
    };
    let mut follower = Follower {
        saved: position.seq,
        saved_at: clock::now(),
        has_followed: false,
        position,
        due: Due::default(),
        late: Due::default(),
        tries: BTreeMap::new(),
        runs,
    };
    follower.adopt();
    loop {
        follower.turn().await;
    }
}

/// A server without earlier runs begins with the running jobs. It stores the position first, so that it
/// continues from there after a crash.
async fn start(runs: &Runs) -> Result<Position, Fault> {
    if let Some(position) = Position::load(&runs.service).await? {
        return Ok(position);
    }
    let seq = runs.service.store.last_seq().await?;
    let position = Position { seq, ..Position::default() };
    position.save(&runs.service).await?;
    Ok(position)
}

struct Follower {
    runs: Runs,
    position: Position,
    /// The last event of the position that is durable.
    saved: u64,
    saved_at: Time,
    /// A job was followed since then.
    has_followed: bool,
    /// Running jobs, by the time of their next update.
    due: Due,
    /// Ended jobs, by the time at which their last figures are available.
    late: Due,
    /// Consecutive failures of a job.
    tries: BTreeMap<JobId, u32>,
}

/// When to update a job next.
enum Next {
    Never,
    /// Running since this time.
    Runs(Time),
    /// It has ended, and something of its run is missing until then.
    Late(Time),
}

/// A job that is looked at.
#[derive(Clone, Copy)]
struct Asked {
    job: JobId,
    /// When it changed. Of an array, elements that ended before are not looked at.
    since: Time,
}

impl Follower {
    /// Updates the jobs with leases: their figures grow, and a run may be missing.
    fn adopt(&mut self) {
        let now = clock::now();
        let core = self.runs.service.engine.core();
        for job in core.jobs.values().filter(|job| !job.leases.is_empty()) {
            self.due.set(job.row.id, now);
        }
    }

    async fn turn(&mut self) {
        // Mark as seen before the read: a notification during the read must wake the follower again.
        let mut news = self.runs.service.engine.listen(None);
        let read = self.read().await;
        self.look_at_restored().await;
        self.look_again().await;
        self.look_at_due().await;
        self.save().await;
        if read == PAGE as usize {
            return;
        }
        let again = self.position.again.values().copied();
        let soonest = again.chain(self.due.soonest()).chain(self.late.soonest()).min();
        let wait = soonest.map_or(LOOK, |at| {
            let left = (at - clock::now()).0.max(0).unsigned_abs();
            LOOK.min(Duration::from_millis(left))
        });
        let restored = self.runs.restored.clone();
        let heard = async {
            tokio::select! {
                heard = news.next() => heard.is_some(),
                () = restored.news.notified() => true,
            }
        };
        if timeout(wait, heard).await == Ok(true) {
            sleep(GATHER).await;
        }
    }

    async fn look_at_restored(&mut self) {
        let jobs = self.runs.restored.take().into_iter();
        self.follow(jobs.map(|job| Asked { job, since: Time(0) }).collect()).await;
    }

    /// Processes the next events and returns their number.
    async fn read(&mut self) -> usize {
        if self.position.again.len() >= MOST_AGAIN {
            return 0;
        }
        let after = self.position.seq;
        let events = match self.runs.service.store.events(after, PAGE).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(%error, "cannot read the events for the runs of jobs");
                return 0;
            }
        };
        if events.first().is_some_and(|first| first.seq != after + 1) {
            tracing::warn!(
                after,
                "events were purged before the runs of their jobs followed them; runs of jobs that \
                 ended meanwhile may show another status"
            );
        }
        self.follow(asked(&events)).await;
        if let Some(last) = events.last() {
            self.position.seq = last.seq;
        }
        events.len()
    }

    async fn look_again(&mut self) {
        let now = clock::now();
        let again = self.position.again.extract_if(.., |_, at| *at <= now);
        let mut due: Vec<JobId> = again.map(|(job, _)| job).collect();
        due.extend(self.late.take(now, PAGE as usize));
        due.sort_unstable();
        due.dedup();
        // When an array changed is not known any more.
        self.follow(due.into_iter().map(|job| Asked { job, since: Time(0) }).collect()).await;
    }

    async fn look_at_due(&mut self) {
        let now = clock::now();
        let due = self.due.take(now, PAGE as usize).into_iter();
        self.look(due.map(|job| Asked { job, since: now }).collect()).await;
    }

    /// Looks at jobs of which the position says that they were looked at.
    async fn follow(&mut self, jobs: Vec<Asked>) {
        self.has_followed |= !jobs.is_empty();
        self.look(jobs).await;
    }

    /// Updates runs concurrently, because the tracking store commits concurrent changes in one transaction.
    async fn look(&mut self, jobs: Vec<Asked>) {
        let runs = self.runs.clone();
        let looks = jobs.into_iter().map(|asked| {
            let runs = runs.clone();
            // A job that makes this panic is tried again, and the others go on.
            async move { (asked.job, caught(looked(&runs, asked)).await.flatten()) }
        });
        let mut looks = stream::iter(looks).buffer_unordered(AT_ONCE);
        while let Some((job, looked)) = looks.next().await {
            match looked {
                Ok(all) => {
                    self.tries.remove(&job);
                    self.runs.behind.store(self.tries.len() as u64, Ordering::Relaxed);
                    all.into_iter().for_each(|(job, next)| self.plan(job, next));
                }
                Err(why) => self.try_again(job, &why),
            }
        }
    }

    fn plan(&mut self, job: JobId, next: Next) {
        // An event may have updated the job earlier than planned.
        self.due.remove(job);
        match next {
            Next::Never => {}
            Next::Runs(since) => {
                let now = clock::now();
                let pause = Span((now - since).0 / 10).max(SOONEST).min(LATEST);
                self.due.set(job, now + pause);
            }
            Next::Late(at) if self.late.len() < MOST_LATE => self.late.set(job, at),
            Next::Late(_) => {}
        }
    }

    fn try_again(&mut self, job: JobId, why: &str) {
        let tries = self.tries.entry(job).or_default();
        *tries += 1;
        self.runs.failures.fetch_add(1, Ordering::Relaxed);
        if *tries == 1 {
            tracing::warn!(%job, why, "cannot update the run of a job; retrying");
        }
        let pause = Span(RETRY.0 << (*tries - 1).min(6)).min(LONGEST_RETRY);
        self.position.again.insert(job, clock::now() + pause);
        self.has_followed = true;
        self.runs.behind.store(self.tries.len() as u64, Ordering::Relaxed);
    }

    /// Keeps how far this has got. After a crash little is done again: a run that a user has removed
    /// meanwhile must not come back.
    async fn save(&mut self) {
        let now = clock::now();
        if now - self.saved_at < SAVE {
            return;
        }
        self.saved_at = now;
        let seq = self.position.seq;
        if !self.has_followed && seq < self.saved + SAVE_EVENTS {
            return;
        }
        match self.to_save().save(&self.runs.service).await {
            Ok(()) => (self.saved, self.has_followed) = (seq, false),
            // After a crash, the follower repeats the events after this position.
            Err(fault) => {
                let why = &fault.0.detail;
                tracing::debug!(why, "cannot store the position in the event log");
            }
        }
    }

    /// With the jobs whose last figures are not there yet: another server looks at them.
    fn to_save(&self) -> Position {
        let mut position = self.position.clone();
        let room = MOST_AGAIN.saturating_sub(position.again.len()) / 2;
        for (job, at) in self.late.iter().take(room) {
            position.again.entry(job).or_insert(at);
        }
        position
    }
}

/// Updates the run of a job, or the runs of the elements of an array.
async fn looked(runs: &Runs, Asked { job, since }: Asked) -> Result<Vec<(JobId, Next)>, String> {
    let store = &runs.service.store;
    let said = |error: berth_store::Error| error.to_string();
    if job.element.is_some() || store.job(job).await.map_err(said)?.is_some() {
        return Ok(vec![(job, keep(runs, job).await?)]);
    }
    let filter = JobFilter { number: Some(job.number), ..JobFilter::default() };
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let elements = store.jobs(&filter, after, ELEMENTS).await.map_err(said)?;
        let Some(last) = elements.last() else { return Ok(all) };
        after = Some(last.id);
        let has_changed = |row: &&JobRow| {
            row.started.is_some() && row.ended.is_none_or(|ended| ended + WITH >= since)
        };
        let changed = elements.iter().filter(has_changed).map(|row| row.id);
        let changed: Vec<JobId> = changed.collect();
        let looks = changed
            .into_iter()
            .map(|id| async move { Ok::<_, String>((id, keep(runs, id).await?)) });
        let found: Vec<(JobId, Next)> =
            stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await?;
        all.extend(found);
    }
}

/// Updates the run of one job. Skips what the tracking store refuses permanently; an error is
/// temporary.
async fn keep(runs: &Runs, job: JobId) -> Result<Next, String> {
    let facts = runs.facts(job).await.map_err(|error| error.message)?;
    let Some(mut facts) = facts.filter(|facts| facts.started.is_some()) else {
        return Ok(Next::Never);
    };
    facts.checkpoint = checkpoint::newest(&runs.service, &facts).await;
    let brought = match bring::brought(&*runs.store, &facts, now()).await {
        Ok(brought) => brought,
        Err(error) => return refused(&error, &facts.run),
    };
    runs.remember(job, &facts.run);
    if brought.run.deleted {
        return Ok(Next::Never);
    }
    let used =
        measure::used(&runs.service, &facts).await.map_err(|fault| fault.0.detail.clone())?;
    let written = measure::write(&*runs.store, &brought.head, &brought.run, &used, now()).await;
    if let Err(error) = written {
        return refused(&error, &facts.run);
    }
    // A script sets its experiment at its start, and the run then moves.
    let (began, now) = (facts.started.unwrap_or_default(), clock::now());
    let mut without_files = None;
    if facts.end.is_some() || now - began >= SOONEST {
        without_files =
            files::written(&runs.service, &runs.files_rest, &facts, &brought.head).await;
    }
    Ok(match (&facts.end, facts.runs) {
        (Some(end), _) if now < end.at + LATE => Next::Late(end.at + LATE),
        (Some(_), _) => without_files.map_or(Next::Never, Next::Late),
        (None, true) => Next::Runs(began),
        (None, false) => Next::Never,
    })
}

fn refused(error: &Error, run: &str) -> Result<Next, String> {
    // The limit on concurrent changes is temporary.
    if error.code.status() >= 429 {
        return Err(error.message.clone());
    }
    tracing::warn!(run, %error, "the tracking store refuses a run; Berth no longer updates it");
    Ok(Next::Never)
}

/// The jobs that events change something about, each with the first time.
fn asked(events: &[Stamped]) -> Vec<Asked> {
    let mut found: BTreeMap<JobId, Time> = BTreeMap::new();
    for Stamped { at, event, .. } in events {
        for job in jobs_of(event) {
            found.entry(job).or_insert(*at);
        }
    }
    found.into_iter().map(|(job, since)| Asked { job, since }).collect()
}

/// The jobs whose runs an event changes.
fn jobs_of(event: &Event) -> Vec<JobId> {
    match event {
        Event::JobCancelled { job } | Event::JobChanged { job, .. } => vec![*job],
        Event::LeaseStarted { lease } | Event::LeaseEnded { lease, .. } => vec![lease.job],
        Event::Decided { decisions, .. } => decisions.iter().filter_map(job_of).collect(),
        Event::JobSubmitted { .. }
        | Event::LeaseSaved { .. }
        | Event::NodeAdded { .. }
        | Event::NodeChanged { .. }
        | Event::NodeRemoved { .. }
        | Event::GpuChanged { .. }
        | Event::DataKept { .. }
        | Event::QueueSet { .. }
        | Event::QueueRemoved { .. }
        | Event::PolicySet { .. }
        | Event::ClassesSet { .. }
        | Event::ModelsSet { .. }
        | Event::TopologySet { .. }
        | Event::PoolSet { .. }
        | Event::PoolRemoved { .. }
        | Event::ClaimReady { .. }
        | Event::ClaimFailed { .. }
        | Event::ReservationSet { .. }
        | Event::ReservationRemoved { .. }
        | Event::DisruptionsSet { .. }
        | Event::Tick
        | Event::BillDue => Vec::new(),
    }
}

/// A start creates the run. A stop needs no update: the end of the job is another event.
fn job_of(decision: &Decision) -> Option<JobId> {
    match decision {
        Decision::Start { lease, .. } => Some(lease.job),
        Decision::Stop { .. }
        | Decision::Reserve { .. }
        | Decision::Unreserve { .. }
        | Decision::Claim { .. }
        | Decision::Return { .. }
        | Decision::SetAside { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{LeaseId, LeaseOutcome, Name};

    #[test]
    fn starts_and_ends_are_followed_and_what_no_run_shows_is_not() {
        let job = JobId::new(17).element(3);
        let lease = LeaseId { job, task: 0, attempt: 1 };
        let start = Decision::Start {
            lease,
            node: Name::new("n1"),
            slices: Vec::new(),
            price: berth_model::Micros(1),
            resume: false,
        };
        let reserve = Decision::Unreserve { job: JobId::new(18) };
        let decided = Event::Decided { job: Some(job), decisions: vec![start, reserve] };
        assert_eq!(jobs_of(&decided), [job]);
        assert_eq!(jobs_of(&Event::LeaseEnded { lease, outcome: LeaseOutcome::Lost }), [job]);
        assert_eq!(jobs_of(&Event::JobCancelled { job: JobId::new(17) }), [JobId::new(17)]);
        assert!(jobs_of(&Event::Tick).is_empty());
    }

    #[test]
    fn a_job_is_looked_at_once_for_all_events_from_the_first_of_them_on() {
        let (one, other) = (JobId::new(17), JobId::new(4));
        let stamped = |seq: u64, job| {
            let at = Time(i64::try_from(seq).unwrap() * 10);
            Stamped { seq, at, event: Event::JobCancelled { job } }
        };
        let found = asked(&[stamped(1, one), stamped(2, other), stamped(3, one)]);
        let found: Vec<(JobId, Time)> = found.iter().map(|one| (one.job, one.since)).collect();
        assert_eq!(found, [(other, Time(20)), (one, Time(10))]);
    }
}
