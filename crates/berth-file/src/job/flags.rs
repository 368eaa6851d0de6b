//! Keys as flags of a command line: the same values, read by the same code.

use super::keys::{self, Takes};
use super::values::scalar;
use super::{JobFile, no_nul};
use crate::error::{Position, Result};
use crate::tree::{Entry, Limits, Node, Value, parse};

/// Why a flag was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{flag}: {message}")]
pub struct FlagError {
    pub flag: String,
    pub message: String,
}

impl JobFile {
    /// Sets a key from all the values its flag was given, in their order.
    pub fn set(&mut self, key: &str, values: &[String]) -> std::result::Result<(), FlagError> {
        let refused = |flag: &str, message: String| FlagError { flag: flag.to_owned(), message };
        let key = keys::find(key).map_err(|error| refused(key, error.to_string()))?;
        let read = node(key.takes, values).and_then(|node| {
            no_nul(&node)?;
            (key.read)(&node, self)
        });
        read.map_err(|error| refused(key.flag, error.message))
    }
}

fn at(value: Value) -> Node {
    Node { at: Position::default(), value }
}

/// The values as they would stand in a file.
fn node(takes: Takes, values: &[String]) -> Result<Node> {
    let last = values.last().map_or("", String::as_str);
    match takes {
        Takes::Switch => Ok(at(scalar(if values.is_empty() { "true" } else { last }))),
        Takes::Value => value(last),
        Takes::Values => match values {
            [one] => value(one),
            several => Ok(list(several.iter().map(String::as_str))),
        },
        Takes::Rest => Ok(list(values.iter().map(String::as_str))),
        Takes::Pairs | Takes::NamesOrPairs | Takes::Lists => {
            let entries = values.iter().map(|value| pair(takes, value)).collect::<Result<_>>()?;
            Ok(at(Value::Map(entries)))
        }
    }
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> Node {
    at(Value::List(items.map(|item| at(scalar(item))).collect()))
}

fn value(text: &str) -> Result<Node> {
    match text.starts_with(['[', '{']) {
        true => parse(text, Limits::JOB),
        false => Ok(at(scalar(text))),
    }
}

fn pair(takes: Takes, text: &str) -> Result<Entry> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, value),
        None if takes == Takes::NamesOrPairs => (text, text),
        None => {
            let at = Position::default();
            return Err(crate::error::Error::expected(at, &format!("`{text}`"), "NAME=VALUE"));
        }
    };
    let value = match takes {
        // A number beside the lists.
        Takes::Lists if key == "at_most" => at(scalar(value)),
        // Commas within `zip={…}` do not separate values.
        Takes::Lists if value.starts_with(['[', '{']) => self::value(value)?,
        Takes::Lists => list(value.split(',').map(str::trim)),
        _ => at(scalar(value)),
    };
    Ok(Entry { at: Position::default(), key: key.to_owned(), value })
}
