//! Starting the loop: the state from the log, the jobs from their rows, and what runs from the
//! driver.

use crate::clock;
use crate::error::{BootError, Fatal};
use crate::event_loop::{Loop, SyncError};
use crate::handle::{Handle, Inlet, MAX_REPORTS, MAX_REQUESTS};
use crate::live::{Detail, LiveJob, LiveLease};
use crate::memory::{Core, CostBook, Plans};
use crate::news::News;
use crate::recent_requests::RecentRequests;
use crate::retention::Retention;
use crate::site::Site;
use crate::tallies::Tallies;
use crate::team_tree::TeamTree;
use berth_core::State;
use berth_model::JobState;
use berth_model::{JobId, LeaseId, Span, Stamped};
use berth_store::{JobFilter, JobRow, Store, Writer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Rows read at a time.
const PAGE: u32 = 1_000;

/// What the loop works with.
pub struct Setup {
    pub store: Store,
    pub writer: Writer,
    /// How long what has ended is kept in detail; for ever where left out.
    pub keep: Option<Span>,
}

/// A loop that turns.
pub struct Running {
    pub handle: Handle,
    pub ends: JoinHandle<Result<(), Fatal>>,
}

/// Brings the state up to where the log ends, takes over what runs at the site, and starts to turn.
pub async fn begin<S: Site>(
    setup: Setup,
    site: impl FnOnce(Inlet<S::Observation>) -> S,
) -> Result<Running, BootError> {
    let Setup { store, writer, keep } = setup;
    let state = load(&store).await?;
    let mut jobs = live_jobs(&store).await?;
    for lease in store.open_leases().await? {
        if let Some(job) = jobs.get_mut(&lease.id.job) {
            job.leases.insert(lease.id, LiveLease { row: lease, stopping: None });
        }
    }
    mark_stopping(&state, &mut jobs);
    let (requests, taken) = mpsc::channel(MAX_REQUESTS);
    let (reports, reported) = mpsc::channel(MAX_REPORTS);
    let site = site(Inlet::new(reports));
    let used = last_number(&state).max(site.last_job());
    let next_job = store.last_job().await?.max(used) + 1;
    let last = state.now();
    clock::not_before(last);
    let now = clock::now();
    let (teams, shown) = watch::channel(Arc::new(TeamTree::of(&state)));
    let plans = Plans::default();
    let retries =
        jobs.values().filter_map(|job| Some((job.detail.again_at?, job.row.id))).collect();
    let budgeted = jobs.values().filter(|job| job.budget().is_some()).map(|job| job.row.id);
    let budgeted = budgeted.collect();
    let (forecast, tallies, stalled) = (None, Tallies::default(), None);
    let costs = CostBook::after(writer.last_cost());
    let core = Core { state, jobs, budgeted, retries, forecast, plans, tallies, costs, stalled };
    let core = Arc::new(Mutex::new(core));
    let news = News::since(now);
    let (rights, changes) = watch::channel(0);
    let handle = Handle::new(requests, core.clone(), news.clone(), shown, changes);
    let mut turning = Loop {
        core,
        requests: taken,
        reports: reported,
        deferred: Vec::new(),
        follow_ups: Vec::new(),
        news,
        teams,
        rights,
        is_busy: false,
        snapshot_at: writer.last_seq(),
        checks: store.with_own_reader(),
        writer,
        site,
        next_job,
        recent: RecentRequests::default(),
        wake: Some(now),
        // On startup, bill downtime usage before planning.
        billed: last,
        retention: Retention::new(keep, now),
    };
    turning.catch_up().await?;
    turning.sync().await.map_err(|why| match why {
        SyncError::Rejected(why) => BootError::Machine(why),
        SyncError::Fatal(why) => BootError::Log(why),
    })?;
    turning.reconcile()?;
    let ends = tokio::spawn(turning.run());
    Ok(Running { handle, ends })
}

async fn load(store: &Store) -> Result<State, BootError> {
    let mut loading = store.load().await?;
    let mut state = match loading.snapshot.take() {
        None => State::new(),
        Some(snapshot) => State::load(&snapshot).map_err(BootError::Snapshot)?,
    };
    loop {
        let page = loading.next_page().await?;
        if page.is_empty() {
            return Ok(state);
        }
        for stamped in &page {
            apply(&mut state, stamped)?;
        }
    }
}

/// What an event brought about was written with it, so it is not needed again.
fn apply(state: &mut State, stamped: &Stamped) -> Result<(), BootError> {
    let seq = stamped.seq;
    state.apply(stamped).map(drop).map_err(|why| BootError::Event { seq, why })
}

async fn live_jobs(store: &Store) -> Result<BTreeMap<JobId, LiveJob>, BootError> {
    let states = vec![JobState::Pending, JobState::Running, JobState::Stopping, JobState::Paused];
    let filter = JobFilter { states, ..JobFilter::default() };
    let mut jobs = BTreeMap::new();
    let mut after = None;
    loop {
        let page = store.jobs(&filter, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(jobs) };
        after = Some(last.id);
        for row in page {
            jobs.insert(row.id, live(row)?);
        }
    }
}

fn live(mut row: JobRow) -> Result<LiveJob, BootError> {
    let detail: Result<Detail, _> = serde_json::from_str(&std::mem::take(&mut row.detail));
    let detail = detail.map_err(|why| BootError::Job { job: row.id, why })?;
    Ok(LiveJob { row, detail, leases: BTreeMap::new(), kill: false })
}

/// What is being stopped is in the state, not in the rows.
fn mark_stopping(state: &State, jobs: &mut BTreeMap<JobId, LiveJob>) {
    for job in &state.snapshot().jobs {
        for lease in job.leases.iter() {
            let Some(stop) = &lease.stopping else { continue };
            let id = LeaseId { job: job.id(), task: lease.task, attempt: lease.attempt };
            let live = jobs.get_mut(&job.id()).and_then(|job| job.leases.get_mut(&id));
            if let Some(live) = live {
                live.stopping = Some(stop.cause);
            }
        }
    }
}

fn last_number(state: &State) -> u64 {
    state.snapshot().jobs.iter().map(|job| job.spec.id.number).max().unwrap_or(0)
}
