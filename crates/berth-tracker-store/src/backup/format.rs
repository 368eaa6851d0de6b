//! The format of this part of a backup.

use super::BackupError;
use crate::rows::Bind;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::Row as _;
use sqlx::any::AnyRow;

pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    Int,
    Text,
}

/// A table: its name, the number of key columns, and its columns.
type Table = (&'static str, usize, &'static [(&'static str, Type)]);

const INT: Type = Type::Int;
const TEXT: Type = Type::Text;

/// Every table. A test compares this list with the migrations.
pub const TABLES: &[Table] = &[
    ("docs", 4, &[("kind", INT), ("scope", TEXT), ("name", TEXT), ("sub", INT), ("doc", TEXT)]),
    (
        "runs",
        1,
        &[
            ("no", INT),
            ("id", TEXT),
            ("experiment", INT),
            ("name", TEXT),
            ("user_id", TEXT),
            ("made_by", TEXT),
            ("status", TEXT),
            ("start_time", INT),
            ("end_time", INT),
            ("deleted", INT),
            ("deleted_at", INT),
            ("points", INT),
            ("has_inputs", INT),
        ],
    ),
    ("params", 2, &[("run", INT), ("key", TEXT), ("value", TEXT)]),
    ("tags", 2, &[("run", INT), ("key", TEXT), ("value", TEXT)]),
    ("metric_keys", 1, &[("no", INT), ("experiment", INT), ("name", TEXT)]),
    ("points", 5, &[("run", INT), ("key", INT), ("step", INT), ("at", INT), ("value", INT)]),
    ("latest", 2, &[("run", INT), ("key", INT), ("step", INT), ("at", INT), ("value", INT)]),
    (
        "datasets",
        1,
        &[
            ("no", INT),
            ("experiment", INT),
            ("name", TEXT),
            ("digest", TEXT),
            ("source_type", TEXT),
            ("source", TEXT),
            ("schema_json", TEXT),
            ("profile", TEXT),
        ],
    ),
    ("run_datasets", 2, &[("run", INT), ("dataset", INT), ("context", TEXT), ("tags", TEXT)]),
    ("run_models", 3, &[("run", INT), ("output", INT), ("model", TEXT), ("step", INT)]),
    (
        "model_metrics",
        5,
        &[
            ("model", TEXT),
            ("key", TEXT),
            ("run_id", TEXT),
            ("dataset_name", TEXT),
            ("dataset_digest", TEXT),
            ("step", INT),
            ("at", INT),
            ("value", INT),
        ],
    ),
    (
        "removals",
        2,
        &[
            ("kind", INT),
            ("no", INT),
            ("experiment", INT),
            ("team", TEXT),
            ("path", TEXT),
            ("done", INT),
        ],
    ),
];

/// The first line. It lists the columns, so that later versions of Berth can read the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub berth_tracking: u32,
    pub schema: i64,
    pub tables: Vec<Shape>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub name: String,
    pub keys: usize,
    pub columns: Vec<(String, Type)>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    pub rows: u64,
    pub sha256: String,
}

impl Header {
    pub fn current(schema: i64) -> Header {
        let shape = |(name, keys, columns): &Table| Shape {
            name: (*name).to_owned(),
            keys: *keys,
            columns: columns.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect(),
        };
        Header { berth_tracking: FORMAT, schema, tables: TABLES.iter().map(shape).collect() }
    }

    /// Whether all tables and columns exist. The names become part of SQL statements, so this check
    /// prevents injection.
    pub fn is_sound(&self) -> bool {
        self.tables.iter().all(|shape| {
            let known = TABLES.iter().find(|(name, ..)| *name == shape.name);
            known.is_some_and(|(_, keys, columns)| {
                let has = |(name, of): &(String, Type)| columns.contains(&(name.as_str(), *of));
                shape.keys == *keys && shape.columns.len() >= *keys && shape.columns.iter().all(has)
            })
        })
    }
}

impl Shape {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// The statement that reads all rows. Both databases return them in the same order.
    pub fn select(&self) -> String {
        let keys: Vec<&str> = self.columns[..self.keys].iter().map(|(name, _)| &**name).collect();
        format!("SELECT {} FROM {} ORDER BY {}", self.names(), self.name, keys.join(", "))
    }

    pub fn insert(&self) -> String {
        format!("INSERT INTO {} ({})", self.name, self.names())
    }

    /// A row as a line: the table, then the values.
    pub fn line(&self, row: &AnyRow) -> sqlx::Result<String> {
        let mut values = vec![Value::from(self.name.as_str())];
        for (index, (_, of)) in self.columns.iter().enumerate() {
            values.push(match of {
                Type::Int => row.try_get::<Option<i64>, _>(index)?.into(),
                Type::Text => row.try_get::<Option<String>, _>(index)?.into(),
            });
        }
        Ok(Value::Array(values).to_string())
    }
}

/// The table of a line, and its row.
pub fn parse<'h>(header: &'h Header, line: &str) -> Result<(&'h Shape, Vec<Bind>), BackupError> {
    let bad = || BackupError::bad("a row is damaged");
    let values: Vec<Value> = serde_json::from_str(line).map_err(|_| bad())?;
    let mut values = values.into_iter();
    let name = values.next();
    let name = name.as_ref().and_then(Value::as_str).ok_or_else(bad)?;
    let shape = header.tables.iter().find(|shape| shape.name == name).ok_or_else(bad)?;
    let mut row = Vec::with_capacity(shape.columns.len());
    for (_, of) in &shape.columns {
        row.push(match (of, values.next().ok_or_else(bad)?) {
            (Type::Int, Value::Null) => Bind::MaybeInt(None),
            (Type::Text, Value::Null) => Bind::MaybeText(None),
            (Type::Int, Value::Number(number)) => Bind::Int(number.as_i64().ok_or_else(bad)?),
            (Type::Text, Value::String(text)) => Bind::Text(text),
            _ => return Err(bad()),
        });
    }
    if values.next().is_some() {
        return Err(bad());
    }
    Ok((shape, row))
}

/// Adds lines up to a checksum.
pub struct Checksum {
    context: Context,
    lines: u64,
}

impl Checksum {
    pub fn new() -> Checksum {
        Checksum { context: Context::new(&SHA256), lines: 0 }
    }

    pub fn add(&mut self, line: &str) {
        self.context.update(line.as_bytes());
        self.context.update(b"\n");
        self.lines += 1;
    }

    /// Computes the last line. The first line does not count as a row.
    pub fn footer(self) -> Footer {
        let sha256 = hex::encode(self.context.finish().as_ref());
        Footer { rows: self.lines.saturating_sub(1), sha256 }
    }
}
