//! Answers: JSON, or a problem with its code.

use super::request_id;
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_api::problem::MEDIA_TYPE;
use berth_api::{Code, Problem};
use berth_service::Fault;
use serde::Serialize;

/// What a handler gives back.
pub type Answer<T> = Result<Json<T>, Failure>;

pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, "application/json", &self.0)
    }
}

/// Something was made.
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        json(StatusCode::CREATED, "application/json", &self.0)
    }
}

/// It is done, and there is nothing to say about it.
pub struct Done;

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

fn json(status: StatusCode, kind: &'static str, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("answers are plain data");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A request that was not carried out, as a problem on the wire.
#[derive(Debug)]
pub struct Failure(pub Fault);

impl Failure {
    pub fn new(code: Code, detail: impl Into<String>) -> Failure {
        Failure(Fault::new(code, detail))
    }
}

impl<F: Into<Fault>> From<F> for Failure {
    fn from(fault: F) -> Failure {
        Failure(fault.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut problem = self.0.0;
        problem.instance = problem.instance.or_else(request_id::current);
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, MEDIA_TYPE, &problem);
        // Whoever records refusals need not read the body again.
        response.extensions_mut().insert(Refused(problem));
        response
    }
}

/// Answers a method that a route does not take.
pub async fn wrong_method(method: Method) -> Failure {
    let detail = format!("this address does not take the method {method}");
    let mut failure = Failure::new(Code::NoSuchRoute, detail);
    failure.0.0.status = StatusCode::METHOD_NOT_ALLOWED.as_u16();
    failure
}

/// What a refused request was told.
#[derive(Debug, Clone)]
pub struct Refused(pub Box<Problem>);

#[cfg(test)]
mod tests {
    use super::*;
    use berth_engine::Refused;

    #[tokio::test]
    async fn a_server_with_too_much_to_write_answers_with_a_code_and_what_to_do() {
        let response = Failure::from(Refused::Overloaded).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!((&*problem.code, problem.status), ("BRT0026", 503));
        assert_eq!(
            problem.next,
            "Try again in a moment. /readyz answers when the server takes requests."
        );
    }
}
