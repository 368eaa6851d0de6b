//! Signing browsers in and out, and looking at who is signed in.

mod devices;
mod limited;
pub mod oidc;

use super::answer::{Answer, Done, Failure, Json};
use super::asking::Asking;
use super::cookie;
use super::extract::{Body, Path};
use super::visitor::Visitor;
use crate::app::App;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::routes::named;
use berth_api::{Code, wire};
use berth_service::identity;
use berth_service::sessions::{self, Opened, Origin};
use berth_service::sign_in::Door;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "session_options" => on(filter, options),
        "get_session" => on(filter, get),
        "sign_in" => on(filter, sign_in),
        "sign_out" => on(filter, sign_out),
        "list_sessions" => on(filter, list),
        "revoke_session" => on(filter, revoke),
        "start_oidc" => on(filter, oidc::start),
        "finish_oidc" => on(filter, oidc::finish),
        id => return devices::handler(id, filter),
    })
}

async fn options(State(app): State<App>) -> Answer<wire::SessionOptions> {
    let oidc = app.oidc.as_ref().map(|provider| wire::OidcOption {
        name: provider.name().to_owned(),
        start: "/v1/session/oidc/start".to_owned(),
    });
    Ok(Json(wire::SessionOptions { token: true, oidc }))
}

async fn get(Asking(caller): Asking) -> Answer<wire::Session> {
    let none = || Failure::new(Code::NoToken, "this browser is not signed in");
    Ok(Json(sessions::shown(caller.session().ok_or_else(none)?)))
}

/// Where a sign-in by that route comes from.
fn origin(visitor: &Visitor, route: &'static str) -> Origin {
    Origin {
        address: visitor.address.clone(),
        agent: visitor.agent(),
        route: named(route).expect("it is in the table"),
    }
}

async fn sign_in(
    State(app): State<App>,
    visitor: Visitor,
    Body(wish): Body<wire::SignIn>,
) -> Response {
    let opened = limited::attempt(&app, Door::Secret, &visitor, async {
        // Somebody else's page would sign a browser in as somebody else.
        visitor.check_origin(app.public_url.as_ref())?;
        let origin = origin(&visitor, "sign_in");
        Ok(sessions::open_by_token(&app.service, wish.token.trim(), &origin).await?)
    });
    match opened.await {
        Ok(opened) => with_cookie(&app, &visitor, opened),
        Err(response) => response,
    }
}

fn with_cookie(app: &App, visitor: &Visitor, opened: Opened) -> Response {
    let cookie = cookie::session(&opened, visitor.is_secure(app));
    let signed_in = wire::SignedIn { session: opened.session, key: opened.key };
    ([(SET_COOKIE, cookie)], Json(signed_in)).into_response()
}

async fn sign_out(State(app): State<App>, visitor: Visitor) -> Result<Response, Failure> {
    let mut logout_url = None;
    if let Some(shown) = visitor.session(visitor.is_secure(&app))? {
        visitor.check_origin(app.public_url.as_ref())?;
        let origin = origin(&visitor, "sign_out");
        let closed = sessions::close(&app.service, &shown, &origin).await?;
        if let (Some(hint), Some(provider)) = (closed.and_then(|closed| closed.hint), &app.oidc) {
            logout_url = provider.logout_url(&hint, &visitor.base(&app)).await;
        }
    }
    let gone = cookie::gone(visitor.is_secure(&app));
    Ok(([(SET_COOKIE, gone)], Json(wire::SignedOut { logout_url })).into_response())
}

async fn list(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::OpenSession>> {
    Ok(Json(identity::sessions::list(&app.service, &caller).await?))
}

async fn revoke(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(id): Path<String>,
) -> Result<Done, Failure> {
    identity::sessions::revoke(&app.service, &caller, &id).await?;
    Ok(Done)
}
