//! Follows the log of events, and brings the run of each job up to date that an event is about.

use super::book::{Runs, now};
use super::position::Position;
use super::{bring, checkpoint, files, measure};
use berth_engine::{Heard, clock};
use berth_model::{Decision, Event, JobId, Span, Time};
use berth_service::Fault;
use berth_store::JobFilter;
use berth_tracker::Error;
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Events that are read at a time.
const PAGE: u32 = 500;
/// Jobs that are looked at at once.
const AT_ONCE: usize = 16;
/// Elements of an array that are read at a time.
const ELEMENTS: u32 = 500;
/// Without news, another look after so long.
const LOOK: Duration = Duration::from_secs(2);
/// Between the first news and the look: more comes with it.
const GATHER: Duration = Duration::from_millis(100);
/// Between two times that the position is written.
const SAVE: Span = Span::secs(10);
/// Events after which it is written although none of them mattered.
const SAVE_EVENTS: u64 = 2_000;
/// Jobs to try again. Where there are more, the log waits.
const MOST_AGAIN: usize = 1_000;
/// The energy of the last minute is written that late.
const LATE: Span = Span::secs(90);
/// Jobs whose last figures are waited for.
const MOST_LATE: usize = 100_000;
/// Between two tries with a job.
const RETRY: Span = Span::secs(5);
const LONGEST_RETRY: Span = Span::mins(5);
/// Between two looks at the figures of a job that runs: a tenth of the time that it has run.
const SOONEST: Span = Span::mins(1);
const LATEST: Span = Span::hours(1);

/// Keeps the runs of all jobs true, until the task is ended.
pub fn begin(runs: Runs) -> JoinHandle<()> {
    tokio::spawn(async move {
        let position = loop {
            match start(&runs).await {
                Ok(position) => break position,
                Err(fault) => {
                    tracing::warn!(fault = fault.0.detail, "runs do not follow their jobs yet");
                    sleep(LOOK).await;
                }
            }
        };
        let mut follower = Follower {
            saved: position.clone(),
            saved_at: clock::now(),
            position,
            due: BTreeSet::new(),
            late: BTreeMap::new(),
            tries: BTreeMap::new(),
            runs,
        };
        follower.adopt();
        loop {
            follower.turn().await;
        }
    })
}

/// A server that has never kept runs begins with the jobs that run now. Where it begins is durable
/// before it does: a server that is killed at once goes on from there.
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
    saved: Position,
    saved_at: Time,
    /// Jobs that run, by when their figures are looked at next.
    due: BTreeSet<(Time, JobId)>,
    /// Jobs that have ended, by when their last figures are there.
    late: BTreeMap<JobId, Time>,
    /// How often in a row a job could not be followed.
    tries: BTreeMap<JobId, u32>,
}

/// When a job is looked at next.
enum Next {
    Never,
    /// It runs since then.
    Runs(Time),
    /// It has ended then.
    Ended(Time),
}

impl Follower {
    /// Looks at the jobs that hold something now: their figures grow, and a run may be missing.
    fn adopt(&mut self) {
        let now = clock::now();
        let core = self.runs.service.engine.core();
        let live = core.jobs.values().filter(|job| !job.leases.is_empty());
        self.due.extend(live.map(|job| (now, job.row.id)));
    }

    async fn turn(&mut self) {
        // From before the read: what is told during it is news.
        let mut news = self.runs.service.engine.listen(None);
        let read = self.read().await;
        self.look_again().await;
        self.look_at_due().await;
        self.save().await;
        if read == PAGE as usize {
            return;
        }
        let soonest = self.due.first().map(|(at, _)| *at);
        let again = self.position.again.values().chain(self.late.values());
        let soonest = soonest.into_iter().chain(again.copied()).min();
        let wait = soonest.map_or(LOOK, |at| {
            let left = (at - clock::now()).0.max(0).unsigned_abs();
            LOOK.min(Duration::from_millis(left))
        });
        if let Ok(Some(Heard::Event(_) | Heard::Gap(_))) = timeout(wait, news.next()).await {
            sleep(GATHER).await;
        }
    }

    /// Follows the next events, and says how many there were.
    async fn read(&mut self) -> usize {
        if self.position.again.len() >= MOST_AGAIN {
            return 0;
        }
        let after = self.position.seq;
        let events = match self.runs.service.store.events(after, PAGE).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(%error, "the events that runs follow could not be read");
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
        let mut jobs: BTreeSet<JobId> = BTreeSet::new();
        for stamped in &events {
            jobs.extend(jobs_of(&stamped.event));
        }
        self.look(jobs.into_iter().collect()).await;
        if let Some(last) = events.last() {
            self.position.seq = last.seq;
        }
        events.len()
    }

