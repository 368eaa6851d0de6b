//! What the cluster has, who uses it, and who is entitled to it.

use super::answer::{Answer, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::cluster;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_queues" => on(filter, list_queues),
        "get_queue" => on(filter, get_queue),
        "list_shares" => on(filter, list_shares),
        "list_gpus" => on(filter, list_gpus),
        "list_leases" => on(filter, list_leases),
        "preview_drain" => on(filter, preview_drain),
        "list_nodes" => on(filter, list_nodes),
        "get_node" => on(filter, get_node),
        "drain_node" => on(filter, drain_node),
        "cordon_node" => on(filter, cordon_node),
        "resume_node" => on(filter, resume_node),
        "resume_gpu" => on(filter, resume_gpu),
        "get_policy" => on(filter, get_policy),
        "get_world" => on(filter, get_world),
        "list_config" => on(filter, list_config),
        _ => return None,
    })
}

async fn list_queues(State(app): State<App>, _: Asking) -> Answer<wire::Items<wire::Queue>> {
    Ok(Json(cluster::queues::list(&app.service).await?))
}

async fn get_queue(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::Queue> {
    Ok(Json(cluster::queues::get(&app.service, &caller, &name).await?))
}

async fn list_shares(State(app): State<App>, _: Asking) -> Answer<wire::Items<wire::Share>> {
    Ok(Json(cluster::shares::list(&app.service).await?))
}

async fn list_gpus(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Gpu>> {
    Ok(Json(cluster::gpus::list(&app.service, &caller).await?))
}

async fn list_leases(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::LeaseQuery>,
) -> Answer<wire::LeaseList> {
    Ok(Json(cluster::leases::list(&app.service, &caller, query).await?))
}

async fn preview_drain(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::DrainPreview> {
    Ok(Json(cluster::drain_preview::preview(&app.service, &caller, &name).await?))
}

async fn list_nodes(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Node>> {
    Ok(Json(cluster::nodes::list(&app.service, &caller).await?))
}

async fn get_node(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::Node> {
    Ok(Json(cluster::nodes::get(&app.service, &caller, &name).await?))
}

async fn drain_node(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
    Query(how): Query<wire::NodeChange>,
) -> Answer<wire::Node> {
    Ok(Json(cluster::nodes::drain(&app.service, &caller, &name, how).await?))
}

async fn cordon_node(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
    Query(how): Query<wire::NodeChange>,
) -> Answer<wire::Node> {
    Ok(Json(cluster::nodes::cordon(&app.service, &caller, &name, how).await?))
}

async fn resume_node(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::Node> {
    Ok(Json(cluster::nodes::resume(&app.service, &caller, &name).await?))
}

async fn resume_gpu(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((node, gpu)): Path<(String, String)>,
    Body(how): Body<wire::GpuResume>,
) -> Answer<wire::Gpu> {
    Ok(Json(cluster::gpus::resume(&app.service, &caller, &node, &gpu, how).await?))
}

async fn get_policy(State(app): State<App>, _: Asking) -> Answer<wire::Policy> {
    Ok(Json(cluster::state::policy(&app.service).await?))
}

async fn get_world(State(app): State<App>, _: Asking) -> Answer<wire::WorldText> {
    Ok(Json(cluster::state::world(&app.service).await?))
}

async fn list_config(State(app): State<App>, _: Asking) -> Answer<wire::Items<wire::ConfigEntry>> {
    Ok(Json(cluster::state::config(&app.service).await?))
}
