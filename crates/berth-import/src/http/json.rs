//! Conversions from and to JSON.

use crate::model::{
    Dataset, Experiment, LoggedModel, ModelMetric, Owner, Pairs, Place, Point, RegisteredModel,
    Run, Version,
};
use serde_json::{Value, json};

/// A text; some servers send numbers as strings.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn some_text(value: &Value) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

pub fn int(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

pub fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => match text.as_str() {
            "Infinity" | "inf" => f64::INFINITY,
            "-Infinity" | "-inf" => f64::NEG_INFINITY,
            text => text.parse().unwrap_or(f64::NAN),
        },
        other => other.as_f64().unwrap_or(f64::NAN),
    }
}

/// A number as JSON; NaN becomes a string.
pub fn value_of(point: &Point) -> Value {
    let value = point.value();
    if value.is_nan() { json!("NaN") } else { json!(value) }
}

pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub fn pairs(value: &Value) -> Pairs {
    list(value).map(|one| (text(&one["key"]), text(&one["value"]))).collect()
}

pub fn of_pairs(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

pub fn is_deleted(value: &Value) -> bool {
    value["lifecycle_stage"].as_str() == Some("deleted")
}

pub fn experiment(one: &Value) -> Experiment {
    Experiment {
        id: text(&one["experiment_id"]),
        name: text(&one["name"]),
        deleted: is_deleted(one),
        created: int(&one["creation_time"]),
        tags: pairs(&one["tags"]),
        location: text(&one["artifact_location"]),
    }
}

pub fn run(one: &Value) -> Run {
    let (info, data) = (&one["info"], &one["data"]);
    let id = some_text(&info["run_id"]).unwrap_or_else(|| text(&info["run_uuid"]));
    Run {
        experiment: text(&info["experiment_id"]),
        name: text(&info["run_name"]),
        user: text(&info["user_id"]),
        status: text(&info["status"]),
        start: int(&info["start_time"]),
        end: int(&info["end_time"]).filter(|end| *end > 0),
        deleted: is_deleted(info),
        params: pairs(&data["params"]),
        tags: pairs(&data["tags"]),
        metrics: list(&data["metrics"]).map(|one| text(&one["key"])).collect(),
        datasets: list(&one["inputs"]["dataset_inputs"]).map(dataset).collect(),
        reads: list(&one["inputs"]["model_inputs"]).map(|one| text(&one["model_id"])).collect(),
        makes: list(&one["outputs"]["model_outputs"])
            .map(|one| (text(&one["model_id"]), int(&one["step"]).unwrap_or(0)))
            .collect(),
        place: Place { uri: text(&info["artifact_uri"]), owner: Owner::Run(id.clone()) },
        id,
    }
}

fn dataset(one: &Value) -> Dataset {
    let of = &one["dataset"];
    Dataset {
        name: text(&of["name"]),
        digest: text(&of["digest"]),
        source_type: text(&of["source_type"]),
        source: text(&of["source"]),
        schema: some_text(&of["schema"]),
        profile: some_text(&of["profile"]),
        tags: pairs(&one["tags"]),
    }
}

pub fn of_dataset(one: &Dataset) -> Value {
    let mut dataset = json!({
        "name": one.name,
        "digest": one.digest,
        "source_type": one.source_type,
        "source": one.source,
    });
    for (key, value) in [("schema", &one.schema), ("profile", &one.profile)] {
        if let Some(value) = value {
            dataset[key] = json!(value);
        }
    }
    json!({ "dataset": dataset, "tags": of_pairs(&one.tags) })
}

pub fn point(one: &Value) -> Point {
    let step = int(&one["step"]).unwrap_or(0);
    Point::new(step, int(&one["timestamp"]).unwrap_or(0), number(&one["value"]))
}

pub fn logged_model(one: &Value) -> LoggedModel {
    let (info, data) = (&one["info"], &one["data"]);
    let id = text(&info["model_id"]);
    let status = text(&info["status"]);
    let status = match status.strip_prefix("LOGGED_MODEL_").unwrap_or(&status) {
        "UPLOAD_FAILED" => "FAILED",
        other => other,
    };
    LoggedModel {
        experiment: text(&info["experiment_id"]),
        name: text(&info["name"]),
        model_type: text(&info["model_type"]),
        run: some_text(&info["source_run_id"]),
        status: status.to_owned(),
        created: int(&info["creation_timestamp_ms"]),
        tags: pairs(&info["tags"]),
        params: pairs(&data["params"]),
        metrics: list(&data["metrics"])
            .map(|one| ModelMetric {
                key: text(&one["key"]),
                point: point(one),
                run: text(&one["run_id"]),
                dataset_name: text(&one["dataset_name"]),
                dataset_digest: text(&one["dataset_digest"]),
            })
            .collect(),
        place: Place { uri: text(&info["artifact_uri"]), owner: Owner::Model(id.clone()) },
        id,
    }
}

pub fn registered_model(one: &Value) -> RegisteredModel {
    let aliases = list(&one["aliases"]);
    RegisteredModel {
        name: text(&one["name"]),
        description: text(&one["description"]),
        created: int(&one["creation_timestamp"]),
        tags: pairs(&one["tags"]),
        aliases: aliases
            .filter_map(|one| Some((text(&one["alias"]), text(&one["version"]).parse().ok()?)))
            .collect(),
    }
}

pub fn version(one: &Value) -> Option<Version> {
    Some(Version {
        version: text(&one["version"]).parse().ok()?,
        description: text(&one["description"]),
        stage: some_text(&one["current_stage"]).unwrap_or_else(|| "None".to_owned()),
        source: text(&one["source"]),
        run: some_text(&one["run_id"]),
        run_link: some_text(&one["run_link"]),
        model: some_text(&one["model_id"]),
        user: some_text(&one["user_id"]),
        created: int(&one["creation_timestamp"]),
        tags: pairs(&one["tags"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_from_either_servers_form() {
        let read = run(&json!({
            "info": { "run_uuid": "r", "experiment_id": "1", "run_name": "a", "status": "FAILED",
                "start_time": "5", "end_time": 0, "lifecycle_stage": "deleted" },
            "data": { "metrics": [{ "key": "m", "value": "NaN" }], "params": [{ "key": "p" }] },
            "inputs": { "dataset_inputs": [{ "dataset": { "name": "d", "digest": "x" },
                "tags": [{ "key": "k", "value": "v" }] }] },
            "outputs": { "model_outputs": [{ "model_id": "m-1", "step": "3" }] },
        }));
        assert_eq!((read.id.as_str(), read.start, read.end), ("r", Some(5), None));
        assert!(read.deleted && read.is_over());
        assert_eq!(read.params, [("p".to_owned(), String::new())]);
        assert_eq!(read.datasets[0].tags, [("k".to_owned(), "v".to_owned())]);
        assert_eq!(read.makes, [("m-1".to_owned(), 3)]);
    }

    #[test]
    fn numbers_without_an_end_and_nan_come_as_texts() {
        assert_eq!(number(&json!("Infinity")).to_bits(), f64::INFINITY.to_bits());
        assert!(number(&json!("NaN")).is_nan());
        assert_eq!(number(&json!(1)).to_bits(), 1.0_f64.to_bits());
        let point = Point::new(0, 0, f64::NAN);
        assert_eq!(value_of(&point), json!("NaN"));
    }
}
