//! Jobs that nobody submits at the moment: those of a schedule.

use super::jobs::submit;
use crate::app::App;
use crate::clock;
use crate::engine::Submission;
use berth_api::access::Permission;
use berth_model::Time;
use berth_store::ScheduleRow;

/// The job that is due, and when the next one is.
pub async fn prepare(app: &App, row: &ScheduleRow) -> Result<(Submission, Option<Time>), String> {
    let words = |fault: super::answer::Fault| fault.0.detail.clone();
    let parsed = submit::read(&row.file).map_err(words)?;
    let caller = super::auth::Caller::of_owner(app, &row.user).await.map_err(words)?;
    let prepared = submit::prepare(app, &caller, &parsed, None, Permission::JobsSubmit)
        .await
        .map_err(words)?;
    Ok((prepared.submission(None), next_time(row, clock::now())))
}

/// When the schedule is due after that moment; nothing for a file that says no more.
pub fn next_time(row: &ScheduleRow, after: Time) -> Option<Time> {
    let parsed = submit::read(&row.file).ok()?;
    parsed.file.schedule.map(|schedule| schedule.cron.next(after, schedule.offset))
}
