//! Documents that set teams, queues, policy and budgets up.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::Body;
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
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
    Ok(Json(apply::apply(&app.service, &caller, request).await?))
}

async fn diff(
    State(app): State<App>,
    _: Asking,
    Body(request): Body<wire::ApplyRequest>,
) -> Answer<wire::Diff> {
    Ok(Json(apply::diff(&app.service, request).await?))
}
