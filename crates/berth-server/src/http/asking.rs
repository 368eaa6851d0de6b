//! Authentication: turns the token of a request, or the session of a browser, into a caller before any
//! handler runs.

use super::answer::{Failure, Refused};
use super::given;
use super::limits;
use super::request_id;
use super::visitor::Visitor;
use crate::app::App;
use crate::listen::UnderWay;
use axum::body::HttpBody;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_api::routes::{FOREIGN, Method, ROUTES, Route};
use berth_service::admin;
use berth_service::caller::{self, Caller, Credential, Unidentified};
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
    let visitor =
        Visitor::new(request.method(), request.uri(), request.headers(), request.extensions());
    let (from, target) = (visitor.address.clone(), request.uri().path().to_owned());
    if route.is_public() {
        let refusal = Refusal { from, target, ..Refusal::of(route, None) };
        return recorded(&app, route, refusal, next.run(request).await);
    }
    let found = credential(&visitor, &app, route);
    let token = match &found {
        Ok(Some(Credential::Token(token))) => Some(token.as_str()),
        _ => None,
    };
    let mut refusal = Refusal { from: from.clone(), target, ..Refusal::of(route, token) };
    // Each page of the portal asks who is signed in, also before the sign-in. That is not an attack, so the
    // audit log does not record it.
    let asks_who = route.id == "get_session" && matches!(found, Ok(None));
    let response = match found {
        // The audit log records malformed headers like invalid tokens. It also records requests that a page of
        // another origin made the browser send.
        Err(failure) => failure.into_response(),
        Ok(found) => match caller::identify(&app.service, found, from, route).await {
            Ok(caller) => {
                refusal.by(caller.user(), &caller.token().id);
                let under_way = request.extensions().get::<UnderWay>().cloned();
                if let Err(fault) = given::identify(under_way.as_ref(), &caller) {
                    return Failure(fault).into_response();
                }
                match app.service.heavy_reads.enter(route.id, caller.user()).await {
                    Ok(turn) => {
                        request.extensions_mut().insert(caller);
                        let answer = next.run(request);
                        let answer = match turn {
                            Some(turn) => turn.hold(request_id::carried(answer)).await,
                            None => answer.await,
                        };
                        weighed(route, answer, under_way.as_ref())
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
    if asks_who {
        return response;
    }
    recorded(&app, route, refusal, response)
}

/// Notes a refusal in the audit log.
fn recorded(app: &App, route: &Route, mut refusal: Refusal, response: Response) -> Response {
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

/// Returns the answer, unless the user has too many unread answers. Berth always sends the answer to a
/// change.
fn weighed(route: &Route, answer: Response, under_way: Option<&UnderWay>) -> Response {
    match given::must_have_room(under_way, answer.body().size_hint().exact()) {
        Err(fault) if route.permission.reads() => Failure(fault).into_response(),
        _ => answer,
    }
}

/// Whether the audit log records a refusal: it records missing rights and refused changes.
fn is_recorded(route: &Route, status: u16) -> bool {
    matches!(status, 401 | 403) || (!route.permission.reads() && (400..500).contains(&status))
}

/// Whether clients of other programs use the route.
fn is_foreign(route: &Route) -> bool {
    FOREIGN.iter().any(|foreign| foreign.id == route.id)
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
    ROUTES.iter().chain(FOREIGN).find(|route| route.method == method && route.path == path)
}

/// The credentials of a request: a token, else the session of a browser.
fn credential(visitor: &Visitor, app: &App, route: &Route) -> Result<Option<Credential>, Failure> {
    let given = match is_foreign(route) {
        true => given::of_any_client(&visitor.headers)?,
        false => given::of_own_client(&visitor.headers)?,
    };
    match given {
        Some(given) => Ok(Some(Credential::Token(given.token))),
        None => given::session(app, visitor),
    }
}
