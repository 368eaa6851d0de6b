//! Answers: JSON, or a problem with its code.

use crate::engine::{Refused, Stalled};
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_api::problem::MEDIA_TYPE;
use berth_api::{Code, Problem};
use berth_model::Rejected;
use serde::Serialize;

/// What a handler gives back.
pub type Answer<T> = Result<Json<T>, Fault>;

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

/// A request that was not carried out, and why.
#[derive(Debug)]
pub struct Fault(pub Box<Problem>);

impl Fault {
    pub fn new(code: Code, detail: impl Into<String>) -> Fault {
        Fault(Box::new(Problem::new(code, detail)))
    }

    pub fn next(self, next: impl Into<String>) -> Fault {
        Fault(Box::new(self.0.next(next)))
    }

    /// Whether it is the database that is away, and not the request that is wrong.
    pub fn is_for_now(&self) -> bool {
        matches!(self.0.known_code(), Some(Code::StoreDown | Code::StoreFull))
    }

    /// Nothing was found under that name. What one may not see is not there either.
    pub fn not_found(what: &str, name: &str) -> Fault {
        Fault::new(Code::NotFound, format!("there is no {what} `{name}`"))
    }

    pub fn no_job(name: &str) -> Fault {
        Fault::new(Code::NoSuchJob, format!("there is no job `{name}`"))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, MEDIA_TYPE, &self.0)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault(Box::new(problem))
    }
}

impl From<berth_store::Error> for Fault {
    fn from(error: berth_store::Error) -> Fault {
        let code = match &error {
            berth_store::Error::Full { .. } => Code::StoreFull,
            error if error.retry() == berth_store::Retry::Never => Code::Internal,
            _ => Code::StoreDown,
        };
        tracing::error!(%error, "the database did not do as asked");
        Fault::new(code, error.to_string())
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        match refused {
            Refused::Rejected(rejected) => {
                let code = match &rejected {
                    Rejected::UnknownJob { .. } => Code::NoSuchJob,
                    Rejected::UnknownQueue { .. } | Rejected::UnknownNode { .. } => Code::NotFound,
                    Rejected::QueueInUse { .. } => Code::InUse,
                    _ => Code::Rejected,
                };
                Fault::new(code, rejected.to_string())
            }
            Refused::Unmet(problem) => Fault(problem),
            Refused::Unkeepable(why) => Fault::new(Code::BadRequest, why),
            Refused::KeyReused => Fault::new(Code::KeyReused, refused.to_string()),
            Refused::Stalled(Stalled { full, .. }) | Refused::Unanswered { full } => {
                let code = if full { Code::StoreFull } else { Code::StoreDown };
                Fault::new(code, refused.to_string())
            }
            Refused::Stopping => Fault::new(Code::NotReady, refused.to_string()),
        }
    }
}

impl From<JsonRejection> for Fault {
    fn from(rejection: JsonRejection) -> Fault {
        let code = match &rejection {
            JsonRejection::MissingJsonContentType(_) => Code::WrongMediaType,
            rejection if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
            _ => Code::BadRequest,
        };
        Fault::new(code, rejection.body_text())
    }
}

impl From<QueryRejection> for Fault {
    fn from(rejection: QueryRejection) -> Fault {
        Fault::new(Code::BadRequest, rejection.body_text())
    }
}

impl From<PathRejection> for Fault {
    fn from(rejection: PathRejection) -> Fault {
        Fault::new(Code::BadRequest, rejection.body_text())
    }
}
