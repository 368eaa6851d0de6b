//! What runs log: metrics, params, tags, data sets and models.

use super::call::{Call, Reply};
use super::loose::{Loose, RawBatch, RawMetric};
use super::resumed;
use super::run_tags::run_tags;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::limits;
use crate::model::{Dataset, Input, Point, RunModel};
use crate::ports::{Metric, OfModel, RunChange};
use crate::value;
use std::collections::BTreeSet;

pub async fn batch(call: &Call<'_>) -> Result<Reply> {
    if call.body.len() > limits::BATCH_BYTES {
        return Err(Error::invalid(format!(
            "Batched logging API requests must be at most {} bytes, got a request of size {}.",
            limits::BATCH_BYTES,
            call.body.len()
        )));
    }
    let RawBatch { run, metrics, params, tags } = RawBatch::of_json(call.body)?;
    limits::batch("metrics", limits::METRICS_PER_BATCH, metrics.len())?;
    limits::batch("params", limits::PARAMS_PER_BATCH, params.len())?;
    limits::batch("tags", limits::TAGS_PER_BATCH, tags.len())?;
    let all = metrics.len() + params.len() + tags.len();
    limits::batch("metrics, params, and tags", limits::ENTITIES_PER_BATCH, all)?;
    let id = run_id(run)?;
    let metrics: Vec<Metric> = metrics
        .into_iter()
        .enumerate()
        .map(|(index, raw)| metric(raw, |field| format!("metrics[{index}].{field}")))
        .collect::<Result<_>>()?;
    let pair = |what: &'static str| {
        move |(index, raw): (usize, super::loose::RawPair<'_>)| {
            let at = |field: &str| format!("{what}[{index}].{field}");
            let key = raw.key.text(|| at("key"))?.ok_or_else(|| Error::missing(&at("key")))?;
            Ok((key, raw.value.text(|| at("value"))?.unwrap_or_default()))
        }
    };
    let params: Vec<_> =
        params.into_iter().enumerate().map(pair("params")).collect::<Result<_>>()?;
    let tags: Vec<_> = tags.into_iter().enumerate().map(pair("tags")).collect::<Result<_>>()?;
    let (params, tags) = (run_params(params)?, run_tags(tags)?);
    let (run, _) = call.own_run(&id).await?;
    if all > 0 {
        resumed::log(call, run, metrics, params, tags).await?;
    }
    Ok(Reply::empty())
}

pub async fn log_metric(call: &Call<'_>) -> Result<Reply> {
    let mut raw = RawMetric::of_json(call.body)?;
    let id = run_id(std::mem::take(&mut raw.run))?;
    let metric = metric(raw, str::to_owned)?;
    let (run, _) = call.own_run(&id).await?;
    log(call, RunChange::Log { run, metrics: vec![metric], params: Vec::new(), tags: Vec::new() })
        .await
}

fn run_id(found: Loose<'_>) -> Result<String> {
    let id = found.text(|| "run_id".to_owned())?.filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Error::missing("run_id"))?;
    limits::run_id(&id)?;
    Ok(id)
}

async fn log(call: &Call<'_>, change: RunChange) -> Result<Reply> {
    call.store.write(change).await?;
    Ok(Reply::empty())
}

fn metric(raw: RawMetric<'_>, at: impl Fn(&str) -> String) -> Result<Metric> {
    let key = raw.key.text(|| at("key"))?.ok_or_else(|| Error::missing(&at("key")))?;
    limits::name(&key, || at("name"))?;
    limits::length("Metric name", &key, limits::KEY)?;
    let why = "Please specify value as a valid double (64-bit floating point)";
    let found = raw.value.number().map_err(|shown| Error::bad_value(&at("value"), shown, why))?;
    let found = found.ok_or_else(|| Error::missing(&at("value")))?;
    let why = "Timestamp must be a nonnegative long (64-bit integer) ";
    let timestamp =
        raw.timestamp.int().map_err(|shown| Error::bad_value(&at("timestamp"), shown, why))?;
    let timestamp = timestamp.ok_or_else(|| Error::missing(&at("timestamp")))?;
    if timestamp < 0 {
        return Err(Error::bad_value(&at("timestamp"), timestamp, why));
    }
    let why = "Step must be a valid long (64-bit integer).";
    let step = raw.step.int().map_err(|shown| Error::bad_value(&at("step"), shown, why))?;
    let text =
        |loose: Loose<'_>, field: &str| loose.text(|| at(field)).map(Option::unwrap_or_default);
    let model = text(raw.model_id, "model_id")?;
    let dataset_name = text(raw.dataset_name, "dataset_name")?;
    let dataset_digest = text(raw.dataset_digest, "dataset_digest")?;
    limits::length("dataset_name", &dataset_name, limits::DATASET_NAME)?;
    limits::length("dataset_digest", &dataset_digest, limits::DATASET_DIGEST)?;
    limits::length("model_id", &model, limits::KEY)?;
    let model = (!model.is_empty()).then_some(OfModel { id: model, dataset_name, dataset_digest });
    let point = Point { step: step.unwrap_or(0), timestamp, value: value::encode(found) };
    Ok(Metric { key, point, model })
}

fn run_params(pairs: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
    let mut keys = BTreeSet::new();
    let twice: Vec<&str> = pairs
        .iter()
        .filter(|(key, _)| !keys.insert(key.as_str()))
        .map(|(key, _)| key.as_str())
        .collect();
    if !twice.is_empty() {
        let twice: Vec<String> = twice.iter().map(|key| format!("'{key}'")).collect();
        return Err(Error::invalid(format!(
            "Duplicate parameter keys have been submitted: [{}]. Please ensure the request contains \
             only one param value per param key.",
            twice.join(", ")
        )));
    }
    let checked = |(index, (key, value)): (usize, (String, String))| {
        limits::name(&key, || format!("params[{index}].key"))?;
        limits::length("Param key", &key, limits::KEY)?;
        limits::no_zero("Param value", &value)?;
        Ok((key, limits::cut(value, limits::PARAM_VALUE)))
    };
    pairs.into_iter().enumerate().map(checked).collect()
}

