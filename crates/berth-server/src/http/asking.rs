//! Who asks: the token of a request, or the session of a browser, becomes a caller before any handler runs.

use super::answer::{Failure, Refused};
use super::limits;
use super::request_id;
use super::visitor::Visitor;
use crate::app::App;
use crate::listen::UnderWay;
use axum::body::HttpBody;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use berth_api::Code;
use berth_api::routes::{FOREIGN, Method, ROUTES, Route};
use berth_service::Fault;
use berth_service::admin;
use berth_service::caller::{self, Caller, Credential, Unidentified};
use berth_service::refusals::Refusal;

/// Another place for the token, on the routes of other programs' clients.
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-berth-token");

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
    let given = credential(&visitor, &app, route);
    let token = match &given {
        Ok(Some(Credential::Token(token))) => Some(token.as_str()),
        _ => None,
    };
    let mut refusal = Refusal { from: from.clone(), target, ..Refusal::of(route, token) };
    // Every page asks so who is signed in before anybody is: that is no attempt at anything.
    let asks_who = route.id == "get_session" && matches!(given, Ok(None));
    let response = match given {
        // A header that is no token is refused as any token that is not good, and so is what a page
        // of another origin makes a browser send.
        Err(failure) => failure.into_response(),
        Ok(given) => match caller::identify(&app.service, given, from, route).await {
            Ok(caller) => {
                refusal.by(caller.user(), &caller.token().id);
                let under_way = request.extensions().get::<UnderWay>().cloned();
                if under_way.as_ref().is_some_and(|under_way| !under_way.identify(caller.user())) {
                    let detail = "this connection has made room for another";
                    return Failure::new(Code::TooMany, detail).into_response();
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

/// An answer, unless its user leaves too many unread. What was changed is told in any case.
fn weighed(route: &Route, answer: Response, under_way: Option<&UnderWay>) -> Response {
    let size = answer.body().size_hint().exact();
    let has_room = under_way.is_none_or(|under_way| under_way.weigh(size));
    if has_room || !route.permission.reads() {
        return answer;
    }
    let detail = "answers that were asked for and not read take all the memory there is for them";
    Failure(Fault::new(Code::TooMany, detail).next("read them, or close their connections"))
        .into_response()
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
    ROUTES.iter().chain(FOREIGN).find(|route| route.method == method && route.path == path)
}

/// What a request says who it is by. A token is said on purpose, so it counts before a cookie, which
/// a browser sends by itself.
fn credential(visitor: &Visitor, app: &App, route: &Route) -> Result<Option<Credential>, Failure> {
    let is_foreign = FOREIGN.iter().any(|foreign| foreign.id == route.id);
    let token = match is_foreign {
        true => foreign_token(&visitor.headers)?,
        false => bearer(&visitor.headers)?,
    };
    if let Some(token) = token {
        return Ok(Some(Credential::Token(token)));
    }
    let Some(shown) = visitor.session(visitor.is_secure(app))? else { return Ok(None) };
    visitor.check_origin(app.public_url.as_ref())?;
    Ok(Some(Credential::Session(shown)))
}

/// Clients of other programs have passwords rather than tokens, or a header of one's choice.
fn foreign_token(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    if let Some(token) = limits::text_of(headers, &TOKEN_HEADER)? {
        return Ok(Some(token.trim().to_owned()));
    }
    let Some(value) = limits::text_of(headers, &AUTHORIZATION)? else { return Ok(None) };
    let basic = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("basic"));
    let Some((_, encoded)) = basic else { return bearer(headers) };
    let odd = || Failure::new(Code::NoToken, "the header `authorization` is not as it should be");
    let decoded = BASE64_STANDARD.decode(encoded.trim()).map_err(|_| odd())?;
    let text = String::from_utf8(decoded).map_err(|_| odd())?;
    text.split_once(':').map(|(_, token)| Some(token.trim().to_owned())).ok_or_else(odd)
}

/// The token of a request. One that is there and cannot be read is not the same as none.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(value) = limits::text_of(headers, &AUTHORIZATION)? else { return Ok(None) };
    let odd = || Failure::new(Code::NoToken, "the header `authorization` is not `Bearer TOKEN`");
    let token = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| Some(token.trim().to_owned())).ok_or_else(odd)
}
