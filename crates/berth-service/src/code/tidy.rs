//! Removes the names of snapshots that nothing has used for long. The store of objects removes the bytes
//! later, as those of artifacts.

use crate::audit::server_audit;
use crate::blobs::{self, CODE};
use crate::fault::Fault;
use crate::service::Service;
use berth_engine::clock;
use berth_model::{CodeId, Span, Time};
use berth_store::{BlobNameRow, ScheduleRow, TemplateRow};
use serde_json::json;
use std::collections::BTreeSet;

/// After the last use. What a job, a schedule or a template names stays longer.
const KEPT: Span = Span::hours(30 * 24);
/// Names that are read, and removed, at a time.
const PAGE: u32 = 1_000;

/// Removes those of a team.
pub async fn tidy(service: &Service, team: &str) -> Result<(), Fault> {
    let until = Time(clock::now().0.saturating_sub(KEPT.0));
    if old(service, team, until, "", 1).await?.is_empty() {
        return Ok(());
    }
    // No submission finds a snapshot that is about to go.
    let _placing = service.blobs.placing.write().await;
    let needed = named(service, team).await?;
    let mut after = String::new();
    loop {
        let rows = old(service, team, until, &after, PAGE).await?;
        let is_last = rows.len() < PAGE as usize;
        if let Some(last) = rows.last() {
            after.clone_from(&last.name);
        }
        let unused: Vec<BlobNameRow> =
            rows.into_iter().filter(|row| !needed.contains(&row.name)).collect();
        if !unused.is_empty() {
            let bytes: u64 = unused.iter().map(|row| row.bytes).sum();
            let mut audit = server_audit("berth", "code_delete", format!("code of {team}"));
            audit.detail = json!({ "snapshots": unused.len(), "bytes": bytes }).to_string();
            blobs::drop_names(service, audit, &unused).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

async fn old(
    service: &Service,
    team: &str,
    until: Time,
    after: &str,
    limit: u32,
) -> Result<Vec<BlobNameRow>, Fault> {
    Ok(service.store.old_blob_names((team, CODE), until, after, limit).await?)
}

/// The snapshots that jobs, schedules and templates of a team name.
async fn named(service: &Service, team: &str) -> Result<BTreeSet<String>, Fault> {
    let mut named = BTreeSet::new();
    {
        let core = service.engine.core();
        let jobs = core.jobs.values().filter(|job| job.row.team == team);
        let codes = jobs.filter_map(|job| job.detail.workload.run()?.code.as_ref());
        named.extend(codes.map(ToString::to_string));
    }
    let schedules = service.store.every::<ScheduleRow>().await?;
    let templates = service.store.every::<TemplateRow>().await?;
    let files = schedules.iter().map(|row| (&row.team, &row.file));
    let files = files.chain(templates.iter().map(|row| (&row.team, &row.file)));
    for (_, file) in files.filter(|(of, _)| *of == team) {
        let parsed = berth_file::job::read(file).ok();
        let code = parsed.and_then(|parsed| parsed.file.code?.parse::<CodeId>().ok());
        named.extend(code.map(|id| id.to_string()));
    }
    Ok(named)
}
