//! Models that runs have logged.

use super::call::{Call, Reply, checked_tags, listed, random_id, searched_experiments, select};
use crate::encode;
use crate::error::{Code, Error, Result};
use crate::grammar::{self, Entity, Field, Order, Things};
use crate::limits;
use crate::model::{Experiment, LoggedModel, ModelMetric, Tags};
use crate::page;
use crate::ports::{DocChange, DocKey, DocSet, Kind, Load, Right, read};
use crate::value;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::sync::Arc;

const PENDING: &str = "LOGGED_MODEL_PENDING";
const PAGE: usize = 100;
const MOST_PAGE: usize = 1000;

fn key(model: &LoggedModel) -> DocKey {
    let scope = model.experiment.to_string();
    DocKey { kind: Kind::LoggedModel, scope, name: model.id.clone(), sub: 0 }
}

fn absent(id: &str) -> Error {
    Error::absent(format!("Logged model with ID '{id}' not found."))
}

/// A model that the caller may read.
pub async fn find(call: &Call<'_>, id: &str) -> Result<(LoggedModel, Arc<Experiment>)> {
    let found = call.store.named(Kind::LoggedModel, id.to_owned()).await?;
    let (_, doc) = found.ok_or_else(|| absent(id))?;
    let model: LoggedModel = read(&doc)?;
    let experiment = call.store.experiment(model.experiment).filter(|of| call.sees(of));
    Ok((model, experiment.ok_or_else(|| absent(id))?))
}

async fn shown(call: &Call<'_>, model: &LoggedModel, of: &Experiment) -> Result<Reply> {
    let metrics = call.store.model_metrics(std::slice::from_ref(&model.id)).await?;
    let metrics: Vec<&ModelMetric> = metrics.iter().collect();
    Ok(Reply::json(&json!({ "model": encode::logged_model(model, of, &metrics) })))
}

fn params(pairs: Vec<(String, String)>) -> Result<Tags> {
    let mut params = Tags::new();
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        limits::name(&key, || format!("params[{index}].key"))?;
        limits::length("Param key", &key, limits::KEY)?;
        limits::no_zero("Param value", &value)?;
        params.insert(key, limits::cut(value, limits::PARAM_VALUE));
    }
    Ok(params)
}

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let experiment = call.experiment(&fields.required("experiment_id")?).await?;
    call.must(Right::Write, &experiment.team, Some(call.actor.user()))?;
    let kept = call.store.count(Kind::LoggedModel, experiment.no.to_string()).await?;
    if kept >= limits::LOGGED_MODELS_PER_EXPERIMENT as u64 {
        let said =
            format!("Experiment {} has {kept} logged models, which is the limit", experiment.no);
        return Err(Error::over_limit(said));
    }
    let id = format!("m-{}", random_id()?);
    let name = fields.text("name")?.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("model-{}", &id[2..10]));
    if name.contains(['/', ':', '.', '%', '"', '\'']) {
        return Err(Error::invalid(format!(
            "Invalid model name ('{name}') provided. Model name must be a non-empty string and \
             cannot contain the following characters: ('/', ':', '.', '%', '\"', \"'\")"
        )));
    }
    limits::length("name", &name, limits::EXPERIMENT_NAME)?;
    let model_type = fields.text("model_type")?.unwrap_or_default();
    limits::length("model_type", &model_type, limits::EXPERIMENT_NAME)?;
    let run = fields.text("source_run_id")?.unwrap_or_default();
    limits::length("source_run_id", &run, limits::KEY)?;
    let model = LoggedModel {
        id,
        experiment: experiment.no,
        name,
        model_type,
        run,
        status: PENDING.to_owned(),
        created: call.now,
        updated: call.now,
        by: call.actor.user().to_owned(),
        tags: checked_tags(fields.pairs("tags")?, limits::TAG_VALUE)?,
        params: fits(params(fields.pairs("params")?)?)?,
    };
    let made = model.clone();
    let edit = move |docs: &mut DocSet| {
        docs.put(key(&made), &made);
        Ok(Vec::new())
    };
    call.store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await?;
    shown(call, &model, &experiment).await
}

fn fits(params: Tags) -> Result<Tags> {
    if params.len() > limits::PARAMS_PER_MODEL {
        let said = format!("A logged model has at most {} params", limits::PARAMS_PER_MODEL);
        return Err(Error::over_limit(said));
    }
    Ok(params)
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    let (model, experiment) = find(call, &call.parts[0]).await?;
    shown(call, &model, &experiment).await
}

