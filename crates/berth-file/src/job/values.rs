//! Reading single values of a job file.

use super::Env;
use super::parts::{Priority, When};
use crate::error::{Error, Result, did_you_mean};
use crate::fields::{int, list, map, text, unit};
use crate::tree::{Node, Value};
use berth_model::{Bytes, JobId, JobRef, Micros, Name, Span, Time};
use std::collections::BTreeMap;

/// Nothing that runs is planned for longer.
const LONGEST: Span = Span::days(36_525);

/// More than any machine has; a larger amount is a slip.
const MOST_MEMORY: Bytes = Bytes::gib(1 << 20);

const MOST_DOLLARS: Micros = Micros::dollars(1_000_000_000);

/// The longest name of anything.
const LONGEST_NAME: usize = 100;

pub(super) fn word<T: Copy>(words: &'static [(&'static str, T)]) -> impl Fn(&Node) -> Result<T> {
    |node| crate::fields::choice(node, words)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(allowed)
        && text.len() <= LONGEST_NAME
}

/// Letters, digits, `.`, `_` and `-`: it appears in paths, variables and commands.
pub(super) fn plain_name(node: &Node) -> Result<String> {
    let expected = "a name of letters, digits, dots, dashes and underscores, 100 at most";
    match text(node, expected)? {
        name if is_name(name) => Ok(name.to_owned()),
        _ => Err(Error::expected(node.at, &node.found(), expected)),
    }
}

/// Wherever a job is asked for, its number will do: so no name may look like one.
pub(super) fn job_name(node: &Node) -> Result<String> {
    let name = plain_name(node)?;
    match name.parse::<JobId>() {
        Ok(_) => Err(Error::expected(node.at, &node.found(), "a name that is not a job's number")),
        Err(_) => Ok(name),
    }
}

pub(super) fn any_text(node: &Node) -> Result<String> {
    text(node, "text").map(str::to_owned)
}

/// From one to as many as make sense; a larger number is a slip.
pub(super) fn up_to(most: u32) -> impl Fn(&Node) -> Result<u32> {
    move |node| {
        let value: Result<u64> = int(node);
        match value {
            Ok(value @ 1..) if value <= u64::from(most) => Ok(value as u32),
            _ => Err(Error::expected(
                node.at,
                &node.found(),
                &format!("a whole number from 1 to {most}"),
            )),
        }
    }
}

/// At most so many entries.
pub(super) fn few<T>(
    most: usize,
    read: impl Fn(&Node) -> Result<Vec<T>>,
) -> impl Fn(&Node) -> Result<Vec<T>> {
    move |node| {
        let found = read(node)?;
        match found.len() <= most {
            true => Ok(found),
            false => {
                let message = format!("found {} entries, expected {most} at most", found.len());
                Err(Error::new(node.at, message))
            }
        }
    }
}

/// `90m`, `3d`, or Slurm's `1-12:00:00` and `12:00:00`.
pub(super) fn span(node: &Node) -> Result<Span> {
    let expected = "a length of time such as 90s, 45m, 12h, 3d or 1-12:00:00";
    let found = text(node, expected)?;
    span_text(found)
        .filter(|span| (Span::ZERO..=LONGEST).contains(span))
        .ok_or_else(|| Error::expected(node.at, &node.found(), expected))
}

pub(super) fn some_span(node: &Node) -> Result<Span> {
    match span(node)? {
        Span::ZERO => Err(Error::expected(node.at, &node.found(), "more than no time")),
        span => Ok(span),
    }
}

pub(super) fn span_text(text: &str) -> Option<Span> {
    // Seconds to one tool and minutes to another: a number needs its unit.
    if text.parse::<f64>().is_ok() && text != "0" {
        return None;
    }
    if !text.contains(':') && !text.contains('-') {
        return text.parse().ok();
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let parts: Vec<i64> = clock.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (Some(_), [hours]) => (*hours, 0, 0),
        _ => return None,
    };
    let sensible = minutes < 60 && seconds < 60;
    let days = Span::days(days.unwrap_or(0));
    sensible.then(|| days + Span::hours(hours) + Span::mins(minutes) + Span::secs(seconds))
}

