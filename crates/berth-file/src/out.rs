//! Writing a tree as YAML that is pleasant to read, or as JSON.
//!
//! What fits on a line is written on one: a node or a small job is a line of a table, not a page.

use berth_model::{Amount, Milli, Name, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: usize = 100;

/// Moments that a four-digit year can name.
const YEARS: std::ops::Range<i64> = -62_167_219_200_000..253_402_300_800_000;

pub(crate) enum Out {
    /// A number, a moment, a word of ours: never quoted in YAML.
    Raw(String),
    /// Text of the user's, quoted where it could be taken for something else.
    Text(String),
    /// Text of several lines, which keeps them where it can.
    Script(String),
    List(Vec<Out>),
    Map(Vec<(String, Out)>),
}

impl Out {
    pub fn raw(value: impl ToString) -> Out {
        Out::Raw(value.to_string())
    }

    pub fn text(value: &str) -> Out {
        Out::Text(value.to_owned())
    }

    pub fn null() -> Out {
        Out::raw("null")
    }

    pub fn time(time: Time) -> Out {
        match YEARS.contains(&time.0) {
            true => Out::raw(time),
            false => Out::Text(format!("@{}", time.0)),
        }
    }

    pub fn percent(milli: Milli) -> Out {
        Out::Raw(format!("{}%", percent_text(milli)))
    }

    pub fn amount<T: ToString>(amount: &Amount<T>) -> Out {
        match amount {
            Amount::Of(value) => Out::raw(value.to_string()),
            Amount::Share(share) => Out::percent(*share),
            Amount::Unlimited => Out::raw("unlimited"),
        }
    }

    pub fn list<T>(items: impl IntoIterator<Item = T>, write: impl FnMut(T) -> Out) -> Out {
        Out::List(items.into_iter().map(write).collect())
    }

    pub fn names<'a>(names: impl IntoIterator<Item = &'a Name>) -> Out {
        Out::list(names, |name| Out::text(name))
    }

    pub fn named<T>(map: &BTreeMap<Name, T>, write: impl Fn(&T) -> Out) -> Out {
        Out::Map(map.iter().map(|(name, value)| (name.to_string(), write(value))).collect())
    }
}

fn percent_text(milli: Milli) -> String {
    // One place on: 125 thousandths are 12.5 percent.
    let sign = if milli.0 < 0 { "-" } else { "" };
    let (whole, tenth) = (milli.0.unsigned_abs() / 10, milli.0.unsigned_abs() % 10);
    match tenth {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{tenth}"),
    }
}

/// A map under construction, in the order of writing.
#[derive(Default)]
pub(crate) struct Record(Vec<(String, Out)>);

impl Record {
    pub fn put(&mut self, key: &str, value: Out) {
        self.0.push((key.to_owned(), value));
    }

    pub fn put_if(&mut self, wanted: bool, key: &str, value: impl FnOnce() -> Out) {
        if wanted {
            self.put(key, value());
        }
    }

    pub fn maybe<T>(&mut self, key: &str, value: Option<T>, write: impl FnOnce(T) -> Out) {
        if let Some(value) = value {
            self.put(key, write(value));
        }
    }

    /// For keys that have a default besides nothing: nothing is then written as `null`.
    pub fn differing<T: PartialEq>(
        &mut self,
        key: &str,
        value: Option<T>,
        default: Option<T>,
        write: impl FnOnce(T) -> Out,
    ) {
        if value != default {
            self.put(key, value.map_or_else(Out::null, write));
        }
    }

    pub fn name(&mut self, key: &str, value: &Name) {
        self.put_if(!value.is_empty(), key, || Out::text(value));
    }

    pub fn labels(&mut self, key: &str, labels: &BTreeMap<Name, Name>) {
        self.put_if(!labels.is_empty(), key, || Out::named(labels, |value| Out::text(value)));
    }

    pub fn flag(&mut self, key: &str, value: bool) {
        self.put_if(value, key, || Out::raw(true));
    }

