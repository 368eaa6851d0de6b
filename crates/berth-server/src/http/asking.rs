//! Who asks: the token of a request becomes a caller before any handler runs.

use super::answer::Failure;
use crate::app::App;
use crate::peer::Peer;
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
    // No name has it, and one of the databases cannot even look for it.
    if request.uri().to_string().contains("%00") {
        return Failure::new(Code::BadRequest, "the address has a zero byte in it").into_response();
    }
    if route.is_public() {
        return next.run(request).await;
    }
    let given = bearer(request.headers()).map(str::to_owned);
    let from = request.extensions().get::<ConnectInfo<Peer>>();
    let from = from.map_or_else(String::new, |from| from.0.0.ip().to_string());
    let caller = match caller::identify(&app.service, given, from, route).await {
        Ok(caller) => caller,
        Err(fault) => return Failure(fault).into_response(),
    };
    let _turn = match app.service.heavy_reads.enter(route.id, caller.user()).await {
        Ok(turn) => turn,
        Err(fault) => return Failure(fault).into_response(),
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
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

/// The token of a request.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}
