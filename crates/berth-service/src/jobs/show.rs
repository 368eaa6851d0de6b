//! A job as people see it.

use super::find::Found;
use super::{expected, own_budget, reasons};
use crate::host::JobHost;
use crate::service::Service;
use crate::tracked_run;
use berth_api::wire;
use berth_engine::shown_state;
use berth_engine::{Core, Detail, clock};
use berth_model::JobState;
use berth_model::{JobId, LeaseId, Reason, Slice, Time};
use berth_store::{JobRow, LeaseRow};
use std::collections::BTreeMap;

/// What is worked out about waiting jobs, for all that are shown together: each alone would look at
/// the whole line, and take the better part of a plan.
#[derive(Default)]
pub struct Waiting {
    /// How many go before it.
    ahead: BTreeMap<JobId, usize>,
    /// The most fundamental reason.
    reasons: BTreeMap<JobId, Reason>,
}

/// Jobs that have not ended, beyond which places in line are left out where several jobs are shown:
/// a whole line is gone through for them, and the loop waits meanwhile. `why` has the place of one.
const MOST_IN_LINE: usize = 10_000;

impl Waiting {
    /// Of the jobs that wait among these; reasons for so many of them.
    pub fn of<'a>(
        host: &dyn JobHost,
        core: &mut Core,
        rows: impl Iterator<Item = &'a JobRow>,
        with_reason: usize,
    ) -> Waiting {
        let waits = |id: &JobId| core.jobs.get(id).is_some_and(|job| job.leases.is_empty());
        let ids: Vec<JobId> = rows.map(|row| row.id).filter(waits).collect();
        let asked = &ids[..with_reason.min(ids.len())];
        let reasons = asked.iter().zip(reasons::of(host, core, asked));
        let first = |(id, reasons): (&JobId, Vec<Reason>)| Some((*id, reasons.into_iter().next()?));
        let reasons = reasons.filter_map(first).collect();
        let ahead = match ids.len() > 1 && core.jobs.len() > MOST_IN_LINE {
            true => BTreeMap::new(),
            false => core.state.positions(&ids),
        };
        Waiting { reasons, ahead }
    }
}

/// A job from its row, with what the loop knows of it.
pub fn job(service: &Service, core: &Core, row: &JobRow, waiting: &Waiting) -> wire::Job {
    let detail: Option<Detail> = serde_json::from_str(&row.detail).ok();
    let mut job = base(row, detail.as_ref());
    job.declared = service.host.has_declared_gpus();
    let id = row.id;
    let Some(live) = core.jobs.get(&id) else { return job };
    job.projected_micros = expected::cost(core, live).map(|cost| cost.0);
    job.state = shown_state(live);
    job.cost_micros = core.cost(live, clock::now()).0;
    job.on = live.leases.values().map(|lease| lease.row.node.clone()).collect();
    job.on.dedup();
    job.ready = live.detail.ready;
    job.url = url(&live.detail).filter(|_| !live.leases.is_empty());
    if !live.leases.is_empty() {
        job.price_micros_per_hour = Some(live.price().0);
        return job;
    }
    // A job that a user has paused meanwhile is not tried again by itself.
    let again_at = live.detail.again_at.filter(|_| !live.detail.held);
    job.position = waiting.ahead.get(&id).map(|ahead| *ahead as u32 + 1);
    let eta = eta(core, id);
    (job.eta, job.eta_p90) =
        (eta.as_ref().and_then(|eta| eta.p50), eta.as_ref().and_then(|eta| eta.p90));
    if let Some(at) = again_at {
        job.state = wire::JobState::Pending;
        job.reason = Some(format!("{}; it is tried again at {at}", row.reason));
        job.reason_code = Some("retry".to_owned());
    } else if let Some(reason) = waiting.reasons.get(&id) {
        let spent = own_budget::spent(core, id).map(|spent| spent.words());
        job.reason = Some(spent.unwrap_or_else(|| reason.to_string()));
        job.reason_code = Some(reason.code().to_owned());
    }
    job
}