    pub fn list<T>(&mut self, key: &str, items: &[T], write: impl FnMut(&T) -> Out) {
        self.put_if(!items.is_empty(), key, || Out::list(items, write));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn done(self) -> Out {
        Out::Map(self.0)
    }
}

/// The document: one key after another, each as compact as it can be read.
pub(crate) fn yaml(document: Record) -> String {
    let mut text = String::new();
    let mut table = false;
    for (key, value) in document.0 {
        let above = std::mem::replace(&mut table, false);
        match &value {
            Out::List(items) if items.iter().any(|item| matches!(item, Out::Map(_))) => {
                text.push_str(&format!("\n{}:\n", quoted(&key)));
                items.iter().for_each(|item| block_item(&mut text, item, 2));
                table = true;
            }
            _ => {
                text.push_str(if above { "\n" } else { "" });
                block_entry(&mut text, &key, &value, 0);
            }
        }
    }
    text
}

fn block_entry(text: &mut String, key: &str, value: &Out, indent: usize) {
    let start = format!("{}{}:", " ".repeat(indent), quoted(key));
    text.push_str(&start);
    if let Some(block) = literal(value, indent + 2) {
        text.push_str(&block);
        return;
    }
    let line = flow(value);
    if start.chars().count() + 1 + line.chars().count() <= WIDTH || is_flat(value) {
        text.push_str(&format!(" {line}\n"));
        return;
    }
    text.push('\n');
    match value {
        Out::List(items) => items.iter().for_each(|item| block_item(text, item, indent + 2)),
        Out::Map(entries) => {
            entries.iter().for_each(|(key, value)| block_entry(text, key, value, indent + 2));
        }
        Out::Raw(_) | Out::Text(_) | Out::Script(_) => {}
    }
}

fn block_item(text: &mut String, item: &Out, indent: usize) {
    let start = format!("{}- ", " ".repeat(indent));
    let line = flow(item);
    match item {
        Out::Map(entries) if start.len() + line.chars().count() > WIDTH && !is_flat(item) => {
            let mut lines = String::new();
            entries.iter().for_each(|(key, value)| block_entry(&mut lines, key, value, indent + 2));
            // The first key stands on the line of the dash.
            text.push_str(&start);
            text.push_str(&lines[indent + 2..]);
        }
        _ => text.push_str(&format!("{start}{line}\n")),
    }
}

/// A script line by line, where a literal block gives back exactly the same text.
fn literal(value: &Out, indent: usize) -> Option<String> {
    let Out::Script(script) = value else { return None };
    let lines = script.strip_suffix('\n').unwrap_or(script);
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let round_trips = !lines.starts_with([' ', '\n', '\t'])
        && !lines.ends_with(['\n', ' '])
        && lines.contains('\n')
        && lines.chars().all(|c| plain(c) && !"\u{85}\u{2028}\u{2029}\u{feff}".contains(c));
    if !round_trips {
        return None;
    }
    let mut block = String::from(if script.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in lines.split('\n') {
        let space = if line.is_empty() { 0 } else { indent };
        block.push_str(&format!("{}{line}\n", " ".repeat(space)));
    }
    Some(block)
}

/// Nothing would be gained by breaking it into lines.
fn is_flat(value: &Out) -> bool {
    match value {
        Out::Raw(_) | Out::Text(_) | Out::Script(_) => true,
        Out::List(items) => items.is_empty(),
        Out::Map(entries) => entries.is_empty(),
    }
}

fn flow(value: &Out) -> String {
    match value {
        Out::Raw(raw) => raw.clone(),
        Out::Text(text) | Out::Script(text) => quoted(text),
        Out::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Out::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", quoted(key), flow(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Text as a YAML scalar: bare where no reader of YAML could take it for anything else.
fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./+@".contains(c);
    let start = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let letters = text.chars().any(|c| c.is_ascii_alphabetic());
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n" | "unlimited"
    );
    let number = text.parse::<f64>().is_ok() || text.starts_with("0x") || text.starts_with("0o");
    if start && letters && !word && !number && text.chars().all(safe) {
        return text.to_owned();
    }
    escaped(text)
}

/// A double-quoted scalar that YAML and JSON read alike.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Also what YAML takes for a line break or does not allow bare.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string");
            }
            c if matches!(u32::from(c), 0xfffe | 0xffff) => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The same document as JSON.
pub(crate) fn json(document: Record) -> String {
    let mut text = String::new();
    json_value(&mut text, &document.done(), 0);
    text.push('\n');
    text
}

fn json_value(text: &mut String, value: &Out, indent: usize) {
    let line = json_line(value);
    if (indent > 0 && indent + line.chars().count() <= WIDTH) || is_flat(value) {
        text.push_str(&line);
        return;
    }
    let (open, close, items): (char, char, Vec<(String, &Out)>) = match value {
        Out::Raw(_) | Out::Text(_) | Out::Script(_) => return,
        Out::List(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        Out::Map(entries) => {
            let keyed = entries.iter().map(|(key, item)| (format!("{}: ", escaped(key)), item));
            ('{', '}', keyed.collect())
        }
    };
    text.push(open);
    for (index, (key, item)) in items.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\n{}{key}", " ".repeat(indent + 2)));
        json_value(text, item, indent + 2);
    }
    text.push_str(&format!("\n{}{close}", " ".repeat(indent)));
}

fn json_line(value: &Out) -> String {
    match value {
        Out::Raw(raw) if serde_json::from_str::<serde_json::Value>(raw).is_ok() => raw.clone(),
        Out::Raw(text) | Out::Text(text) | Out::Script(text) => escaped(text),
        Out::List(items) => {
            format!("[{}]", items.iter().map(json_line).collect::<Vec<_>>().join(", "))
        }
        Out::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", escaped(key), json_line(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}
