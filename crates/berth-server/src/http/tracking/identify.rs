//! Authentication for MLflow's routes, with refusals in the audit log. Unlike the guard of Berth's own
//! routes, it caches callers and answers in MLflow's format.

use super::answer::of_fault;
use crate::app::App;
use crate::http::given;
use crate::http::visitor::Visitor;
use crate::tracking::{READ, WRITE};
use berth_service::admin;
use berth_service::caller::{self, Caller, Unidentified};
use berth_service::refusals::Refusal;
use berth_tracker::{Access, Actor, Error, Op, Right};

/// A caller, with the user name of basic authentication.
pub type Found = (Caller, Option<String>);

/// A refusal before the server knows the caller.
pub fn refusal(op: &Op, visitor: &Visitor, target: &str) -> Refusal {
    Refusal {
        from: visitor.address.clone(),
        target: target.to_owned(),
        method: op.method.to_owned(),
        what: op.id.to_owned(),
        ..Refusal::default()
    }
}

/// Finds the caller. The audit log records refusals.
pub async fn identified(
    app: &App,
    op: &Op,
    visitor: &Visitor,
    mut refused: Refusal,
) -> Result<Found, Error> {
    let found = look_up(app, op.access == Access::Write, visitor, &mut refused).await;
    found.map_err(|Unidentified { caller, fault }| {
        if let Some(caller) = &caller {
            refused.by(caller.user(), &caller.token().id);
        }
        let error = of_fault(&fault);
        record(app, op, refused, &error);
        error
    })
}

async fn look_up(
    app: &App,
    writes: bool,
    visitor: &Visitor,
    refused: &mut Refusal,
) -> Result<Found, Unidentified> {
    let unreadable =
        |failure: crate::http::answer::Failure| Unidentified { caller: None, fault: failure.0 };
    let from = visitor.address.clone();
    if let Some(given) = given::of_any_client(&visitor.headers).map_err(unreadable)? {
        refused.claimed_token = Refusal::of(&READ, Some(&given.token)).claimed_token;
        let found = app.tracking.known.caller(&app.service, &given.token, from, writes).await;
        return found.map(|caller| (caller, given.name));
    }
    // A browser that is signed in to the portal.
    let session = given::session(app, visitor).map_err(unreadable)?;
    let route = if writes { &WRITE } else { &READ };
    let caller = caller::identify(&app.service, session, from, route).await?;
    Ok((caller, None))
}

/// Records in the audit log that the server refused a caller, or a change of something that does not
/// exist for the caller. It does not record invalid requests, because training scripts send thousands
/// of them.
pub fn record(app: &App, op: &Op, refusal: Refusal, error: &Error) {
    let status = error.code.status();
    let hides = status == 404 && op.access == Access::Write;
    if matches!(status, 401 | 403) || hides {
        let code = error.code.word().to_owned();
        let why = error.message.clone();
        admin::refusals::note(&app.service, Refusal { status, code, why, ..refusal });
    }
}

/// The caller of a public route, which has no rights.
pub struct Stranger;

impl Actor for Stranger {
    fn user(&self) -> &str {
        ""
    }
    fn team(&self) -> Option<&str> {
        None
    }
    fn may(&self, _: Right, _: &str, _: Option<&str>) -> bool {
        false
    }
    fn is_team(&self, _: &str) -> bool {
        false
    }
}
