//! Answers as JSON. Runs and points have a hand-written encoder, because they are most of the traffic.

use crate::model::{
    Experiment, Latest, LoggedModel, ModelMetric, ModelVersion, Point, RegisteredModel, Run, Tags,
    stage,
};
use crate::value;
use serde_json::{Value, json};
use std::fmt::Write as _;

fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text is JSON");
}

fn number(out: &mut Vec<u8>, number: i64) {
    serde_json::to_writer(out, &number).expect("a number is JSON");
}

/// Writes elements with commas between them.
fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, one: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        one(out, item);
    }
    out.push(b']');
}

fn pair(out: &mut Vec<u8>, (key, value): &(String, String)) {
    out.extend_from_slice(b"{\"key\":");
    text(out, key);
    out.extend_from_slice(b",\"value\":");
    text(out, value);
    out.push(b'}');
}

/// A point of a metric, with its run if the answer has several runs.
pub fn point(out: &mut Vec<u8>, key: &str, point: &Point, run: Option<&str>) {
    out.extend_from_slice(b"{\"key\":");
    text(out, key);
    out.extend_from_slice(b",\"value\":");
    value::write(out, point.value);
    out.extend_from_slice(b",\"timestamp\":");
    number(out, point.timestamp);
    out.extend_from_slice(b",\"step\":");
    number(out, point.step);
    if let Some(run) = run {
        out.extend_from_slice(b",\"run_id\":");
        text(out, run);
    }
    out.push(b'}');
}

pub fn points(key: &str, points: &[Point], next: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + points.len() * (key.len() + 64));
    out.extend_from_slice(b"{\"metrics\":");
    list(&mut out, points, |out, one| point(out, key, one, None));
    end(&mut out, next);
    out
}

/// Closes the object, after the token of the next page if there are more results.
fn end(out: &mut Vec<u8>, next: Option<&str>) {
    if let Some(next) = next {
        out.extend_from_slice(b",\"next_page_token\":");
        text(out, next);
    }
    out.push(b'}');
}

pub fn run_info(out: &mut Vec<u8>, run: &Run, experiment: &Experiment) {
    for (before, value) in [
        ("{\"run_id\":", run.id.as_str()),
        (",\"run_uuid\":", &run.id),
        (",\"run_name\":", &run.name),
        (",\"experiment_id\":", &run.experiment.to_string()),
        (",\"user_id\":", &run.user),
        (",\"status\":", &run.status),
        (",\"lifecycle_stage\":", stage(run.deleted)),
    ] {
        out.extend_from_slice(before.as_bytes());
        text(out, value);
    }
    let mut place = experiment.artifacts();
    let _ = write!(place, "/{}/artifacts", run.id);
    out.extend_from_slice(b",\"artifact_uri\":");
    text(out, &place);
    for (before, at) in [(",\"start_time\":", run.start), (",\"end_time\":", run.end)] {
        if let Some(at) = at {
            out.extend_from_slice(before.as_bytes());
            number(out, at);
        }
    }
    out.push(b'}');
}

pub fn run(out: &mut Vec<u8>, run: &Run, experiment: &Experiment) {
    out.extend_from_slice(b"{\"info\":");
    run_info(out, run, experiment);
    out.extend_from_slice(b",\"data\":{\"metrics\":");
    list(out, &run.metrics, |out, Latest { key, point: one }| point(out, key, one, None));
    out.extend_from_slice(b",\"params\":");
    list(out, &run.params, pair);
    out.extend_from_slice(b",\"tags\":");
    list(out, &run.tags, pair);
    out.extend_from_slice(b"},\"inputs\":{\"dataset_inputs\":");
    list(out, &run.datasets, |out, input| {
        out.extend_from_slice(b"{\"tags\":");
        list(out, &input.tags, pair);
        let of = &input.dataset;
        for (before, value) in [
            (",\"dataset\":{\"name\":", Some(&of.name)),
            (",\"digest\":", Some(&of.digest)),
            (",\"source_type\":", Some(&of.source_type)),
            (",\"source\":", Some(&of.source)),
            (",\"schema\":", of.schema.as_ref()),
            (",\"profile\":", of.profile.as_ref()),
        ] {
            if let Some(value) = value {
                out.extend_from_slice(before.as_bytes());
                text(out, value);
            }
        }
        out.extend_from_slice(b"}}");
    });
    out.extend_from_slice(b",\"model_inputs\":");
    let models = |output: bool| run.models.iter().filter(move |model| model.is_output == output);
    list(out, models(false), |out, model| {
        out.extend_from_slice(b"{\"model_id\":");
        text(out, &model.id);
        out.push(b'}');
    });
    out.extend_from_slice(b"},\"outputs\":{\"model_outputs\":");
    list(out, models(true), |out, model| {
        out.extend_from_slice(b"{\"model_id\":");
        text(out, &model.id);
        out.extend_from_slice(b",\"step\":");
        number(out, model.step);
        out.push(b'}');
    });
    out.extend_from_slice(b"}}");
}

