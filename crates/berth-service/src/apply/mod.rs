//! Teams, queues, policy, budgets, classes, prices, projects and where messages go, as files say:
//! what that would change, and changing it, all or nothing.

mod compare;
mod quotas;
mod set_up;
mod words;

use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::identity::team_removal;
use crate::names;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{ApplyRequest, Change, ChangeKind, Diff, DocumentKind};
use berth_api::{Code, FieldError, Problem};
use berth_engine::{Act, Write};
use berth_file::documents::{self, Document, Want};
use berth_file::error::Error;
use berth_model::{Event, Name};
use compare::{Leaving, Outcome};
use serde_json::json;
use set_up::SetUp;

pub async fn diff(service: &Service, request: ApplyRequest) -> Result<Diff, Fault> {
    let outcome = outcome(service, &SetUp::load(service).await?, &request)?;
    Ok(Diff { changes: outcome.changes, warnings: outcome.warnings, applied: false })
}

/// The same for a caller who may make all of these changes; refuses others.
pub async fn allowed_diff(
    service: &Service,
    caller: &Caller,
    request: ApplyRequest,
) -> Result<Diff, Fault> {
    let diff = diff(service, request).await?;
    diff.changes.iter().try_for_each(|change| may_change(caller, change))?;
    Ok(diff)
}

pub async fn apply(
    service: &Service,
    caller: &Caller,
    request: ApplyRequest,
) -> Result<Diff, Fault> {
    let before = SetUp::load(service).await?;
    let outcome = outcome(service, &before, &request)?;
    for change in &outcome.changes {
        may_change(caller, change)?;
    }
    if outcome.changes.is_empty() {
        return Ok(Diff { changes: outcome.changes, warnings: outcome.warnings, applied: true });
    }
    let audit = caller.audit("documents", summary(&outcome));
    let Outcome { changes, warnings, mut events, documents: mut batch, leaving } = outcome;
    let names: Vec<String> = leaving.iter().map(|one| one.name.clone()).collect();
    for Leaving { name, is_team } in &leaving {
        match is_team {
            true => events.extend(team_removal(service, name, &names, &mut batch).await?),
            false => events.push(Event::QueueRemoved { queue: Name::new(name) }),
        }
    }
    let rules = before.rules.clone();
    let amend = move |state: &_| {
        rules.hold(state).map_err(|fault| fault.0)?;
        Ok(events)
    };
    let act = Act::Amend(Box::new(amend));
    let write = Write { documents: batch, ..Write::act(act, audit) };
    service
        .engine
        .write(write.only_if(async move |store| checks::all(before.holds(&store)).await))
        .await?;
    Ok(Diff { changes, warnings, applied: true })
}

/// Roles count in the teams below, so whoever puts a queue elsewhere says who leads it.
fn may_change(caller: &Caller, change: &Change) -> Result<(), Fault> {
    if change.kind == DocumentKind::Queue && change.path == "parent" {
        caller.must(Permission::TeamsManage, None, None)?;
    }
    caller.must(change.kind.permission(), None, None)
}

/// What the documents would change of what is set up.
fn outcome(service: &Service, now: &SetUp, request: &ApplyRequest) -> Result<Outcome, Fault> {
    let documents = documents::read(&request.documents).map_err(|mistakes| wrong(&mistakes))?;
    let mut odd: Vec<Error> = documents.iter().filter_map(misnamed).collect();
    odd.extend(documents.iter().filter_map(|document| out_of_reach(service, document)));
    if !odd.is_empty() {
        return Err(wrong(&odd));
    }
    compare::compare(&documents, now, request.prune).map_err(|mistakes| wrong(&mistakes))
}

/// A world file may call things what it likes; here the names stand in addresses.
fn misnamed(document: &Document) -> Option<Error> {
    let named: &[(&str, &str)] = match &document.want {
        Want::Team { name, .. } => &[("team", name)],
        Want::Queue(queue) => &[("queue", &queue.name)],
        Want::Project { team, name } => &[("team", team), ("project", name)],
        Want::Budget { .. }
        | Want::Policy(_)
        | Want::Classes(_)
        | Want::Prices { .. }
        | Want::Notify { .. } => &[],
    };
    let fault = named.iter().find_map(|(what, name)| names::check(what, name).err())?;
    let message = format!("{}; {}", fault.0.detail, fault.0.next);
    Some(Error { at: document.at, message })
}

/// A target of messages that nothing would ever be sent to.
fn out_of_reach(service: &Service, document: &Document) -> Option<Error> {
    let Want::Notify { url: Some(url), .. } = &document.want else { return None };
    let why = service.notify_addresses.check_url(url).err()?;
    Some(Error { at: document.at, message: format!("{why}; {}", why.next()) })
}

fn wrong(mistakes: &[Error]) -> Fault {
    let error = |mistake: &Error| FieldError {
        path: String::new(),
        line: Some(mistake.at.line),
        column: Some(mistake.at.column),
        message: mistake.message.clone(),
    };
    let errors: Vec<FieldError> = mistakes.iter().map(error).collect();
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