/// An array as one job: what its elements come to together.
pub fn array(service: &Service, core: &Core, found: &Found) -> wire::Job {
    let mut whole = job(service, core, found.first(), &Waiting::default());
    whole.id = found.id.into();
    let now = clock::now();
    let cost = |row: &JobRow| core.jobs.get(&row.id).map_or(row.cost, |live| core.cost(live, now));
    whole.cost_micros = found.rows.iter().map(|row| cost(row).0).sum();
    let running = found.rows.iter().filter_map(|row| core.jobs.get(&row.id));
    let running: Vec<_> = running.filter(|live| !live.leases.is_empty()).collect();
    let price = running.iter().map(|live| live.price().0).sum();
    whole.price_micros_per_hour = (!running.is_empty()).then_some(price);
    let leases = running.iter().flat_map(|live| live.leases.values());
    whole.on = leases.map(|lease| lease.row.node.clone()).collect();
    whole.on.sort();
    whole.on.dedup();
    whole.projected_micros = None;
    whole.parameters.clear();
    whole.exit = None;
    // Each element of an array has its own run.
    whole.run = None;
    let mut counts: BTreeMap<JobState, usize> = BTreeMap::new();
    for row in &found.rows {
        *counts.entry(row.state).or_default() += 1;
    }
    let has = |state: JobState| counts.contains_key(&state);
    // The first of these that any element is in.
    let order = [
        JobState::Running,
        JobState::Stopping,
        JobState::Pending,
        JobState::Paused,
        JobState::Failed,
        JobState::Cancelled,
        JobState::Done,
    ];
    let state = order.into_iter().find(|state| has(*state)).unwrap_or(JobState::Pending);
    whole.state = state;
    let parts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{count} {}", state.as_str())).collect();
    whole.reason = Some(format!("{} elements: {}", found.rows.len(), parts.join(", ")));
    // What the elements that go on ask for; of an array that has ended, what all of them asked for.
    let goes_on = |row: &&JobRow| state.is_final() || !row.state.is_final();
    whole.gpus_milli = found.rows.iter().filter(goes_on).map(|row| row.gpus.0).sum();
    whole.reason_code = None;
    whole.started = found.rows.iter().filter_map(|row| row.started).min().map(wire::At);
    let ended = found.rows.iter().map(|row| row.ended).max().flatten();
    whole.ended = ended.filter(|_| state.is_final()).map(wire::At);
    whole
}

fn base(row: &JobRow, detail: Option<&Detail>) -> wire::Job {
    let run = detail.and_then(|detail| detail.workload.run());
    let text = Some(row.reason.clone()).filter(|text| !text.is_empty());
    let sweep = run.and_then(|run| run.sweep.as_ref());
    let values = row.id.element.and_then(|element| sweep.map(|sweep| sweep.values(element)));
    wire::Job {
        id: row.id.into(),
        name: row.name.clone(),
        kind: row.kind,
        state: row.state,
        user: row.user.clone(),
        team: row.team.clone(),
        project: row.project.clone(),
        experiment: row.experiment.clone(),
        priority: row.priority,
        nodes: detail.map_or(1, |detail| detail.nodes),
        gpus_milli: row.gpus.0,
        asks: detail.map_or_else(String::new, |detail| detail.asks.clone()),
        submitted: row.submitted.into(),
        started: row.started.map(wire::At),
        ended: row.ended.map(wire::At),
        attempts: row.attempt,
        cost_micros: row.cost.0,
        price_micros_per_hour: None,
        position: None,
        eta: None,
        eta_p90: None,
        projected_micros: None,
        utilization: None,
        reason: text,
        reason_code: None,
        exit: detail.and_then(|detail| detail.exit.clone()),
        on: Vec::new(),
        url: None,
        ready: false,
        declared: false,
        labels: detail.map_or_else(BTreeMap::new, |detail| detail.labels.clone()),
        tags: run.map_or_else(Vec::new, |run| run.tags.clone()),
        comment: run.and_then(|run| run.comment.clone()),
        parameters: values
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        run: row.started.map(|_| tracked_run::run_id(row.id, row.submitted)),
    }
}

/// Where a notebook or service answers.
fn url(detail: &Detail) -> Option<String> {
    detail.port.map(|port| format!("http://127.0.0.1:{port}/"))
}

