//! The schema of a job file, key by key, for the description of the API. What a key means, and an
//! example of it, comes from the table that the file is read by.

use berth_file::job::{self, KEYS, Key};
use serde_json::{Map, Value, json};

/// All keys of a job file.
pub fn job_schema() -> Value {
    let fields: Map<String, Value> =
        KEYS.iter().map(|key| (key.name.to_owned(), described(key))).collect();
    json!({
        "type": "object",
        "description": "A job: what runs, for whom, on what, and when. docs/job-file.md has more.",
        "properties": fields,
        "additionalProperties": false,
    })
}

fn described(key: &Key) -> Value {
    let mut schema = of_key(key.name);
    schema["description"] = sentence(key.help).into();
    if let Some(example) = example(key) {
        schema["examples"] = json!([example]);
    }
    schema
}

fn sentence(help: &str) -> String {
    let mut letters = help.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str() + "."
    })
}

/// The example of the table as JSON, as Berth itself writes it.
fn example(key: &Key) -> Option<Value> {
    let read = job::read(&format!("{}: {}\n", key.name, key.example)).ok()?;
    let written: Value = serde_json::from_str(&job::write_json(&read.file)).ok()?;
    written.get(key.name).cloned()
}

fn one_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "oneOf": schemas.into_iter().collect::<Vec<_>>() })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn number(least: u32, most: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn one_or_more(of: Value) -> Value {
    one_of([of.clone(), list(of)])
}

fn texts_by_name() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// A value that is written as a number or with a unit.
fn amount() -> Value {
    one_of([json!({ "type": "number" }), text()])
}

/// A map with these keys, each with what it means.
fn map(fields: &[(&str, &str, Value)]) -> Value {
    let field = |(name, about, schema): &(&str, &str, Value)| {
        let mut schema = schema.clone();
        schema["description"] = (*about).into();
        ((*name).to_owned(), schema)
    };
    let fields: Map<String, Value> = fields.iter().map(field).collect();
    json!({ "type": "object", "properties": fields, "additionalProperties": false })
}

fn times() -> Value {
    one_of([number(0, 10_000), words(&["forever"])])
}

/// What a key may hold.
fn of_key(name: &str) -> Value {
    match name {
        "name" | "team" | "project" | "experiment" => json!({
            "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
        }),
        "kind" => words(&["job", "notebook", "service"]),
        "nodes" => number(1, 100_000),
        "gpus" => one_or_more(amount()),
        "cpu" | "budget" => amount(),
        "spot" => words(&["never", "auto", "only"]),
        "priority" => one_of([json!({ "type": "integer" }), text()]),
        "preemptible" | "singleton" | "hold" => flag(),
        "launch" => words(&["once", "ranks", "torchrun"]),
        "ranks" => number(1, 1_024),
        "data" | "volumes" | "labels" => texts_by_name(),
        "network" => words(&["machine", "none"]),
        "env" => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
        }),
        "secrets" => one_of([list(text()), texts_by_name()]),
        "checkpoint" => one_of([text(), checkpoint()]),
        "retry" => one_of([times(), retry()]),
        "notify" => one_or_more(one_of([text(), notify()])),
        "stop_when" => one_or_more(text()),
        "sweep" => sweep(),
        "after" => one_of([one_or_more(job_ref()), after()]),
        "schedule" => one_of([text(), schedule()]),
        "open" => one_or_more(words(&["jupyter", "vscode", "ssh"])),
        "idle" => idle(),
        "port" => number(1, 65_535),
        "ports" => one_or_more(number(1, 65_535)),
        "ready" => one_of([text(), ready()]),
        "scale" => scale(),
        "tags" | "pull_secrets" => one_or_more(text()),
        "run" => one_of([text(), list(text())]),
        // `memory`, `time`, `deadline`, `place`, `image`, `workdir`, `array`, `begin`, `model` and
        // `comment`: a text, whose form its description tells.
        _ => text(),
    }
}

fn job_ref() -> Value {
    one_of([json!({ "type": "integer", "minimum": 1 }), text()])
}

fn checkpoint() -> Value {
    map(&[
        ("path", "Where it saves; a relative path lies in the folder of the job", text()),
        ("every", "How often it saves by itself, such as 30m", text()),
        ("grace", "How long it gets from the signal to the kill, such as 5m", text()),
        ("keep", "How many checkpoints are kept", number(1, 10_000)),
        ("signal", "Which signal makes it save", words(&["TERM", "INT", "USR1", "USR2"])),
    ])
}

fn retry() -> Value {
    map(&[
        ("infra", "After trouble with machines or GPUs", times()),
        ("error", "After a failure of its own", times()),
        ("oom", "After it ran out of memory", times()),
        ("wait", "Before the first retry, such as 30s; it doubles each time", text()),
    ])
}

