//! Refusals in the shape that the client of MLflow reads.

use crate::http::answer::Refused;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::json;

/// Turns a problem into what the client of MLflow expects, on the routes of MLflow.
pub(in crate::http) async fn as_mlflow(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_mlflow = path.contains("/2.0/mlflow-artifacts/");
    let response = next.run(request).await;
    let problem = response.extensions().get::<Refused>().filter(|_| is_mlflow);
    let Some(Refused(problem)) = problem else { return response };
    let code = match response.status().as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "RESOURCE_DOES_NOT_EXIST",
        409 => "RESOURCE_CONFLICT",
        413 | 507 => "RESOURCE_LIMIT_EXCEEDED",
        429 => "REQUEST_LIMIT_EXCEEDED",
        501 => "NOT_IMPLEMENTED",
        503 => "TEMPORARILY_UNAVAILABLE",
        500..=599 => "INTERNAL_ERROR",
        _ => "INVALID_PARAMETER_VALUE",
    };
    let message = match problem.next.is_empty() || problem.detail.starts_with("Invalid path") {
        true => problem.detail.clone(),
        false => format!("{}. {}", problem.detail, problem.next),
    };
    let body = json!({ "error_code": code, "message": message }).to_string();
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

/// The answer to a request for something that this server does not do.
pub fn not_implemented(why: &str) -> Response {
    let body = json!({ "error_code": "NOT_IMPLEMENTED", "message": why }).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
