//! What requests bring, with our own problems where they are wrong.

use super::answer::Failure;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use berth_api::Code;
use serde::de::DeserializeOwned;

/// A JSON body; an empty one is `{}`.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Failure> {
        let typed = request.headers().get("content-type").cloned();
        let text = text(request, state).await?;
        if text.trim().is_empty() {
            let empty = serde_json::from_str("{}");
            return empty.map(Body).map_err(|error| bad(&error.to_string()));
        }
        let kind = typed.as_ref().and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("application/json") {
            let detail = format!("the body is `{kind}`, and JSON was expected");
            return Err(Failure::new(Code::WrongMediaType, detail));
        }
        serde_json::from_str(&text).map(Body).map_err(|error| bad(&error.to_string()))
    }
}

/// The body as text.
pub struct Text(pub String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Failure;
    async fn from_request(request: Request, state: &S) -> Result<Text, Failure> {
        text(request, state).await.map(Text)
    }
}

async fn text<S: Send + Sync>(request: Request, state: &S) -> Result<String, Failure> {
    String::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
            return Failure::new(Code::TooLarge, "the body is larger than 4 MiB");
        }
        bad(&rejection.body_text())
    })
}

fn bad(detail: &str) -> Failure {
    Failure::new(Code::BadRequest, detail)
}

pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, Failure> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Query(query.0)).map_err(|rejection| bad(&rejection.body_text()))
    }
}

pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, Failure> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Path(path.0)).map_err(|rejection| bad(&rejection.body_text()))
    }
}
