//! What a job printed, as one JSON value on each line.

use super::log_chunk::{line, said};
use super::log_layout::Layout;
use super::log_teller::{Subject, Teller, processes};
use super::output::Source;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::asking::Asking;
use crate::http::extract::{Path, Query};
use crate::http::streams::while_allowed;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use berth_api::access::Permission;
use berth_api::{Code, Problem, wire};
use berth_service::Fault;
use berth_service::jobs::find::{self, Found};
use berth_service::stream_right::{Needs, StreamRight};
use berth_store::JobRow;
use std::convert::Infallible;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Elements of an array whose output is shown together.
const MOST_ELEMENTS: usize = 256;
/// The same of processes.
const MOST_PROCESSES: u32 = 256;

pub async fn logs(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(query): Query<wire::LogQuery>,
) -> Result<Response, Failure> {
    let found = find::job(&app.service, &caller, &wanted, Permission::LogsRead).await?;
    must_be_one(&found, &query)?;
    let mut subjects = Vec::new();
    for row in &found.rows {
        let subject = subject(&app, row, &query)?;
        if !found.is_array() {
            must_have_attempt(&app, row, &query).await?;
            subject.source.must_be_kept(&app, row, subject.which, query.attempt).await?;
        }
        subjects.push(subject);
    }
    must_be_few(&found, processes(&subjects))?;
    let right = StreamRight::hold(
        &app.service,
        &caller,
        Needs::OnJob(found.first().id, Permission::LogsRead),
    );
    let (lines, stream) = mpsc::channel(16);
    tokio::spawn(Teller::new(app, subjects, query, lines).tell());
    let body = Body::from_stream(while_allowed(ReceiverStream::new(stream), right, farewell));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

fn subject(app: &App, row: &JobRow, query: &wire::LogQuery) -> Result<Subject, Fault> {
    let source = Source::of(app, row)?;
    let layout = Layout::of(row, matches!(source, Source::Pods { .. }));
    Ok(Subject { job: row.id, layout, which: layout.wanted(row.id, query)?, source })
}

/// The elements of an array have logs of their own, which are shown together where that is asked for.
fn must_be_one(found: &Found, query: &wire::LogQuery) -> Result<(), Fault> {
    let count = found.rows.len();
    if !found.is_array() || (query.all && count <= MOST_ELEMENTS) {
        return Ok(());
    }
    let (id, first) = (found.id, found.first().id);
    let last = found.rows.last().map_or(first, |row| row.id);
    let detail = match query.all {
        true => format!(
            "job {id} is an array of {count} elements; the output of {MOST_ELEMENTS} at most is \
             shown together"
        ),
        false => format!("job {id} is an array; each element has a log of its own"),
    };
    let next = format!("name one element, from `berth logs {first}` to `berth logs {last}`");
    Err(Fault::new(Code::WrongState, detail).next(next))
}

/// Each process has files of its own, which are looked at again and again.
fn must_be_few(found: &Found, processes: u32) -> Result<(), Fault> {
    if processes <= MOST_PROCESSES {
        return Ok(());
    }
    let id = found.id;
    let detail = format!(
        "job {id} has {processes} processes; the output of {MOST_PROCESSES} at most is shown together"
    );
    let next = format!("name a task or a rank, such as `berth logs {id} --task 0`");
    Err(Fault::new(Code::WrongState, detail).next(next))
}

/// An attempt of a job that has ended was there, or never will be.
async fn must_have_attempt(app: &App, row: &JobRow, query: &wire::LogQuery) -> Result<(), Fault> {
    let Some(attempt) = query.attempt else { return Ok(()) };
    let leases = app.service.store.leases_of(row.id).await?;
    let last = leases.iter().map(|lease| lease.id.attempt).max();
    // Those of a job that ended long ago are not known any more.
    let Some(last) = last.filter(|last| attempt > *last) else { return Ok(()) };
    let detail = match last {
        0 => format!("job {} has one attempt, number 0; there is no attempt {attempt}", row.id),
        last => format!(
            "job {} has {} attempts, from 0 to {last}; there is no attempt {attempt}",
            row.id,
            last + 1
        ),
    };
    Err(Fault::new(Code::NotFound, detail).next("leave the attempt out to see the last one"))
}

/// The last chunk of a log whose reader may not read on.
fn farewell(problem: Box<Problem>) -> Result<Bytes, Infallible> {
    let text = format!("the log is not sent any further: {problem}\n");
    Ok(line(&wire::LogChunk { problem: Some(problem), ..said(text) }))
}
