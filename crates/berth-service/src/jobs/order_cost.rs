//! Pages of jobs by their cost. The store has what ended jobs have cost; what runs now costs more
//! with every moment, so the loop says where it stands.

use super::meant::is_meant;
use crate::fault::Fault;
use crate::service::Service;
use berth_engine::clock;
use berth_model::JobId;
use berth_store::{JobFilter, JobKey, JobOrder, JobPlace, JobRow, OrderedJobPage};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The store's rows of running jobs are read and left out. So that a page is full nevertheless, so
/// many more are read; where more jobs run, a page may hold fewer.
const MOST_RUNNING: u32 = 1_000;

/// Up to `limit` jobs after that place. A page may hold fewer and still have a next one.
pub async fn page(
    service: &Service,
    filter: &JobFilter,
    order: JobOrder,
    after: Option<&JobPlace>,
    limit: u32,
) -> Result<OrderedJobPage, Fault> {
    let (running, all) = running(service, filter);
    let many = u32::try_from(running.len()).unwrap_or(u32::MAX).min(MOST_RUNNING);
    let read = limit.saturating_add(many);
    let mut page = service.store.ordered_job_page(filter, order, after, read).await?;
    page.jobs.retain(|row| !all.contains(&row.id));
    Ok(merge(page, running, order, after, limit))
}

/// Jobs that run and are asked for, with what they have cost up to now, and the ids of all that run.
fn running(service: &Service, filter: &JobFilter) -> (Vec<JobRow>, BTreeSet<JobId>) {
    let now = clock::now();
    let core = service.engine.core();
    let running = core.jobs.values().filter(|job| !job.leases.is_empty());
    let all = running.clone().map(|job| job.row.id).collect();
    let asked = running.filter(|job| is_meant(filter, job));
    let row = |job: &berth_engine::LiveJob| JobRow {
        cost: core.cost(job, now),
        ..job.clone().refreshed()
    };
    (asked.map(row).collect(), all)
}

/// Joins a page of the store with the jobs that run. What lies beyond the page of the store comes
/// with a later one.
fn merge(
    page: OrderedJobPage,
    running: Vec<JobRow>,
    order: JobOrder,
    after: Option<&JobPlace>,
    limit: u32,
) -> OrderedJobPage {
    let place = |row: &JobRow| (row.cost, row.id);
    let by = |left: &(_, JobId), right: &(_, JobId)| match order.descending {
        true => right.cmp(left),
        false => left.cmp(right),
    };
    let bound = |place: &JobPlace| match place.value {
        berth_store::KeyValue::Int(cost) => (berth_model::Micros(cost), place.id),
        berth_store::KeyValue::Text(_) => (berth_model::Micros::ZERO, place.id),
    };
    let mut jobs = page.jobs;
    let first = after.map(bound);
    let last = page.next.as_ref().map(bound);
    jobs.extend(running.into_iter().filter(|row| {
        let at = place(row);
        first.is_none_or(|first| by(&at, &first) == Ordering::Greater)
            && last.is_none_or(|last| by(&at, &last) != Ordering::Greater)
    }));
    jobs.sort_by(|left, right| by(&place(left), &place(right)));
    let mut next = page.next;
    if jobs.len() > limit as usize {
        jobs.truncate(limit as usize);
        next = jobs.last().map(|row| JobKey::Cost.place(row));
    }
    OrderedJobPage { jobs, next }
}
