//! Job files that are submitted by the calendar.

use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::identity::{remove, write};
use crate::on_behalf;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::Span;
use berth_store::ScheduleRow;
use serde_json::json;

fn shown(row: ScheduleRow) -> wire::Schedule {
    wire::Schedule {
        timezone: timezone(&row.file),
        next: row.next_at.filter(|_| !row.paused).map(wire::At),
        last_job: row.last_job.map(wire::Id),
        id: row.id,
        name: row.name,
        user: row.user,
        team: row.team,
        cron: row.cron,
        paused: row.paused,
        reason: Some(row.reason).filter(|reason| !reason.is_empty()),
        file: row.file,
    }
}

/// The offset that the file names, such as `+02:00`.
fn timezone(file: &str) -> String {
    let schedule = berth_file::job::read(file).ok().and_then(|parsed| parsed.file.schedule);
    let minutes = schedule.map_or(0, |schedule| schedule.offset.0 / Span::mins(1).0);
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    match minutes {
        0 => "UTC".to_owned(),
        ..0 => format!("-{hours:02}:{rest:02}"),
        _ => format!("+{hours:02}:{rest:02}"),
    }
}

fn may_see(caller: &Caller, row: &ScheduleRow) -> bool {
    caller.may(Permission::SchedulesRead, Some(&row.team), Some(&row.user))
}

pub async fn list(
    service: &Service,
    caller: &Caller,
) -> Result<wire::Items<wire::Schedule>, Fault> {
    let rows = service.store.every::<ScheduleRow>().await?.into_iter();
    let items = rows.filter(|row| may_see(caller, row)).map(shown).collect();
    Ok(wire::Items { items })
}

pub async fn get(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<wire::Schedule, Fault> {
    find(service, caller, wanted).await.map(shown)
}

pub async fn pause(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<wire::Schedule, Fault> {
    let row = managed(service, caller, wanted).await?;
    if row.paused {
        return Ok(shown(row));
    }
    keep(service, caller, ScheduleRow { paused: true, ..row.clone() }, row).await
}

/// What was missed while it was paused is not made up for.
pub async fn resume(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<wire::Schedule, Fault> {
    let row = managed(service, caller, wanted).await?;
    if !row.paused {
        return Ok(shown(row));
    }
    if let Err(fault) = on_behalf::owner(service, &row).await {
        let next = "submit its job file in your own name, and delete the schedule";
        return Err(if fault.is_transient() { fault } else { fault.next(next) });
    }
    let next_at = on_behalf::next_time(&row, clock::now());
    if next_at.is_none() {
        let detail = format!("the file of schedule {} can no longer be read", row.id);
        let next = "delete the schedule, and submit its job file again";
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    let resumed = ScheduleRow { paused: false, reason: String::new(), next_at, ..row.clone() };
    keep(service, caller, resumed, row).await
}

/// A schedule may just have made a job, or have been deleted: that stays as it is.
async fn keep(
    service: &Service,
    caller: &Caller,
    row: ScheduleRow,
    before: ScheduleRow,
) -> Result<wire::Schedule, Fault> {
    let detail = json!({ "name": row.name, "paused": row.paused });
    let audit = caller.audit(format!("schedule {}", row.id), detail);
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| checks::same(&store, before.id.as_str(), Some(&before)).await,
    )
    .await?;
    Ok(shown(row))
}

pub async fn delete(service: &Service, caller: &Caller, wanted: &str) -> Result<(), Fault> {
    let row = managed(service, caller, wanted).await?;
    let detail = json!({ "name": row.name });
    let audit = caller.audit(format!("schedule {}", row.id), detail);
    remove(service, audit, |batch| batch.delete::<ScheduleRow>(&row.id)).await?;
    Ok(())
}

/// By id, or by name where only one of those one may see has it.
async fn find(service: &Service, caller: &Caller, wanted: &str) -> Result<ScheduleRow, Fault> {
    let mut rows = service.store.every::<ScheduleRow>().await?;
    rows.retain(|row| (row.id == wanted || row.name == wanted) && may_see(caller, row));
    if let Some(at) = rows.iter().position(|row| row.id == wanted) {
        return Ok(rows.swap_remove(at));
    }
    if rows.len() > 1 {
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let detail = format!("{} schedules are called `{wanted}`", rows.len());
        let next = format!("name one by its id: {}", ids.join(", "));
        return Err(Fault::new(Code::BadRequest, detail).next(next));
    }
    rows.pop().ok_or_else(|| Fault::not_found("schedule", wanted))
}

async fn managed(service: &Service, caller: &Caller, wanted: &str) -> Result<ScheduleRow, Fault> {
    let row = find(service, caller, wanted).await?;
    caller.must(Permission::SchedulesManage, Some(&row.team), Some(&row.user))?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_zone_is_the_one_of_the_file() {
        let file = |zone: &str| {
            format!("run: hostname\nschedule: {{cron: '0 3 * * *', timezone: '{zone}'}}\n")
        };
        assert_eq!(timezone("run: hostname\nschedule: '@daily'\n"), "UTC");
        assert_eq!(timezone(&file("+05:30")), "+05:30");
        assert_eq!(timezone(&file("-03:00")), "-03:00");
    }
}
