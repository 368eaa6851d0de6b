//! Acting on jobs that have been submitted.

use super::find::{self, Found};
use super::list::shown;
use super::own_budget;
use super::priority;
use crate::audit::server_audit;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::{Act, Write};
use berth_file::error::{did_you_mean, or_list};
use berth_model::{JobChange, JobId, Name, Span, Time};
use berth_store::{AuditEntry, JobRow};
use serde_json::json;

pub async fn stop(
    service: &Service,
    caller: &Caller,
    wanted: &str,
    how: wire::JobStop,
) -> Result<wire::Job, Fault> {
    let found = controlled(service, caller, wanted).await?;
    must_live(&found)?;
    let act = Act::Cancel { job: found.id, now: how.now };
    change(service, caller, found, act, json!({ "now": how.now })).await
}

/// Stops a running job because of its own rule. The server is the actor; the reason contains the rule.
pub async fn end_early(service: &Service, job: JobId, rule: &str, why: &str) -> Result<(), Fault> {
    let act = Act::EndEarly { job, why: why.to_owned() };
    let audit = server_audit("berth", "stop_rule", format!("job {job}"));
    let detail = json!({ "rule": rule, "why": why }).to_string();
    service.engine.write(Write::act(act, AuditEntry { detail, ..audit })).await?;
    Ok(())
}

pub async fn pause(service: &Service, caller: &Caller, wanted: &str) -> Result<wire::Job, Fault> {
    hold(service, caller, wanted, true).await
}

pub async fn resume(service: &Service, caller: &Caller, wanted: &str) -> Result<wire::Job, Fault> {
    hold(service, caller, wanted, false).await
}

async fn hold(
    service: &Service,
    caller: &Caller,
    wanted: &str,
    held: bool,
) -> Result<wire::Job, Fault> {
    let found = controlled(service, caller, wanted).await?;
    must_live(&found)?;
    if !held {
        must_have_budget(service, &found)?;
    }
    let act = Act::Change { job: found.id, changes: vec![JobChange::Hold(held)] };
    change(service, caller, found, act, json!({})).await
}

pub async fn set(
    service: &Service,
    caller: &Caller,
    wanted: &str,
    wish: wire::JobChange,
) -> Result<wire::Job, Fault> {
    let found = controlled(service, caller, wanted).await?;
    must_live(&found)?;
    if let Some(team) = &wish.team {
        caller.must(Permission::JobsSubmit, Some(team), Some(caller.user()))?;
    }
    let changes = changes(service, &wish)?;
    must_be_allowed_priority(service, caller, &found, &wish, &changes)?;
    if changes.is_empty() {
        return Ok(shown(service, &found));
    }
    let detail = serde_json::to_value(&wish).unwrap_or_default();
    let act = Act::Change { job: found.id, changes };
    change(service, caller, found, act, detail).await
}

/// A priority is a right in the team it is used in, so it is looked at with a new team, too.
fn must_be_allowed_priority(
    service: &Service,
    caller: &Caller,
    found: &Found,
    wish: &wire::JobChange,
    changes: &[JobChange],
) -> Result<(), Fault> {
    let new = changes.iter().find_map(|change| match change {
        JobChange::Priority(priority) => Some(*priority),
        _ => None,
    });
    if new.is_none() && wish.team.is_none() {
        return Ok(());
    }
    let row = found.first();
    let team = wish.team.as_deref().unwrap_or(&row.team);
    let highest = found.rows.iter().map(|row| row.priority).max().unwrap_or(row.priority);
    priority::checked(service, caller, team, new.unwrap_or(highest), true).map(drop)
}

/// Jobs that a refusal names.
const MOST_NAMED: usize = 10;

const CHANGES: &str = "change it as in `berth set 17 priority=high time=6h deadline=2d`";

