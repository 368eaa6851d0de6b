//! Jobs that the server submits on behalf of a user: those of a schedule.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::jobs::submit;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_engine::clock;
use berth_model::{JobRequest, Time};
use berth_store::ScheduleRow;

/// The job that is due, and when the next one is.
pub async fn prepare(
    service: &Service,
    row: &ScheduleRow,
) -> Result<(JobRequest, Option<Time>), Fault> {
    let mut parsed = submit::read_kept(&row.file)?;
    // What is made is one job.
    parsed.file.schedule = None;
    let caller = owner(service, row).await?;
    let submits = Permission::JobsSubmit;
    let (request, _) = submit::prepare(service, &caller, &parsed, None, submits).await?;
    Ok((request, next_time(row, clock::now())))
}

/// Whoever the schedule belongs to, while they may submit jobs of its team.
pub async fn owner(service: &Service, row: &ScheduleRow) -> Result<Caller, Fault> {
    let caller = Caller::of_owner(service, &row.user).await?;
    if caller.may(Permission::JobsSubmit, Some(&row.team), Some(&row.user)) {
        return Ok(caller);
    }
    let detail = format!("{} may not submit jobs of team {} any more", row.user, row.team);
    Err(Fault::new(Code::Forbidden, detail))
}

/// Whether it is the owner who lacks a right, and not the job that cannot be made this time.
pub fn is_lost_right(fault: &Fault) -> bool {
    matches!(fault.0.known_code(), Some(Code::Forbidden | Code::PriorityTooHigh))
}

/// When the schedule is due after that moment; nothing for a file that says no more.
pub fn next_time(row: &ScheduleRow, after: Time) -> Option<Time> {
    let parsed = submit::read_kept(&row.file).ok()?;
    parsed.file.schedule.map(|schedule| schedule.cron.next(after, schedule.offset))
}
