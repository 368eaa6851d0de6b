//! Experiments: making, finding, changing, deleting and sharing them.

use super::call::{Call, Reply, Restored, Search, checked_tags, listed, put_tag};
use crate::encode;
use crate::error::{Error, Result};
use crate::grammar::{self, Entity, Field, Things};
use crate::limits;
use crate::model::{DEFAULT_EXPERIMENT, Experiment};
use crate::ports::{DocSet, Effect, Right, View};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::sync::Arc;

const MOST_LISTED: usize = 50_000;

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let name = call.fields.required("name")?;
    limits::experiment_name(&name)?;
    if call.fields.text("artifact_location")?.is_some_and(|location| !location.is_empty()) {
        return Err(Error::invalid(
            "Invalid value for parameter 'artifact_location' supplied: the server decides where \
             artifacts are. Leave artifact_location out",
        ));
    }
    let tags = checked_tags(call.fields.pairs("tags")?, limits::EXPERIMENT_TAG_VALUE)?;
    let (team, name) = place(call, &name)?;
    call.must(Right::Write, &team, Some(call.actor.user()))?;
    call.make_experiment(&team, &name, tags).await.map(Reply::bytes)
}

/// Splits `team/name`. A name without a team is in the team of the caller.
fn place(call: &Call<'_>, name: &str) -> Result<(String, String)> {
    if let Some((team, rest)) = name.split_once('/')
        && call.actor.is_team(team)
        && !rest.is_empty()
    {
        if call.actor.may(Right::Read, team, None) {
            return Ok((team.to_owned(), rest.to_owned()));
        }
        return Err(Error::invalid(format!(
            "Invalid experiment name: '{name}'. It begins with the name of team {team}; choose a \
             name that does not"
        )));
    }
    Ok((call.team()?.to_owned(), name.to_owned()))
}

/// An experiment by its name: one of the caller's team, or `team/name` of another.
async fn named(call: &Call<'_>, name: &str) -> Result<Arc<Experiment>> {
    if name == DEFAULT_EXPERIMENT {
        return call.default_experiment().await;
    }
    let own = call.actor.team().and_then(|team| call.store.experiment_named(team, name));
    let other = || {
        let (team, rest) = name.split_once('/')?;
        call.store.experiment_named(team, rest)
    };
    let found = own.or_else(other).filter(|found| call.sees(found));
    found.ok_or_else(|| Error::absent(format!("Could not find experiment with name '{name}'")))
}

fn shown(call: &Call<'_>, experiment: &Experiment) -> Reply {
    Reply::json(&json!({ "experiment": encode::experiment(experiment, call.actor.team()) }))
}

pub async fn get_by_name(call: &Call<'_>) -> Result<Reply> {
    let name = call.fields.required("experiment_name")?;
    Ok(shown(call, &*named(call, &name).await?))
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    let id = call.fields.required("experiment_id")?;
    Ok(shown(call, &*call.experiment(&id).await?))
}

pub fn view(word: Option<String>) -> Result<View> {
    match word.as_deref() {
        None | Some("ACTIVE_ONLY" | "1") => Ok(View::Active),
        Some("DELETED_ONLY" | "2") => Ok(View::Deleted),
        Some("ALL" | "3") => Ok(View::All),
        Some(other) => Err(Error::bad_value("view_type", json!(other), "")),
    }
}

impl View {
    pub fn shows(self, deleted: bool) -> bool {
        match self {
            View::Active => !deleted,
            View::Deleted => deleted,
            View::All => true,
        }
    }
}

/// An experiment as a search sees it.
struct Found {
    of: Arc<Experiment>,
    id: String,
    /// As the caller sees it.
    name: String,
}

