//! Artifacts in parts. The addresses of parts are our own. The client sends no token there, so the
//! answer to the first request names a header for the parts.

use super::take::{Taken, said};
use crate::app::App;
use crate::http::answer::{Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::{Body as JsonBody, Path};
use crate::http::limits;
use crate::http::visitor::Visitor;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_service::artifacts::{self, ArtifactPath};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

const SECRET: &str = "x-berth-upload";

/// Clients send numbers as numbers or as text.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Plain(u32),
        Text(String),
    }
    match Number::deserialize(deserializer)? {
        Number::Plain(number) => Ok(number),
        Number::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// What is in `path` before the name of the file is where the client has it.
#[derive(Deserialize)]
pub struct Create {
    path: String,
    #[serde(deserialize_with = "number")]
    num_parts: u32,
}

#[derive(Deserialize)]
pub struct Complete {
    path: String,
    upload_id: String,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(deserialize_with = "number")]
    part_number: u32,
    #[serde(default)]
    etag: String,
}

#[derive(Deserialize)]
pub struct Abort {
    path: String,
    upload_id: String,
}

/// The address of an upload names the folder, and the body the file in it.
fn path(folder: &str, file: &str) -> Result<ArtifactPath, Failure> {
    let name = file.rsplit('/').next().unwrap_or_default();
    Ok(ArtifactPath::file(&format!("{}/{name}", folder.trim_end_matches('/')))?)
}

pub async fn create(
    State(app): State<App>,
    Asking(caller): Asking,
    visitor: Visitor,
    Path(named): Path<String>,
    JsonBody(wish): JsonBody<Create>,
) -> Result<Json<Value>, Failure> {
    let path = path(&named, &wish.path)?;
    let parts = artifacts::create(&app.service, &caller, &path, wish.num_parts).await?;
    let base = visitor.base(&app);
    let credentials = (1..=parts.count).map(|number| {
        json!({
            "url": format!("{base}/api/2.0/mlflow-artifacts/mpu/part/{}/{number}", parts.id),
            "part_number": number,
            "headers": { SECRET: parts.secret },
        })
    });
    Ok(Json(json!({ "upload_id": parts.id, "credentials": Value::from_iter(credentials) })))
}

pub async fn part(
    State(app): State<App>,
    headers: HeaderMap,
    Path((id, number)): Path<(String, u32)>,
    body: Body,
) -> Result<Response, Failure> {
    let mut taken = Taken::new(body);
    let secret = limits::text_of(&headers, &HeaderName::from_static(SECRET))?;
    let Some(secret) = secret else {
        return Err(Failure::new(Code::NoToken, format!("the header `{SECRET}` is missing")));
    };
    let begun = artifacts::may_send_part(&app.service, &id, secret, number, said(&headers)).await;
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(fault) => return taken.refuse(fault).await,
    };
    while let Some(piece) = taken.next().await? {
        begun = match artifacts::write_part(begun, piece).await {
            Ok(begun) => begun,
            Err(fault) => return taken.refuse(fault).await,
        };
    }
    let tag = artifacts::keep_part(&app.service, &id, number, begun).await?;
    let mut response = StatusCode::OK.into_response();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

pub async fn complete(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<String>,
    JsonBody(wish): JsonBody<Complete>,
) -> Result<Json<Value>, Failure> {
    let path = path(&named, &wish.path)?;
    let parts: Vec<(u32, String)> =
        wish.parts.into_iter().map(|part| (part.part_number, part.etag)).collect();
    artifacts::complete(&app.service, &caller, &path, &wish.upload_id, &parts).await?;
    Ok(Json(json!({})))
}

pub async fn abort(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<String>,
    JsonBody(wish): JsonBody<Abort>,
) -> Result<Json<Value>, Failure> {
    let path = path(&named, &wish.path)?;
    artifacts::abort(&app.service, &caller, &path, &wish.upload_id).await?;
    Ok(Json(json!({})))
}
