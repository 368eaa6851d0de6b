//! Versions of registered models.

use super::call::{Call, Reply, Search, checked_tags, listed, put_tag};
use super::registered::{
    NO_STAGE, Registered, absent_model, absent_version, count_newest, find_model, is_name,
    model_key, model_load, named, names_prompts, number, sees, stage, target, version_key,
    versions_load, with_aliases, without_own_team,
};
use crate::encode;
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::grammar::{self, Entity, Field, Op, Things, Value as Wanted};
use crate::limits;
use crate::model::{IS_PROMPT, ModelVersion, RegisteredModel, is_prompt};
use crate::ports::{DocChange, DocKey, DocSet, Kind, Load, Right, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PAGE: usize = 10_000;
const MOST_PAGE: usize = 200_000;

fn one(key: &DocKey) -> Load {
    Load {
        kind: key.kind,
        scope: key.scope.clone(),
        name: Some(key.name.clone()),
        sub: Some(key.sub),
    }
}

fn shown(of: &Registered, version: &ModelVersion) -> Reply {
    Reply::json(&json!({ "model_version": with_aliases(&of.model, version) }))
}

/// A version of a model, with the name of the model as the caller sees it.
async fn version_of(call: &Call<'_>, of: &Registered, version: u64) -> Result<ModelVersion> {
    let key = version_key(&of.team, &of.model.name, version);
    let found = call.store.docs(one(&key)).await?.pop();
    let name = of.name(call);
    let (_, doc) = found.ok_or_else(|| absent_version(&name, version))?;
    Ok(ModelVersion { name, ..read(&doc)? })
}

async fn find(call: &Call<'_>, name: &str, version: u64) -> Result<(Registered, ModelVersion)> {
    let of = find_model(call, name).await.map_err(|error| match error.code {
        Code::DoesNotExist => absent_version(name, version),
        _ => error,
    })?;
    let found = version_of(call, &of, version).await?;
    Ok((of, found))
}

async fn asked(call: &Call<'_>) -> Result<(Registered, ModelVersion)> {
    let name = named(call)?;
    let version = number(&call.fields.required("version")?)?;
    find(call, &name, version).await
}

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let name = fields.required("name")?;
    limits::model_name(&name)?;
    let source = fields.required("source")?;
    limits::length("source", &source, limits::SOURCE)?;
    let team = call.team_for(Right::Write)?.to_owned();
    let run = fields.text("run_id")?.filter(|run| !run.is_empty());
    if let Some(run) = &run {
        limits::run_id(run)?;
    }
    let mut model_id = fields.text("model_id")?.filter(|id| !id.is_empty());
    if model_id.is_none() {
        model_id =
            source.strip_prefix("models:/").filter(|id| id.starts_with("m-")).map(str::to_owned);
    }
    let (storage, of_model) = storage(call, &source, model_id.as_deref()).await?;
    let description = fields.text("description")?;
    limits::length("description", description.as_deref().unwrap_or(""), limits::DESCRIPTION)?;
    let mut version = ModelVersion {
        name: name.clone(),
        version: 0,
        created: call.now,
        updated: call.now,
        by: call.actor.user().to_owned(),
        description,
        stage: NO_STAGE.to_owned(),
        source,
        storage,
        // A client that registers a logged model sends no run.
        run: run.or(of_model),
        run_link: fields.text("run_link")?.filter(|link| !link.is_empty()),
        model: model_id,
        tags: checked_tags(fields.pairs("tags")?, limits::REGISTRY_TAG_VALUE)?,
    };
    let told = version.clone();
    let now = call.now;
    let key = model_key(&team, &name);
    let edit = move |docs: &mut DocSet| {
        let there: Option<RegisteredModel> = docs.get(&key)?;
        let mut model = there.ok_or_else(|| absent_model(&key.name))?;
        if model.last_version >= limits::VERSIONS_PER_MODEL {
            let most = limits::VERSIONS_PER_MODEL;
            return Err(Error::over_limit(format!("A model has at most {most} versions")));
        }
        model.last_version += 1;
        model.updated = now;
        version.version = model.last_version;
        model.newest.insert(NO_STAGE.to_owned(), version.version);
        docs.put(version_key(&key.scope, &key.name, version.version), &version);
        docs.put(key, &model);
        Ok(encode::bytes(&json!({ "model_version": encode::version(&version, &[]) })))
    };
    let load = vec![model_load(&team, &name)];
    let made = call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    let shown: Value =
        serde_json::from_slice(&made).map_err(|why| Error::internal(why.to_string()))?;
    let detail = json!({ "version": shown["model_version"]["version"] });
    let data = json!({
        "name": name,
        "version": detail["version"],
        "source": told.source,
        "run_id": told.run,
        "tags": told.tags,
        "description": told.description,
    });
    let event = Event::of(("model_version", "created"), &told.tags, data);
    Ok(Reply::bytes(made).noted(target(&team, &name), detail).event(event))
}