/// Changes a model and returns it.
async fn edit(
    call: &Call<'_>,
    change: impl FnOnce(&mut LoggedModel) -> Result<()> + Send + 'static,
) -> Result<Reply> {
    let (model, experiment) = find(call, &call.parts[0]).await?;
    call.must(Right::Write, &experiment.team, Some(&model.by))?;
    let (key, now) = (key(&model), call.now);
    let load = Load {
        kind: Kind::LoggedModel,
        scope: key.scope.clone(),
        name: Some(key.name.clone()),
        sub: Some(0),
    };
    let edit = move |docs: &mut DocSet| {
        let there: Option<LoggedModel> = docs.get(&key)?;
        let mut there = there.ok_or_else(|| absent(&key.name))?;
        change(&mut there)?;
        there.updated = now;
        docs.put(key, &there);
        Ok(serde_json::to_vec(&there).expect("documents are plain data"))
    };
    let changed = DocChange { load: vec![load], edit: Box::new(edit) };
    let changed = call.store.edit(changed).await?;
    let changed: LoggedModel =
        serde_json::from_slice(&changed).map_err(|why| Error::internal(why.to_string()))?;
    shown(call, &changed, &experiment).await
}

pub async fn finalize(call: &Call<'_>) -> Result<Reply> {
    let status = match call.fields.required("status")?.as_str() {
        "LOGGED_MODEL_READY" | "READY" | "2" => "LOGGED_MODEL_READY",
        "LOGGED_MODEL_UPLOAD_FAILED" | "FAILED" | "3" => "LOGGED_MODEL_UPLOAD_FAILED",
        "LOGGED_MODEL_PENDING" | "PENDING" | "1" => PENDING,
        other => return Err(Error::bad_value("status", json!(other), "")),
    };
    edit(call, move |model| {
        status.clone_into(&mut model.status);
        Ok(())
    })
    .await
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    let (model, experiment) = find(call, &call.parts[0]).await?;
    call.must(Right::Manage, &experiment.team, Some(&model.by))?;
    let target = format!("logged model {} of experiment {}", model.id, experiment.no);
    let edit = move |docs: &mut DocSet| {
        docs.remove(&key(&model));
        Ok(Vec::new())
    };
    call.store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await?;
    Ok(Reply::empty().noted(target, json!({ "team": experiment.team })))
}

pub async fn set_tags(call: &Call<'_>) -> Result<Reply> {
    let tags = checked_tags(call.fields.pairs("tags")?, limits::TAG_VALUE)?;
    edit(call, move |model| {
        for (key, value) in tags {
            super::call::put_tag(&mut model.tags, key, value)?;
        }
        Ok(())
    })
    .await
}

pub async fn delete_tag(call: &Call<'_>) -> Result<Reply> {
    let key = call.parts[1].clone();
    edit(call, move |model| {
        let gone = model.tags.remove(&key).map(drop);
        let id = &model.id;
        gone.ok_or_else(|| {
            Error::absent(format!("No tag with key '{key}' found for model with ID '{id}'."))
        })
    })
    .await?;
    Ok(Reply::empty())
}

pub async fn log_params(call: &Call<'_>) -> Result<Reply> {
    let new = params(call.fields.pairs("params")?)?;
    edit(call, move |model| {
        model.params.extend(new);
        fits(std::mem::take(&mut model.params)).map(|params| model.params = params)
    })
    .await?;
    Ok(Reply::empty())
}

/// A model as a search sees it.
struct Found {
    of: LoggedModel,
    /// On the data sets of the request.
    metrics: Vec<ModelMetric>,
    /// The metrics in `order_by`.
    ordered: Vec<Option<f64>>,
}

