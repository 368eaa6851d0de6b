//! The lines of a backup.

use crate::rows::TABLES;
use crate::schema;
use crate::table::{Table, quoted};
use crate::value::{Binds, Reader, Type, Value};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use sqlx::error::BoxDynError;
use sqlx::{AssertSqlSafe, query_with};

/// The newest format. A backup without an attachment has the first, which older versions can read.
pub(super) const FORMAT: u32 = 2;
const PLAIN: u32 = 1;

/// Rows read at a time.
const PAGE: usize = 500;

/// The first line. It tells the columns, so that a later version of Berth, whose tables have
/// others, can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub berth_backup: u32,
    pub schema: i64,
    /// The attachment after the last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
    pub tables: Vec<Shape>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Footer {
    pub rows: u64,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub name: String,
    pub keys: usize,
    pub columns: Vec<(String, ColumnType)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ColumnType {
    Int,
    Text,
}

impl Header {
    pub fn current(attached: Option<&str>) -> Header {
        let tables = TABLES.iter().map(Shape::of).collect();
        let berth_backup = if attached.is_some() { FORMAT } else { PLAIN };
        let attached = attached.map(str::to_owned);
        Header { berth_backup, schema: schema::NEWEST, attached, tables }
    }

    pub fn shape(&self, table: &str) -> Option<&Shape> {
        self.tables.iter().find(|shape| shape.name == table)
    }

    /// Names become part of statements, so a file may not say just anything.
    pub fn is_sound(&self) -> bool {
        let word = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_lowercase())
                && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        self.tables.iter().all(|shape| {
            word(&shape.name)
                && (1..=shape.columns.len()).contains(&shape.keys)
                && shape.columns.iter().all(|(column, _)| word(column))
        })
    }
}

impl Shape {
    fn of(table: &Table) -> Shape {
        let types = (table.types)().into_iter().map(|of| match of {
            Type::Int => ColumnType::Int,
            Type::Text => ColumnType::Text,
        });
        let columns = table.columns.iter().map(|&column| column.to_owned());
        Shape {
            name: table.name.to_owned(),
            keys: table.keys,
            columns: columns.zip(types).collect(),
        }
    }

    pub fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|(column, _)| column.as_str()).collect()
    }

    pub fn types(&self) -> impl Iterator<Item = Type> {
        self.columns.iter().map(|(_, of)| match of {
            ColumnType::Int => Type::Int,
            ColumnType::Text => Type::Text,
        })
    }

    fn read(&self, row: &AnyRow) -> Result<Vec<Value>, BoxDynError> {
        let mut from = Reader::new(row);
        self.types().map(|of| from.value(of)).collect()
    }

    /// Up to a page of rows with keys above `after`, in the order of their keys.
    pub async fn page(
        &self,
        connection: &mut AnyConnection,
        after: Option<Vec<Value>>,
    ) -> sqlx::Result<Vec<Vec<Value>>> {
        let columns = self.column_names();
        let keys = quoted(&columns[..self.keys]);
        let mut binds = Binds::default();
        let from = after.map_or(String::new(), |key| {
            let marks: Vec<String> = key.into_iter().map(|value| binds.mark(value)).collect();
            format!("WHERE ({keys}) > ({})", marks.join(", "))
        });
        let (columns, name) = (quoted(&columns), &self.name);
        let sql = format!("SELECT {columns} FROM {name} {from} ORDER BY {keys} LIMIT {PAGE}");
        let rows = query_with(AssertSqlSafe(sql), binds.into_arguments());
        let rows = rows.fetch_all(connection).await?;
        rows.iter().map(|row| self.read(row).map_err(sqlx::Error::Decode)).collect()
    }
}

/// A row as a line: the table, then the values.
pub(super) fn row_line(table: &str, row: &[Value]) -> String {
    let values = row.iter().map(|value| match value {
        Value::Int(number) => number.map_or(serde_json::Value::Null, serde_json::Value::from),
        Value::Text(text) => text.clone().map_or(serde_json::Value::Null, serde_json::Value::from),
    });
    let line: Vec<serde_json::Value> =
        std::iter::once(serde_json::Value::from(table)).chain(values).collect();
    serde_json::Value::Array(line).to_string()
}

/// Why a line of a backup is not a row.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error("{0}")]
    Json(serde_json::Error),
    #[error("it has a row of an unknown table")]
    UnknownTable,
    #[error("it has a value of a wrong type")]
    Type,
    #[error("it has a row of {table} with a wrong number of columns")]
    Columns { table: String },
}

/// The other direction.
pub(super) fn parse_row<'h>(
    header: &'h Header,
    line: &str,
) -> Result<(&'h Shape, Vec<Value>), RowError> {
    let line: Vec<serde_json::Value> = serde_json::from_str(line).map_err(RowError::Json)?;
    let mut values = line.into_iter();
    let table = values.next();
    let shape = table
        .as_ref()
        .and_then(serde_json::Value::as_str)
        .and_then(|table| header.shape(table))
        .ok_or(RowError::UnknownTable)?;
    let row = shape.types().zip(values.by_ref()).map(|(of, value)| parse_value(of, value));
    let row: Vec<Value> = row.collect::<Option<_>>().ok_or(RowError::Type)?;
    if row.len() != shape.columns.len() || values.next().is_some() {
        return Err(RowError::Columns { table: shape.name.clone() });
    }
    Ok((shape, row))
}

fn parse_value(of: Type, value: serde_json::Value) -> Option<Value> {
    match (of, value) {
        (of, serde_json::Value::Null) => Some(Value::null(of)),
        (Type::Int, serde_json::Value::Number(number)) => {
            number.as_i64().map(|n| Value::Int(Some(n)))
        }
        (Type::Text, serde_json::Value::String(text)) => Some(Value::Text(Some(text))),
        (Type::Int | Type::Text, _) => None,
    }
}

/// Adds lines up to a checksum.
pub(super) struct Checksum {
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

    /// What the last line has to be. The first line is no row.
    pub fn footer(self) -> Footer {
        let sha256 = hex::encode(self.context.finish().as_ref());
        Footer { rows: self.lines.saturating_sub(1), sha256 }
    }
}
