//! The parts of a schema. Values that people write in several ways, such as `8`, `40%` and
//! `unlimited`, have no type for the API server; what it can judge of them it does, and the rest is
//! judged when Berth reads them.

use serde_json::{Map, Value, json};

/// An object of known keys.
pub fn object<'a>(properties: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    json!({ "type": "object", "properties": properties })
}

pub fn with(mut schema: Value, says: &str) -> Value {
    if !says.is_empty() {
        schema["description"] = json!(says);
    }
    schema
}

pub fn text(says: &str) -> Value {
    with(json!({ "type": "string", "maxLength": 253 }), says)
}

/// A text of any length.
pub fn prose(says: &str) -> Value {
    with(json!({ "type": "string" }), says)
}

pub fn word(says: &str, words: &[&str]) -> Value {
    with(json!({ "type": "string", "enum": words }), says)
}

pub fn boolean(says: &str) -> Value {
    with(json!({ "type": "boolean" }), says)
}

pub fn whole(says: &str, least: Option<i64>) -> Value {
    let mut schema = json!({ "type": "integer", "format": "int64" });
    if let Some(least) = least {
        schema["minimum"] = json!(least);
    }
    with(schema, says)
}

pub fn number(says: &str, least: i64) -> Value {
    with(json!({ "type": "number", "minimum": least }), says)
}

/// A number that is not negative, or a text that does not say so either.
pub fn scalar(says: &str) -> Value {
    let schema = json!({
        "x-kubernetes-preserve-unknown-fields": true,
        "minimum": 0,
        "pattern": "^[^-]",
    });
    with(schema, says)
}

/// Whatever a job file takes there.
pub fn any(says: &str) -> Value {
    with(json!({ "x-kubernetes-preserve-unknown-fields": true }), says)
}

pub fn list(says: &str, item: Value) -> Value {
    with(json!({ "type": "array", "items": item }), says)
}

pub fn map(says: &str, value: Value) -> Value {
    with(json!({ "type": "object", "additionalProperties": value }), says)
}
