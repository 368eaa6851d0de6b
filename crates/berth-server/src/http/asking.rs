//! Who asks: the token of a request becomes a caller before any handler runs.

use super::answer::{Failure, Refused};
use super::limits;
use crate::app::App;
use crate::listen::UnderWay;
use crate::peer::Peer;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_api::routes::{Method, ROUTES, Route};
use berth_service::admin;
use berth_service::caller::{self, Caller, Unidentified};
use berth_service::refusals::Refusal;

/// The caller of a guarded route.
pub struct Asking(pub Caller);

impl<S: Send + Sync> FromRequestParts<S> for Asking {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asking, Failure> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Asking).ok_or_else(|| Failure::new(Code::NoToken, "this needs a token"))
    }
}

/// Lets a request through to its handler, or not.
pub async fn guard(
    State(app): State<App>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(route) = find(request.method(), path.as_str()) else {
        return next.run(request).await;
    };
    if let Err(failure) = limits::check_address(request.uri()) {
        return failure.into_response();
    }
    if route.is_public() {
        return next.run(request).await;
    }
    let given = bearer(request.headers());
    let from = request.extensions().get::<ConnectInfo<Peer>>();
    let from = from.map_or_else(String::new, |from| from.0.0.ip().to_string());
    let target = request.uri().path().to_owned();
    let token = given.as_ref().ok().and_then(Option::as_deref);
    let mut refusal = Refusal { from: from.clone(), target, ..Refusal::of(route, token) };
    let response = match given {
        // A header that is no token is refused as any token that is not good.
        Err(failure) => failure.into_response(),
        Ok(given) => match caller::identify(&app.service, given, from, route).await {
            Ok(caller) => {
                refusal.by(caller.user(), &caller.token().id);
                let under_way = request.extensions().get::<UnderWay>();
                if under_way.is_some_and(|under_way| !under_way.identify(caller.user())) {
                    let detail = "this connection has made room for another";
                    return Failure::new(Code::TooMany, detail).into_response();
                }
                // Held while the request is answered.
                match app.service.heavy_reads.enter(route.id, caller.user()).await {
                    Ok(_turn) => {
                        request.extensions_mut().insert(caller);
                        next.run(request).await
                    }
                    Err(fault) => Failure(fault).into_response(),
                }
            }
            Err(Unidentified { caller, fault }) => {
                if let Some(caller) = caller {
                    refusal.by(caller.user(), &caller.token().id);
                }
                Failure(fault).into_response()
            }
        },
    };
    let status = response.status().as_u16();
    if is_recorded(route, status) {
        if let Some(Refused(problem)) = response.extensions().get() {
            refusal.code.clone_from(&problem.code);
            refusal.why.clone_from(&problem.detail);
        }
        admin::refusals::note(&app.service, Refusal { status, ..refusal });
    }
    response
}

/// Whether the audit log tells of an answer: when somebody may not, and when a change was refused.
fn is_recorded(route: &Route, status: u16) -> bool {
    matches!(status, 401 | 403) || (!route.permission.reads() && (400..500).contains(&status))
}

fn find(method: &axum::http::Method, path: &str) -> Option<&'static Route> {
    let method = match method.as_str() {
        "GET" | "HEAD" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => return None,
    };
    ROUTES.iter().find(|route| route.method == method && route.path == path)
}

/// The token of a request. One that is there and cannot be read is not the same as none.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(value) = limits::text_of(headers, &AUTHORIZATION)? else { return Ok(None) };
    let odd = || Failure::new(Code::NoToken, "the header `authorization` is not `Bearer TOKEN`");
    let token = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| Some(token.trim().to_owned())).ok_or_else(odd)
}
