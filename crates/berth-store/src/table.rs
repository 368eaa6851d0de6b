//! Tables as values, and the statements that are the same for all of them.

use crate::error::{self, Error};
use crate::value::{Binds, Key, Reader, Type, Value};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use sqlx::error::BoxDynError;
use sqlx::{AssertSqlSafe, query_with};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// A table: its columns, of which the first `keys` are its primary key.
#[derive(Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    pub keys: usize,
    pub types: fn() -> Vec<Type>,
}

/// A row of a table of Berth. Only this crate has rows.
pub trait Row: Sized {
    #[doc(hidden)]
    const TABLE: Table;
    /// What it is found by.
    type Key<'k>: Key;

    #[doc(hidden)]
    fn values(&self) -> Vec<Value>;
    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self, BoxDynError>;
}

/// Declares a row: its fields with their columns, the columns of the key first.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident in $table:literal, $keys:literal of the columns are its key: $key:ty;
        $( $(#[$field_doc:meta])* $field:ident: $type:ty = $($column:literal)+ , )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl $crate::table::Row for $name {
            const TABLE: $crate::table::Table = $crate::table::Table {
                name: $table,
                columns: &[$($($column),+),*],
                keys: $keys,
                types: || [$(<$type as $crate::value::Field>::TYPES),*].concat(),
            };
            type Key<'k> = $key;

            fn values(&self) -> Vec<$crate::value::Value> {
                let mut values = Vec::with_capacity(Self::TABLE.columns.len());
                $( $crate::value::Field::write(&self.$field, &mut values); )*
                values
            }

            fn read(
                from: &mut $crate::value::Reader<'_>,
            ) -> Result<$name, sqlx::error::BoxDynError> {
                Ok($name { $( $field: $crate::value::Field::read(from)?, )* })
            }
        }
    };
}
pub(crate) use table;

/// What to do about a row whose key is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Existing {
    Replace,
    Refuse,
}

/// Rows per statement, largest first. Few sizes, so that each statement is prepared once and
/// used again; several rows, because a round trip costs more than a row.
const ROWS_PER_STATEMENT: [usize; 6] = [32, 16, 8, 4, 2, 1];

/// Statements that insert, by table and rows. Their texts are long, and always the same.
static INSERTS: Mutex<Inserts> = Mutex::new(Inserts::new());
type Inserts = BTreeMap<(&'static str, usize, Existing, Marks), Arc<str>>;

/// How the values of a statement are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Marks {
    /// `$1`, `$2`: the only way of PostgreSQL.
    Numbered,
    /// `?`: SQLite finds a parameter that has a name by walking past all before it.
    Bare,
}

impl Marks {
    pub(crate) fn of(connection: &AnyConnection) -> Marks {
        if connection.backend_name() == "SQLite" { Marks::Bare } else { Marks::Numbered }
    }
}

impl Table {
    /// All columns, quoted: some are words of SQL.
    pub(crate) fn column_list(&self) -> String {
        quoted(self.columns)
    }

    pub(crate) fn key_list(&self) -> String {
        quoted(&self.columns[..self.keys])
    }

    pub(crate) async fn insert(
        &self,
        connection: &mut AnyConnection,
        mut rows: Vec<Vec<Value>>,
        existing: Existing,
    ) -> sqlx::Result<()> {
        if existing == Existing::Replace {
            rows = self.newest(rows);
        }
        let marks = Marks::of(connection);
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let count = ROWS_PER_STATEMENT.into_iter().find(|count| *count <= rows.len());
            let count = count.expect("one row always fits");
            let mut binds = Binds::default();
            binds.push_all(rows.by_ref().take(count).flatten());
            let sql = self.insert_sql(count, existing, marks);
            query_with(AssertSqlSafe(sql), binds.into_arguments())
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    fn insert_sql(&self, rows: usize, existing: Existing, marks: Marks) -> Arc<str> {
        let mut inserts = INSERTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = inserts.entry((self.name, rows, existing, marks));
        let make = || insert_sql(self.name, self.columns, self.keys, rows, existing, marks).into();
        known.or_insert_with(make).clone()
    }

    /// The last row of each key, as PostgreSQL refuses to replace a row twice in one statement.
    fn newest(&self, rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
        let by_key: BTreeMap<Vec<Value>, Vec<Value>> =
            rows.into_iter().map(|row| (row[..self.keys].to_vec(), row)).collect();
        by_key.into_values().collect()
    }

    pub(crate) async fn delete(
        &self,
        connection: &mut AnyConnection,
        key: Vec<Value>,
    ) -> sqlx::Result<()> {
        let mut binds = Binds::default();
        let matches = self.matches(key, &mut binds);
        let sql = AssertSqlSafe(format!("DELETE FROM {} WHERE {matches}", self.name));
        query_with(sql, binds.into_arguments()).execute(connection).await?;
        Ok(())
    }

    /// The condition that a row has this key.
    pub(crate) fn matches(&self, key: Vec<Value>, binds: &mut Binds) -> String {
        assert_eq!(key.len(), self.keys, "a key of {} has its columns", self.name);
        let pairs = self.columns.iter().zip(key);
        let terms: Vec<String> =
            pairs.map(|(column, value)| format!("\"{column}\" = {}", binds.mark(value))).collect();
        terms.join(" AND ")
    }

    /// Whether a row, or a key, holds no text that a database could not keep.
    pub(crate) fn keepable(&self, row: &[Value]) -> error::Result<()> {
        let odd = row.iter().position(Value::has_nul).and_then(|at| self.columns.get(at));
        let Some(column) = odd else { return Ok(()) };
        let why = format!("`{column}` holds a NUL character. Take it out");
        Err(Error::Encode { what: self.name, why })
    }
}

/// The statement that inserts so many rows. The first columns are the key.
pub(crate) fn insert_sql(
    table: &str,
    columns: &[&str],
    keys: usize,
    rows: usize,
    existing: Existing,
    marks: Marks,
) -> String {
    let mut sql = format!("INSERT INTO {table} ({}) VALUES ", quoted(columns));
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns.len() {
            let comma = if column == 0 { "" } else { ", " };
            let _ = match marks {
                Marks::Bare => write!(sql, "{comma}?"),
                Marks::Numbered => write!(sql, "{comma}${}", row * columns.len() + column + 1),
            };
        }
        sql.push(')');
    }
    if existing == Existing::Replace {
        let set: Vec<String> = columns[keys..]
            .iter()
            .map(|column| format!("\"{column}\" = excluded.\"{column}\""))
            .collect();
        let key = quoted(&columns[..keys]);
        sql.push_str(&format!(" ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", ")));
    }
    sql
}

pub(crate) fn read<R: Row>(row: &AnyRow) -> Result<R, BoxDynError> {
    R::read(&mut Reader::new(row))
}

pub(crate) fn quoted(columns: &[&str]) -> String {
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    quoted.join(", ")
}
