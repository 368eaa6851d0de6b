//! Looking at jobs.

use super::find::{self, Found};
use super::incomplete;
use super::meant::is_meant;
use super::order::{self, Sort};
use super::show::{self, Waiting};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::figures;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::{Core, LiveJob, clock};
use berth_model::JobState;
use berth_store::{JobCounts, JobFilter};

const LIMIT: u32 = 100;
const MOST: u32 = 1_000;
/// Jobs of a page for which the reason is worked out. The others have it in `why`.
const WITH_REASON: usize = 20;
/// Jobs of a page of which the utilization is told, where it is asked for.
const WITH_FIGURES: usize = 100;

pub async fn list(
    service: &Service,
    caller: &Caller,
    query: wire::JobQuery,
) -> Result<wire::JobList, Fault> {
    let Some(filter) = filter(caller, &query)? else {
        return Ok(wire::JobList::default());
    };
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let sort = Sort::of(query.sort.as_deref())?;
    let after = query.cursor.as_deref();
    let (rows, next) = order::page(service, &filter, sort, after, limit).await?;
    let counts = match query.counts {
        true => service.store.count_jobs(&filter).await?,
        false => JobCounts::new(),
    };
    let incomplete = incomplete::list(service, caller, &query);
    let mut core = service.engine.core();
    let price_micros_per_hour = query.counts.then(|| price(&core, &filter)).flatten();
    let waiting = Waiting::of(&*service.host, &mut core, rows.iter(), WITH_REASON);
    let mut jobs: Vec<wire::Job> =
        rows.iter().map(|row| show::job(service, &core, row, &waiting)).collect();
    if query.figures {
        let now = clock::now();
        let ran: Vec<(usize, LiveJob)> = rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| Some((at, core.jobs.get(&row.id)?)))
            .filter(|(_, live)| !live.leases.is_empty())
            .take(WITH_FIGURES)
            .map(|(at, live)| (at, live.clone()))
            .collect();
        // The loop need not wait for this.
        drop(core);
        for (at, live) in ran {
            jobs[at].utilization = figures::utilization(service, &live, now);
        }
    }
    Ok(wire::JobList { jobs, next, counts, price_micros_per_hour, incomplete })
}

/// What an hour of the jobs that run costs; nothing where only the database can tell which they are.
fn price(core: &Core, filter: &JobFilter) -> Option<i64> {
    if filter.text.is_some() {
        return None;
    }
    let running = core.jobs.values().filter(|job| !job.leases.is_empty());
    Some(running.filter(|job| is_meant(filter, job)).map(|job| job.price().0).sum())
}

/// What to read; nothing where there is nothing one may see.
fn filter(caller: &Caller, query: &wire::JobQuery) -> Result<Option<JobFilter>, Fault> {
    let teams = match (caller.reads(Permission::JobsRead), &query.team) {
        (None, None) => Vec::new(),
        (None, Some(team)) => vec![team.clone()],
        (Some(mine), None) => mine,
        (Some(mine), Some(team)) => mine.into_iter().filter(|of| of == team).collect(),
    };
    if teams.is_empty() && (query.team.is_some() || caller.reads(Permission::JobsRead).is_some()) {
        return Ok(None);
    }
    let user = match (query.mine, &query.user) {
        (true, Some(user)) if user != caller.user() => return Ok(None),
        (true, _) => Some(caller.user().to_owned()),
        (false, user) => user.clone(),
    };
    Ok(Some(JobFilter {
        states: states(query.state.as_deref().unwrap_or_default())?,
        kind: None,
        user,
        teams,
        project: query.project.clone(),
        experiment: query.experiment.clone(),
        name: query.name.clone(),
        number: None,
        text: query.text.clone(),
        since: query.since.map(|at| at.0),
        until: None,
    }))
}

fn states(text: &str) -> Result<Vec<JobState>, Fault> {
    // One that starts is running as far as the store knows.
    let stored = JobState::ALL.into_iter().filter(|state| *state != JobState::Starting);
    let mut wanted = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "active" => wanted.extend(stored.clone().filter(|state| !state.is_final())),
            "starting" => wanted.push(JobState::Running),
            word => {
                let known = stored.clone().find(|state| state.as_str() == word);
                let detail = format!("`{word}` is no state of a job");
                wanted.push(known.ok_or_else(|| {
                    Fault::new(Code::BadRequest, detail).next(
                        "use active, pending, starting, running, stopping, paused, done, failed \
                         or cancelled",
                    )
                })?);
            }
        }
    }
    Ok(wanted)
}

pub async fn get(service: &Service, caller: &Caller, wanted: &str) -> Result<wire::Job, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    Ok(shown(service, &found))
}

/// The job as it is now.
pub fn shown(service: &Service, found: &Found) -> wire::Job {
    let mut core = service.engine.core();
    match found.is_array() {
        true => show::array(service, &core, found),
        false => {
            let waiting = Waiting::of(&*service.host, &mut core, std::iter::once(found.first()), 1);
            show::job(service, &core, found.first(), &waiting)
        }
    }
}

/// The file as it was submitted.
pub async fn file(service: &Service, caller: &Caller, wanted: &str) -> Result<String, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    Ok(found.first().file.clone())
}

pub async fn attempts(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<wire::Items<wire::Attempt>, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    let mut rows = service.store.leases_of(found.id).await?;
    live::add_unbilled(service, &mut rows);
    Ok(wire::Items { items: show::attempts(&rows) })
}
