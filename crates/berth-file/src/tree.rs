//! YAML and JSON as a tree that remembers where everything stood.
//!
//! Scalars keep their text: a price is read exactly, never by way of a float, a name such as
//! `007` stays one, and every complaint, also one about the meaning, can point at its line.

use crate::error::{Error, Position, Result};
use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use std::collections::BTreeMap;

/// How much a text may hold. An alias repeats what its anchor stands for, and aliases of aliases
/// multiply; each level of nesting takes a frame of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub nodes: usize,
    pub depth: usize,
}

impl Limits {
    /// No honest world comes near this many nodes.
    pub const WORLD: Limits = Limits { nodes: 5_000_000, depth: 100 };

    /// A job file comes from whoever may submit, so it gets less.
    pub const JOB: Limits = Limits { nodes: 100_000, depth: 20 };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub at: Position,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    /// `plain` when it was not quoted, so that it may be a number.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: Position,
    pub key: String,
    pub value: Node,
}

impl Node {
    /// What is there, for a message.
    pub fn found(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Scalar { text, .. } => format!("`{text}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    fn size(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Node::size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }
}

/// Reads the one document of a text. An empty text is an empty map.
pub(crate) fn parse(text: &str, limits: Limits) -> Result<Node> {
    read(text, limits).map_err(|error| indented_by_tab(text).unwrap_or(error))
}

/// A tab that indents is what most often is wrong, and the parser complains of the line before.
fn indented_by_tab(text: &str) -> Option<Error> {
    let tab = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut lines = text.lines().map(|line| (line, tab(line))).enumerate();
    let (at, (_, column)) = lines.find(|(_, (line, from))| line[*from..].starts_with('\t'))?;
    let at = Position { line: at + 1, column: column + 1 };
    Some(Error::new(at, "this is not YAML: a tab indents the line; use spaces"))
}

fn read(text: &str, limits: Limits) -> Result<Node> {
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, limits, anchors: BTreeMap::new(), nodes: 0, depth: 0 };
    let mut document = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) => {}
            Event::DocumentEnd => {}
            first if document.is_none() => document = Some(reader.node(first, span)?),
            _ => {
                return Err(Error::new(position(span.start), "found a second document"));
            }
        }
    }
    let start = Position { line: 1, column: 1 };
    Ok(document
        .filter(|node| !node.is_null())
        .unwrap_or(Node { at: start, value: Value::Map(Vec::new()) }))
}

fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

struct Reader<'a> {
    parser: Parser<'a, serde_saphyr::granit_parser::StrInput<'a>>,
    limits: Limits,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>> {
        loop {
            match self.parser.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(pair)) => return Ok(Some(pair)),
                Some(Err(error)) => {
                    let at = position(*error.marker());
                    return Err(Error::new(at, format!("this is not YAML: {}", error.kind())));
                }
            }
        }
    }

    fn inside(&mut self, start: Position) -> Result<(Event<'a>, Span)> {
        self.next()?.ok_or_else(|| Error::new(start, "this is not YAML: it ends in the middle"))
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Node> {
        let at = position(span.start);
        self.nodes += 1;
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(Error::new(at, format!("nested deeper than {} levels", self.limits.depth)));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(text.into_owned(), style), anchor),
            Event::SequenceStart(_, anchor, _) => (self.list(at)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(at)?, anchor),
            Event::Alias(id) => {
                let node = self.anchors.get(&id).cloned();
                let node = node.ok_or_else(|| Error::new(at, "an alias inside its own anchor"))?;
                self.nodes += node.size();
                (node.value, 0)
            }
            _ => return Err(Error::new(at, "this is not YAML: expected a value")),
        };
        self.depth -= 1;
        if self.nodes > self.limits.nodes {
            let most = self.limits.nodes;
            let message = format!("more than {most} values; aliases repeat what they stand for");
            return Err(Error::new(at, message));
        }
        let node = Node { at, value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, start: Position) -> Result<Value> {
        let mut items = Vec::new();
        loop {
            match self.inside(start)? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, span)?),
            }
        }
    }

    fn map(&mut self, start: Position) -> Result<Value> {
        let mut entries = Vec::new();
        let mut seen: BTreeMap<String, Position> = BTreeMap::new();
        loop {
            let (at, key) = match self.inside(start)? {
                (Event::MappingEnd, _) => return Ok(Value::Map(entries)),
                (Event::Scalar(text, ..), span) => (position(span.start), text.into_owned()),
                (_, span) => {
                    return Err(Error::expected(position(span.start), "a nested key", "a word"));
                }
            };
            if let Some(first) = seen.insert(key.clone(), at) {
                let message =
                    format!("found `{key}` twice in one map, first at line {}", first.line);
                return Err(Error::new(at, message));
            }
            let (event, span) = self.inside(start)?;
            let value = self.node(event, span)?;
            entries.push(Entry { at, key, value });
        }
    }
}

fn scalar(text: String, style: ScalarStyle) -> Value {
    let plain = style == ScalarStyle::Plain;
    if plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Value::Null;
    }
    Value::Scalar { text, plain }
}
