//! One request from its header to its answer.

use super::actor::Asking;
use super::answer::{json, of_fault, refusal};
use super::identify::{self, Stranger, identified, record};
use super::of_job;
use crate::app::App;
use crate::http::given;
use crate::http::metrics_http::As;
use crate::http::visitor::Visitor;
use crate::listen::UnderWay;
use crate::notifier::registry;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use berth_engine::{Write, clock};
use berth_store::{AuditEntry, Batch};
use berth_tracker::{
    Access, Actor as _, Code, Error, Event, Op, Reply, Request as Asked, answer, find,
};
use std::time::Duration;
use tracing::Instrument;

/// How long a body may take, and the largest there is: data sets are described at length.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
const MOST_BYTES: usize = 4 << 20;
const MOST_BYTES_OF_INPUTS: usize = 24 << 20;
/// The longest path and query.
const MOST_ADDRESS: usize = 64 << 10;
/// How long an answer waits for its row in the audit log. The row is written in any case.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn handle(State(app): State<App>, request: Request) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix("/api/").or_else(|| path.strip_prefix("/ajax-api/"));
    let (op, parts) = match find(request.method().as_str(), path.unwrap_or_default()) {
        Ok(found) => found,
        Err(error) => return refusal(&error),
    };
    let mut response = match carry_out(&app, op, parts, request).await {
        Ok(response) => response,
        Err(error) => refusal(&error),
    };
    response.extensions_mut().insert(As(op.path));
    response
}

async fn carry_out(
    app: &App,
    op: &'static Op,
    parts: Vec<String>,
    request: Request,
) -> Result<Response, Error> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    if head.uri.path().len() + query.len() > MOST_ADDRESS {
        return Err(Error::new(Code::BadRequest, "The address is longer than 64 KiB"));
    }
    let decode = |part: String| {
        percent_encoding::percent_decode_str(&part)
            .decode_utf8()
            .ok()
            .filter(|part| !part.contains('\0'))
            .map(std::borrow::Cow::into_owned)
    };
    let parts: Option<Vec<String>> = parts.into_iter().map(decode).collect();
    let parts = parts.ok_or_else(|| Error::new(Code::BadRequest, "The address is not UTF-8"))?;
    let visitor = Visitor::new(&head.method, &head.uri, &head.headers, &head.extensions);
    let under_way = head.extensions.get::<UnderWay>().cloned();
    if op.access == Access::Public {
        let body = Bytes::new();
        let reply = answer(op, &*app.tracking.store, &Stranger, asked(query, &body, parts)).await?;
        return Ok(json(reply.body));
    }
    let mut refused = identify::refusal(op, &visitor, head.uri.path());
    let (caller, name) = identified(app, op, &visitor, refused.clone()).await?;
    given::identify(under_way.as_ref(), &caller).map_err(|fault| of_fault(&fault))?;
    let body = read(op, body).await?;
    refused.by(caller.user(), &caller.token().id);
    let mut asking = Asking::new(&app.service, caller, &head.headers, name.as_deref())
        .inspect_err(|error| record(app, op, refused.clone(), error))?;
    let job = asking.caller.job();
    if let Some(job) = job {
        asking.of_job = of_job::begins(app, job).await;
    }
    let turn = app.service.heavy_reads.enter(op.id, asking.caller.user()).await;
    let turn = turn.map_err(|fault| of_fault(&fault))?;
    let (whole, query) = (app.clone(), query.to_owned());
    let work = async move {
        let request = asked(&query, &body, parts);
        let reply = answer(op, &*whole.tracking.store, &asking, request).await;
        let reply = reply.inspect_err(|error| record(&whole, op, refused, error))?;
        after(&whole, op, &asking, &reply).await;
        Ok::<_, Error>(reply.body)
    };
    let body = match turn {
        Some(turn) => turn.hold(work).await,
        // Run to completion even if the client disconnects, so that each change gets its row in the audit log.
        None if op.access == Access::Write => finished(work).await,
        None => work.await,
    }?;
    let response = json(body);
    let size = response.body().size_hint().exact();
    match given::must_have_room(under_way.as_ref(), size) {
        // Berth always sends the answer to a change.
        Err(fault) if op.access == Access::Read => Err(of_fault(&fault)),
        _ => Ok(response),
    }
}

/// Runs a future to completion, even if the client disconnects.
pub async fn finished<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The server is ending: no answer goes out any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The audit row and the messages after a successful request.
async fn after(app: &App, op: &Op, asking: &Asking, reply: &Reply) {
    if let Some(job) = asking.caller.job() {
        of_job::was_answered(app, job, op, reply).await;
    }
    if let Some(restored) = &reply.restored
        && let Err(error) = app.tracking.runs.restored(restored).await
    {
        tracing::warn!(%error, "cannot update what was restored from its jobs");
    }
    if let Some(changed) = &reply.changed {
        let mut row = asking.caller.audit(&*changed.target, changed.detail.clone());
        op.id.clone_into(&mut row.what);
        op.method.clone_into(&mut row.method);
        note(app, row).await;
    }
    if let (Some(event), Some(team)) = (&reply.event, asking.team()) {
        announce(app, team, event).await;
    }
}

/// Puts messages for the webhooks of the team into the outbox. A failure does not undo the change.
async fn announce(app: &App, team: &str, event: &Event) {
    let notices = registry::about(&app.service, &app.tracking.store, team, event).await;
    let notices = match notices {
        Ok(notices) if notices.is_empty() => return,
        Ok(notices) => notices,
        Err(error) => {
            let event = event.name();
            tracing::error!(%error, event, "cannot read the webhooks of an event");
            return;
        }
    };
    let write = Write::unnoted(Batch { notices, ..Batch::default() });
    if let Err(error) = app.service.engine.write(write).await {
        let why = berth_service::Fault::from(error).0.detail;
        tracing::error!(why, event = event.name(), "cannot put an event into the outbox");
    }
}

/// Writes the audit row of a committed change.
pub async fn note(app: &App, row: AuditEntry) {
    let engine = app.service.engine.clone();
    let write = Write::documents(Batch::default(), row);
    let written = tokio::spawn(async move {
        if let Err(error) = engine.write_eventually(write).await {
            tracing::error!(%error, "cannot write a change of an experiment, run or model to the audit log");
        }
    });
    let _ = tokio::time::timeout(AUDIT_TIMEOUT, written).await;
}

fn asked<'a>(query: &'a str, body: &'a Bytes, parts: Vec<String>) -> Asked<'a> {
    Asked { query, body, parts, now: clock::now().0 }
}

async fn read(op: &Op, body: Body) -> Result<Bytes, Error> {
    let most = if op.id == "log_inputs" { MOST_BYTES_OF_INPUTS } else { MOST_BYTES };
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Error::new(
            Code::BadRequest,
            format!("The body broke off, or is larger than {} MiB", most >> 20),
        )),
        Err(_) => Err(Error::new(Code::BadRequest, "The body was not complete after 60 s")),
    }
}
