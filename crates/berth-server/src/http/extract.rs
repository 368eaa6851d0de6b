//! What requests bring, with our own problems where they are wrong.

use super::answer::Failure;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use berth_api::Code;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// How long the body of a request may take, whatever its size.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bodies that took longer, since the start.
static TIMED_OUT: AtomicU64 = AtomicU64::new(0);

pub fn timed_out_bodies() -> u64 {
    TIMED_OUT.load(Ordering::Relaxed)
}

/// The refusal of a body that took longer than it may.
pub fn timed_out(longest: Duration) -> Failure {
    TIMED_OUT.fetch_add(1, Ordering::Relaxed);
    let detail = format!("the body had not come whole after {} s", longest.as_secs());
    Failure::new(Code::TooSlow, detail)
}

async fn text<S: Send + Sync>(request: Request, state: &S) -> Result<String, Failure> {
    text_within(request, state, BODY_TIMEOUT).await
}

async fn text_within<S: Send + Sync>(
    request: Request,
    state: &S,
    longest: Duration,
) -> Result<String, Failure> {
    let Ok(text) = tokio::time::timeout(longest, String::from_request(request, state)).await else {
        return Err(timed_out(longest));
    };
    text.map_err(|rejection| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body as HttpBody, Bytes};
    use futures_util::{StreamExt, stream};
    use std::convert::Infallible;

    #[tokio::test]
    async fn a_body_that_never_comes_whole_is_given_up_with_a_code() {
        let half = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"name: ")) });
        let body = HttpBody::from_stream(half.chain(stream::pending()));
        let before = timed_out_bodies();
        let answer = text_within(Request::new(body), &(), Duration::from_millis(1)).await;
        let problem = answer.unwrap_err().0.0;
        assert_eq!((problem.code.as_str(), problem.status), ("BRT0030", 408));
        assert_eq!(timed_out_bodies(), before + 1);
    }
}
