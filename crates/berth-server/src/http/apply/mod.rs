//! Teams, queues, policy, budgets, classes, prices and projects as files say: what that would
//! change, and changing it, all or nothing.

mod compare;
mod read;
mod set_up;
mod words;

use super::answer::{Answer, Fault, Json};
use super::auth::Caller;
use super::extract::Body;
use super::identity::team_removal;
use crate::app::App;
use crate::engine::{Act, Write};
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire::{ApplyRequest, ChangeKind, Diff, DocumentKind};
use berth_api::{Code, FieldError, Problem};
use berth_model::{Event, Name};
use compare::{Leaving, Outcome};
use read::Mistake;
use serde_json::json;
use set_up::SetUp;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "apply" => on(filter, apply),
        "diff" => on(filter, diff),
        _ => return None,
    })
}

async fn diff(
    State(app): State<App>,
    _: Caller,
    Body(request): Body<ApplyRequest>,
) -> Answer<Diff> {
    let outcome = outcome(&app, &request).await?;
    Ok(Json(Diff { changes: outcome.changes, applied: false }))
}

async fn apply(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<ApplyRequest>,
) -> Answer<Diff> {
    let outcome = outcome(&app, &request).await?;
    for change in &outcome.changes {
        may_change(&caller, change.kind)?;
    }
    if outcome.changes.is_empty() {
        return Ok(Json(Diff { changes: outcome.changes, applied: true }));
    }
    let audit = caller.audit("documents", summary(&outcome));
    let Outcome { changes, mut events, documents: mut batch, leaving } = outcome;
    let names: Vec<String> = leaving.iter().map(|one| one.name.clone()).collect();
    for Leaving { name, is_team } in &leaving {
        match is_team {
            true => events.extend(team_removal(&app, name, &names, &mut batch).await?),
            false => events.push(Event::QueueRemoved { queue: Name::new(name) }),
        }
    }
    let write =
        Write { act: Act::Events(events), documents: batch, audit: Some(audit), once: None };
    app.engine.write(write).await?;
    Ok(Json(Diff { changes, applied: true }))
}

fn may_change(caller: &Caller, kind: DocumentKind) -> Result<(), Fault> {
    caller.must(kind.permission(), None, None)
}

/// What the documents would change of what is set up.
async fn outcome(app: &App, request: &ApplyRequest) -> Result<Outcome, Fault> {
    let documents = read::read(&request.documents).map_err(|mistakes| wrong(&mistakes))?;
    let now = SetUp::load(app).await?;
    compare::compare(&documents, &now, request.prune).map_err(|mistakes| wrong(&mistakes))
}

fn wrong(mistakes: &[Mistake]) -> Fault {
    let errors: Vec<FieldError> = mistakes.iter().map(Mistake::error).collect();
    let detail: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Problem::new(Code::BadDocuments, detail.join("\n")).errors(errors).into()
}

/// What the audit log says: every change, without repeating what was there before.
fn summary(outcome: &Outcome) -> serde_json::Value {
    let each = outcome.changes.iter().map(|change| {
        let sign = match change.change {
            ChangeKind::Add => '+',
            ChangeKind::Change => '~',
            ChangeKind::Remove => '-',
        };
        let new = change.new.as_deref().unwrap_or_default();
        format!("{sign} {} {} {} {new}", change.kind.word(), change.name, change.path)
            .trim_end()
            .to_owned()
    });
    json!({ "changes": each.collect::<Vec<_>>() })
}
