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
const ALL: &str = "*";

/// An experiment of a team, by its name or its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    pub team: &'a str,
    pub experiment: &'a str,
}

fn call<'a>(store: &'a dyn Store, actor: &'a dyn Actor, now: i64) -> Call<'a> {
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

async fn share(call: &Call<'_>, found: &Experiment, team: &str) -> Result<Changed> {
    if team != ALL && !call.actor.is_team(team) {
        return Err(Error::absent(format!("Team '{team}' does not exist")));
    }
    if team == found.team {
        return Err(Error::invalid(format!("The experiment belongs to team {team} itself")));
    }
    let with = team.to_owned();
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        if !there.shared_with.contains(&with) {
            there.shared_with.push(with);
        }
        match there.shared_with.len() > limits::SHARES_PER_EXPERIMENT {
            true => Err(Error::over_limit(format!(
                "An experiment can be shared with {} teams",
                limits::SHARES_PER_EXPERIMENT
            ))),
            false => Ok(()),
        }
    };
    call.edit_experiment(found, change).await?;
    Ok(Changed { target: target(found), detail: json!({ "team": team }) })
}

async fn unshare(call: &Call<'_>, found: &Experiment, team: &str) -> Result<Changed> {
    let with = team.to_owned();
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        let before = there.shared_with.len();
        there.shared_with.retain(|one| *one != with);
        match there.shared_with.len() == before {
            true => Err(Error::absent(format!("The experiment is not shared with '{with}'"))),
            false => Ok(()),
        }
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