/// Digits alone, few enough that no unit overflows.
fn number(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && (1..=7).contains(&text.len());
    digits.then(|| text.parse().ok()).flatten()
}

/// A moment, or a time from the submission on.
pub(super) fn when(node: &Node) -> Result<When> {
    let expected = "a moment such as 2026-12-01T09:00Z, or a time from now such as 6h";
    let found = text(node, expected)?;
    let moment = found.parse::<Time>().ok().filter(|time| time.0 >= 0).map(When::At);
    let later = || {
        let span = span_text(found.strip_prefix('+').unwrap_or(found))?;
        (Span::ZERO..=LONGEST).contains(&span).then_some(When::In(span))
    };
    moment.or_else(later).ok_or_else(|| Error::expected(node.at, &node.found(), expected))
}

pub(super) fn memory(node: &Node) -> Result<Bytes> {
    let expected = "an amount of memory with its unit, such as 64GB or 512MiB, and at most 1024TiB";
    let bytes: Bytes = unit(node)?;
    let plain = text(node, expected)?.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match bytes > Bytes::ZERO && bytes <= MOST_MEMORY && !plain {
        true => Ok(bytes),
        false => Err(Error::expected(node.at, &node.found(), expected)),
    }
}

/// `$4000`, `4,000` or `12.50`.
pub(super) fn dollars(node: &Node) -> Result<Micros> {
    let expected = "an amount of dollars above nothing and up to a billion, such as $4000 or 12.50";
    let amount: Option<Micros> = text(node, expected)?.replace(',', "").parse().ok();
    amount
        .filter(|amount| *amount > Micros::ZERO && *amount <= MOST_DOLLARS)
        .ok_or_else(|| Error::expected(node.at, &node.found(), expected))
}

pub(super) fn priority(node: &Node) -> Result<Priority> {
    let found = text(node, "a priority class such as high, or a number")?;
    match found.parse() {
        Ok(number) => Ok(Priority::Number(number)),
        Err(_) => plain_name(node).map(|name| Priority::Class(Name::from(name))),
    }
}

pub(super) fn port(node: &Node) -> Result<u16> {
    int::<u16>(node)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| Error::expected(node.at, &node.found(), "a port from 1 to 65535"))
}

pub(super) fn ports(node: &Node) -> Result<Vec<u16>> {
    several(node, port)
}

pub(super) fn tags(node: &Node) -> Result<Vec<String>> {
    several(node, plain_name)
}

/// Names of Secrets of Kubernetes.
pub(super) fn pull_secrets(node: &Node) -> Result<Vec<String>> {
    let one = |node: &Node| {
        let name = text(node, "the name of a Secret")?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_name = name.starts_with(ends) && name.ends_with(ends) && name.chars().all(plain);
        match is_name && name.len() <= 253 {
            true => Ok(name.to_owned()),
            false => Err(Error::expected(
                node.at,
                &format!("`{name}`"),
                "the name of a Secret: lowercase letters, digits, `-` and `.`",
            )),
        }
    };
    several(node, one)
}

/// A job by number or by name.
pub(super) fn job_ref(node: &Node) -> Result<JobRef> {
    let found = text(node, "the name or number of a job")?;
    match found.parse() {
        Ok(id) => Ok(JobRef::Id(id)),
        Err(_) => plain_name(node).map(|name| JobRef::Name(Name::from(name))),
    }
}

