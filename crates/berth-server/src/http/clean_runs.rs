//! Removes deleted runs and experiments for good before the retention ends.

use super::answer::{Answer, Failure, Json};
use super::asking::Asking;
use super::extract::Body;
use super::tracking::{note, to_failure};
use crate::app::App;
use crate::tracking_clean;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Code;
use berth_api::access::Permission;
use berth_api::wire::{RunsClean, RunsCleaned};
use berth_engine::clock;
use berth_model::Span;
use serde_json::json;

/// The default minimum age of a deletion.
const USUAL: &str = "30d";

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "clean_runs" => on(filter, clean),
        _ => return None,
    })
}

async fn clean(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(wish): Body<RunsClean>,
) -> Answer<RunsCleaned> {
    caller.must(Permission::StorageManage, None, None)?;
    let older_than = wish.older_than.unwrap_or_else(|| USUAL.to_owned());
    let span = older_than.parse::<Span>();
    let span =
        span.map_err(|error| Failure::new(Code::BadRequest, format!("older_than: {error}")))?;
    let before = clock::now().0.saturating_sub(span.0.max(0));
    let store = app.tracking.store.clone();
    let found = tracking_clean::count(&store, before).await.map_err(to_failure)?;
    let cleaned = RunsCleaned { dry_run: wish.dry_run, ..found };
    if !wish.dry_run {
        let detail = json!({ "runs": cleaned.runs, "experiments": cleaned.experiments });
        note(&app, caller.audit(format!("runs deleted {older_than} ago"), detail)).await;
        let service = app.service.clone();
        tokio::spawn(async move { tracking_clean::pass(&service, &store, before).await });
    }
    Ok(Json(cleaned))
}
