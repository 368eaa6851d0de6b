//! Stops jobs whose metrics meet a `stop_when` rule.
//!
//! The server follows the tracked runs of running jobs with rules, and ends a job whose rule is met. It
//! stores no state: it folds the state of a rule from the points of its metric, so a restarted server
//! reaches the same state.

mod progress;
mod saved;

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
use std::collections::BTreeMap;
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
    tokio::spawn(async move {
        let mut news = service.engine.listen(None);
        let mut follower = Follower { service, tracked, followed: BTreeMap::new(), next: None };
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
    })
}

/// A running job with rules.
struct Followed {
    run: String,
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
        Some(Followed { run: run_id(live.row.id, live.row.submitted), rules })
    }
}

struct Follower {
    service: Service,
    tracked: Arc<dyn Store>,
    followed: BTreeMap<JobId, Followed>,
    /// Where the next pass continues.
    next: Option<JobId>,
}

impl Follower {
    /// Checks all jobs: at the start, and after missed notifications.
    fn find_all(&mut self) {
        let core = self.service.engine.core();
        let all = core.jobs.iter().filter_map(|(id, live)| Some((*id, Followed::of(live)?)));
        let mut found: BTreeMap<JobId, Followed> = all.collect();
        drop(core);
        for (id, known) in std::mem::take(&mut self.followed) {
            if let Some(found) = found.get_mut(&id) {
                *found = known;
            }
        }
        self.followed = found;
    }

    /// A job has changed.
    fn see(&mut self, id: JobId) {
        let found = self.service.engine.core().jobs.get(&id).and_then(Followed::of);
        match found {
            Some(found) => drop(self.followed.entry(id).or_insert(found)),
            None => drop(self.followed.remove(&id)),
        }
    }

    async fn look(&mut self) {
        let from = self.next.take().map_or(Bound::Unbounded, Bound::Included);
        let ids: Vec<JobId> = self
            .followed
            .range((from, Bound::Unbounded))
            .map(|(id, _)| *id)
            .take(MOST_JOBS + 1)
            .collect();
        for id in ids.iter().take(MOST_JOBS) {
            self.look_at(*id).await;
        }
        self.next = ids.get(MOST_JOBS).copied();
    }

    async fn look_at(&mut self, id: JobId) {
        let Some(followed) = self.followed.get_mut(&id) else { return };
        let head = match self.tracked.run_head(&followed.run).await {
            Ok(Some(head)) => head,
            // The run does not exist yet.
            Ok(None) => return,
            Err(error) => return tracing::warn!(%error, job = %id, "cannot read the run of a job"),
        };
        let mut met = Vec::new();
        for (rule, progress) in &mut followed.rules {
            match catch_up(&*self.tracked, &head, rule, progress).await {
                Ok(true) if progress.is_met(rule) => {
                    met.push((rule.clone(), progress.words(rule)));
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, job = %id, "cannot read the metrics of a job"),
            }
        }
        for (rule, words) in met {
            if self.has_run(id, rule.after).await {
                return self.end(id, &head, &rule, &words).await;
            }
        }
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
                self.followed.remove(&id);
                self.tag(id, head, rule).await;
            }
            // The job has just ended or been stopped.
            Err(fault) if fault.0.known_code() == Some(Code::WrongState) => {
                self.followed.remove(&id);
            }
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