/// The job that is meant. A name stands for the only live job that has it.
async fn controlled(service: &Service, caller: &Caller, wanted: &str) -> Result<Found, Fault> {
    let live = match wanted.parse::<JobId>() {
        Ok(_) => Vec::new(),
        Err(_) => live_of_name(service, caller, wanted),
    };
    match live.as_slice() {
        [] => find::job(service, caller, wanted, Permission::JobsControl).await,
        [one] => find::job(service, caller, &one.to_string(), Permission::JobsControl).await,
        several => Err(ambiguous(wanted, several)),
    }
}

/// The numbers of jobs of a name that have not ended and that the caller controls, newest first.
fn live_of_name(service: &Service, caller: &Caller, name: &str) -> Vec<u64> {
    let core = service.engine.core();
    let controls = |row: &JobRow| {
        let (team, user) = (Some(row.team.as_str()), Some(row.user.as_str()));
        caller.may(Permission::JobsControl, team, user)
    };
    let live = core.jobs.values().map(|job| &job.row);
    let live = live.filter(|row| row.name == name && !row.state.is_final() && controls(row));
    let mut numbers: Vec<u64> = live.map(|row| row.id.number).collect();
    numbers.dedup();
    numbers.reverse();
    numbers
}

fn ambiguous(name: &str, numbers: &[u64]) -> Fault {
    let some = numbers.iter().take(MOST_NAMED).map(ToString::to_string).collect::<Vec<_>>();
    let more = match numbers.len().checked_sub(MOST_NAMED) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    let detail =
        format!("{} jobs named `{name}` have not ended: {}{more}", numbers.len(), some.join(", "));
    let next = format!("name one by its number, such as {}", numbers[0]);
    Fault::new(Code::BadRequest, detail).next(next)
}

fn must_live(found: &Found) -> Result<(), Fault> {
    if found.rows.iter().any(|row| !row.state.is_final()) {
        return Ok(());
    }
    let (id, state) = (found.id, found.first().state.as_str());
    let next = format!("run it again with `berth clone {id}`");
    Err(Fault::new(Code::WrongState, format!("job {id} is {state} already")).next(next))
}

/// Refuses to resume what has spent its own budget. An array is resumed for its other elements.
fn must_have_budget(service: &Service, found: &Found) -> Result<(), Fault> {
    let core = service.engine.core();
    let live = || found.rows.iter().filter(|row| !row.state.is_final());
    let spent = live().map(|row| own_budget::spent(&core, row.id));
    match spent.collect::<Option<Vec<_>>>().as_deref() {
        Some([first, ..]) => Err(first.fault()),
        Some([]) | None => Ok(()),
    }
}

async fn change(
    service: &Service,
    caller: &Caller,
    found: Found,
    act: Act,
    detail: serde_json::Value,
) -> Result<wire::Job, Fault> {
    let audit = caller.audit(format!("job {}", found.id), detail);
    service.engine.write(Write::act(act, audit)).await?;
    // Its row has changed with it.
    let again = find::job(service, caller, &found.id.to_string(), Permission::JobsRead).await?;
    Ok(shown(service, &again))
}

fn changes(service: &Service, wish: &wire::JobChange) -> Result<Vec<JobChange>, Fault> {
    let bad = |detail: String| Fault::new(Code::BadRequest, detail).next(CHANGES);
    let mut changes = Vec::new();
    if let Some(priority) = &wish.priority {
        changes.push(JobChange::Priority(priority_of(service, priority)?));
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
    span.map(|span| berth_engine::clock::now() + span).map_err(|_| {
        Fault::new(Code::BadRequest, format!("deadline: found `{text}`, {wrong}")).next(CHANGES)
    })
}

fn priority_of(service: &Service, text: &str) -> Result<i32, Fault> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let core = service.engine.core();
    let classes = core.state.classes();
    classes.get(text).map(|class| class.value).ok_or_else(|| {
        let names = || classes.keys().map(Name::as_str);
        let detail = format!("there is no priority class `{text}`{}", did_you_mean(text, names()));
        Fault::new(Code::BadRequest, detail).next(format!("use {}, or a number", or_list(names())))
    })
}
