//! Stops jobs whose metrics meet a `stop_when` rule.
//!
//! The server follows the tracked runs of running jobs with rules, and ends a job whose rule is met. It
//! stores no state: it folds the state of a rule from the points of its metric, so a restarted server
//! reaches the same state. The tracking store tells which runs have new points, and the follower reads only
//! those: its work grows with what jobs log, and not with the number of jobs.

mod progress;
mod saved;

use crate::restart::{self, caught};
use crate::runs::run_id;
use berth_api::Code;
use berth_api::wire::EventKind;
use berth_engine::{Heard, LiveJob, clock};
use berth_model::run::StopRule;
use berth_model::{JobId, Span, Time};
use berth_service::{Service, jobs};
use berth_store::LeaseFilter;
use berth_tracker::{NewerQuery, RunChange, RunHead, Store};
use progress::Progress;
use saved::Saved;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// The tag with the rule that ended the job.
pub const STOPPED_BY: &str = "berth.stopped_by";

const LOOK: Duration = Duration::from_secs(2);
/// Jobs in one pass. The next pass continues with the others.
const MOST_JOBS: usize = 1_000;
/// Points of one rule in one pass. Berth evaluates a rule after it has read all points.
const MOST_POINTS: usize = 50_000;
const PAGE: usize = 5_000;
/// The maximum number of leases to read for the running time of a job.
const MOST_LEASES: u32 = 10_000;

/// Follows the runs of jobs with rules, and ends jobs whose rules are met.
pub fn begin(service: Service, tracked: Arc<dyn Store>) -> JoinHandle<()> {
    let follow = move || follow(service.clone(), tracked.clone());
    restart::begin("the check of the rules that stop jobs", follow)
}

async fn follow(service: Service, tracked: Arc<dyn Store>) {
    let mut news = service.engine.listen(None);
    let mut follower = Follower::new(service, tracked);
    follower.find_all();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            heard = news.next() => match heard {
                None => return,
                Some(Heard::Gap(_)) => follower.find_all(),
                Some(Heard::Event(told)) => {
                    if let EventKind::Job { id, .. } = &told.event.kind {
                        follower.see(id.0);
                    }
                }
            },
            _ = look.tick() => follower.look().await,
        }
    }
}

/// A running job with rules.
struct Followed {
    run: String,
    /// The number of its run, once it is watched.
    watched: Option<i64>,
    rules: Vec<(StopRule, Progress)>,
}

impl Followed {
    /// `None` if the job has no rules, does not run, or is stopping.
    fn of(live: &LiveJob) -> Option<Followed> {
        let rules = &live.detail.workload.run()?.stop_when;
        if rules.is_empty() || live.leases.is_empty() || live.detail.early.is_some() {
            return None;
        }
        let rules = rules.iter().map(|rule| (rule.clone(), Progress::default())).collect();
        Some(Followed { run: run_id(live.row.id, live.row.submitted), watched: None, rules })
    }
}

struct Follower {
    service: Service,
    tracked: Arc<dyn Store>,
    followed: BTreeMap<JobId, Followed>,
    /// The jobs of watched runs, by the numbers of these.
    by_run: BTreeMap<i64, JobId>,
    /// Jobs for the next pass: their runs have new points, or the last pass left something open.
    open: BTreeSet<JobId>,
    /// Where the next pass continues.
    next: Option<JobId>,
}

/// Whether the next pass looks at a job again without new points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Something,
}

impl Follower {
    fn new(service: Service, tracked: Arc<dyn Store>) -> Follower {
        // A follower before this one may have panicked.
        tracked.watch().clear();
        let (followed, by_run, open) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Follower { service, tracked, followed, by_run, open, next: None }
    }

    /// Checks all jobs: at the start, and after missed notifications.
    fn find_all(&mut self) {
        let core = self.service.engine.core();
        let all = core.jobs.iter().filter_map(|(id, live)| Some((*id, Followed::of(live)?)));
        let mut found: BTreeMap<JobId, Followed> = all.collect();
        drop(core);
        for (id, known) in std::mem::take(&mut self.followed) {
            match found.get_mut(&id) {
                Some(found) => *found = known,
                None => self.unwatch(id, &known),
            }
        }
        self.open.extend(found.keys());
        self.followed = found;
    }

    fn unwatch(&mut self, id: JobId, known: &Followed) {
        self.open.remove(&id);
        if let Some(run) = known.watched {
            self.by_run.remove(&run);
            self.tracked.watch().remove(run);
        }
    }

    fn forget(&mut self, id: JobId) {
        if let Some(known) = self.followed.remove(&id) {
            self.unwatch(id, &known);
        }
    }

    /// A job has changed.
    fn see(&mut self, id: JobId) {
        let found = self.service.engine.core().jobs.get(&id).and_then(Followed::of);
        match found {
            Some(found) => {
                if let Entry::Vacant(free) = self.followed.entry(id) {
                    free.insert(found);
                    self.open.insert(id);
                }
            }
            None => self.forget(id),
        }
    }

    async fn look(&mut self) {
        let changed = self.tracked.watch().take();
        self.open.extend(changed.iter().filter_map(|run| self.by_run.get(run)));
        let from = self.next.take().map_or(Bound::Unbounded, Bound::Included);
        let ids = self.open.range((from, Bound::Unbounded)).copied();
        let ids: Vec<JobId> = ids.take(MOST_JOBS + 1).collect();
        for id in ids.iter().take(MOST_JOBS) {
            match caught(self.look_at(*id)).await {
                Ok(Left::Nothing) => drop(self.open.remove(id)),
                Ok(Left::Something) => {}
                Err(why) => {
                    tracing::error!(why, job = %id, "a rule cannot be checked; Berth ignores it");
                    self.forget(*id);
                }
            }
        }
        self.next = ids.get(MOST_JOBS).copied();
    }