pub(super) fn several<T>(node: &Node, read: impl Fn(&Node) -> Result<T>) -> Result<Vec<T>> {
    crate::fields::one_or_more(node).iter().map(read).collect()
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The name of a variable that a job may set.
pub(super) fn variable(text: &str, at: crate::error::Position) -> Result<String> {
    if !is_variable(text) {
        let expected = "the name of a variable: letters, digits and underscores";
        return Err(Error::expected(at, &format!("`{text}`"), expected));
    }
    match text.starts_with("BERTH_") {
        true => Err(Error::new(at, format!("`{text}`: names with BERTH_ are set by Berth itself"))),
        false => Ok(text.to_owned()),
    }
}

pub(super) fn variables(node: &Node) -> Result<Env> {
    let entry = |entry: &crate::tree::Entry| {
        let name = variable(&entry.key, entry.at)?;
        let value = match &entry.value.value {
            Value::Null => String::new(),
            _ => any_text(&entry.value).map_err(|e| e.within(&format!("`{name}`")))?,
        };
        Ok((name, value))
    };
    map(node)?.iter().map(entry).collect::<Result<_>>().map(Env)
}

/// Names of secrets, each found in the variable of its own name, or variables with their secrets.
pub(super) fn secrets(node: &Node) -> Result<BTreeMap<String, String>> {
    if let Value::Map(entries) = &node.value {
        let entry = |entry: &crate::tree::Entry| {
            Ok((variable(&entry.key, entry.at)?, plain_name(&entry.value)?))
        };
        return entries.iter().map(entry).collect();
    }
    let one = |node: &Node| {
        let name = plain_name(node)?;
        match is_variable(&name) {
            true => Ok((variable(&name, node.at)?, name)),
            false => Err(Error::new(
                node.at,
                format!("`{name}` is no name for a variable; write {{VARIABLE: {name}}}"),
            )),
        }
    };
    Ok(several(node, one)?.into_iter().collect())
}

fn absolute(path: &str) -> bool {
    path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

/// Paths in the job, and what lies there.
fn paths(node: &Node, read: impl Fn(&Node) -> Result<String>) -> Result<BTreeMap<String, String>> {
    let entry = |entry: &crate::tree::Entry| match absolute(&entry.key) {
        true => {
            let value = read(&entry.value).map_err(|e| e.within(&format!("`{}`", entry.key)))?;
            Ok((entry.key.clone(), value))
        }
        false => Err(Error::expected(
            entry.at,
            &format!("`{}`", entry.key),
            "a path that begins with / and has no ..",
        )),
    };
    map(node)?.iter().map(entry).collect()
}

pub(super) fn volumes(node: &Node) -> Result<BTreeMap<String, String>> {
    paths(node, volume)
}

pub(super) fn data(node: &Node) -> Result<BTreeMap<String, String>> {
    paths(node, source)
}

/// The name of a volume, or a folder of the machine.
fn volume(node: &Node) -> Result<String> {
    let expected = "the name of a volume, or a path that begins with / and has no ..";
    match text(node, expected)? {
        path if absolute(path) || is_name(path) => Ok(path.to_owned()),
        _ => Err(Error::expected(node.at, &node.found(), expected)),
    }
}

const SOURCES: [&str; 3] = ["dvc", "registry", "volume"];

/// `dvc:c4@v3`, or what a volume may be.
fn source(node: &Node) -> Result<String> {
    let expected = "data such as dvc:c4@v3, the name of a volume, or a path";
    let found = text(node, expected)?;
    let Some((scheme, rest)) = found.split_once(':') else { return volume(node) };
    if SOURCES.contains(&scheme) && !rest.is_empty() {
        return Ok(found.to_owned());
    }
    let hint = did_you_mean(scheme, SOURCES);
    Err(Error::new(node.at, format!("found {}, expected {expected}{hint}", node.found())))
}

pub(super) fn labels(node: &Node) -> Result<BTreeMap<String, String>> {
    let entry = |entry: &crate::tree::Entry| {
        let key = Node { at: entry.at, value: scalar(&entry.key) };
        Ok((plain_name(&key)?, any_text(&entry.value)?))
    };
    map(node)?.iter().map(entry).collect()
}

pub(super) fn scalar(text: &str) -> Value {
    Value::Scalar { text: text.to_owned(), plain: true }
}

pub(super) fn texts(node: &Node) -> Result<Vec<String>> {
    list(node)?.iter().map(any_text).collect()
}