    async fn look_again(&mut self) {
        let now = clock::now();
        let again = self.position.again.extract_if(.., |_, at| *at <= now);
        let mut due: BTreeSet<JobId> = again.map(|(job, _)| job).collect();
        due.extend(self.late.extract_if(.., |_, at| *at <= now).map(|(job, _)| job));
        self.look(due.into_iter().collect()).await;
    }

    async fn look_at_due(&mut self) {
        let now = clock::now();
        let due: Vec<(Time, JobId)> =
            self.due.iter().take_while(|(at, _)| *at <= now).take(PAGE as usize).copied().collect();
        for one in &due {
            self.due.remove(one);
        }
        self.look(due.into_iter().map(|(_, job)| job).collect()).await;
    }

    /// Brings the runs of some jobs up to date, several at once: the tracking database writes together
    /// what comes together.
    async fn look(&mut self, jobs: Vec<JobId>) {
        let runs = self.runs.clone();
        let looks = jobs.into_iter().map(|job| {
            let runs = runs.clone();
            async move { (job, looked(&runs, job).await) }
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
        let now = clock::now();
        match next {
            Next::Never => {}
            Next::Runs(since) => {
                let pause = Span((now - since).0 / 10).max(SOONEST).min(LATEST);
                // One look at a time: an event may have come before its turn.
                self.due.retain(|(_, other)| *other != job);
                self.due.insert((now + pause, job));
            }
            Next::Ended(at) if now < at + LATE && self.late.len() < MOST_LATE => {
                self.late.insert(job, at + LATE);
            }
            Next::Ended(_) => {}
        }
    }

    fn try_again(&mut self, job: JobId, why: &str) {
        let tries = self.tries.entry(job).or_default();
        *tries += 1;
        self.runs.failures.fetch_add(1, Ordering::Relaxed);
        if *tries == 1 {
            tracing::warn!(%job, why, "a run does not follow its job; trying again");
        }
        let pause = Span(RETRY.0 << (*tries - 1).min(6)).min(LONGEST_RETRY);
        self.position.again.insert(job, clock::now() + pause);
        self.runs.behind.store(self.tries.len() as u64, Ordering::Relaxed);
    }

    async fn save(&mut self) {
        let now = clock::now();
        let (seq, saved) = (self.position.seq, self.saved.seq);
        let matters = self.position.again != self.saved.again || seq >= saved + SAVE_EVENTS;
        let is_due = now - self.saved_at >= SAVE;
        if is_due && matters {
            match self.position.save(&self.runs.service).await {
                Ok(()) => self.saved = self.position.clone(),
                // What was done since is done again after a crash.
                Err(fault) => {
                    let why = &fault.0.detail;
                    tracing::debug!(why, "how far runs follow their jobs was not written");
                }
            }
        }
        if is_due {
            self.saved_at = now;
        }
    }
}

/// Brings the run of a job up to date, or those of all elements of an array.
async fn looked(runs: &Runs, job: JobId) -> Result<Vec<(JobId, Next)>, String> {
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
        for element in elements.iter().filter(|row| row.started.is_some()) {
            all.push((element.id, keep(runs, element.id).await?));
        }
    }
}

/// Brings the run of one job up to date. What the tracking database refuses for good is left; the
/// error is one that may go away.
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
    // A script that chooses an experiment does so at its start, and the run then moves.
    let began = facts.started.unwrap_or_default();
    if facts.end.is_some() || clock::now() - began >= SOONEST {
        files::written(&runs.service, &facts, &brought.head).await;
    }
    Ok(match (&facts.end, facts.runs) {
        (Some(end), _) => Next::Ended(end.at),
        (None, true) => Next::Runs(began),
        (None, false) => Next::Never,
    })
}

fn refused(error: &Error, run: &str) -> Result<Next, String> {
    // Too many at once may be fewer later.
    if error.code.status() >= 429 {
        return Err(error.message.clone());
    }
    tracing::warn!(run, %error, "a run is not kept any more");
    Ok(Next::Never)
}

/// The jobs that an event changes something about that a run shows.
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
        | Event::Tick
        | Event::BillDue => Vec::new(),
    }
}

/// A start makes the run; a stop has its end for an event of its own.
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
}