fn notify() -> Value {
    let moments = words(&["start", "done", "failed", "preempted", "budget"]);
    map(&[
        ("to", "slack:#channel, webhook:name or a URL that begins with https://", text()),
        ("on", "When a message is sent; when it ends where left out", one_or_more(moments)),
    ])
}

fn sweep() -> Value {
    let values = json!({ "type": ["string", "number", "boolean"] });
    let lists = json!({ "type": "object", "additionalProperties": list(values.clone()) });
    json!({
        "type": "object",
        "properties": {
            "product": {
                "description": "Parameters of which every combination of values is run",
                "oneOf": [lists.clone(), list(values.clone())],
            },
            "zip": {
                "description": "Parameters whose values are taken side by side",
                "oneOf": [lists, list(values.clone())],
            },
            "at_most": {
                "description": "How many run at a time; a list is a parameter of that name",
                "oneOf": [number(1, 10_000), list(values.clone())],
            },
        },
        "additionalProperties": list(values),
    })
}

fn after() -> Value {
    map(&[
        ("ok", "Jobs that must have succeeded", one_or_more(job_ref())),
        ("any", "Jobs that must have ended, however", one_or_more(job_ref())),
        ("notok", "Jobs that must have failed", one_or_more(job_ref())),
        ("start", "Jobs that must have started", one_or_more(job_ref())),
    ])
}

fn schedule() -> Value {
    map(&[
        ("cron", "Five fields of cron, or @daily and the like", text()),
        ("timezone", "UTC, or an offset from it such as +02:00", text()),
    ])
}

fn idle() -> Value {
    let then = words(&["notify", "suspend", "stop"]);
    map(&[
        ("below", "GPUs that do less than this are idle, such as 5%", text()),
        ("for", "For how long, such as 30m", text()),
        ("then", "What happens then", then),
    ])
}

fn ready() -> Value {
    map(&[
        ("check", "A path that answers, or tcp", text()),
        ("within", "It has failed when it is not ready by then, such as 5m", text()),
    ])
}

fn scale() -> Value {
    map(&[
        ("min", "The least replicas", number(0, 10_000)),
        ("max", "The most replicas", number(1, 10_000)),
        ("pending", "Requests that may wait for each replica", number(1, 1_000_000)),
        ("predict", "How far ahead the load is foreseen, such as 15m", text()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value is what a schema says, as far as the schemas here go.
    fn suits(schema: &Value, value: &Value) -> bool {
        if let Some(any) = schema["oneOf"].as_array() {
            return any.iter().any(|one| suits(one, value));
        }
        let is = |name: &str| match name {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            other => panic!("{other} is no type"),
        };
        let right = match &schema["type"] {
            Value::String(name) => is(name),
            Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
            _ => panic!("{schema} has no type"),
        };
        let listed = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        let items = value.as_array().into_iter().flatten();
        let fields = value.as_object().into_iter().flatten();
        right
            && listed
            && items.into_iter().all(|item| suits(&schema["items"], item))
            && fields.into_iter().all(|(name, field)| {
                match (&schema["properties"][name], &schema["additionalProperties"]) {
                    (Value::Null, Value::Bool(false) | Value::Null) => false,
                    (Value::Null, rest) => suits(rest, field),
                    (own, _) => suits(own, field),
                }
            })
    }

    #[test]
    fn every_key_of_a_job_file_is_described_with_an_example_that_suits_its_schema() {
        let schema = job_schema();
        let fields = schema["properties"].as_object().unwrap();
        assert_eq!(fields.len(), KEYS.len());
        for key in KEYS {
            let field = &fields[key.name];
            assert!(field["description"].as_str().unwrap().len() > 10, "{}", key.name);
            let example = &field["examples"][0];
            assert!(!example.is_null(), "{} has no example", key.name);
            assert!(suits(field, example), "{}: {example} in {field}", key.name);
        }
    }

    #[test]
    fn jobs_that_people_write_suit_the_schema() {
        let schema = job_schema();
        for file in [
            json!({ "run": "python train.py", "gpus": "H100:8", "env": { "EPOCHS": 3 } }),
            json!({ "run": ["echo", "x"], "gpus": [8, "H100:4"], "after": { "ok": [17, "prep"] } }),
            json!({ "run": "x", "sweep": { "zip": { "lr": [1e-4, 3e-4] }, "at_most": 2 } }),
            json!({ "run": "x", "sweep": { "lr": [1, 2], "seed": ["a"] }, "retry": "forever" }),
            json!({ "run": "x", "notify": ["slack:#nlp", { "to": "webhook:ops", "on": ["start"] }] }),
        ] {
            assert!(suits(&schema, &file), "{file}");
            assert!(job::read(&file.to_string()).is_ok(), "{file}");
        }
        for odd in [json!({ "rnu": "x" }), json!({ "nodes": "two" }), json!({ "spot": "maybe" })] {
            assert!(!suits(&schema, &odd), "{odd}");
        }
    }
}
