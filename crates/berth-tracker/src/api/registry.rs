//! Registered models: making, finding, changing and deleting them, and their aliases.

use super::call::{Call, Reply, Search, checked_tags, listed, put_tag};
use super::registered::{
    Registered, absent_model, absent_version, find_model, model_key, model_load, named,
    names_prompts, number, share_key, shared_with, stage, target, version_key, versions_load,
    with_aliases, without_own_team,
};
use crate::encode;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::grammar::{self, Entity, Field, Things};
use crate::limits;
use crate::model::{ModelVersion, RegisteredModel, is_prompt};
use crate::ports::{DocChange, DocSet, Kind, Load, Right, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PAGE: usize = 100;
const MOST_PAGE: usize = 1000;

/// The newest version in each stage. A model lists no other versions.
async fn newest(call: &Call<'_>, of: &Registered) -> Result<Vec<ModelVersion>> {
    let mut found = Vec::new();
    for version in of.model.newest.values() {
        let key = version_key(&of.team, &of.model.name, *version);
        let load =
            Load { kind: key.kind, scope: key.scope, name: Some(key.name), sub: Some(key.sub) };
        if let Some((_, doc)) = call.store.docs(load).await?.pop() {
            found.push(ModelVersion { name: of.name(call), ..read(&doc)? });
        }
    }
    Ok(found)
}

async fn item(call: &Call<'_>, of: &Registered) -> Result<Value> {
    let newest = newest(call, of).await?;
    let model = RegisteredModel { name: of.name(call), ..of.model.clone() };
    Ok(encode::registered_model(&model, &newest))
}

async fn shown(call: &Call<'_>, of: &Registered) -> Result<Reply> {
    Ok(Reply::json(&json!({ "registered_model": item(call, of).await? })))
}

fn described(call: &Call<'_>) -> Result<Option<String>> {
    let description = call.fields.text("description")?;
    limits::length("description", description.as_deref().unwrap_or(""), limits::DESCRIPTION)?;
    Ok(description)
}

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let name = call.fields.required("name")?;
    limits::model_name(&name)?;
    let team = call.team_for(Right::Write)?.to_owned();
    let kept = call.store.count(Kind::RegisteredModel, team.clone()).await?;
    if kept >= limits::REGISTERED_MODELS_PER_TEAM as u64 {
        let said = format!("Team {team} has {kept} registered models, which is the limit");
        return Err(Error::over_limit(said));
    }
    let model = RegisteredModel {
        name: name.clone(),
        created: call.now,
        updated: call.now,
        by: call.actor.user().to_owned(),
        description: described(call)?,
        deployment_job: call.fields.text("deployment_job_id")?,
        tags: checked_tags(call.fields.pairs("tags")?, limits::REGISTRY_TAG_VALUE)?,
        aliases: BTreeMap::new(),
        last_version: 0,
        newest: BTreeMap::new(),
        shared_with: Vec::new(),
    };
    let (key, made) = (model_key(&team, &name), model.clone());
    let edit = move |docs: &mut DocSet| {
        if let Some(there) = docs.get::<RegisteredModel>(&key)? {
            let (old, new) = (is_prompt(&there.tags), is_prompt(&made.tags));
            let kind = if old { "prompt" } else { "registered model" };
            let said = match old == new {
                true => format!("Registered Model (name={}) already exists.", key.name),
                false => format!("A {kind} with the name {} already exists.", key.name),
            };
            return Err(Error::exists(said));
        }
        docs.put(key, &made);
        Ok(Vec::new())
    };
    let load = vec![model_load(&team, &name)];
    call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    let data = json!({
        "name": model.name,
        "tags": model.tags,
        "description": model.description,
    });
    let event = Event::of(("registered_model", "created"), &model.tags, data);
    let made = Registered { team, model };
    Ok(shown(call, &made).await?.noted(made.target(), json!({})).event(event))
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    shown(call, &find_model(call, &named(call)?).await?).await
}

/// Changes a model.
pub async fn edit(
    call: &Call<'_>,
    right: Right,
    more: Vec<Load>,
    change: impl FnOnce(&mut RegisteredModel, &mut DocSet) -> Result<()> + Send + 'static,
) -> Result<Registered> {
    let found = find_model(call, &named(call)?).await?;
    found.must_be_own(call)?;
    change_model(call, right, &found, more, change).await
}