impl Things for Found {
    fn text(&self, field: &Field) -> Option<&str> {
        match (field.kind, field.key.as_str()) {
            (grammar::Kind::Tag, key) => self.of.tags.get(key).map(String::as_str),
            (_, "name") => Some(&self.name),
            _ => Some(&self.id),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    fn number(&self, field: &Field) -> Option<f64> {
        Some(match field.key.as_str() {
            "creation_time" => self.of.created as f64,
            _ => self.of.updated as f64,
        })
    }

    fn metric(&self, _: &str, _: &dyn Fn(f64) -> bool) -> bool {
        false
    }
}

pub async fn search(call: &Call<'_>) -> Result<Reply> {
    let search = Search::read(&call.fields, Entity::Experiment, limits::RUNS_PAGE, MOST_LISTED)?;
    let view = view(call.fields.text("view_type")?)?;
    let team = call.actor.team();
    if team.is_some() {
        call.default_experiment().await?;
    }
    let own_or_shared = |of: &Experiment| {
        let is_own = Some(of.team.as_str()) == team;
        let is_shared =
            of.shared_with.iter().any(|with| Some(with.as_str()) == team || with == "*");
        (is_own || is_shared || team.is_none()) && call.sees(of)
    };
    let all = call.store.experiments().into_iter();
    let all = all.filter(|of| view.shows(of.deleted) && own_or_shared(of));
    let found = all.map(|of| {
        let name = match Some(of.team.as_str()) == team {
            true => of.name.clone(),
            false => format!("{}/{}", of.team, of.name),
        };
        Found { id: of.no.to_string(), name, of }
    });
    let order = |a: &Found, b: &Found| match search.orders.is_empty() {
        true => b.of.created.cmp(&a.of.created).then(a.of.no.cmp(&b.of.no)),
        false => by_orders(a, b, &search.orders),
    };
    let (page, next) = search.page(found.collect(), order);
    let items: Vec<Value> = page.iter().map(|one| encode::experiment(&one.of, team)).collect();
    Ok(listed("experiments", items, next))
}

/// Ids are ordered as numbers.
fn by_orders(a: &Found, b: &Found, orders: &[grammar::Order]) -> Ordering {
    for order in orders {
        let found = match order.field.key.as_str() {
            "experiment_id" if order.ascending => a.of.no.cmp(&b.of.no),
            "experiment_id" => b.of.no.cmp(&a.of.no),
            _ => grammar::sort_by(a, b, std::slice::from_ref(order)),
        };
        if found.is_ne() {
            return found;
        }
    }
    b.of.no.cmp(&a.of.no)
}

/// The experiment of a request, if the caller may change it.
pub async fn own(call: &Call<'_>, right: Right) -> Result<Arc<Experiment>> {
    let id = call.fields.required("experiment_id")?;
    let found = call.experiment(&id).await?;
    call.must(right, &found.team, Some(&found.by))?;
    Ok(found)
}

pub async fn update(call: &Call<'_>) -> Result<Reply> {
    let found = own(call, Right::Write).await?;
    let Some(new) = call.fields.text("new_name")?.filter(|name| *name != found.name) else {
        return Ok(Reply::empty());
    };
    limits::experiment_name(&new)?;
    let (team, new) = place(call, &new)?;
    if team != found.team && call.fields.text("new_name")?.is_some_and(|name| name.contains('/')) {
        return Err(Error::invalid(format!(
            "An experiment stays in its team: '{}' is of team {}",
            found.name, found.team
        )));
    }
    if call.store.experiment_named(&found.team, &new).is_some() {
        return Err(Error::exists(format!("Experiment(name={new}) already exists.")));
    }
    if found.name == DEFAULT_EXPERIMENT {
        return Err(Error::invalid("The default experiment of a team keeps its name"));
    }
    let old = found.name.clone();
    let detail = json!({ "from": old, "to": new });
    let change = move |there: &mut Experiment, docs: &mut DocSet| {
        if there.deleted {
            let said = "Cannot rename a non-active experiment.";
            return Err(Error::invalid(said));
        }
        docs.remove(&super::call::experiment_key(&there.team, &there.name, there.no));
        there.name = new;
        Ok(())
    };
    call.edit_experiment(&found, change).await?;
    Ok(Reply::empty().noted(target(&found), detail))
}

pub fn target(of: &Experiment) -> String {
    format!("experiment {} ({}/{})", of.no, of.team, of.name)
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    stage(call, true).await
}

pub async fn restore(call: &Call<'_>) -> Result<Reply> {
    stage(call, false).await
}

async fn stage(call: &Call<'_>, deleted: bool) -> Result<Reply> {
    let found = own(call, Right::Manage).await?;
    if found.deleted == deleted {
        let said = format!(
            "No Experiment with id={} is {}",
            found.no,
            match deleted {
                true => "active",
                false => "deleted",
            }
        );
        return Err(Error::absent(said));
    }
    if found.name == DEFAULT_EXPERIMENT && deleted {
        return Err(Error::invalid(
            "The default experiment of a team cannot be deleted. Delete its runs instead",
        ));
    }
    let at = call.now;
    let change = move |there: &mut Experiment, docs: &mut DocSet| {
        there.deleted = deleted;
        docs.effects.push(Effect::RunsOf { experiment: there.no, deleted, at });
        Ok(())
    };
    call.edit_experiment(&found, change).await?;
    let restored = (!deleted).then_some(Restored::Experiment(found.no));
    Ok(Reply { restored, ..Reply::empty().noted(target(&found), json!({})) })
}

pub async fn set_tag(call: &Call<'_>) -> Result<Reply> {
    let found = own(call, Right::Write).await?;
    let pair = (call.fields.required("key")?, call.fields.given("value")?);
    let tags = checked_tags(vec![pair], limits::EXPERIMENT_TAG_VALUE)?;
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        for (key, value) in tags {
            put_tag(&mut there.tags, key, value)?;
        }
        Ok(())
    };
    call.edit_experiment(&found, change).await?;
    Ok(Reply::empty())
}

pub async fn delete_tag(call: &Call<'_>) -> Result<Reply> {
    let found = own(call, Right::Write).await?;
    let key = call.fields.required("key")?;
    let change = move |there: &mut Experiment, _: &mut DocSet| {
        there.tags.remove(&key).map(drop).ok_or_else(|| {
            let no = there.no;
            Error::absent(format!("No tag with name: {key} in experiment with id {no}"))
        })
    };
    call.edit_experiment(&found, change).await?;
    Ok(Reply::empty())
}

/// Data sets that runs of experiments have read.
pub async fn search_datasets(call: &Call<'_>) -> Result<Reply> {
    const MOST: usize = 20;
    let ids = call.fields.texts("experiment_ids")?;
    if ids.is_empty() {
        return Err(Error::invalid(
            "SearchDatasets request must specify at least one experiment_id.",
        ));
    }
    if ids.len() > MOST {
        return Err(Error::invalid(format!(
            "SearchDatasets request cannot specify more than {MOST} experiment_ids. Received {} \
             experiment_ids.",
            ids.len()
        )));
    }
    let mut numbers = Vec::new();
    for id in &ids {
        if let Ok(found) = call.experiment(id).await {
            numbers.push(found.no);
        }
    }
    let found = call.store.datasets(&numbers).await?;
    let items: Vec<Value> = found
        .iter()
        .map(|one| {
            let mut item = json!({
                "experiment_id": one.experiment.to_string(),
                "name": one.name,
                "digest": one.digest,
            });
            if !one.context.is_empty() {
                item["context"] = json!(one.context);
            }
            item
        })
        .collect();
    Ok(listed("dataset_summaries", items, None))
}
