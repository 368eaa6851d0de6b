//! Webhooks of the model registry: the server sends a message to their URL when a model, a version, a
//! tag or an alias changes. A URL can be confidential, so only leads see the webhooks of a team.

use super::call::{Call, Reply, listed, random_id};
use crate::encode;
use crate::error::{Code, Error, Result};
use crate::event::{EVENTS, Event};
use crate::fields::Fields;
use crate::limits;
use crate::model::Webhook;
use crate::page;
use crate::ports::{DocChange, DocKey, DocSet, Kind, Load, Outbox, Right, Store, read};
use serde_json::{Value, json};

const PAGE: usize = 100;
const MOST_PAGE: usize = 1000;

fn key(team: &str, id: &str) -> DocKey {
    DocKey { kind: Kind::Webhook, scope: team.to_owned(), name: id.to_owned(), sub: 0 }
}

fn all_of(team: &str) -> Load {
    Load { kind: Kind::Webhook, scope: team.to_owned(), name: None, sub: None }
}

fn absent(id: &str) -> Error {
    Error::absent(format!("Webhook with ID '{id}' not found"))
}

/// The webhooks of a team that subscribe to an event.
pub async fn hooks_of(store: &dyn Store, team: &str, event: &Event) -> Result<Vec<Webhook>> {
    let name = event.name();
    let mut found = Vec::new();
    for (_, doc) in store.docs(all_of(team)).await? {
        let hook: Webhook = read(&doc)?;
        if hook.active && hook.events.contains(&name) {
            found.push(hook);
        }
    }
    Ok(found)
}

/// A webhook by its id alone, with its team.
pub async fn hook(store: &dyn Store, id: &str) -> Result<Option<(String, Webhook)>> {
    match store.named(Kind::Webhook, id.to_owned()).await? {
        Some((key, doc)) => Ok(Some((key.scope, read(&doc)?))),
        None => Ok(None),
    }
}

/// The team, if the caller leads it.
fn led<'c>(call: &'c Call<'_>) -> Result<&'c str> {
    let team = call.team_for(Right::Read)?;
    if call.actor.may(Right::Manage, team, None) {
        return Ok(team);
    }
    let user = call.actor.user();
    Err(Error::new(
        Code::PermissionDenied,
        format!("Permission denied: {user} does not lead team {team}; ask a lead for a webhook"),
    ))
}

fn outbox<'c>(call: &'c Call<'_>) -> Result<&'c dyn Outbox> {
    let missing = || Error::new(Code::NotImplemented, "This server sends no messages");
    call.actor.outbox().ok_or_else(missing)
}