/// Changes a model of any team in which the caller has the right.
pub async fn change_model(
    call: &Call<'_>,
    right: Right,
    found: &Registered,
    more: Vec<Load>,
    change: impl FnOnce(&mut RegisteredModel, &mut DocSet) -> Result<()> + Send + 'static,
) -> Result<Registered> {
    call.must(right, &found.team, Some(&found.model.by))?;
    let (key, now) = (found.key(), call.now);
    let mut load = vec![model_load(&key.scope, &key.name)];
    load.extend(more);
    let edit = move |docs: &mut DocSet| {
        let there: Option<RegisteredModel> = docs.get(&key)?;
        let mut there = there.ok_or_else(|| absent_model(&key.name))?;
        there.updated = now;
        change(&mut there, docs)?;
        // A renamed model has a new key.
        docs.put(model_key(&key.scope, &there.name), &there);
        Ok(serde_json::to_vec(&there).expect("documents are plain data"))
    };
    let changed = call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    let model = serde_json::from_slice(&changed).map_err(|why| Error::internal(why.to_string()))?;
    Ok(Registered { team: found.team.clone(), model })
}

pub async fn rename(call: &Call<'_>) -> Result<Reply> {
    let (name, new) = (named(call)?, call.fields.required("new_name")?);
    limits::model_name(&new)?;
    let team = call.team()?.to_owned();
    let target = target(&team, &name);
    let detail = json!({ "to": new });
    if new == name {
        return shown(call, &find_model(call, &name).await?).await;
    }
    let more = vec![model_load(&team, &new), versions_load(&team, &name)];
    let changed = edit(call, Right::Write, more, move |model, docs| {
        if docs.get::<RegisteredModel>(&model_key(&team, &new))?.is_some() {
            return Err(Error::exists(format!("Registered Model (name={new}) already exists.")));
        }
        for (key, mut version) in docs.all::<ModelVersion>(Kind::ModelVersion)? {
            docs.remove(&key);
            new.clone_into(&mut version.name);
            docs.put(version_key(&team, &new, version.version), &version);
        }
        let (old, renamed) = (model_key(&team, &model.name), model_key(&team, &new));
        docs.remove(&old);
        for with in &model.shared_with {
            docs.remove(&share_key(with, &old));
            docs.put(share_key(with, &renamed), &json!({}));
        }
        model.name = new;
        Ok(())
    })
    .await?;
    Ok(shown(call, &changed).await?.noted(target, detail))
}

pub async fn update(call: &Call<'_>) -> Result<Reply> {
    let description = described(call)?;
    let job = call.fields.text("deployment_job_id")?;
    let changed = edit(call, Right::Write, Vec::new(), move |model, _| {
        model.description = description.or(model.description.take());
        model.deployment_job = job.or(model.deployment_job.take());
        Ok(())
    })
    .await?;
    Ok(shown(call, &changed).await?.noted(changed.target(), json!({})))
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    let found = find_model(call, &named(call)?).await?;
    found.must_be_own(call)?;
    let (key, model) = (found.key(), &found.model);
    call.must(Right::Manage, &found.team, Some(&model.by))?;
    let load = vec![model_load(&key.scope, &key.name), versions_load(&key.scope, &key.name)];
    let edit = move |docs: &mut DocSet| {
        for (key, _) in docs.all::<ModelVersion>(Kind::ModelVersion)? {
            docs.remove(&key);
        }
        let shares = docs.get::<RegisteredModel>(&key)?.map(|model| model.shared_with);
        for with in shares.unwrap_or_default() {
            docs.remove(&share_key(&with, &key));
        }
        docs.remove(&key);
        Ok(Vec::new())
    };
    call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    Ok(Reply::empty().noted(found.target(), json!({ "versions": model.last_version })))
}

/// A model as a search sees it.
struct Found {
    of: Registered,
    /// As the caller sees it.
    name: String,
}

