//! Command lines that sign in by a code.

use super::limited::{self, too_many};
use crate::app::App;
use crate::http::answer::{Created, Done, Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::{Body, Path};
use crate::http::visitor::Visitor;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Code;
use berth_api::wire::{self, DeviceState};
use berth_service::sign_in::{self, DeviceFailed, Door};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "start_device" => on(filter, start),
        "device_token" => on(filter, token),
        "get_device" => on(filter, get),
        "answer_device" => on(filter, answer),
        _ => return None,
    })
}

async fn start(
    State(app): State<App>,
    visitor: Visitor,
    Body(wish): Body<wire::DeviceStart>,
) -> Response {
    if let Some(response) = limited::enter(&app, Door::Begin, &visitor) {
        return response;
    }
    let base = visitor.base(&app);
    match sign_in::begin(&app.service, &wish, &visitor.address, &base) {
        Ok(started) => Created(started).into_response(),
        Err(fault) => Failure(fault).into_response(),
    }
}

/// A code that is none counts as a failure, and an answer all the same: it may have ended.
async fn token(
    State(app): State<App>,
    visitor: Visitor,
    Body(wish): Body<wire::DevicePoll>,
) -> Response {
    let polled = limited::attempt(&app, Door::Secret, &visitor, async {
        let polled = sign_in::poll(&app.service, &wish, &visitor.address).await?;
        match polled.state {
            DeviceState::Expired => Err(Failure::new(Code::NotFound, "expired")),
            _ => Ok(polled),
        }
    });
    match polled.await {
        Ok(polled) => Json(polled).into_response(),
        Err(response) if response.status() == 404 => {
            Json(wire::DeviceToken { state: DeviceState::Expired, token: None }).into_response()
        }
        Err(response) => response,
    }
}

async fn get(State(app): State<App>, Asking(caller): Asking, Path(code): Path<String>) -> Response {
    match sign_in::ask(&app.service, &caller, &code) {
        Ok(asks) => Json(asks).into_response(),
        Err(failed) => refused(&app, failed),
    }
}

async fn answer(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(code): Path<String>,
    Body(wish): Body<wire::DeviceAnswer>,
) -> Response {
    match sign_in::answer(&app.service, &caller, &code, wish.approve).await {
        Ok(()) => Done.into_response(),
        Err(failed) => refused(&app, failed),
    }
}

fn refused(app: &App, failed: DeviceFailed) -> Response {
    match failed {
        DeviceFailed::Fault(fault) => Failure(fault).into_response(),
        DeviceFailed::Limited(limited) => too_many(app, limited),
    }
}
