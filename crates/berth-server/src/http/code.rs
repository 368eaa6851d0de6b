//! Snapshots of code: whether one is kept, taking one in, and giving it out.

use super::answer::{Answer, Failure, Json};
use super::asking::Asking;
use super::extract::{Path, timed_out};
use super::jobs::stream_content;
use crate::app::App;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_service::code;
use berth_service::stream_right::{Needs, StreamRight};
use futures_util::StreamExt;
use std::time::Duration;

/// Between two pieces of an upload, and for all of it.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "get_code" => on(filter, get_code),
        "put_code" => on(filter, put_code),
        "code_content" => on(filter, code_content),
        _ => return None,
    })
}

async fn get_code(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, id)): Path<(String, String)>,
) -> Answer<wire::CodeSnapshot> {
    Ok(Json(code::info(&app.service, &caller, &team, &id).await?))
}

async fn put_code(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, id)): Path<(String, String)>,
    body: Body,
) -> Answer<wire::CodeSnapshot> {
    let mut upload = code::begin(&app.service, &caller, &team, &id).await?;
    let mut pieces = body.into_data_stream();
    let received = async {
        while let Some(piece) = next(&mut pieces).await? {
            upload = upload.write(&app.service, piece).await?;
        }
        Ok::<_, Failure>(upload)
    };
    let received = tokio::time::timeout(UPLOAD_TIMEOUT, received).await;
    let upload = received.map_err(|_| timed_out(UPLOAD_TIMEOUT))??;
    Ok(Json(upload.finish(&app.service, &caller).await?))
}

async fn next(
    pieces: &mut axum::body::BodyDataStream,
) -> Result<Option<axum::body::Bytes>, Failure> {
    let next = tokio::time::timeout(PIECE_TIMEOUT, pieces.next()).await;
    let next = next.map_err(|_| timed_out(PIECE_TIMEOUT))?;
    let broken = |error| Failure::new(Code::BadRequest, format!("the body broke off: {error}"));
    next.transpose().map_err(broken)
}

async fn code_content(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, id)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let (content, bytes) = code::open(&app.service, &caller, &team, &id).await?;
    let needs = Needs::InTeam(team, Permission::LogsRead);
    let right = StreamRight::hold(&app.service, &caller, needs);
    Ok(stream_content(content, bytes, right))
}
