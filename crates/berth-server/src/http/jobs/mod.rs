//! Jobs: submitted, looked at, acted on.

mod files;
mod log_chunk;
mod log_cut;
mod log_feed;
mod log_layout;
mod log_search;
mod log_teller;
mod logs;
mod output;
mod pod_shell;
mod shell;

pub(super) use files::{Part, part_of, stream_content};

use super::answer::{Answer, Created, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query, Text};
use super::limits::idempotency_key;
use crate::app::App;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::jobs;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_jobs" => on(filter, list_jobs),
        "get_job" => on(filter, get_job),
        "job_file" => on(filter, job_file),
        "list_attempts" => on(filter, list_attempts),
        "submit_job" => on(filter, submit_job),
        "clone_job" => on(filter, clone_job),
        "plan_job" => on(filter, plan_job),
        "why_job" => on(filter, why_job),
        "job_logs" => on(filter, logs::logs),
        "search_logs" => on(filter, log_search::search),
        "list_files" => on(filter, files::list),
        "get_file" => on(filter, files::content),
        "job_timeline" => on(filter, job_timeline),
        "preview_stop" => on(filter, preview_stop),
        "job_shell" => on(filter, shell::shell),
        "set_job" => on(filter, set_job),
        "stop_job" => on(filter, stop_job),
        "pause_job" => on(filter, pause_job),
        "resume_job" => on(filter, resume_job),
        _ => return None,
    })
}

async fn list_jobs(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::JobQuery>,
) -> Answer<wire::JobList> {
    Ok(Json(jobs::list::list(&app.service, &caller, query).await?))
}

async fn get_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Job> {
    Ok(Json(jobs::list::get(&app.service, &caller, &wanted).await?))
}

async fn job_file(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Result<impl IntoResponse, Failure> {
    let file = jobs::list::file(&app.service, &caller, &wanted).await?;
    Ok(([(CONTENT_TYPE, "application/yaml")], file))
}

async fn list_attempts(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Items<wire::Attempt>> {
    Ok(Json(jobs::list::attempts(&app.service, &caller, &wanted).await?))
}

async fn submit_job(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::SubmitQuery>,
    Text(text): Text,
) -> Result<Created<wire::JobSubmitted>, Failure> {
    let key = idempotency_key(&headers)?;
    Ok(Created(jobs::submit::submit(&app.service, &caller, key, query, &text).await?))
}

async fn clone_job(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Path(wanted): Path<String>,
    Body(how): Body<wire::JobClone>,
) -> Result<Created<wire::JobSubmitted>, Failure> {
    let key = idempotency_key(&headers)?;
    Ok(Created(jobs::submit::clone(&app.service, &caller, key, &wanted, how).await?))
}

async fn plan_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::SubmitQuery>,
    Text(text): Text,
) -> Answer<wire::Plan> {
    Ok(Json(jobs::plan::plan(&app.service, &caller, query, &text).await?))
}

async fn why_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Why> {
    Ok(Json(jobs::why::why(&app.service, &caller, &wanted).await?))
}

async fn job_timeline(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Timeline> {
    Ok(Json(jobs::timeline::timeline(&app.service, &caller, &wanted).await?))
}

async fn preview_stop(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::StopPreview> {
    Ok(Json(jobs::stop_preview::preview(&app.service, &caller, &wanted).await?))
}

async fn set_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Body(wish): Body<wire::JobChange>,
) -> Answer<wire::Job> {
    Ok(Json(jobs::act::set(&app.service, &caller, &wanted, wish).await?))
}

async fn stop_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Body(how): Body<wire::JobStop>,
) -> Answer<wire::Job> {
    Ok(Json(jobs::act::stop(&app.service, &caller, &wanted, how).await?))
}

async fn pause_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Job> {
    Ok(Json(jobs::act::pause(&app.service, &caller, &wanted).await?))
}

async fn resume_job(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Answer<wire::Job> {
    Ok(Json(jobs::act::resume(&app.service, &caller, &wanted).await?))
}
