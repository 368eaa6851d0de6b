//! Artifacts, as the client of MLflow asks for them.

use super::give::give;
use super::media;
use super::problem::not_implemented;
use super::take::{Taken, said};
use crate::app::App;
use crate::http::answer::{Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::Path;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use berth_api::access::Permission;
use berth_service::artifacts::{self, ArtifactPath};
use berth_service::stream_right::Needs;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// The entries of a folder. No folder lists the teams.
pub async fn list(
    State(app): State<App>,
    Asking(caller): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Failure> {
    let query = query.unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let path = pairs.find(|(name, _)| name == "path").map(|(_, path)| path.into_owned());
    let Some(path) = path.filter(|path| !path.is_empty()) else { return Ok(Json(json!({}))) };
    let path = ArtifactPath::folder(&path)?;
    let entries = artifacts::list(&app.service, &caller, &path).await?;
    if entries.is_empty() {
        return Ok(Json(json!({})));
    }
    let files = entries.into_iter().map(|entry| match entry.bytes {
        Some(bytes) => json!({ "path": entry.name, "is_dir": false, "file_size": bytes }),
        None => json!({ "path": entry.name, "is_dir": true }),
    });
    Ok(Json(json!({ "files": Value::from_iter(files) })))
}

pub async fn get(
    State(app): State<App>,
    Asking(caller): Asking,
    method: Method,
    headers: HeaderMap,
    Path(path): Path<String>,
) -> Result<Response, Failure> {
    let path = ArtifactPath::file(&path)?;
    let found = artifacts::open(&app.service, &caller, &path).await?;
    let needs = Needs::InTeam(path.team.clone(), Permission::ArtifactsRead);
    let mut response = give(&app, &caller, needs, (&method, &headers), &found).await?;
    let fields = response.headers_mut();
    let name = path.name.rsplit('/').next().unwrap_or_default();
    if !fields.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().ends_with(b"json")) {
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(media::guess(name)));
    }
    let disposition = match name.bytes().all(is_plain) {
        true => format!("attachment; filename={name}"),
        false => {
            let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
            format!("attachment; filename*=UTF-8''{name}")
        }
    };
    if let Ok(value) = HeaderValue::try_from(disposition) {
        fields.insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

pub async fn put(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Path(path): Path<String>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let mut taken = Taken::new(body);
    let begun = async {
        let path = ArtifactPath::file(&path)?;
        artifacts::begin(&app.service, &caller, &path, said(&headers)).await
    };
    let mut begun = match begun.await {
        Ok(begun) => begun,
        Err(fault) => return taken.refuse(fault).await,
    };
    while let Some(piece) = taken.next().await? {
        begun = match begun.write(&app.service, piece).await {
            Ok(begun) => begun,
            Err(fault) => return taken.refuse(fault).await,
        };
    }
    artifacts::finish(&app.service, &caller, begun).await?;
    Ok(Json(json!({})))
}

pub async fn delete(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(path): Path<String>,
) -> Result<Json<Value>, Failure> {
    let path = ArtifactPath::file(&path)?;
    artifacts::delete(&app.service, &caller, &path).await?;
    Ok(Json(json!({})))
}

/// The server sends artifacts itself, also those in a bucket.
pub async fn presigned(Asking(_): Asking) -> Response {
    not_implemented("this server has no presigned URLs: it serves artifacts itself")
}
