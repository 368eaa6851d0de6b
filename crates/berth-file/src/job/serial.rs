//! Job files in JSON and other formats of serde: the same keys and values, in the same order. The
//! order counts, because the elements of a sweep are numbered by it.

use super::{JobFile, Mistakes, keys_of, read_entries};
use crate::error::Position;
use crate::out::Out;
use crate::tree::{Entry, Node, Value};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

impl Serialize for JobFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written(&self.record().done()).serialize(serializer)
    }
}

struct Written<'a>(&'a Out);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Out::Raw(raw) => match serde_json::from_str::<serde_json::Value>(raw) {
                Ok(number) => number.serialize(serializer),
                Err(_) => serializer.serialize_str(raw),
            },
            Out::Text(text) | Out::Script(text) => serializer.serialize_str(text),
            Out::List(items) => serializer.collect_seq(items.iter().map(Written)),
            Out::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, &Written(value))?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for JobFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JobFile, D::Error> {
        let tree = deserializer.deserialize_any(Tree)?;
        let parsed = keys_of(tree).map_err(Mistakes::whole).and_then(|keys| read_entries(&keys));
        parsed.map(|parsed| parsed.file).map_err(|mistakes| {
            let all: Vec<String> = mistakes.0.into_iter().map(|mistake| mistake.message).collect();
            de::Error::custom(all.join("; "))
        })
    }
}

/// Builds the tree that text would give; there are no places to point at.
struct Tree;

struct Read(Node);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(Tree).map(Read)
    }
}

fn scalar<E>(text: impl ToString, plain: bool) -> Result<Node, E> {
    let value = Value::Scalar { text: text.to_string(), plain };
    Ok(Node { at: Position::default(), value })
}

impl<'de> Visitor<'de> for Tree {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keys of a job file")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        scalar(value, true)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        scalar(value, true)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        scalar(value, true)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        scalar(value, true)
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        scalar(value, false)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node { at: Position::default(), value: Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(Read(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node { at: Position::default(), value: Value::List(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((key, Read(value))) = map.next_entry::<String, Read>()? {
            if entries.iter().any(|entry| entry.key == key) {
                return Err(de::Error::custom(format!("found `{key}` twice in one map")));
            }
            entries.push(Entry { at: Position::default(), key, value });
        }
        Ok(Node { at: Position::default(), value: Value::Map(entries) })
    }
}
