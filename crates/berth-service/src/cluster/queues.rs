//! Queues, and who waits in them.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::host::JobHost;
use crate::jobs::reasons;
use crate::names;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire;
use berth_core::QueueReport;
use berth_engine::clock;
use berth_engine::{Core, LiveJob};
use berth_model::{JobId, Reason, Span, Time};
use berth_store::{JobFilter, JobRow};
use std::collections::BTreeMap;

/// Jobs from which waits are taken: the newest ones.
const SAMPLE: u32 = 2_000;
/// Jobs of a line that are shown.
const SHOWN: usize = 100;
/// Jobs for which the reason is worked out: each costs the better part of a plan.
const WITH_REASON: usize = 20;

pub async fn list(service: &Service) -> Result<wire::Items<wire::Queue>, Fault> {
    let waits = waits(service, None).await?;
    let reports = service.engine.core().state.queue_reports();
    let items = reports.into_iter().map(|report| shown(report, &waits)).collect();
    Ok(wire::Items { items })
}

pub async fn get(service: &Service, caller: &Caller, name: &str) -> Result<wire::Queue, Fault> {
    let mut reports = service.engine.core().state.queue_reports();
    let Some(at) = reports.iter().position(|report| *report.name == *name) else {
        let known = reports.iter().map(|report| report.name.as_str());
        return Err(names::unknown("queue", name, known));
    };
    let report = reports.swap_remove(at);
    let waits = waits(service, Some(name)).await?;
    let mut queue = shown(report, &waits);
    queue.line = line(&*service.host, &mut service.engine.core(), caller, name);
    Ok(queue)
}

fn shown(report: QueueReport, waits: &BTreeMap<String, Vec<Span>>) -> wire::Queue {
    let waits = waits.get(report.name.as_str());
    let of = |percent| waits.and_then(|waits| percentile(waits, percent)).map(|span| span.0);
    wire::Queue {
        name: report.name.to_string(),
        parent: report.parent.map(|parent| parent.to_string()),
        quota_milli: report.quota.0,
        used_milli: report.used.0,
        fair_share_milli: report.fair_share.0,
        running: report.running,
        waiting: report.waiting,
        overcommitted: report.overcommitted,
        wait_p50_ms: of(50),
        wait_p90_ms: of(90),
        line: Vec::new(),
    }
}

/// How long those had waited that started in the last day, by queue, the shortest first.
pub async fn waits(
    service: &Service,
    queue: Option<&str>,
) -> Result<BTreeMap<String, Vec<Span>>, Fault> {
    let now = clock::now();
    let filter = JobFilter {
        teams: queue.map(ToOwned::to_owned).into_iter().collect(),
        since: Some(now - Span::days(2)),
        ..JobFilter::default()
    };
    let rows = service.store.jobs(&filter, None, SAMPLE).await?;
    Ok(by_queue(&rows, now - Span::days(1)))
}

fn by_queue(rows: &[JobRow], since: Time) -> BTreeMap<String, Vec<Span>> {
    let mut waits: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for row in rows {
        if let Some(started) = row.started.filter(|started| *started >= since) {
            waits.entry(row.team.clone()).or_default().push(started - row.submitted);
        }
    }
    waits.values_mut().for_each(|waits| waits.sort_unstable());
    waits
}

/// The smallest value that so many percent are not above.
pub fn percentile(sorted: &[Span], percent: usize) -> Option<Span> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
}

/// Who waits, in order, as far as one may see them.
fn line(host: &dyn JobHost, core: &mut Core, caller: &Caller, queue: &str) -> Vec<wire::QueueLine> {
    let waits = |job: &&LiveJob| job.row.team == queue && job.leases.is_empty();
    let seen = |job: &&LiveJob| caller.may(Permission::JobsRead, Some(queue), Some(&job.row.user));
    let jobs = core.jobs.values().filter(waits).filter(seen);
    let ids: Vec<JobId> = jobs.map(|job| job.row.id).collect();
    let places = core.state.positions(&ids).into_iter().map(|(id, ahead)| (ahead, id));
    let mut places: Vec<(usize, JobId)> = places.collect();
    places.sort_unstable();
    places.truncate(SHOWN);
    let ids: Vec<JobId> = places.iter().take(WITH_REASON).map(|(_, id)| *id).collect();
    let mut reasons = reasons::of(host, core, &ids).into_iter();
    let first = |reasons: Vec<Reason>| reasons.into_iter().next();
    places
        .into_iter()
        .map(|(ahead, id)| one(core, id, ahead, reasons.next().and_then(first)))
        .collect()
}

fn one(core: &Core, id: JobId, ahead: usize, reason: Option<Reason>) -> wire::QueueLine {
    let eta = core.forecast.as_ref().and_then(|forecast| forecast.jobs.get(&id)?.p50);
    let job = &core.jobs[&id];
    wire::QueueLine {
        position: u32::try_from(ahead + 1).unwrap_or(u32::MAX),
        id: id.into(),
        name: job.row.name.clone(),
        user: job.row.user.clone(),
        asks: job.detail.asks.clone(),
        reason: reason.map_or_else(|| format!("{ahead} go first"), |reason| reason.to_string()),
        eta: eta.map(wire::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_waits_are_no_longer_than_the_median() {
        let waits: Vec<Span> = (1..=10).map(Span::secs).collect();
        assert_eq!(percentile(&waits, 50), Some(Span::secs(5)));
        assert_eq!(percentile(&waits, 90), Some(Span::secs(9)));
        assert_eq!(percentile(&waits[..1], 50), Some(Span::secs(1)));
        assert_eq!(percentile(&[], 50), None);
    }
}
