//! Sign-ins within their limits.

use crate::app::App;
use crate::http::answer::Failure;
use crate::http::visitor::Visitor;
use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_engine::clock;
use berth_service::sign_in::{Door, Limited};
use std::time::Duration;
use tokio::time::Instant;

/// A refusal takes at least so long, whatever it is refused for.
const LEAST: Duration = Duration::from_millis(250);

/// Tries something that takes a secret. What the visitor shows is looked at first: it cannot be guessed,
/// and failures of others at the same address must not lock the visitor out. Failures are limited in
/// number, and their time says nothing.
pub async fn attempt<T>(
    app: &App,
    door: Door,
    visitor: &Visitor,
    tries: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Response> {
    let begun = Instant::now();
    let look = app.service.sign_in_limits.look(door).await;
    let look = look.map_err(|limited| too_many(app, limited))?;
    let tried = tries.await;
    drop(look);
    match tried {
        Ok(done) => Ok(done),
        // It is not the visitor who failed.
        Err(failure) if failure.0.0.status >= 500 => Err(failure.into_response()),
        Err(failure) => {
            let refused = match enter(app, door, visitor) {
                None => {
                    app.service.sessions.note_refused();
                    failure.into_response()
                }
                Some(limited) => limited,
            };
            tokio::time::sleep_until(begun + LEAST).await;
            Err(refused)
        }
    }
}

/// Tries something that asks another server. The turn is taken before, so that made-up requests reach that
/// server no more often than the limit says, also while it is down. Success gives the turn back.
pub async fn turn<T>(
    app: &App,
    door: Door,
    visitor: &Visitor,
    tries: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Response> {
    let begun = Instant::now();
    if let Some(limited) = enter(app, door, visitor) {
        return Err(limited);
    }
    let give_back = || app.service.sign_in_limits.give_back(door, &visitor.address, clock::now());
    let look = app.service.sign_in_limits.look(door).await.map_err(|limited| {
        // Nothing was asked.
        give_back();
        too_many(app, limited)
    })?;
    let tried = tries.await;
    drop(look);
    match tried {
        Ok(done) => {
            give_back();
            Ok(done)
        }
        Err(failure) => {
            app.service.sessions.note_refused();
            tokio::time::sleep_until(begun + LEAST).await;
            Err(failure.into_response())
        }
    }
}

/// Takes a try that counts whatever comes of it. Returns the refusal, where it is one too many.
pub fn enter(app: &App, door: Door, visitor: &Visitor) -> Option<Response> {
    let entered = app.service.sign_in_limits.enter(door, &visitor.address, clock::now());
    entered.err().map(|limited| too_many(app, limited))
}

pub fn too_many(app: &App, limited: Limited) -> Response {
    app.service.sessions.note_refused();
    let seconds = (limited.after.0 + 999) / 1_000;
    let detail = format!("there were too many tries; the next is taken in {seconds} s");
    let mut response = Failure::new(Code::TooManySignIns, detail).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}
