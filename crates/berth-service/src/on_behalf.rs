//! Jobs that the server submits on behalf of a user: those of a schedule.

use crate::fault::Fault;
use crate::jobs::submit;
use crate::service::Service;
use berth_api::access::Permission;
use berth_engine::clock;
use berth_model::{JobRequest, Time};
use berth_store::ScheduleRow;

/// The job that is due, and when the next one is.
pub async fn prepare(
    service: &Service,
    row: &ScheduleRow,
) -> Result<(JobRequest, Option<Time>), Fault> {
    let parsed = submit::read(&row.file)?;
    let caller = crate::caller::Caller::of_owner(service, &row.user).await?;
    let submits = Permission::JobsSubmit;
    let (request, _) = submit::prepare(service, &caller, &parsed, None, submits).await?;
    Ok((request, next_time(row, clock::now())))
}

/// When the schedule is due after that moment; nothing for a file that says no more.
pub fn next_time(row: &ScheduleRow, after: Time) -> Option<Time> {
    let parsed = submit::read(&row.file).ok()?;
    parsed.file.schedule.map(|schedule| schedule.cron.next(after, schedule.offset))
}
