//! Reading scalars, lists and maps with known keys.

use crate::error::{Error, Result, did_you_mean, or_list};
use crate::tree::{Entry, Node, Value};
use berth_model::{Amount, Milli, Name, ParseUnit, Span, Time};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A map whose keys are all known.
pub(crate) struct Fields<'a> {
    pub node: &'a Node,
    pub what: String,
    entries: &'a [Entry],
    known: &'static [&'static str],
}

impl<'a> Fields<'a> {
    pub fn of(node: &'a Node, what: &str, known: &'static [&'static str]) -> Result<Fields<'a>> {
        let entries = map(node).map_err(|e| e.within(what))?;
        for entry in entries {
            if !known.contains(&entry.key.as_str()) {
                let hint = did_you_mean(&entry.key, known.iter().copied());
                let hint = match hint.is_empty() {
                    true => format!("; expected {}", or_list(known.iter().copied())),
                    false => hint,
                };
                let message = format!("unknown key `{}` in {what}{hint}", entry.key);
                return Err(Error::new(entry.at, message));
            }
        }
        Ok(Fields { node, what: what.to_owned(), entries, known })
    }

    /// The value of a key that is there, even if it says `null`.
    pub fn raw(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.known.contains(&key), "{key} is read but not among the known keys");
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.raw(key).filter(|node| !node.is_null())
    }

    pub fn need(&self, key: &str) -> Result<&'a Node> {
        self.get(key).ok_or_else(|| {
            Error::new(self.node.at, format!("{} has no `{key}`, which it needs", self.what))
        })
    }

    /// Reads a key if it is there; a complaint names the map and the key.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(node) => {
                read(node).map(Some).map_err(|e| e.within(&format!("`{key}` of {}", self.what)))
            }
        }
    }

    /// Like `read`; `null` is a value here, for keys that have another default.
    pub fn read_or_null<T>(
        &self,
        key: &str,
        default: Option<T>,
        read: impl FnOnce(&'a Node) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.raw(key) {
            None => Ok(default),
            Some(_) => self.read(key, read),
        }
    }

    pub fn demand<T>(&self, key: &str, read: impl FnOnce(&'a Node) -> Result<T>) -> Result<T> {
        let node = self.need(key)?;
        read(node).map_err(|e| e.within(&format!("`{key}` of {}", self.what)))
    }

    pub fn list(&self, key: &str) -> Result<&'a [Node]> {
        Ok(self.read(key, list)?.unwrap_or(&[]))
    }

    pub fn flag(&self, key: &str) -> Result<bool> {
        Ok(self.read(key, boolean)?.unwrap_or(false))
    }
}

pub(crate) fn map(node: &Node) -> Result<&[Entry]> {
    match &node.value {
        Value::Map(entries) => Ok(entries),
        Value::Null | Value::Scalar { .. } | Value::List(_) => {
            Err(Error::expected(node.at, &node.found(), "a map"))
        }
    }
}

pub(crate) fn list(node: &Node) -> Result<&[Node]> {
    match &node.value {
        Value::List(items) => Ok(items),
        Value::Null | Value::Scalar { .. } | Value::Map(_) => {
            Err(Error::expected(node.at, &node.found(), "a list"))
        }
    }
}

/// A list, or one thing for a list of one.
pub(crate) fn one_or_more(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        Value::Null => &[],
        Value::Scalar { .. } | Value::Map(_) => std::slice::from_ref(node),
    }
}

pub(crate) fn text<'a>(node: &'a Node, expected: &str) -> Result<&'a str> {
    match &node.value {
        Value::Scalar { text, .. } => Ok(text),
        Value::Null | Value::List(_) | Value::Map(_) => {
            Err(Error::expected(node.at, &node.found(), expected))
        }
    }
}

pub(crate) fn name(node: &Node) -> Result<Name> {
    text(node, "a name").map(Name::new)
}

pub(crate) fn names(node: &Node) -> Result<Vec<Name>> {
    list(node)?.iter().map(name).collect()
}

pub(crate) fn boolean(node: &Node) -> Result<bool> {
    match text(node, "true or false")? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::expected(node.at, &node.found(), "true or false")),
    }
}

