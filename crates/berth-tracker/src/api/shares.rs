//! Teams that may read an experiment of another team. MLflow has no routes for this.

use super::call::{Call, Changed, Reply};
use super::experiments::{own, target};
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::limits;
use crate::model::Experiment;
use crate::ports::{Actor, DocSet, Right, Store};
use serde_json::json;
use std::sync::Arc;

/// Every team.
pub const ALL: &str = "*";

/// An experiment of a team, by its name or its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    pub team: &'a str,
    pub experiment: &'a str,
}

pub fn call<'a>(store: &'a dyn Store, actor: &'a dyn Actor, now: i64) -> Call<'a> {
    Call { store, actor, fields: Fields::default(), parts: Vec::new(), body: b"", now }
}

fn find(call: &Call<'_>, of: Named<'_>) -> Result<Arc<Experiment>> {
    let by_number = of.experiment.parse().ok().and_then(|no| call.store.experiment(no));
    let found = match by_number.filter(|found| found.team == of.team) {
        Some(found) => Some(found),
        None => call.store.experiment_named(of.team, of.experiment),
    };
    // Members of the other teams may not see the list of teams.
    let found = found.filter(|found| call.actor.may(Right::Read, &found.team, None));
    let Named { team, experiment } = of;
    found.ok_or_else(|| Error::absent(format!("Team {team} has no experiment '{experiment}'")))
}

/// The teams that may read an experiment.
pub fn shares(store: &dyn Store, actor: &dyn Actor, of: Named<'_>) -> Result<Vec<String>> {
    find(&call(store, actor, 0), of).map(|found| found.shared_with.clone())
}

/// Shares an experiment with a team, or unshares it. Returns the teams that may now read it, and the
/// change for the audit log.
pub async fn set_share(
    store: &dyn Store,
    actor: &dyn Actor,
    of: Named<'_>,
    (with, shared): (&str, bool),
    now: i64,
) -> Result<(Vec<String>, Changed)> {
    let call = call(store, actor, now);
    let found = find(&call, of)?;
    call.must(Right::Manage, &found.team, Some(&found.by))?;
    let changed = match shared {
        true => share(&call, &found, with).await?,
        false => unshare(&call, &found, with).await?,
    };
    let teams = store.experiment(found.no).map(|found| found.shared_with.clone());
    Ok((teams.unwrap_or_default(), changed))
}

/// Refuses to share with a team that does not exist, or with the owner.
pub fn must_be_other_team(call: &Call<'_>, (what, own): (&str, &str), with: &str) -> Result<()> {
    if with != ALL && !call.actor.is_team(with) {
        return Err(Error::absent(format!("Team '{with}' does not exist")));
    }
    match with == own {
        true => Err(Error::invalid(format!("The {what} belongs to team {with} itself"))),
        false => Ok(()),
    }
}

/// Adds a team to those that may read something, up to a limit.
pub fn put(teams: &mut Vec<String>, with: String, (what, most): (&str, usize)) -> Result<()> {
    if !teams.contains(&with) {
        teams.push(with);
    }
    match teams.len() > most {
        true => Err(Error::over_limit(format!("{what} can be shared with {most} teams"))),
        false => Ok(()),
    }
}

/// Removes a team from those that may read something.
pub fn take(teams: &mut Vec<String>, with: &str, what: &str) -> Result<()> {
    let before = teams.len();
    teams.retain(|one| one != with);
    match teams.len() == before {
        true => Err(Error::absent(format!("The {what} is not shared with '{with}'"))),
        false => Ok(()),
    }
}

async fn share(call: &Call<'_>, found: &Experiment, team: &str) -> Result<Changed> {
    must_be_other_team(call, ("experiment", &found.team), team)?;
    let with = team.to_owned();
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        put(&mut there.shared_with, with, ("An experiment", limits::SHARES_PER_EXPERIMENT))
    };
    call.edit_experiment(found, change).await?;
    Ok(Changed { target: target(found), detail: json!({ "team": team }) })
}

async fn unshare(call: &Call<'_>, found: &Experiment, team: &str) -> Result<Changed> {
    let with = team.to_owned();
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        take(&mut there.shared_with, &with, "experiment")
    };
    call.edit_experiment(found, change).await?;
    Ok(Changed { target: target(found), detail: json!({ "team": team }) })
}

/// The same for clients of MLflow's routes.
pub async fn of_experiment(call: &Call<'_>) -> Result<Reply> {
    let found = call.experiment(&call.fields.required("experiment_id")?).await?;
    call.must(Right::Read, &found.team, None)?;
    Ok(Reply::json(&json!({ "teams": found.shared_with })))
}

pub async fn add(call: &Call<'_>) -> Result<Reply> {
    let found = own(call, Right::Manage).await?;
    let changed = share(call, &found, &call.fields.required("team")?).await?;
    Ok(Reply { changed: Some(changed), ..Reply::empty() })
}

pub async fn remove(call: &Call<'_>) -> Result<Reply> {
    let found = own(call, Right::Manage).await?;
    let changed = unshare(call, &found, &call.fields.required("team")?).await?;
    Ok(Reply { changed: Some(changed), ..Reply::empty() })
}
