//! Who asks: the token of a request becomes a caller before any handler runs.

use super::answer::Failure;
use super::limits;
use crate::app::App;
use crate::listen::Peer;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_api::routes::{Method, ROUTES, Route};
use berth_service::caller::{self, Caller};

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
    let given = match bearer(request.headers()) {
        Ok(given) => given,
        Err(failure) => return failure.into_response(),
    };
    let from = request.extensions().get::<ConnectInfo<Peer>>();
    let from = from.map_or_else(String::new, |from| from.0.0.ip().to_string());
    match caller::identify(&app.service, given, from, route).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(fault) => Failure(fault).into_response(),
    }
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
