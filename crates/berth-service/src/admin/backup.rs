//! Backups.

use crate::caller::Caller;
use crate::fault::{self, Fault};
use crate::service::Service;
use berth_api::{Code, wire};
use berth_engine::Write;
use berth_engine::clock;
use berth_model::{Span, Time};
use berth_store::{Attachment, Batch, Summary};
use serde_json::json;
use std::path::PathBuf;

/// Writes a backup beside the database, with the attachment of another store. It contains at least all
/// events up to the one in the answer.
pub async fn backup(
    service: &Service,
    caller: &Caller,
    attachment: &dyn Attachment,
) -> Result<wire::BackupDone, Fault> {
    let seq = service.store.last_seq().await?;
    let (path, summary) = write(service, clock::now(), attachment).await?;
    let file = tokio::fs::metadata(&path);
    let file = file.await.map_err(|error| fault::hidden(Code::Internal, &error))?;
    let path = path.display().to_string();
    let detail = json!({ "rows": summary.rows, "sha256": summary.sha256 });
    let audit = caller.audit(format!("backup {path}"), detail);
    service.engine.write(Write::documents(Batch::default(), audit)).await?;
    Ok(wire::BackupDone { path, bytes: file.len(), seq })
}

/// Two admins may make backups at the same time, so each gets another file.
async fn write(
    service: &Service,
    mut at: Time,
    attachment: &dyn Attachment,
) -> Result<(PathBuf, Summary), Fault> {
    loop {
        let path = service.home.backups().join(file_name(at));
        match service.store.backup_with(&path, Some(attachment)).await {
            Err(berth_store::Error::Exists { .. }) => at = at + Span::ms(1),
            written => return Ok((path, written?)),
        }
    }
}

/// Without colons, which some file systems do not take.
fn file_name(at: Time) -> String {
    let (second, ms) = (Time(at.0 - at.0.rem_euclid(1_000)), at.0.rem_euclid(1_000));
    let second = second.to_string().replace([':', '-', 'Z'], "");
    format!("berth-{second}.{ms:03}Z.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_called_by_its_time() {
        let at: Time = "2026-11-15T09:30:07.250Z".parse().unwrap();
        assert_eq!(file_name(at), "berth-20261115T093007.250Z.jsonl");
    }
}
