//! Templates, schedules, the audit log and backups.

use super::answer::{Answer, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::{admin, templates};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_templates" => on(filter, list_templates),
        "get_template" => on(filter, get_template),
        "set_template" => on(filter, set_template),
        "delete_template" => on(filter, delete_template),
        "list_schedules" => on(filter, list_schedules),
        "get_schedule" => on(filter, get_schedule),
        "pause_schedule" => on(filter, pause_schedule),
        "resume_schedule" => on(filter, resume_schedule),
        "delete_schedule" => on(filter, delete_schedule),
        "list_audit" => on(filter, list_audit),
        "verify_audit" => on(filter, verify_audit),
        "rotate_audit_key" => on(filter, rotate_audit_key),
        "backup" => on(filter, backup),
        _ => return None,
    })
}

async fn list_templates(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Template>> {
    Ok(Json(templates::list(&app.service, &caller).await?))
}

async fn get_template(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Template> {
    Ok(Json(templates::get(&app.service, &caller, &wanted).await?))
}

async fn set_template(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
    Body(wish): Body<wire::TemplateSet>,
) -> Answer<wire::Template> {
    Ok(Json(templates::set(&app.service, &caller, &name, wish).await?))
}

async fn delete_template(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Result<Done, Failure> {
    templates::delete(&app.service, &caller, &wanted).await?;
    Ok(Done)
}

async fn list_schedules(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Schedule>> {
    Ok(Json(admin::schedules::list(&app.service, &caller).await?))
}

async fn get_schedule(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Schedule> {
    Ok(Json(admin::schedules::get(&app.service, &caller, &wanted).await?))
}

async fn pause_schedule(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Schedule> {
    Ok(Json(admin::schedules::pause(&app.service, &caller, &wanted).await?))
}

async fn resume_schedule(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Schedule> {
    Ok(Json(admin::schedules::resume(&app.service, &caller, &wanted).await?))
}

async fn delete_schedule(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Result<Done, Failure> {
    admin::schedules::delete(&app.service, &caller, &wanted).await?;
    Ok(Done)
}

async fn list_audit(
    State(app): State<App>,
    _: Asking,
    Query(query): Query<wire::AuditQuery>,
) -> Answer<wire::AuditList> {
    Ok(Json(admin::audit::list(&app.service, query).await?))
}

async fn verify_audit(State(app): State<App>, _: Asking) -> Answer<wire::AuditVerified> {
    Ok(Json(admin::audit::verify(&app.service).await?))
}

async fn rotate_audit_key(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::AuditKeyRotated> {
    Ok(Json(admin::audit::rotate_key(&app.service, &caller).await?))
}

async fn backup(State(app): State<App>, Asking(caller): Asking) -> Answer<wire::BackupDone> {
    Ok(Json(admin::backup::backup(&app.service, &caller, &app.tracking).await?))
}
