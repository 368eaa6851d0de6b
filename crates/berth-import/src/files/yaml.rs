//! The files with the fields of an entity. MLflow writes them with PyYAML; JSON strings are valid YAML.

use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The maximum size of a description.
const MOST_BYTES: u64 = 64 << 20;

pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let size = fs::metadata(path).map_err(Error::file("reading", path))?.len();
    if size > MOST_BYTES {
        return Err(Error::odd(path.display().to_string(), "it is larger than 64 MiB"));
    }
    let text = fs::read_to_string(path).map_err(Error::file("reading", path))?;
    of_text(&text).map_err(|why| Error::odd(path.display().to_string(), why))
}

pub fn of_text<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let said = error.to_string();
        said.lines().next().unwrap_or("it is no YAML").to_owned()
    })
}

/// A text, which may look like a number; empty if missing.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn some(value: &Value) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

pub fn int(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Formats fields as a file.
pub fn write(fields: &[(&str, Value)]) -> String {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields.into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_again_whatever_the_text() {
        for odd in ["a: b", "'", "\"", "null", "1e5", "# no", "- a", "größer\n\ttab", "{", ""] {
            let text = write(&[("name", json!(odd)), ("end", Value::Null), ("n", json!(3))]);
            let read: Value = of_text(&text).unwrap();
            assert_eq!(read, json!({ "name": odd, "end": null, "n": 3 }), "{text}");
        }
    }

    #[test]
    fn what_pyyaml_writes_is_read() {
        let read: Value = of_text("a: '5'\nb: 5\nc: null\nd: 'it''s'\ne: {}\nf: ''\n").unwrap();
        assert_eq!(read["a"], json!("5"));
        assert_eq!((int(&read["a"]), int(&read["b"])), (Some(5), Some(5)));
        assert_eq!((some(&read["c"]), text(&read["d"])), (None, "it's".to_owned()));
        assert!(of_text::<Value>("a: [1").is_err());
    }
}