impl Things for Found {
    fn text(&self, field: &Field) -> Option<&str> {
        let of = &self.of;
        match field.kind {
            grammar::Kind::Tag => of.tags.get(&field.key).map(String::as_str),
            grammar::Kind::Param => of.params.get(&field.key).map(String::as_str),
            _ => Some(match field.key.as_str() {
                "name" => &of.name,
                "model_id" => &of.id,
                "model_type" => &of.model_type,
                "status" => of.status.strip_prefix("LOGGED_MODEL_").unwrap_or(&of.status),
                _ => &of.run,
            }),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    fn number(&self, field: &Field) -> Option<f64> {
        Some(match field.key.as_str() {
            "creation_timestamp" => self.of.created as f64,
            _ => self.of.updated as f64,
        })
    }

    fn metric(&self, key: &str, fits: &dyn Fn(f64) -> bool) -> bool {
        self.metrics.iter().any(|one| one.key == key && fits(value::decode(one.point.value)))
    }
}

/// A key of `order_by`: a field, or a metric on a data set.
struct By {
    order: Order,
    dataset: Option<(String, Option<String>)>,
}

fn orders(call: &Call<'_>) -> Result<Vec<By>> {
    let mut found = Vec::new();
    for one in call.fields.objects("order_by")? {
        let name = one.required("field_name")?;
        let ascending = one.bool("ascending")?.unwrap_or(true);
        let mut order = grammar::orders(Entity::LoggedModel, &[name])?;
        let mut order = order.pop().expect("one order gives one");
        order.ascending = ascending;
        let dataset = one.text("dataset_name")?.filter(|name| !name.is_empty());
        let digest = one.text("dataset_digest")?.filter(|digest| !digest.is_empty());
        found.push(By { order, dataset: dataset.map(|name| (name, digest)) });
    }
    Ok(found)
}

fn is_on(metric: &ModelMetric, (name, digest): &(String, Option<String>)) -> bool {
    metric.dataset_name == *name
        && digest.as_ref().is_none_or(|digest| *digest == metric.dataset_digest)
}

pub async fn search(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let most = fields.max_results(PAGE, MOST_PAGE)?;
    let offset = page::offset(fields.text("page_token")?.as_deref())?;
    let filter = fields.text("filter")?.unwrap_or_default();
    let clauses = grammar::filter(Entity::LoggedModel, &filter)?;
    let orders = orders(call)?;
    let mut datasets = Vec::new();
    for one in fields.objects("datasets")? {
        let name = one.text("dataset_name")?.filter(|name| !name.is_empty());
        let said = "`dataset_name` in the `datasets` clause must be specified.";
        let name = name.ok_or_else(|| Error::invalid(said))?;
        datasets.push((name, one.text("dataset_digest")?.filter(|digest| !digest.is_empty())));
    }
    let mut experiments = Vec::new();
    let mut found = Vec::new();
    for id in searched_experiments(fields)? {
        let experiment = match call.experiment(&id).await {
            Ok(experiment) => experiment,
            Err(error) if error.code == Code::DoesNotExist => continue,
            Err(error) => return Err(error),
        };
        let scope = experiment.no.to_string();
        let load = Load { kind: Kind::LoggedModel, scope, name: None, sub: None };
        for (_, doc) in call.store.docs(load).await? {
            found.push(read::<LoggedModel>(&doc)?);
        }
        experiments.push(experiment);
    }
    let ids: Vec<String> = found.iter().map(|of| of.id.clone()).collect();
    let all_metrics = call.store.model_metrics(&ids).await?;
    let found: Vec<Found> = found
        .into_iter()
        .map(|of| {
            let own = || all_metrics.iter().filter(|one| one.model == of.id);
            let ordered = orders.iter().map(|by| newest(own(), by)).collect();
            let shown = |one: &&ModelMetric| {
                datasets.is_empty() || datasets.iter().any(|set| is_on(one, set))
            };
            let metrics = own().filter(shown).cloned().collect();
            Found { of, metrics, ordered }
        })
        .collect();
    let order = |a: &Found, b: &Found| compare(a, b, &orders);
    let (page, next) = select(found, &clauses, order, (offset, most));
    let items: Vec<Value> = page
        .iter()
        .filter_map(|one| {
            let of = experiments.iter().find(|of| of.no == one.of.experiment)?;
            let metrics = all_metrics.iter().filter(|metric| metric.model == one.of.id);
            Some(encode::logged_model(&one.of, of, &metrics.collect::<Vec<_>>()))
        })
        .collect();
    Ok(listed("models", items, next))
}

/// The newest value of a metric in `order_by`.
fn newest<'a>(metrics: impl Iterator<Item = &'a ModelMetric>, by: &By) -> Option<f64> {
    let fits = |one: &&ModelMetric| {
        one.key == by.order.field.key && by.dataset.as_ref().is_none_or(|set| is_on(one, set))
    };
    let newest = metrics.filter(fits).max_by_key(|one| (one.point.timestamp, one.point))?;
    Some(value::decode(newest.point.value))
}

fn compare(a: &Found, b: &Found, orders: &[By]) -> Ordering {
    for (index, By { order, .. }) in orders.iter().enumerate() {
        let found = match order.field.kind {
            grammar::Kind::Metric => match (a.ordered[index], b.ordered[index]) {
                (Some(a), Some(b)) if order.ascending => a.total_cmp(&b),
                (Some(a), Some(b)) => b.total_cmp(&a),
                (a, b) => a.is_none().cmp(&b.is_none()),
            },
            _ => grammar::sort_by(a, b, std::slice::from_ref(order)),
        };
        if found.is_ne() {
            return found;
        }
    }
    b.of.created.cmp(&a.of.created).then_with(|| a.of.id.cmp(&b.of.id))
}