/// The location of a version's files, and the run of its logged model. The caller must be able to
/// read the source.
async fn storage(
    call: &Call<'_>,
    source: &str,
    model: Option<&str>,
) -> Result<(String, Option<String>)> {
    let mut run = None;
    if let Some(id) = model {
        let (found, experiment) = super::logged_models::find(call, id).await?;
        run = Some(found.run).filter(|run| !run.is_empty());
        if source.starts_with("models:/") {
            let place = format!("{}/models/{}/artifacts", experiment.artifacts(), found.id);
            return Ok((place, run));
        }
    }
    Ok((storage_of_source(call, source).await?, run))
}

async fn storage_of_source(call: &Call<'_>, source: &str) -> Result<String> {
    if let Some(rest) = source.strip_prefix("models:/") {
        // The name may begin with a team.
        let (name, version) = rest.rsplit_once('/').unwrap_or((rest, ""));
        let (_, from) = find(call, name, number(version)?).await?;
        return Ok(if from.storage.is_empty() { from.source } else { from.storage });
    }
    if let Some(rest) = source.strip_prefix("runs:/") {
        let (run, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (head, experiment) = call.run(run).await?;
        return Ok(format!("{}/{}/artifacts/{path}", experiment.artifacts(), head.id));
    }
    if source.starts_with("file:") || source.starts_with('/') || source.contains("..") {
        return Err(Error::invalid(format!(
            "Invalid model version source: '{source}'. The server does not read local files; use a \
             source such as runs:/RUN_ID/model or models:/MODEL_ID"
        )));
    }
    Ok(source.to_owned())
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    let (of, version) = asked(call).await?;
    Ok(shown(&of, &version))
}

pub async fn by_alias(call: &Call<'_>) -> Result<Reply> {
    let name = named(call)?;
    let alias = call.fields.required("alias")?;
    let of = find_model(call, &name).await?;
    let model = &of.model;
    if alias.eq_ignore_ascii_case("latest") {
        let newest = model.newest.values().max().copied();
        let newest = newest
            .ok_or_else(|| Error::absent(format!("Latest version not found for model {name}.")))?;
        return Ok(shown(&of, &version_of(call, &of, newest).await?));
    }
    let version = model.aliases.get(&alias).copied();
    let version = version
        .ok_or_else(|| Error::invalid(format!("Registered model alias {alias} not found.")))?;
    Ok(shown(&of, &version_of(call, &of, version).await?))
}

pub async fn download_uri(call: &Call<'_>) -> Result<Reply> {
    let (_, version) = asked(call).await?;
    let place = if version.storage.is_empty() { version.source } else { version.storage };
    Ok(Reply::json(&json!({ "artifact_uri": place })))
}

/// Changes a version, and its model with it.
async fn edit(
    call: &Call<'_>,
    right: Right,
    all: bool,
    change: impl FnOnce(&mut RegisteredModel, u64, &mut BTreeMap<u64, ModelVersion>) -> Result<()>
    + Send
    + 'static,
) -> Result<Reply> {
    let (of, version) = asked(call).await?;
    of.must_be_own(call)?;
    let (target, model) = (of.target(), of.model);
    let team = of.team;
    let by = if right == Right::Manage { &version.by } else { &model.by };
    call.must(right, &team, Some(by))?;
    let (name, number, now) = (model.name.clone(), version.version, call.now);
    let versions = match all {
        true => versions_load(&team, &name),
        false => one(&version_key(&team, &name, number)),
    };
    let load = vec![model_load(&team, &name), versions];
    let edit = move |docs: &mut DocSet| {
        let key = model_key(&team, &name);
        let there: Option<RegisteredModel> = docs.get(&key)?;
        let mut model = there.ok_or_else(|| absent_model(&name))?;
        let versions = docs.all::<ModelVersion>(Kind::ModelVersion)?;
        let before: BTreeMap<u64, ModelVersion> =
            versions.into_iter().map(|(_, one)| (one.version, one)).collect();
        let mut after = before.clone();
        let own = after.get_mut(&number).ok_or_else(|| absent_version(&name, number))?;
        own.updated = now;
        change(&mut model, number, &mut after)?;
        for (number, old) in &before {
            let key = version_key(&team, &name, *number);
            match after.get(number) {
                None => docs.remove(&key),
                Some(new) if new != old => docs.put(key, new),
                Some(_) => {}
            }
        }
        if all {
            let versions: Vec<ModelVersion> = after.values().cloned().collect();
            count_newest(&mut model, &versions);
        }
        model.updated = now;
        docs.put(key, &model);
        let shown = after.get(&number).map(|one| with_aliases(&model, one));
        Ok(encode::bytes(&match shown {
            Some(shown) => json!({ "model_version": shown }),
            None => json!({}),
        }))
    };
    let body = call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    let detail = json!({ "version": number.to_string() });
    Ok(Reply::bytes(body).noted(target, detail))
}

pub async fn update(call: &Call<'_>) -> Result<Reply> {
    let description = call.fields.text("description")?;
    limits::length("description", description.as_deref().unwrap_or(""), limits::DESCRIPTION)?;
    edit(call, Right::Write, false, move |_, number, versions| {
        let own = versions.get_mut(&number).expect("it was just there");
        own.description = description;
        Ok(())
    })
    .await
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    let reply = edit(call, Right::Manage, true, |model, number, versions| {
        versions.remove(&number);
        model.aliases.retain(|_, version| *version != number);
        Ok(())
    })
    .await?;
    Ok(Reply { body: b"{}".to_vec(), ..reply })
}

/// The answer to a change of a tag, with its event.
fn told(call: &Call<'_>, reply: Reply, action: &'static str, mut data: Value) -> Result<Reply> {
    let shown: Value =
        serde_json::from_slice(&reply.body).map_err(|why| Error::internal(why.to_string()))?;
    let of = &shown["model_version"];
    data["name"] = of["name"].clone();
    data["version"] = of["version"].clone();
    // A version of a prompt has the prompt's tag.
    let is_prompt = call.fields.text("key")?.is_some_and(|key| key == IS_PROMPT)
        || of["tags"].as_array().into_iter().flatten().any(|tag| tag["key"] == IS_PROMPT);
    let event = Event { entity: "model_version_tag", action, data };
    Ok(Reply { body: b"{}".to_vec(), ..reply }.event((!is_prompt).then_some(event)))
}

pub async fn set_tag(call: &Call<'_>) -> Result<Reply> {
    let pair = (call.fields.required("key")?, call.fields.given("value")?);
    let (key, value) = pair.clone();
    let tags = checked_tags(vec![pair], limits::REGISTRY_TAG_VALUE)?;
    let reply = edit(call, Right::Write, false, move |_, number, versions| {
        let own = versions.get_mut(&number).expect("it was just there");
        for (key, value) in tags {
            put_tag(&mut own.tags, key, value)?;
        }
        Ok(())
    })
    .await?;
    let data = json!({ "key": key, "value": value });
    told(call, reply, "set", data)
}

pub async fn delete_tag(call: &Call<'_>) -> Result<Reply> {
    let key = call.fields.required("key")?;
    let data = json!({ "key": key });
    let reply = edit(call, Right::Write, false, move |_, number, versions| {
        versions.get_mut(&number).expect("it was just there").tags.remove(&key);
        Ok(())
    })
    .await?;
    told(call, reply, "deleted", data)
}

pub async fn transition(call: &Call<'_>) -> Result<Reply> {
    let wanted = stage(&call.fields.required("stage")?)?;
    let archive = call.fields.bool("archive_existing_versions")?.unwrap_or(false);
    let is_live = matches!(wanted, "Staging" | "Production");
    if archive && !is_live {
        return Err(Error::invalid(format!(
            "Model version transition cannot archive existing model versions because '{wanted}' is \
             not an Active stage. Valid stages are Staging, Production"
        )));
    }
    let now = call.now;
    edit(call, Right::Write, true, move |_, number, versions| {
        for (other, one) in versions.iter_mut() {
            if archive && *other != number && one.stage == wanted {
                "Archived".clone_into(&mut one.stage);
                one.updated = now;
            }
        }
        let own = versions.get_mut(&number).expect("it was just there");
        wanted.clone_into(&mut own.stage);
        Ok(())
    })
    .await
}

/// A version as a search sees it.
struct Found(ModelVersion);

impl Things for Found {
    fn text(&self, field: &Field) -> Option<&str> {
        match (field.kind, field.key.as_str()) {
            (grammar::Kind::Tag, key) => self.0.tags.get(key).map(String::as_str),
            (_, "name") => Some(&self.0.name),
            (_, "run_id") => self.0.run.as_deref(),
            _ => Some(&self.0.source),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    fn number(&self, field: &Field) -> Option<f64> {
        Some(match field.key.as_str() {
            "version_number" => self.0.version as f64,
            "creation_timestamp" => self.0.created as f64,
            _ => self.0.updated as f64,
        })
    }

    fn metric(&self, _: &str, _: &dyn Fn(f64) -> bool) -> bool {
        false
    }
}

pub async fn search(call: &Call<'_>) -> Result<Reply> {
    let mut search = Search::read(&call.fields, Entity::ModelVersion, PAGE, MOST_PAGE)?;
    let own = call.team_for(Right::Read)?.to_owned();
    without_own_team(&mut search.clauses, &own);
    // Most searches name one model.
    let names = search.clauses.iter().filter(|of| is_name(&of.field));
    let named = names.map(|of| (of.op, &of.value)).find_map(|one| match one {
        (Op::Eq, Wanted::Text(name)) => Some(name.clone()),
        _ => None,
    });
    // A model of another team is found by its whole name only.
    let (scope, name) = match named.as_deref().map(|name| name.split_once('/').ok_or(name)) {
        Some(Ok((team, name))) => (team.to_owned(), Some(name.to_owned())),
        Some(Err(name)) => (own, Some(name.to_owned())),
        None => (own, None),
    };
    let load = |kind| Load { kind, scope: scope.clone(), name: name.clone(), sub: None };
    let mut models = BTreeMap::new();
    for (_, doc) in call.store.docs(load(Kind::RegisteredModel)).await? {
        let model: RegisteredModel = read(&doc)?;
        if sees(call, &scope, &model) {
            let of = Registered { team: scope.clone(), model };
            models.insert(of.model.name.clone(), (of.name(call), of.model));
        }
    }
    if models.is_empty() {
        return Ok(listed("model_versions", Vec::new(), None));
    }
    let wants_prompts = names_prompts(&search.clauses);
    let mut found = Vec::new();
    for (key, doc) in call.store.docs(load(Kind::ModelVersion)).await? {
        let Some((shown, model)) = models.get(&key.name) else { continue };
        // A search by name finds prompts, too.
        if name.is_some() || wants_prompts || !is_prompt(&model.tags) {
            found.push(Found(ModelVersion { name: shown.clone(), ..read(&doc)? }));
        }
    }
    let models: BTreeMap<String, RegisteredModel> = models.into_values().collect();
    let order = |a: &Found, b: &Found| {
        let by_name = || a.0.name.cmp(&b.0.name).then(b.0.version.cmp(&a.0.version));
        grammar::sort_by(a, b, &search.orders).then_with(by_name)
    };
    let (page, next) = search.page(found, order);
    let items = page
        .iter()
        .filter_map(|Found(version)| Some(with_aliases(models.get(&version.name)?, version)))
        .collect();
    Ok(listed("model_versions", items, next))
}
