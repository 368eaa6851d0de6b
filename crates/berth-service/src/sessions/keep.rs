//! Deleting sessions that are over.

use crate::audit::{put_as_server, server_audit};
use crate::credentials;
use crate::fault::Fault;
use crate::service::Service;
use berth_engine::clock;
use berth_model::Time;
use berth_store::{Batch, SessionRow, TokenRow};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Between two looks. A session that is over is good for nothing meanwhile.
const PAUSE: Duration = Duration::from_secs(600);
/// Sessions that are deleted by one audit row.
const AT_ONCE: usize = 200;

/// Deletes what is over from time to time.
pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            if let Err(fault) = sweep(&service).await {
                tracing::warn!(why = fault.0.detail, "sessions that are over could not be deleted");
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}

async fn sweep(service: &Service) -> Result<(), Fault> {
    let mut over = Vec::new();
    let now = clock::now();
    for row in service.store.every::<SessionRow>().await? {
        if is_over(service, &row, now).await? {
            over.push(row.id);
        }
    }
    for ids in over.chunks(AT_ONCE) {
        delete(service, ids, "they were over").await?;
    }
    Ok(())
}

async fn is_over(service: &Service, row: &SessionRow, now: Time) -> Result<bool, Fault> {
    if row.expires <= now || row.last_used + service.sessions.limits.idle <= now {
        return Ok(true);
    }
    let Some(id) = &row.token else { return Ok(false) };
    let token = service.store.get::<TokenRow>(id).await?;
    Ok(token.is_none_or(|token| credentials::good(token).is_err()))
}

/// Ends all sessions that a user has by a provider of identities, because of what it says now.
pub async fn close_all_of(service: &Service, user: &str, why: &str) -> Result<(), Fault> {
    let rows = service.store.sessions_of(user).await?;
    let ids: Vec<String> =
        rows.into_iter().filter(|row| row.token.is_none()).map(|row| row.id).collect();
    match ids.is_empty() {
        true => Ok(()),
        false => delete(service, &ids, why).await,
    }
}

async fn delete(service: &Service, ids: &[String], why: &str) -> Result<(), Fault> {
    let mut documents = Batch::default();
    ids.iter().for_each(|id| documents.delete::<SessionRow>(id));
    let mut audit = server_audit("berth", "end_sessions", format!("{} sessions", ids.len()));
    audit.detail = json!({ "why": why, "sessions": ids }).to_string();
    Ok(put_as_server(service, documents, audit).await?)
}
