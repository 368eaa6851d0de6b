//! What jobs and GPUs did over time.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::{Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::access::Permission;
use berth_api::wire;
use berth_service::figures;
use berth_service::jobs::find;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "job_figures" => on(filter, job_figures),
        "node_figures" => on(filter, node_figures),
        "gpu_figures" => on(filter, gpu_figures),
        _ => return None,
    })
}

async fn job_figures(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(query): Query<wire::FigureQuery>,
) -> Answer<wire::JobFigures> {
    let found = find::job(&app.service, &caller, &wanted, Permission::JobsRead).await?;
    Ok(Json(figures::job(&app.service, found.id, &query).await?))
}

async fn gpu_figures(
    State(app): State<App>,
    Asking(_): Asking,
    Query(query): Query<wire::ClusterFigureQuery>,
) -> Answer<wire::ClusterFigures> {
    Ok(Json(figures::cluster(&app.service, &query).await?))
}

async fn node_figures(
    State(app): State<App>,
    Asking(_): Asking,
    Path(node): Path<String>,
    Query(query): Query<wire::FigureQuery>,
) -> Answer<wire::NodeFigures> {
    Ok(Json(figures::node(&app.service, &node, &query).await?))
}