/// The events of a request, without duplicates.
fn events(fields: &Fields) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for one in fields.objects("events")? {
        let (entity, action) = (one.required("entity")?, one.required("action")?);
        let name = format!("{entity}.{action}").to_ascii_lowercase();
        let names: Vec<String> = EVENTS.iter().map(|(of, done)| format!("{of}.{done}")).collect();
        if !names.contains(&name) {
            let expected = names.join(", ");
            return Err(Error::invalid(format!(
                "Invalid webhook event '{name}'. Expected one of {expected}"
            )));
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

fn active(fields: &Fields) -> Result<Option<bool>> {
    match fields.text("status")?.as_deref() {
        None => Ok(None),
        Some("ACTIVE" | "1") => Ok(Some(true)),
        Some("DISABLED" | "2") => Ok(Some(false)),
        Some(other) => Err(Error::bad_value("status", json!(other), "")),
    }
}

fn checked_name(name: &str) -> Result<()> {
    limits::no_zero("name", name)?;
    limits::length("name", name, limits::MODEL_NAME)
}

fn described(fields: &Fields) -> Result<Option<String>> {
    let description = fields.text("description")?;
    limits::length("description", description.as_deref().unwrap_or(""), limits::DESCRIPTION)?;
    Ok(description)
}

/// Checks a URL. The server resolves it again for each message.
fn checked_url(call: &Call<'_>, url: &str) -> Result<()> {
    limits::length("url", url, limits::WEBHOOK_URL)?;
    outbox(call)?.check_url(url)
}

fn sealed(call: &Call<'_>, team: &str, id: &str) -> Result<Option<String>> {
    let secret = call.fields.text("secret")?.filter(|secret| !secret.is_empty());
    let Some(secret) = secret else { return Ok(None) };
    limits::length("secret", &secret, limits::WEBHOOK_SECRET)?;
    Ok(Some(outbox(call)?.seal(team, id, &secret)))
}

/// A webhook as its leads see it: without its secret.
fn shown(hook: &Webhook) -> Value {
    let event = |name: &String| {
        let (entity, action) = name.split_once('.').unwrap_or((name, ""));
        json!({ "entity": entity.to_uppercase(), "action": action.to_uppercase() })
    };
    let mut out = json!({
        "webhook_id": hook.id,
        "name": hook.name,
        "url": hook.url,
        "events": hook.events.iter().map(event).collect::<Vec<_>>(),
        "status": if hook.active { "ACTIVE" } else { "DISABLED" },
        "creation_timestamp": hook.created,
        "last_updated_timestamp": hook.updated,
    });
    if let Some(description) = &hook.description {
        out["description"] = json!(description);
    }
    out
}

fn noted(reply: Reply, team: &str, hook: &Webhook) -> Reply {
    let target = format!("webhook {} of {team}", hook.name);
    reply.noted(target, json!({ "id": hook.id, "events": hook.events, "active": hook.active }))
}

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let team = led(call)?.to_owned();
    let (name, url) = (fields.required("name")?, fields.required("url")?);
    checked_name(&name)?;
    checked_url(call, &url)?;
    let events = events(fields)?;
    if events.is_empty() {
        return Err(Error::missing("events"));
    }
    let id = random_id()?;
    let made = Webhook {
        sealed: sealed(call, &team, &id)?,
        id,
        name,
        description: described(fields)?,
        url,
        events,
        active: active(fields)?.unwrap_or(true),
        created: call.now,
        updated: call.now,
        by: call.actor.user().to_owned(),
    };
    let (load, hook) = (vec![all_of(&team)], made.clone());
    let scope = team.clone();
    let edit = move |docs: &mut DocSet| {
        let there = docs.all::<Webhook>(Kind::Webhook)?.len();
        if there >= limits::WEBHOOKS_PER_TEAM {
            let said = format!("Team {scope} has {there} webhooks, which is the limit");
            return Err(Error::over_limit(said));
        }
        docs.put(key(&scope, &hook.id), &hook);
        Ok(Vec::new())
    };
    call.store.edit(DocChange { load, edit: Box::new(edit) }).await?;
    Ok(noted(Reply::json(&json!({ "webhook": shown(&made) })), &team, &made))
}

/// The webhook of the request's path.
async fn asked(call: &Call<'_>) -> Result<(String, Webhook)> {
    let team = led(call)?;
    let id = &call.parts[0];
    let found = hook(call.store, id).await?.filter(|(of, _)| of == team);
    found.ok_or_else(|| absent(id))
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    let (_, hook) = asked(call).await?;
    Ok(Reply::json(&json!({ "webhook": shown(&hook) })))
}

pub async fn list(call: &Call<'_>) -> Result<Reply> {
    let most = call.fields.max_results(PAGE, MOST_PAGE)?;
    let offset = page::offset(call.fields.text("page_token")?.as_deref())?;
    let mut found = Vec::new();
    for (_, doc) in call.store.docs(all_of(led(call)?)).await? {
        found.push(read::<Webhook>(&doc)?);
    }
    found.sort_by(|a, b| (b.created, &a.id).cmp(&(a.created, &b.id)));
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(found.len());
    let (page, next) = page::cut(found.split_off(start), offset, most);
    Ok(listed("webhooks", page.iter().map(shown).collect(), next))
}

pub async fn update(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let (team, found) = asked(call).await?;
    let (name, url) = (fields.text("name")?, fields.text("url")?);
    name.as_deref().map(checked_name).transpose()?;
    url.as_deref().map(|url| checked_url(call, url)).transpose()?;
    let (events, active) = (events(fields)?, active(fields)?);
    let (description, sealed) = (described(fields)?, sealed(call, &team, &found.id)?);
    let (key, now) = (key(&team, &found.id), call.now);
    let load = Load {
        kind: Kind::Webhook,
        scope: key.scope.clone(),
        name: Some(key.name.clone()),
        sub: Some(0),
    };
    let edit = move |docs: &mut DocSet| {
        let there: Option<Webhook> = docs.get(&key)?;
        let mut there = there.ok_or_else(|| absent(&key.name))?;
        there.name = name.unwrap_or(there.name);
        there.url = url.unwrap_or(there.url);
        there.active = active.unwrap_or(there.active);
        there.description = description.or(there.description);
        there.sealed = sealed.or(there.sealed);
        if !events.is_empty() {
            there.events = events;
        }
        there.updated = now;
        docs.put(key, &there);
        Ok(encode::bytes(&json!(there)))
    };
    let changed = call.store.edit(DocChange { load: vec![load], edit: Box::new(edit) }).await?;
    let changed: Webhook =
        serde_json::from_slice(&changed).map_err(|why| Error::internal(why.to_string()))?;
    Ok(noted(Reply::json(&json!({ "webhook": shown(&changed) })), &team, &changed))
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    let (team, hook) = asked(call).await?;
    let key = key(&team, &hook.id);
    let edit = move |docs: &mut DocSet| {
        docs.remove(&key);
        Ok(Vec::new())
    };
    call.store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await?;
    Ok(noted(Reply::empty(), &team, &hook))
}

/// Sends a test message with invented data and returns the result.
pub async fn test(call: &Call<'_>) -> Result<Reply> {
    let (team, hook) = asked(call).await?;
    let wanted = match call.fields.object("event")? {
        Some(event) => {
            let name = format!("{}.{}", event.required("entity")?, event.required("action")?);
            Some(name.to_ascii_lowercase())
        }
        None => hook.events.first().cloned(),
    };
    let wanted = wanted.ok_or_else(|| Error::missing("event"))?;
    let known = EVENTS.iter().find(|(entity, action)| format!("{entity}.{action}") == wanted);
    let (entity, action) = *known.ok_or_else(|| Error::bad_value("event", json!(wanted), ""))?;
    let event = Event { entity, action, data: example(entity, action) };
    let tried = outbox(call)?.test(&team, &hook, &event).await?;
    let mut result = json!({ "success": tried.error.is_none() });
    if let Some(status) = tried.status {
        result["response_status"] = json!(status);
    }
    if let Some(error) = tried.error {
        result["error_message"] = json!(error);
    }
    Ok(Reply::json(&json!({ "result": result })))
}

fn example(entity: &str, action: &str) -> Value {
    let mut data = json!({ "name": "example_model", "version": "1" });
    match (entity, action) {
        ("registered_model", _) => {
            data = json!({ "name": "example_model", "tags": {}, "description": "An example" });
        }
        ("model_version", _) => {
            data["source"] = json!("models:/example_model");
            data["run_id"] = json!("");
            data["tags"] = json!({});
            data["description"] = json!("An example");
        }
        ("model_version_tag", "set") => {
            data["key"] = json!("example_key");
            data["value"] = json!("example_value");
        }
        ("model_version_tag", _) => data["key"] = json!("example_key"),
        _ => data["alias"] = json!("example_alias"),
    }
    data
}
