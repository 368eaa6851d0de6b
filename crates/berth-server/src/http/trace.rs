//! What the log says of requests: which one, by which method and route, with which status and how
//! long it took. Never a token, a body, or what stands in an address beside its route.

use super::request_id::{self, RequestId};
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Response};
use axum::middleware::{Next, from_fn};
use std::time::Duration;
use tower_http::trace::TraceLayer;
use tracing::Span;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The routes with a line in the log for each request, and a number in each answer.
pub fn traced(router: Router) -> Router {
    // What a handler complains of is logged within the span, and so with the number.
    let trace = TraceLayer::new_for_http()
        .make_span_with(|request: &Request| span(request))
        .on_request(())
        .on_response(|response: &Response<Body>, latency: Duration, _: &Span| {
            told(response.status().as_u16(), latency);
        })
        .on_body_chunk(())
        .on_eos(())
        .on_failure(());
    router.layer(trace).layer(from_fn(numbered))
}

/// Gives a request its number.
async fn numbered(mut request: Request, next: Next) -> axum::response::Response {
    let id = RequestId::next();
    request.extensions_mut().insert(id.clone());
    let mut response = request_id::scope(id.clone(), next.run(request)).await;
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

fn span(request: &Request) -> Span {
    let id = request.extensions().get::<RequestId>().map(RequestId::as_str).unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    // An error is logged in it whatever else is not.
    tracing::error_span!("request", id, method = %request.method(), route)
}

fn told(status: u16, latency: Duration) {
    let ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
    if status >= 400 {
        tracing::info!(status, ms, "refused");
    } else {
        tracing::debug!(status, ms, "answered");
    }
}
