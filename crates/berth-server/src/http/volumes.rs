//! Named volumes of teams.

use super::answer::{Answer, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::volumes;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_volumes" => on(filter, list_volumes),
        "create_volume" => on(filter, create_volume),
        "delete_volume" => on(filter, delete_volume),
        _ => return None,
    })
}

async fn list_volumes(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::VolumeQuery>,
) -> Answer<wire::Items<wire::Volume>> {
    Ok(Json(volumes::list(&app.service, &caller, query).await?))
}

async fn create_volume(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, volume)): Path<(String, String)>,
) -> Answer<wire::Volume> {
    Ok(Json(volumes::create(&app.service, &caller, &team, &volume).await?))
}

async fn delete_volume(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, volume)): Path<(String, String)>,
    Query(how): Query<wire::VolumeDelete>,
) -> Result<Done, Failure> {
    volumes::delete(&app.service, &caller, &team, &volume, how).await?;
    Ok(Done)
}
