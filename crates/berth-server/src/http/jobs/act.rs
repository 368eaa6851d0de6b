//! Acting on jobs that have been submitted.

use super::find::{self, Found};
use super::list::shown;
use crate::app::App;
use crate::engine::{Act, Write};
use crate::http::answer::{Answer, Fault, Json};
use crate::http::auth::Caller;
use crate::http::extract::{Body, Path};
use axum::extract::State;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_model::{JobChange, Name, Span, Time};
use serde_json::json;

pub async fn stop(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
    Body(how): Body<wire::JobStop>,
) -> Answer<wire::Job> {
    let found = controlled(&app, &caller, &wanted).await?;
    must_live(&found)?;
    let act = Act::Cancel { job: found.id, now: how.now };
    change(&app, &caller, found, act, json!({ "now": how.now })).await
}

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
) -> Answer<wire::Job> {
    hold(app, caller, wanted, true).await
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
) -> Answer<wire::Job> {
    hold(app, caller, wanted, false).await
}

async fn hold(app: App, caller: Caller, wanted: String, held: bool) -> Answer<wire::Job> {
    let found = controlled(&app, &caller, &wanted).await?;
    must_live(&found)?;
    let act = Act::Change { job: found.id, changes: vec![JobChange::Hold(held)] };
    change(&app, &caller, found, act, json!({})).await
}

pub async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
    Body(wish): Body<wire::JobChange>,
) -> Answer<wire::Job> {
    let found = controlled(&app, &caller, &wanted).await?;
    must_live(&found)?;
    if let Some(team) = &wish.team {
        caller.must(Permission::JobsSubmit, Some(team), Some(caller.user()))?;
    }
    let changes = changes(&app, &wish)?;
    if changes.is_empty() {
        return Ok(Json(shown(&app, &found)));
    }
    let detail = serde_json::to_value(&wish).unwrap_or_default();
    let act = Act::Change { job: found.id, changes };
    change(&app, &caller, found, act, detail).await
}

async fn controlled(app: &App, caller: &Caller, wanted: &str) -> Result<Found, Fault> {
    find::job(app, caller, wanted, Permission::JobsControl).await
}

fn must_live(found: &Found) -> Result<(), Fault> {
    if found.rows.iter().any(|row| !row.state.is_final()) {
        return Ok(());
    }
    let (id, state) = (found.id, found.first().state.as_str());
    let next = format!("run it again with `berth clone {id}`");
    Err(Fault::new(Code::WrongState, format!("job {id} is {state} already")).next(next))
}

async fn change(
    app: &App,
    caller: &Caller,
    found: Found,
    act: Act,
    detail: serde_json::Value,
) -> Answer<wire::Job> {
    let audit = caller.audit(format!("job {}", found.id), detail);
    app.engine.write(Write::act(act, audit)).await?;
    // Its row has changed with it.
    let again = find::job(app, caller, &found.id.to_string(), Permission::JobsRead).await?;
    Ok(Json(shown(app, &again)))
}

fn changes(app: &App, wish: &wire::JobChange) -> Result<Vec<JobChange>, Fault> {
    let bad = |detail: String| Fault::new(Code::BadRequest, detail);
    let mut changes = Vec::new();
    if let Some(priority) = &wish.priority {
        changes.push(JobChange::Priority(priority_of(app, priority)?));
    }
    if let Some(time) = &wish.time {
        let limit: Span = time.parse().map_err(|why| bad(format!("time: {why}")))?;
        changes.push(JobChange::TimeLimit(limit));
    }
    if let Some(deadline) = &wish.deadline {
        changes.push(JobChange::Deadline(deadline.as_deref().map(moment).transpose()?));
    }
    if let Some(team) = &wish.team {
        changes.push(JobChange::Queue(Name::new(team)));
    }
    if let Some(held) = wish.hold {
        changes.push(JobChange::Hold(held));
    }
    Ok(changes)
}

/// A moment, or a time from now on.
fn moment(text: &str) -> Result<Time, Fault> {
    if let Ok(at) = text.parse::<Time>() {
        return Ok(at);
    }
    let span: Result<Span, _> = text.parse();
    let wrong = "expected a moment such as 2026-12-01T09:00:00Z, or a time from now such as 6h";
    span.map(|span| crate::clock::now() + span)
        .map_err(|_| Fault::new(Code::BadRequest, format!("deadline: found `{text}`, {wrong}")))
}

fn priority_of(app: &App, text: &str) -> Result<i32, Fault> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let core = app.engine.core();
    let classes = core.state.classes();
    classes.get(text).map(|class| class.value).ok_or_else(|| {
        let names: Vec<&str> = classes.keys().map(Name::as_str).collect();
        let detail = format!("`{text}` is no class; there is {}", names.join(", "));
        Fault::new(Code::BadRequest, detail)
    })
}
