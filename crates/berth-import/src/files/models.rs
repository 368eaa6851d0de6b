//! One logged model, from its folder.

use super::layout::{META, METRICS, PARAMS, TAGS, name_of, named_files, pairs};
use super::runs::{Read, place};
use super::{lines, yaml};
use crate::error::{Error, Result};
use crate::model::{LoggedModel, ModelMetric, Owner};
use crate::report::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ModelMeta {
    pub name: Value,
    pub model_type: Value,
    pub source_run_id: Value,
    pub status: Value,
    pub creation_timestamp: Value,
    pub artifact_location: Value,
    pub lifecycle_stage: Value,
}

/// `None` for a deleted model.
pub fn logged_model(folder: &Path, experiment: &Path) -> Result<Read<Option<LoggedModel>>> {
    let meta: ModelMeta = yaml::read(&folder.join(META))?;
    if yaml::text(&meta.lifecycle_stage) == "deleted" {
        return Ok((None, Vec::new()));
    }
    let id = name_of(folder);
    let mut problems = Vec::new();
    let mut lost = |what: &str, why: String| {
        problems.push(Problem { what: format!("{what} of logged model {id}"), why });
    };
    let params = pairs(&folder.join(PARAMS), |key, why| lost(&format!("param {key}"), why))?;
    let tags = pairs(&folder.join(TAGS), |key, why| lost(&format!("tag {key}"), why))?;
    let mut metrics: Vec<ModelMetric> = Vec::new();
    for (key, path) in named_files(&folder.join(METRICS))? {
        let text = fs::read_to_string(&path).map_err(Error::file("reading", &path))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match lines::model_metric(&key, line) {
                Ok(metric) if !metrics.contains(&metric) => metrics.push(metric),
                Ok(_) => {}
                Err(why) => lost(&format!("metric {key}"), why),
            }
        }
    }
    let read = LoggedModel {
        experiment: name_of(experiment),
        name: yaml::text(&meta.name),
        model_type: yaml::text(&meta.model_type),
        run: yaml::some(&meta.source_run_id),
        status: status_of(&meta.status).to_owned(),
        created: yaml::int(&meta.creation_timestamp),
        tags,
        params,
        metrics,
        place: place(folder, &meta.artifact_location, Owner::Model(id.clone())),
        id: id.clone(),
    };
    Ok((Some(read), problems))
}

pub fn status_of(value: &Value) -> &'static str {
    match (yaml::int(value), value.as_str()) {
        (Some(2), _) | (_, Some("READY")) => "READY",
        (Some(3), _) | (_, Some("FAILED")) => "FAILED",
        _ => "PENDING",
    }
}

pub fn status_number(word: &str) -> i64 {
    match word {
        "READY" => 2,
        "FAILED" => 3,
        _ => 1,
    }
}
