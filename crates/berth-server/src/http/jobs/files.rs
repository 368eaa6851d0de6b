//! The files of a job: lists of folders, and files as they are, in whole or in part.

use crate::app::App;
use crate::http::answer::{Answer, Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::{Path, Query};
use crate::http::limits;
use crate::http::streams::while_allowed;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use berth_api::access::Permission;
use berth_api::{Code, Problem, wire};
use berth_blobs::Content;
use berth_service::Fault;
use berth_service::host::OpenJobFile;
use berth_service::jobs::files;
use berth_service::stream_right::{Needs, StreamRight};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::fs::File;
use std::io;

pub async fn list(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(query): Query<wire::JobFileQuery>,
) -> Answer<wire::JobFileList> {
    Ok(Json(files::list(&app.service, &caller, &wanted, &query).await?))
}

pub async fn content(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Path(wanted): Path<String>,
    Query(query): Query<wire::JobFileQuery>,
) -> Result<Response, Failure> {
    let range = limits::text_of(&headers, &RANGE)?.map(str::to_owned);
    let (job, opened) = files::open(&app.service, &caller, &wanted, &query.path).await?;
    let OpenJobFile { file, bytes, .. } = opened;
    let part = match range.as_deref().and_then(|range| part(range, bytes)) {
        None => None,
        Some(Some(part)) => Some(part),
        Some(None) => {
            let detail =
                format!("the file has {bytes} bytes; the requested range is beyond its end");
            let fault = Fault::new(Code::BadRequest, detail)
                .next("request a smaller range, or the whole file");
            let mut response = Failure(fault).into_response();
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            return Ok(response);
        }
    };
    let (from, to) = part.unwrap_or((0, bytes));
    let right = StreamRight::hold(&app.service, &caller, Needs::OnJob(job, Permission::LogsRead));
    let mut response = stream_file(file, (from, to), right);
    let fields = response.headers_mut();
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // Nothing that a job wrote is ever shown as a page of this server.
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name = query.path.trim_matches('/').rsplit('/').next().unwrap_or_default();
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}")) {
        fields.insert(CONTENT_DISPOSITION, value);
    }
    if part.is_some() {
        if let Ok(value) = HeaderValue::try_from(format!("bytes {from}-{}/{bytes}", to - 1)) {
            fields.insert(CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// A part of a file, its end excluded, for as long as its reader may read.
fn stream_file(file: File, (from, to): (u64, u64), right: StreamRight) -> Response {
    // A job may truncate its file meanwhile. The client then gets an error and not a short file.
    stream_content(berth_blobs::of_file(file, from..to), to - from, right)
}

/// Content of a known size, for as long as its reader may read.
pub(in crate::http) fn stream_content(
    content: Content,
    bytes: u64,
    right: StreamRight,
) -> Response {
    let body = Body::from_stream(while_allowed(content, right, cut));
    let mut response = body.into_response();
    let fields = response.headers_mut();
    fields.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    response
}

/// One range of bytes, its end excluded; an inner nothing for one that the file has none of, and an
/// outer one for what is left alone: other units, and several ranges at once.
fn part(range: &str, bytes: u64) -> Option<Option<(u64, u64)>> {
    let (from, to) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if from.trim().is_empty() {
        let last = number(to)?;
        return Some((last > 0 && bytes > 0).then(|| (bytes.saturating_sub(last), bytes)));
    }
    let from = number(from)?;
    let to = match to.trim() {
        "" => bytes,
        to => number(to)?.saturating_add(1).min(bytes),
    };
    Some((from < to).then_some((from, to)))
}

/// What of a file is asked for.
pub(in crate::http) enum Part {
    All,
    /// Its end excluded.
    Some(u64, u64),
    /// Nothing that is in it.
    None,
}

pub(in crate::http) fn part_of(range: &str, bytes: u64) -> Part {
    match part(range, bytes) {
        None => Part::All,
        Some(None) => Part::None,
        Some(Some((from, to))) => Part::Some(from, to),
    }
}

/// The end of a file whose reader may not read on.
fn cut(problem: Box<Problem>) -> io::Result<Bytes> {
    Err(io::Error::other(problem.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_says() {
        for (range, expect) in [
            ("bytes=0-3", Some(Some((0, 4)))),
            ("bytes=5-", Some(Some((5, 10)))),
            ("bytes=-4", Some(Some((6, 10)))),
            ("bytes=-40", Some(Some((0, 10)))),
            ("bytes=9-100", Some(Some((9, 10)))),
            ("bytes=10-", Some(None)),
            ("bytes=7-3", Some(None)),
            ("bytes=-0", Some(None)),
            ("lines=1-2", None),
            ("bytes=1-2,5-6", None),
            ("bytes=x", None),
        ] {
            assert_eq!(part(range, 10), expect, "{range}");
        }
        assert_eq!(part("bytes=0-", 0), Some(None));
    }
}