    /// The run of a job, watched from the first time on. A run may move to another experiment, so it is
    /// not remembered.
    async fn head(&mut self, id: JobId) -> berth_tracker::Result<Option<RunHead>> {
        let Some(followed) = self.followed.get_mut(&id) else { return Ok(None) };
        let head = self.tracked.run_head(&followed.run).await?;
        if let (Some(head), None) = (&head, followed.watched) {
            followed.watched = Some(head.no);
            self.tracked.watch().add(head.no);
            self.by_run.insert(head.no, id);
        }
        Ok(head)
    }

    async fn look_at(&mut self, id: JobId) -> Left {
        let head = match self.head(id).await {
            Ok(Some(head)) => head,
            // The run does not exist yet.
            Ok(None) => return Left::Something,
            Err(error) => {
                tracing::warn!(%error, job = %id, "cannot read the run of a job");
                return Left::Something;
            }
        };
        let Some(followed) = self.followed.get_mut(&id) else { return Left::Nothing };
        let (mut met, mut left) = (Vec::new(), Left::Nothing);
        for (rule, progress) in &mut followed.rules {
            match catch_up(&*self.tracked, &head, rule, progress).await {
                Ok(true) if progress.is_met(rule) => {
                    met.push((rule.clone(), progress.words(rule)));
                }
                Ok(true) => {}
                Ok(false) => left = Left::Something,
                Err(error) => {
                    tracing::warn!(%error, job = %id, "cannot read the metrics of a job");
                    left = Left::Something;
                }
            }
        }
        for (rule, words) in met {
            // The rule ends the job now, or when it has run long enough.
            left = Left::Something;
            if self.has_run(id, rule.after).await {
                self.end(id, &head, &rule, &words).await;
                return left;
            }
        }
        left
    }

    /// Whether the job has run that long, over all attempts.
    async fn has_run(&self, id: JobId, after: Option<Span>) -> bool {
        let Some(after) = after else { return true };
        let now = clock::now();
        let began = self.service.engine.core().jobs.get(&id).and_then(|live| live.row.started);
        // Skip the query if the job cannot have run that long.
        let Some(began) = began.filter(|began| now - *began >= after) else { return false };
        let filter =
            LeaseFilter { from: began, to: now, node: None, job: Some(id), teams: Vec::new() };
        match self.service.store.leases_in(&filter, MOST_LEASES).await {
            Ok(leases) => {
                let rows = leases.into_iter().map(|held| held.lease);
                run_time(rows.map(|row| (row.id.task, row.started, row.closed)), now) >= after
            }
            Err(error) => {
                tracing::warn!(%error, job = %id, "cannot read the running time of a job");
                false
            }
        }
    }

    async fn end(&mut self, id: JobId, head: &RunHead, rule: &StopRule, words: &str) {
        let saved = {
            let core = self.service.engine.core();
            let Some(live) = core.jobs.get(&id) else { return };
            Saved::of(&core, live, clock::now())
        };
        let rule = rule.to_string();
        let why = format!("stopped by its rule: {rule} ({words}){}", saved.words());
        match jobs::act::end_early(&self.service, id, &rule, &why).await {
            Ok(()) => {
                self.forget(id);
                self.tag(id, head, rule).await;
            }
            // The job has just ended or been stopped.
            Err(fault) if fault.0.known_code() == Some(Code::WrongState) => self.forget(id),
            // The next pass retries.
            Err(fault) => {
                tracing::warn!(error = fault.0.detail, job = %id, "cannot stop a job by its rule");
            }
        }
    }

    async fn tag(&self, id: JobId, run: &RunHead, rule: String) {
        let tags = vec![(STOPPED_BY.to_owned(), rule)];
        let (metrics, params) = (Vec::new(), Vec::new());
        let log = RunChange::Log { run: run.clone(), metrics, params, tags };
        if let Err(error) = self.tracked.write(log).await {
            tracing::warn!(%error, job = %id, "cannot tag a run with the rule that ended its job");
        }
    }
}

/// Reads the points after the last one. Returns whether these were all.
async fn catch_up(
    tracked: &dyn Store,
    run: &RunHead,
    rule: &StopRule,
    progress: &mut Progress,
) -> berth_tracker::Result<bool> {
    for _ in 0..MOST_POINTS / PAGE {
        let query = NewerQuery { run, key: &rule.metric, after: progress.last, limit: PAGE };
        let points = tracked.newer(query).await?;
        progress.take(rule, &points);
        if points.len() < PAGE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The running time of the first task, from the leases of all tasks.
fn run_time(leases: impl Iterator<Item = (u32, Option<Time>, Option<Time>)>, now: Time) -> Span {
    let first = leases.filter(|(task, ..)| *task == 0);
    let ran = first.filter_map(|(_, started, closed)| Some(closed.unwrap_or(now) - started?));
    Span(ran.map(|ran| ran.0.max(0)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_run_as_long_as_its_attempts_and_not_as_long_as_it_waited() {
        let at = |mins: i64| Some(Time(Span::mins(mins).0));
        let leases = [
            (0, at(0), at(10)),
            (1, at(0), at(10)),
            // The lease was lost before its task started.
            (0, None, at(20)),
            (0, at(60), None),
        ];
        assert_eq!(run_time(leases.into_iter(), Time(Span::mins(75).0)), Span::mins(25));
    }
}
