//! Lineage, and recipes that repeat a finished job.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::{Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_record::{lineage, reproduce};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "lineage" => on(filter, get_lineage),
        "run_recipe" => on(filter, run_recipe),
        _ => return None,
    })
}

async fn get_lineage(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::LineageQuery>,
) -> Answer<wire::Lineage> {
    let store = &*app.tracking.store;
    Ok(Json(lineage::lineage(&app.service, store, &caller, query).await?))
}

async fn run_recipe(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(run): Path<String>,
    Query(query): Query<wire::RecipeQuery>,
) -> Answer<wire::Recipe> {
    let store = &*app.tracking.store;
    Ok(Json(reproduce::recipe(&app.service, store, &caller, &run, query).await?))
}