pub async fn log_param(call: &Call<'_>) -> Result<Reply> {
    let pair = (call.fields.required("key")?, call.fields.given("value")?);
    let params = run_params(vec![pair])?;
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    resumed::log(call, run, Vec::new(), params, Vec::new()).await?;
    Ok(Reply::empty())
}

pub async fn set_tag(call: &Call<'_>) -> Result<Reply> {
    let pair = (call.fields.required("key")?, call.fields.given("value")?);
    let tags = run_tags(vec![pair])?;
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    log(call, RunChange::Log { run, metrics: Vec::new(), params: Vec::new(), tags }).await
}

pub async fn delete_tag(call: &Call<'_>) -> Result<Reply> {
    let key = call.fields.required("key")?;
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    log(call, RunChange::DeleteTag { run, key }).await
}

/// The tag in which old clients store the logged models of a run.
const HISTORY_TAG: &str = "mlflow.log-model.history";

pub async fn log_model(call: &Call<'_>) -> Result<Reply> {
    let json = call.fields.required("model_json")?;
    let model: serde_json::Value = serde_json::from_str(&json).map_err(|_| {
        Error::invalid("Malformed model info. The field 'model_json' is not valid JSON.")
    })?;
    let missing: Vec<&str> = ["artifact_path", "flavors", "utc_time_created", "run_id"]
        .into_iter()
        .filter(|name| model.get(name).is_none())
        .collect();
    if !missing.is_empty() {
        return Err(Error::invalid(format!(
            "Model json is missing mandatory fields: {}",
            missing.join(", ")
        )));
    }
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    let there = call.read_run(&run).await?;
    let before = there.tags.iter().find(|(key, _)| key == HISTORY_TAG);
    let mut all: Vec<serde_json::Value> =
        before.and_then(|(_, value)| serde_json::from_str(value).ok()).unwrap_or_default();
    all.push(model);
    let value = serde_json::Value::Array(all).to_string();
    limits::length(HISTORY_TAG, &value, limits::TAG_VALUE)?;
    let tags = vec![(HISTORY_TAG.to_owned(), value)];
    log(call, RunChange::Log { run, metrics: Vec::new(), params: Vec::new(), tags }).await
}

pub async fn log_inputs(call: &Call<'_>) -> Result<Reply> {
    let datasets = call.fields.objects("datasets")?;
    limits::batch("datasets", limits::DATASETS_PER_CALL, datasets.len())?;
    let datasets: Vec<Input> =
        datasets.iter().enumerate().map(|(at, one)| input(at, one)).collect::<Result<_>>()?;
    let models = models(&call.fields, false)?;
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    log(call, RunChange::Inputs { run, datasets, models }).await
}

pub async fn log_outputs(call: &Call<'_>) -> Result<Reply> {
    let models = models(&call.fields, true)?;
    let (run, _) = call.own_run(&call.fields.run_id()?).await?;
    log(call, RunChange::Inputs { run, datasets: Vec::new(), models }).await
}

fn models(fields: &Fields, is_output: bool) -> Result<Vec<RunModel>> {
    let models = fields.objects("models")?;
    limits::batch("models", limits::MODELS_PER_CALL, models.len())?;
    let model = |(index, one): (usize, &Fields)| {
        let missing = || Error::missing(&format!("models[{index}].model_id"));
        let id = one.text("model_id")?.filter(|id| !id.is_empty()).ok_or_else(missing)?;
        limits::length("model_id", &id, limits::KEY)?;
        Ok(RunModel { id, is_output, step: one.int("step")?.unwrap_or(0) })
    };
    models.iter().enumerate().map(model).collect()
}

fn input(index: usize, fields: &Fields) -> Result<Input> {
    let said = "Dataset input must have a dataset associated with it.";
    let of = fields.object("dataset")?.ok_or_else(|| Error::invalid(said))?;
    let required = |name: &str| {
        let at = format!("datasets[{index}].dataset.{name}");
        of.text(name)?.filter(|text| !text.is_empty()).ok_or_else(|| Error::missing(&at))
    };
    let dataset = Dataset {
        name: required("name")?,
        digest: required("digest")?,
        source_type: required("source_type")?,
        source: required("source")?,
        schema: of.text("schema")?,
        profile: of.text("profile")?,
    };
    for (what, text, most) in [
        ("name", Some(&dataset.name), limits::DATASET_NAME),
        ("digest", Some(&dataset.digest), limits::DATASET_DIGEST),
        ("source_type", Some(&dataset.source_type), limits::INPUT_TAG_VALUE),
        ("source", Some(&dataset.source), limits::DATASET_SOURCE),
        ("schema", dataset.schema.as_ref(), limits::DATASET_SCHEMA),
        ("profile", dataset.profile.as_ref(), limits::DATASET_PROFILE),
    ] {
        limits::length(what, text.map_or("", String::as_str), most)?;
    }
    let tags = fields.pairs("tags")?;
    limits::batch("tags", limits::TAGS_PER_BATCH, tags.len())?;
    for (key, value) in &tags {
        limits::length("key", key, limits::INPUT_TAG_KEY)?;
        limits::length("value", value, limits::INPUT_TAG_VALUE)?;
        limits::no_zero("tags", key)?;
        limits::no_zero("tags", value)?;
    }
    Ok(Input { dataset, tags })
}