impl Things for Found {
    fn text(&self, field: &Field) -> Option<&str> {
        match field.kind {
            grammar::Kind::Tag => self.of.model.tags.get(&field.key).map(String::as_str),
            _ => Some(&self.name),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    fn number(&self, _: &Field) -> Option<f64> {
        Some(self.of.model.updated as f64)
    }

    fn metric(&self, _: &str, _: &dyn Fn(f64) -> bool) -> bool {
        false
    }
}

pub async fn search(call: &Call<'_>) -> Result<Reply> {
    let mut search = Search::read(&call.fields, Entity::RegisteredModel, PAGE, MOST_PAGE)?;
    let team = call.team_for(Right::Read)?;
    without_own_team(&mut search.clauses, team);
    let load = Load { kind: Kind::RegisteredModel, scope: team.to_owned(), name: None, sub: None };
    let mut all = Vec::new();
    for (_, doc) in call.store.docs(load).await? {
        all.push(Registered { team: team.to_owned(), model: read(&doc)? });
    }
    all.extend(shared_with(call, team).await?);
    let wants_prompts = names_prompts(&search.clauses);
    all.retain(|of| wants_prompts || !is_prompt(&of.model.tags));
    let found = all.into_iter().map(|of| Found { name: of.name(call), of }).collect();
    let order = |a: &Found, b: &Found| {
        grammar::sort_by(a, b, &search.orders).then_with(|| a.name.cmp(&b.name))
    };
    let (page, next) = search.page(found, order);
    let mut items: Vec<Value> = Vec::new();
    for Found { of, .. } in &page {
        items.push(item(call, of).await?);
    }
    Ok(listed("registered_models", items, next))
}

pub async fn latest_versions(call: &Call<'_>) -> Result<Reply> {
    let of = find_model(call, &named(call)?).await?;
    let wanted = call.fields.texts("stages")?;
    let wanted: Vec<&str> = wanted.iter().map(|word| stage(word)).collect::<Result<_>>()?;
    let found = newest(call, &of).await?;
    let shown = found.iter().filter(|one| wanted.is_empty() || wanted.contains(&&*one.stage));
    let items = shown.map(|one| with_aliases(&of.model, one)).collect();
    Ok(listed("model_versions", items, None))
}

pub async fn set_tag(call: &Call<'_>) -> Result<Reply> {
    let pair = (call.fields.required("key")?, call.fields.given("value")?);
    let detail = json!({ "key": pair.0 });
    let tags = checked_tags(vec![pair], limits::REGISTRY_TAG_VALUE)?;
    let changed = edit(call, Right::Write, Vec::new(), move |model, _| {
        for (key, value) in tags {
            put_tag(&mut model.tags, key, value)?;
        }
        Ok(())
    })
    .await?;
    Ok(Reply::empty().noted(changed.target(), detail))
}

pub async fn delete_tag(call: &Call<'_>) -> Result<Reply> {
    let key = call.fields.required("key")?;
    let detail = json!({ "key": key });
    let changed = edit(call, Right::Write, Vec::new(), move |model, _| {
        model.tags.remove(&key);
        Ok(())
    })
    .await?;
    Ok(Reply::empty().noted(changed.target(), detail))
}

pub async fn set_alias(call: &Call<'_>) -> Result<Reply> {
    let alias = call.fields.required("alias")?;
    limits::alias(&alias)?;
    limits::alias_is_free(&alias)?;
    let name = named(call)?;
    let version = number(&call.fields.required("version")?)?;
    let team = call.team()?.to_owned();
    let key = version_key(&team, &name, version);
    let load = Load {
        kind: key.kind,
        scope: key.scope.clone(),
        name: Some(key.name.clone()),
        sub: Some(key.sub),
    };
    let detail = json!({ "alias": alias, "version": version.to_string() });
    let data = json!({ "name": name, "alias": alias, "version": version.to_string() });
    let changed = edit(call, Right::Write, vec![load], move |model, docs| {
        if docs.get::<ModelVersion>(&key)?.is_none() {
            return Err(absent_version(&model.name, version));
        }
        model.aliases.insert(alias, version);
        match model.aliases.len() > limits::ALIASES_PER_MODEL {
            true => {
                let most = limits::ALIASES_PER_MODEL;
                Err(Error::over_limit(format!("A model has at most {most} aliases")))
            }
            false => Ok(()),
        }
    })
    .await?;
    let event = Event::of(("model_version_alias", "created"), &changed.model.tags, data);
    Ok(Reply::empty().noted(changed.target(), detail).event(event))
}

pub async fn delete_alias(call: &Call<'_>) -> Result<Reply> {
    let alias = call.fields.required("alias")?;
    let detail = json!({ "alias": alias });
    let changed = edit(call, Right::Write, Vec::new(), move |model, _| {
        model.aliases.remove(&alias);
        Ok(())
    })
    .await?;
    let data = json!({ "name": changed.model.name, "alias": detail["alias"] });
    let event = Event::of(("model_version_alias", "deleted"), &changed.model.tags, data);
    Ok(Reply::empty().noted(changed.target(), detail).event(event))
}