pub(crate) fn int<T: FromStr>(node: &Node) -> Result<T> {
    let expected = "a whole number";
    let text = text(node, expected)?;
    text.parse().map_err(|_| Error::expected(node.at, &node.found(), expected))
}

/// A quantity with a unit, as the model reads it.
pub(crate) fn unit<T: FromStr<Err = ParseUnit>>(node: &Node) -> Result<T> {
    text(node, "a quantity")?.parse().map_err(|error: ParseUnit| {
        Error::expected(node.at, &format!("`{}`", error.text), error.expected)
    })
}

/// A quantity that would make no sense below nothing.
pub(crate) fn unit_from_zero<T>(node: &Node) -> Result<T>
where
    T: FromStr<Err = ParseUnit> + Default + PartialOrd,
{
    let value: T = unit(node)?;
    match value < T::default() {
        true => Err(Error::expected(node.at, &node.found(), "nothing negative")),
        false => Ok(value),
    }
}

/// `@` and milliseconds: the form of moments that no four-digit year can name.
fn far_moment(text: &str) -> Option<Time> {
    text.strip_prefix('@')?.parse().ok().map(Time)
}

pub(crate) fn absolute(node: &Node) -> Result<Time> {
    match far_moment(text(node, "a moment")?) {
        Some(time) => Ok(time),
        None => unit(node),
    }
}

/// A moment, or an offset from now such as `5m` or `-1h`.
pub(crate) fn moment(node: &Node, now: Time) -> Result<Time> {
    let expected = "a moment such as 2026-11-15T09:00:00Z, or an offset from now such as 5m or -1h";
    let text = text(node, expected)?;
    if let Some(time) = far_moment(text) {
        return Ok(time);
    }
    text.parse::<Time>()
        .or_else(|_| text.parse::<Span>().map(|span| now + span))
        .map_err(|_| Error::expected(node.at, &node.found(), expected))
}

pub(crate) fn moments(node: &Node, now: Time) -> Result<Vec<Time>> {
    list(node)?.iter().map(|item| moment(item, now)).collect()
}

fn percent_text(text: &str) -> Option<Milli> {
    let digits = text.trim().strip_suffix('%')?.trim();
    // In hundred-thousandths, of which only whole thousandths can be kept.
    let exact: Milli = digits.parse().ok()?;
    (exact.0 % 100 == 0).then_some(Milli(exact.0 / 100))
}

/// `40%`, to a tenth of a percent.
pub(crate) fn percent(node: &Node) -> Result<Milli> {
    let expected = "a percentage such as 40% or 12.5%";
    percent_text(text(node, expected)?)
        .ok_or_else(|| Error::expected(node.at, &node.found(), expected))
}

/// An amount, a percentage or `unlimited`.
pub(crate) fn amount<T>(node: &Node, example: &str) -> Result<Amount<T>>
where
    T: FromStr<Err = ParseUnit>,
{
    let expected = format!("{example}, a percentage such as 40%, or unlimited");
    let text = text(node, &expected)?;
    if text == "unlimited" {
        return Ok(Amount::Unlimited);
    }
    if text.ends_with('%') {
        return percent(node).map(Amount::Share);
    }
    text.parse().map(Amount::Of).map_err(|_| Error::expected(node.at, &node.found(), &expected))
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(node: &Node, words: &[(&str, T)]) -> Result<T> {
    let expected = || or_list(words.iter().map(|(word, _)| *word));
    let found = text(node, &expected())?;
    words.iter().find(|(word, _)| *word == found).map(|(_, value)| *value).ok_or_else(|| {
        let hint = did_you_mean(found, words.iter().map(|(word, _)| *word));
        Error::new(node.at, format!("found {}, expected {}{hint}", node.found(), expected()))
    })
}

/// A map with names for keys.
pub(crate) fn named<T>(
    node: &Node,
    mut read: impl FnMut(&Node) -> Result<T>,
) -> Result<BTreeMap<Name, T>> {
    map(node)?
        .iter()
        .map(|entry| {
            let value = read(&entry.value).map_err(|e| e.within(&format!("`{}`", entry.key)))?;
            Ok((Name::new(&entry.key), value))
        })
        .collect()
}
