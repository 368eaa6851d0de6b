//! Cost per result.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::Query;
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_record::returns;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "experiment_returns" => on(filter, experiment_returns),
        _ => return None,
    })
}

async fn experiment_returns(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::ReturnsQuery>,
) -> Answer<wire::Returns> {
    Ok(Json(returns::list(&*app.tracking.store, &caller, query).await?))
}
