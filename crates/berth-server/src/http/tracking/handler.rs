//! One request from its header to its answer.

use super::actor::Asking;
use super::answer::{json, of_fault, refusal};
use crate::app::App;
use crate::http::metrics_http::As;
use crate::http::visitor::Visitor;
use crate::listen::UnderWay;
use crate::tracking::{Given, READ, WRITE, given};
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use berth_engine::{Write, clock};
use berth_service::admin;
use berth_service::caller::{self, Caller, Credential, Unidentified};
use berth_service::refusals::Refusal;
use berth_store::Batch;
use berth_tracker::{Access, Code, Error, Op, Request as Asked, answer, find};
use std::time::Duration;

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
    let (asking, name) = if op.access == Access::Public {
        (None, None)
    } else {
        let refused = Refusal {
            from: visitor.address.clone(),
            target: head.uri.path().to_owned(),
            method: op.method.to_owned(),
            what: op.id.to_owned(),
            ..Refusal::default()
        };
        let found = identified(app, op, &visitor, &head.headers, refused).await?;
        (Some(found.0), found.1)
    };
    let Some(caller) = asking else {
        let body = Bytes::new();
        let reply = answer(op, &*app.tracking.store, &Stranger, asked(query, &body, parts)).await?;
        return Ok(json(reply.body));
    };
    if under_way.as_ref().is_some_and(|under_way| !under_way.identify(caller.user())) {
        let said = "This connection has made room for another";
        return Err(Error::new(Code::TooManyRequests, said));
    }
    let body = read(op, body).await?;
    let asking = Asking::new(&app.service, caller, &head.headers, name.as_deref())?;
    let reply = answer(op, &*app.tracking.store, &asking, asked(query, &body, parts)).await;
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            if error.code == Code::PermissionDenied {
                let target = head.uri.path().to_owned();
                note_refusal(app, op, &asking.caller, (visitor.address, target), &error);
            }
            return Err(error);
        }
    };
    if let Some(changed) = reply.changed {
        let mut row = asking.caller.audit(changed.target, changed.detail);
        op.id.clone_into(&mut row.what);
        op.method.clone_into(&mut row.method);
        let engine = app.service.engine.clone();
        let write = Write::documents(Batch::default(), row);
        let written = tokio::spawn(async move {
            if let Err(error) = engine.write_eventually(write).await {
                tracing::error!(%error, "a change of what is tracked is not in the audit log");
            }
        });
        let _ = tokio::time::timeout(AUDIT_TIMEOUT, written).await;
    }
    let response = json(reply.body);
    let size = response.body().size_hint().exact();
    if op.access == Access::Read && under_way.is_some_and(|under_way| !under_way.weigh(size)) {
        let said = "Answers that were asked for and not read take all the memory there is for them";
        return Err(Error::new(Code::TooManyRequests, said));
    }
    Ok(response)
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
        Err(_) => Err(Error::new(Code::BadRequest, "The body had not come whole after 60 s")),
    }
}

/// Who asks, and the user name that came with the token.
async fn identified(
    app: &App,
    op: &Op,
    visitor: &Visitor,
    headers: &HeaderMap,
    mut refused: Refusal,
) -> Result<(Caller, Option<String>), Error> {
    let writes = op.access == Access::Write;
    let from = visitor.address.clone();
    let found = match given(headers) {
        Err(error) => Err((error, None)),
        Ok(Some(Given { token, name })) => {
            refused.claimed_token = Refusal::of(&READ, Some(token.as_str())).claimed_token;
            let found = app.tracking.known.caller(&app.service, &token, from, writes).await;
            found.map(|caller| (caller, name)).map_err(unidentified)
        }
        // A browser that is signed in to the portal.
        Ok(None) => {
            let route = if writes { &WRITE } else { &READ };
            match of_session(app, visitor) {
                Err(error) => Err((error, None)),
                Ok(given) => {
                    let found = caller::identify(&app.service, given, from, route).await;
                    found.map(|caller| (caller, None)).map_err(unidentified)
                }
            }
        }
    };
    found.map_err(|(error, caller)| {
        if let Some(caller) = &caller {
            refused.by(caller.user(), &caller.token().id);
        }
        recorded(app, refused, &error);
        error
    })
}

fn unidentified(why: Unidentified) -> (Error, Option<Caller>) {
    (of_fault(&why.fault), why.caller)
}

fn of_session(app: &App, visitor: &Visitor) -> Result<Option<Credential>, Error> {
    let failed = |failure: crate::http::answer::Failure| of_fault(&failure.0);
    let Some(shown) = visitor.session(visitor.is_secure(app)).map_err(failed)? else {
        return Ok(None);
    };
    visitor.check_origin(app.public_url.as_ref()).map_err(failed)?;
    Ok(Some(Credential::Session(shown)))
}

/// The audit log tells of whoever was not let in. What a client merely got wrong it does not tell:
/// training scripts get things wrong by the thousand.
fn recorded(app: &App, refusal: Refusal, error: &Error) {
    let status = error.code.status();
    if matches!(status, 401 | 403) {
        let code = error.code.word().to_owned();
        let why = error.message.clone();
        admin::refusals::note(&app.service, Refusal { status, code, why, ..refusal });
    }
}

fn note_refusal(
    app: &App,
    op: &Op,
    caller: &Caller,
    (from, target): (String, String),
    error: &Error,
) {
    let mut refusal = Refusal {
        from,
        target,
        method: op.method.to_owned(),
        what: op.id.to_owned(),
        ..Refusal::default()
    };
    refusal.by(caller.user(), &caller.token().id);
    recorded(app, refusal, error);
}

/// Whoever asks without a token.
struct Stranger;

impl berth_tracker::Actor for Stranger {
    fn user(&self) -> &str {
        ""
    }
    fn team(&self) -> Option<&str> {
        None
    }
    fn may(&self, _: berth_tracker::Right, _: &str, _: Option<&str>) -> bool {
        false
    }
    fn is_team(&self, _: &str) -> bool {
        false
    }
}
