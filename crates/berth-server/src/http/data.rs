//! Versions of data, and what teams keep in the store of objects.

use super::answer::{Answer, Created, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::{blobs, data};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_data" => on(filter, list_data),
        "make_data" => on(filter, make_data),
        "missing_data" => on(filter, missing_data),
        "clean_data" => on(filter, clean_data),
        "get_data" => on(filter, get_data),
        "delete_data" => on(filter, delete_data),
        "data_files" => on(filter, data_files),
        "diff_data" => on(filter, diff_data),
        "list_storage" => on(filter, list_storage),
        "set_storage" => on(filter, set_storage),
        _ => return None,
    })
}

async fn list_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::DataQuery>,
) -> Answer<wire::Items<wire::DataVersion>> {
    Ok(Json(data::list(&app.service, &caller, query).await?))
}

async fn make_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(team): Path<String>,
    Body(wish): Body<wire::DataMake>,
) -> Result<Created<wire::DataVersion>, Failure> {
    Ok(Created(data::make(&app.service, &caller, &team, wish).await?))
}

async fn missing_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(team): Path<String>,
    Body(wish): Body<wire::DataAsk>,
) -> Answer<wire::DataMissing> {
    Ok(Json(data::missing(&app.service, &caller, &team, wish).await?))
}

async fn clean_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(team): Path<String>,
    Body(wish): Body<wire::DataClean>,
) -> Answer<wire::DataCleaned> {
    Ok(Json(data::clean(&app.service, &caller, &team, wish).await?))
}

async fn get_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, named)): Path<(String, String)>,
) -> Answer<wire::DataVersion> {
    Ok(Json(data::get(&app.service, &caller, &team, &named).await?))
}

async fn delete_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, named)): Path<(String, String)>,
) -> Result<Done, Failure> {
    data::delete(&app.service, &caller, &team, &named).await?;
    Ok(Done)
}

async fn data_files(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, named)): Path<(String, String)>,
    Query(query): Query<wire::DataFilesQuery>,
) -> Answer<wire::DataFiles> {
    Ok(Json(data::files(&app.service, &caller, &team, &named, query).await?))
}

async fn diff_data(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, named)): Path<(String, String)>,
    Query(query): Query<wire::DataDiffQuery>,
) -> Answer<wire::DataDiff> {
    Ok(Json(data::diff(&app.service, &caller, &team, &named, query).await?))
}

async fn list_storage(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Storage>> {
    Ok(Json(blobs::list(&app.service, &caller).await?))
}

async fn set_storage(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(team): Path<String>,
    Body(wish): Body<wire::StorageSet>,
) -> Answer<wire::Storage> {
    Ok(Json(blobs::set(&app.service, &caller, &team, wish).await?))
}
