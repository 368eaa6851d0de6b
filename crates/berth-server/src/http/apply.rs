//! Documents that set teams, queues, policy and budgets up.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::Body;
use super::tracking::to_failure;
use crate::app::App;
use crate::tracking_clean::{forget_team, removed_teams};
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire::{self, Change, ChangeKind, DocumentKind};
use berth_service::apply;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "apply" => on(filter, apply),
        "diff" => on(filter, diff),
        _ => return None,
    })
}

async fn apply(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(request): Body<wire::ApplyRequest>,
) -> Answer<wire::Diff> {
    let _held = app.tracking.teams.lock().await;
    // A new team, or a queue without one, must not find what an earlier team of its name has tracked.
    let diff = apply::allowed_diff(&app.service, &caller, request.clone()).await?;
    let team = |of: &&Change| of.kind == DocumentKind::Team && of.path.is_empty();
    let queue = |of: &Change| of.kind == DocumentKind::Queue && of.path.is_empty();
    let added = diff.changes.iter().filter(|of| team(of) || queue(of));
    for added in added.filter(|of| of.change == ChangeKind::Add) {
        forget_team(&app, &added.name).await.map_err(to_failure)?;
    }
    let applied = apply::apply(&app.service, &caller, request).await?;
    let removed = applied.changes.iter().filter(team).filter(|of| of.change == ChangeKind::Remove);
    let removed: Vec<String> = removed.map(|of| of.name.clone()).collect();
    if !removed.is_empty() {
        let app = app.clone();
        tokio::spawn(async move { removed_teams(&app, &removed).await });
    }
    Ok(Json(applied))
}

async fn diff(
    State(app): State<App>,
    _: Asking,
    Body(request): Body<wire::ApplyRequest>,
) -> Answer<wire::Diff> {
    Ok(Json(apply::diff(&app.service, request).await?))
}