/// Writes `{"runs":[…]}` incrementally.
#[derive(Default)]
pub struct Runs(Vec<u8>);

impl Runs {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn push(&mut self, one: &Run, of: &Experiment) {
        self.0.extend_from_slice(if self.0.is_empty() { b"{\"runs\":[" } else { b"," });
        run(&mut self.0, one, of);
    }

    /// Closes the answer, after the token of the next page if there are more results.
    pub fn finish(mut self, next: Option<&str>) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.extend_from_slice(b"{\"runs\":[");
        }
        self.0.push(b']');
        end(&mut self.0, next);
        self.0
    }
}

pub fn tags(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

/// An experiment; one of another team has the team before its name.
pub fn experiment(of: &Experiment, team: Option<&str>) -> Value {
    let name = match team {
        Some(team) if team == of.team => of.name.clone(),
        _ => format!("{}/{}", of.team, of.name),
    };
    json!({
        "experiment_id": of.no.to_string(),
        "name": name,
        "artifact_location": of.artifacts(),
        "lifecycle_stage": stage(of.deleted),
        "creation_time": of.created,
        "last_update_time": of.updated,
        "tags": tags(&of.tags),
    })
}

pub fn logged_model(of: &LoggedModel, experiment: &Experiment, metrics: &[&ModelMetric]) -> Value {
    let metric = |one: &&ModelMetric| {
        let mut metric = json!({
            "key": one.key,
            "value": number_of(one.point.value),
            "timestamp": one.point.timestamp,
            "step": one.point.step,
            "model_id": one.model,
            "run_id": one.run,
        });
        if !one.dataset_name.is_empty() {
            metric["dataset_name"] = json!(one.dataset_name);
            metric["dataset_digest"] = json!(one.dataset_digest);
        }
        metric
    };
    json!({
        "info": {
            "model_id": of.id,
            "experiment_id": of.experiment.to_string(),
            "name": of.name,
            "model_type": of.model_type,
            "source_run_id": of.run,
            "status": of.status,
            "artifact_uri": format!("{}/models/{}/artifacts", experiment.artifacts(), of.id),
            "creation_timestamp_ms": of.created,
            "last_updated_timestamp_ms": of.updated,
            "tags": tags(&of.tags),
        },
        "data": {
            "params": tags(&of.params),
            "metrics": metrics.iter().map(metric).collect::<Vec<_>>(),
        },
    })
}

fn number_of(kept: i64) -> Value {
    let value = value::decode(kept);
    if value.is_nan() { json!("NaN") } else { json!(value) }
}

pub fn version(of: &ModelVersion, aliases: &[&str]) -> Value {
    let mut out = json!({
        "name": of.name,
        "version": of.version.to_string(),
        "creation_timestamp": of.created,
        "last_updated_timestamp": of.updated,
        "user_id": of.by,
        "current_stage": of.stage,
        "source": of.source,
        "status": "READY",
        "tags": tags(&of.tags),
        "aliases": aliases,
    });
    for (name, value) in [
        ("description", &of.description),
        ("run_id", &of.run),
        ("run_link", &of.run_link),
        ("model_id", &of.model),
    ] {
        if let Some(value) = value {
            out[name] = json!(value);
        }
    }
    out
}

pub fn registered_model(of: &RegisteredModel, latest: &[ModelVersion]) -> Value {
    let aliases_of = |version: u64| -> Vec<&str> {
        let named = of.aliases.iter().filter(|(_, number)| **number == version);
        named.map(|(alias, _)| alias.as_str()).collect()
    };
    let mut out = json!({
        "name": of.name,
        "creation_timestamp": of.created,
        "last_updated_timestamp": of.updated,
        "user_id": of.by,
        "tags": tags(&of.tags),
        "aliases": of.aliases.iter()
            .map(|(alias, version)| json!({ "alias": alias, "version": version.to_string() }))
            .collect::<Vec<_>>(),
        "latest_versions": latest.iter()
            .map(|one| version(one, &aliases_of(one.version)))
            .collect::<Vec<_>>(),
    });
    if let Some(description) = &of.description {
        out["description"] = json!(description);
    }
    if let Some(job) = &of.deployment_job {
        out["deployment_job_id"] = json!(job);
    }
    out
}

pub fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a value is JSON")
}
