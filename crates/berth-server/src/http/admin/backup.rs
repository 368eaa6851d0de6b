//! Backups.

use crate::app::App;
use crate::clock;
use crate::engine::Write;
use crate::http::answer::{Answer, Fault, Json};
use crate::http::auth::Caller;
use axum::extract::State;
use berth_api::{Code, wire};
use berth_model::Time;
use berth_store::Batch;
use serde_json::json;

/// Writes a backup beside the database. It holds at least all events up to the one it names.
pub async fn backup(State(app): State<App>, caller: Caller) -> Answer<wire::BackupDone> {
    let seq = app.store.last_seq().await?;
    let path = app.home.backups().join(file_name(clock::now()));
    let summary = app.store.backup(&path).await?;
    let file = tokio::fs::metadata(&path).await.map_err(|error| {
        let detail = format!("{} is gone already: {error}", path.display());
        Fault::new(Code::Internal, detail)
    })?;
    let path = path.display().to_string();
    let detail = json!({ "rows": summary.rows, "sha256": summary.sha256 });
    let audit = caller.audit(format!("backup {path}"), detail);
    app.engine.write(Write::documents(Batch::default(), audit)).await?;
    Ok(Json(wire::BackupDone { path, bytes: file.len(), seq }))
}

/// Without colons, which some file systems do not take.
fn file_name(at: Time) -> String {
    let at = Time(at.0 - at.0.rem_euclid(1_000)).to_string().replace([':', '-'], "");
    format!("berth-{at}.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_called_by_its_time() {
        let at: Time = "2026-11-15T09:30:07.250Z".parse().unwrap();
        assert_eq!(file_name(at), "berth-20261115T093007Z.jsonl");
    }
}