/// When it is likely to start, as far as the last forecast knows it.
pub fn eta(core: &Core, id: JobId) -> Option<wire::Eta> {
    let forecast = core.forecast.as_ref()?;
    let eta = forecast.jobs.get(&id)?;
    let age = clock::now() - forecast.at;
    Some(wire::Eta { p50: eta.p50.map(wire::At), p90: eta.p90.map(wire::At), age_ms: age.0.max(0) })
}

/// Leases grouped by the attempts they belong to.
pub fn attempts(rows: &[LeaseRow]) -> Vec<wire::Attempt> {
    let mut by_number: BTreeMap<u32, Vec<&LeaseRow>> = BTreeMap::new();
    for row in rows {
        by_number.entry(row.id.attempt).or_default().push(row);
    }
    by_number.into_iter().map(|(number, rows)| attempt(number, &rows)).collect()
}

fn attempt(number: u32, rows: &[&LeaseRow]) -> wire::Attempt {
    let times = |of: fn(&LeaseRow) -> Option<Time>| rows.iter().map(move |row| of(row));
    let all_closed = rows.iter().all(|row| row.closed.is_some());
    let closed = times(|row| row.closed).max().flatten().filter(|_| all_closed);
    let leases: Vec<wire::Lease> = rows.iter().map(|row| lease(row)).collect();
    // If a task failed, show its end: Berth stopped the others because of it.
    let bad = leases.iter().filter_map(|lease| lease.exit.clone());
    let bad = bad.filter(|exit| exit.kind != wire::ExitKind::Done);
    let exit = bad.min_by_key(|exit| exit.kind == wire::ExitKind::Stopped);
    wire::Attempt {
        number,
        opened: rows.iter().map(|row| row.opened).min().unwrap_or_default().into(),
        started: times(|row| row.started).flatten().min().map(wire::At),
        closed: closed.map(wire::At),
        exit: exit.or(leases.first().and_then(|lease| lease.exit.clone())),
        cost_micros: rows.iter().map(|row| row.cost.0).sum(),
        leases,
    }
}

fn lease(row: &LeaseRow) -> wire::Lease {
    let slices: Vec<Slice> = serde_json::from_str(&row.slices).unwrap_or_default();
    wire::Lease {
        id: lease_name(row.id),
        task: row.id.task,
        node: row.node.clone(),
        gpus: slices.iter().map(|slice| slice.gpu).collect(),
        gpus_milli: slices.len() as i64 * 1_000,
        price_micros_per_hour: row.price.0,
        opened: row.opened.into(),
        started: row.started.map(wire::At),
        closed: row.closed.map(wire::At),
        exit: row.exit.as_deref().and_then(|exit| serde_json::from_str(exit).ok()),
        cost_micros: row.cost.0,
    }
}

fn lease_name(id: LeaseId) -> String {
    format!("{}/{}#{}", id.job, id.task, id.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Micros;

    fn lease(task: u32, kind: wire::ExitKind, text: &str) -> LeaseRow {
        let exit = wire::Exit { kind, code: None, signal: None, rank: None, text: text.to_owned() };
        LeaseRow {
            id: LeaseId { job: JobId::new(1), task, attempt: 0 },
            node: "n1".to_owned(),
            slices: "[]".to_owned(),
            price: Micros::ZERO,
            opened: Time(0),
            started: Some(Time(1)),
            closed: Some(Time(2)),
            outcome: None,
            exit: serde_json::to_string(&exit).ok(),
            cost: Micros::ZERO,
            stop_at: None,
            stop: None,
        }
    }

    #[test]
    fn an_attempt_shows_the_end_of_the_task_that_failed_and_not_of_those_that_had_to_stop() {
        use wire::ExitKind::{Done, Failed, Stopped};
        let rows = [
            lease(0, Done, "done"),
            lease(1, Stopped, "was stopped because another of its tasks failed"),
            lease(2, Failed, "failed with exit code 3"),
        ];
        let text =
            |rows: &[LeaseRow]| attempts(rows)[0].exit.as_ref().map(|exit| exit.text.clone());
        assert_eq!(text(&rows).as_deref(), Some("failed with exit code 3"));
        assert_eq!(
            text(&rows[..2]).as_deref(),
            Some("was stopped because another of its tasks failed")
        );
        assert_eq!(text(&rows[..1]).as_deref(), Some("done"));
    }
}
