//! Jobs by the calendar.

use crate::audit::server_audit;
use crate::checks::{self, Checked};
use crate::fault::Fault;
use crate::on_behalf;
use crate::service::Service;
use berth_engine::clock;
use berth_engine::{Act, Refused, Write};
use berth_store::{AuditEntry, Batch, ScheduleRow, Store};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

const LOOK: Duration = Duration::from_secs(1);
const AT_ONCE: u32 = 100;

/// Submits what is due, again and again.
pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut rights = service.engine.rights();
        // They may have changed while no server was there.
        let mut unseen = true;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                changed = rights.changed() => match changed {
                    Ok(()) => unseen = true,
                    // The loop that writes has ended.
                    Err(_) => return,
                },
            }
            if unseen {
                unseen = pause_orphans(&service).await.is_err();
            }
            match service.store.due_schedules(clock::now(), AT_ONCE).await {
                Ok(due) => {
                    for row in due {
                        run(&service, row).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "schedules cannot be read"),
            }
        }
    })
}

/// Pauses schedules whose owner has lost a right that they were made with. An error says that it
/// could not be looked at, or not be written: it is tried again.
async fn pause_orphans(service: &Service) -> Result<(), Fault> {
    let rows = service.store.every::<ScheduleRow>().await?;
    for row in rows.into_iter().filter(|row| !row.paused) {
        match on_behalf::prepare(service, &row).await {
            Err(fault) if fault.is_transient() => return Err(fault),
            Err(fault) if on_behalf::is_lost_right(&fault) => {
                pause(service, row, fault.0.detail).await?;
            }
            // Whatever else is in its way may be gone by the time it is due.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Pauses a schedule in the server's own name. Its owner and their team find out why.
async fn pause(service: &Service, before: ScheduleRow, reason: String) -> Result<(), Fault> {
    let row = ScheduleRow { paused: true, reason, ..before.clone() };
    let mut documents = Batch::default();
    documents.put(&row);
    let detail = json!({ "name": row.name, "user": row.user, "reason": row.reason }).to_string();
    let audit = server_audit("berth", "pause_schedule", format!("schedule {}", row.id));
    let write = Write::documents(documents, AuditEntry { detail, ..audit });
    match service.engine.write(write.only_if(unchanged(before))).await {
        // Somebody else changed or deleted it just now: the next look sees what it is.
        Ok(_) | Err(Refused::Unmet(_)) => Ok(()),
        Err(refused) => Err(refused.into()),
    }
}

/// Makes the job and says when the next one is due, in one transaction: none is made twice. What
/// was missed while the server was away is made once.
async fn run(service: &Service, mut row: ScheduleRow) {
    let now = clock::now();
    let (id, before) = (row.id.clone(), row.clone());
    let (act, next_at, outcome) = match on_behalf::prepare(service, &row).await {
        Ok((request, next_at)) => (Act::Submit(Box::new(request)), next_at, "ok".to_owned()),
        // It stays due, and is looked at again in a moment.
        Err(fault) if fault.is_transient() => return,
        Err(fault) if on_behalf::is_lost_right(&fault) => {
            // Where it could not be written it stays due, and is looked at again in a moment.
            let _ = pause(service, row, fault.0.detail).await;
            return;
        }
        Err(fault) => {
            // It is tried again at its next time; its owner finds why in the audit log.
            let next_at = on_behalf::next_time(&row, now);
            (Act::Nothing, next_at, fault.0.detail.clone())
        }
    };
    row.next_at = next_at;
    row.paused |= next_at.is_none();
    let mut documents = Batch::default();
    documents.put(&row);
    let audit = AuditEntry {
        at: now,
        who: row.user.clone(),
        token: String::new(),
        from: "schedule".to_owned(),
        method: String::new(),
        what: "submit_job".to_owned(),
        target: format!("schedule {id}"),
        outcome,
        detail: "{}".to_owned(),
    };
    let write = Write { documents, ..Write::act(act, audit) };
    match service.engine.write_eventually(write.only_if(unchanged(before.clone()))).await {
        // A user paused or deleted it just now.
        Ok(_) | Err(Refused::Unmet(_)) => {}
        Err(refused) => {
            tracing::warn!(%refused, schedule = id, "a scheduled job was refused");
            skip(service, row, before).await;
        }
    }
}

/// The core refused it: the next one may fare better.
async fn skip(service: &Service, row: ScheduleRow, before: ScheduleRow) {
    let mut documents = Batch::default();
    documents.put(&row);
    let write = Write::unnoted(documents).only_if(unchanged(before));
    if let Err(refused) = service.engine.write_eventually(write).await {
        tracing::warn!(%refused, "a schedule could not be moved on");
    }
}

fn unchanged(row: ScheduleRow) -> impl FnOnce(Store) -> BoxFuture<'static, Checked> + Send {
    move |store| {
        Box::pin(checks::all(
            async move { checks::same(&store, row.id.as_str(), Some(&row)).await },
        ))
    }
}
