//! An object as an answer: in whole or in part, and its headers alone.

use crate::app::App;
use crate::http::answer::Failure;
use crate::http::jobs::{Part, part_of};
use crate::http::limits;
use crate::http::streams::while_allowed;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_service::artifacts::Artifact;
use berth_service::stream_right::Needs;
use berth_service::{Caller, Fault, StreamRight};

/// Answers at once, and reads what is asked for as it is sent.
pub async fn give(
    app: &App,
    caller: &Caller,
    needs: Needs,
    (method, headers): (&Method, &HeaderMap),
    artifact: &Artifact,
) -> Result<Response, Failure> {
    let range = limits::text_of(headers, &RANGE)?;
    let bytes = artifact.bytes;
    let (from, to, is_part) = match range.map_or(Part::All, |range| part_of(range, bytes)) {
        Part::All => (0, bytes, false),
        Part::Some(from, to) => (from, to, true),
        Part::None => {
            let detail = format!("it has {bytes} bytes; the requested range is beyond its end");
            let fault = Fault::new(Code::BadRequest, detail)
                .next("request a smaller range, or the whole file");
            let mut response = Failure(fault).into_response();
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            return Ok(response);
        }
    };
    let mut response = match *method == Method::HEAD {
        true => Response::new(Body::empty()),
        false => {
            let content = artifact.read(&app.service, from..to).await?;
            let right = StreamRight::hold(&app.service, caller, needs);
            let cut =
                |problem: Box<berth_api::Problem>| Err(std::io::Error::other(problem.to_string()));
            Response::new(Body::from_stream(while_allowed(content, right, cut)))
        }
    };
    let fields = response.headers_mut();
    fields.insert(CONTENT_LENGTH, HeaderValue::from(to - from));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", artifact.tag())) {
        fields.insert(ETAG, tag);
    }
    if is_part {
        if let Ok(value) = HeaderValue::try_from(format!("bytes {from}-{}/{bytes}", to - 1)) {
            fields.insert(CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}
