//! Teams that may read a registered model of another team.

use super::call::{Call, Changed};
use super::registered::{Registered, absent_model, model_load, share_key};
use super::registry::change_model;
use super::shares::{ALL, call, must_be_other_team, put, take};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::RegisteredModel;
use crate::ports::{Actor, DocKey, DocSet, Kind, Right, Store, read};
use serde_json::json;

/// A registered model of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedModel<'a> {
    pub team: &'a str,
    pub model: &'a str,
}

async fn find(call: &Call<'_>, of: NamedModel<'_>) -> Result<Registered> {
    let NamedModel { team, model } = of;
    let absent = || absent_model(&format!("{team}/{model}"));
    // Members of the other teams may not see the list of teams.
    if !call.actor.may(Right::Read, team, None) {
        return Err(absent());
    }
    let found = call.store.docs(model_load(team, model)).await?.pop();
    let (_, doc) = found.ok_or_else(absent)?;
    Ok(Registered { team: team.to_owned(), model: read(&doc)? })
}

/// The teams that may read a registered model.
pub async fn model_shares(
    store: &dyn Store,
    actor: &dyn Actor,
    of: NamedModel<'_>,
) -> Result<Vec<String>> {
    find(&call(store, actor, 0), of).await.map(|found| found.model.shared_with)
}

/// Shares a registered model with a team, or unshares it. Returns the teams that may now read it, and the
/// change for the audit log.
pub async fn set_model_share(
    store: &dyn Store,
    actor: &dyn Actor,
    of: NamedModel<'_>,
    (with, shared): (&str, bool),
    now: i64,
) -> Result<(Vec<String>, Changed)> {
    let call = call(store, actor, now);
    let found = find(&call, of).await?;
    call.must(Right::Manage, &found.team, Some(&found.model.by))?;
    if shared {
        must_be_other_team(&call, ("model", &found.team), with)?;
        must_have_room(&call, &found, with).await?;
    }
    let (entry, team) = (share_key(with, &found.key()), with.to_owned());
    let change = move |model: &mut RegisteredModel, docs: &mut DocSet| {
        set(docs, entry, shared);
        match shared {
            true => put(&mut model.shared_with, team, ("A model", limits::SHARES_PER_MODEL)),
            false => take(&mut model.shared_with, &team, "model"),
        }
    };
    let changed = change_model(&call, Right::Manage, &found, Vec::new(), change).await?;
    let detail = json!({ "team": with });
    Ok((changed.model.shared_with.clone(), Changed { target: found.target(), detail }))
}

fn set(docs: &mut DocSet, entry: DocKey, shared: bool) {
    match shared {
        true => docs.put(entry, &json!({})),
        false => docs.remove(&entry),
    }
}

/// A search of a team reads all models that are shared with it, so their number is limited.
async fn must_have_room(call: &Call<'_>, found: &Registered, with: &str) -> Result<()> {
    if found.model.shared_with.iter().any(|one| one == with) {
        return Ok(());
    }
    let most = limits::MODELS_SHARED_WITH_TEAM;
    if call.store.count(Kind::ModelShare, with.to_owned()).await? < most {
        return Ok(());
    }
    let whom = if with == ALL { "every team".to_owned() } else { format!("team {with}") };
    Err(Error::over_limit(format!(
        "{most} models are shared with {whom}, which is the limit. Unshare one of them"
    )))
}
