//! Answers and refusals in the form that MLflow's client reads.

use crate::http::answer::Failure;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use berth_api::Code as Problem;
use berth_service::Fault;
use berth_tracker::{Code, Error};

pub fn json(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub fn refusal(error: &Error) -> Response {
    let mut response = json(error.body());
    *response.status_mut() =
        StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.code == Code::Unauthenticated {
        let way = HeaderValue::from_static("Basic realm=\"berth\", Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, way);
    }
    response
}

/// A fault of the server's own parts, as clients of MLflow know it.
pub fn of_fault(fault: &Fault) -> Error {
    let code = match fault.0.known_code() {
        Some(Problem::NoToken | Problem::TokenEnded) => Code::Unauthenticated,
        Some(Problem::Forbidden | Problem::ScopeTooSmall | Problem::CrossSite) => {
            Code::PermissionDenied
        }
        Some(Problem::NotFound) => Code::DoesNotExist,
        Some(Problem::TooLarge) => Code::LimitExceeded,
        Some(Problem::TooMany) => Code::TooManyRequests,
        Some(Problem::BadRequest) => Code::BadRequest,
        Some(Problem::StoreDown | Problem::StoreFull | Problem::NotReady) => Code::Unavailable,
        _ => Code::Internal,
    };
    let next = match fault.0.next.as_str() {
        "" => String::new(),
        next => format!(". {next}"),
    };
    Error::new(code, format!("{}{next}", fault.0.detail))
}

/// Converts in the other direction, for Berth's own routes.
pub fn to_failure(error: Error) -> Failure {
    let code = match error.code {
        Code::DoesNotExist | Code::EndpointNotFound => Problem::NotFound,
        Code::PermissionDenied => Problem::Forbidden,
        Code::Unauthenticated => Problem::NoToken,
        Code::AlreadyExists => Problem::Exists,
        Code::LimitExceeded => Problem::TooLarge,
        Code::TooManyRequests => Problem::TooMany,
        Code::Unavailable => Problem::StoreDown,
        Code::Internal | Code::InvalidState => Problem::Internal,
        Code::Conflict | Code::InvalidParameterValue | Code::BadRequest | Code::NotImplemented => {
            Problem::BadRequest
        }
    };
    Failure::new(code, error.message)
}
