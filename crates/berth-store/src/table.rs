//! Tables as values, and the statements that are the same for all of them.

use crate::error::{self, Error};
use crate::value::{Binds, Field, Key, Reader, Type, Value};
use berth_model::Micros;
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
    /// The first of its values, which no other row has.
    #[doc(hidden)]
    fn key(&self) -> Vec<Value>;
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

            fn key(&self) -> Vec<$crate::value::Value> {
                let mut key = Vec::with_capacity(Self::TABLE.keys);
                $(
                    if key.len() < Self::TABLE.keys {
                        $crate::value::Field::write(&self.$field, &mut key);
                    }
                )*
                key
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

/// Statements for many rows, by table. Their texts are long, and always the same.
static STATEMENTS: Mutex<Statements> = Mutex::new(Statements::new());
type Statements = BTreeMap<(&'static str, usize, Verb, Marks), Arc<str>>;

/// What a statement does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Insert(Existing),
    Spend,
}

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

    /// Rows are made into values a statement at a time: a batch may hold tens of thousands.
    pub(crate) async fn insert(
        &self,
        connection: &mut AnyConnection,
        rows: impl ExactSizeIterator<Item = error::Result<Vec<Value>>>,
        existing: Existing,
    ) -> Result<(), Unwritten> {
        self.in_statements(connection, rows, Verb::Insert(existing)).await
    }

    /// Sets what rows have cost, each given as its key and the amount.
    pub(crate) async fn spend<K: Field>(
        &self,
        connection: &mut AnyConnection,
        spent: &[(K, Micros)],
    ) -> Result<(), Unwritten> {
        let rows = spent.iter().map(|(key, amount)| {
            let mut row = Vec::with_capacity(self.keys + 1);
            key.write(&mut row);
            amount.write(&mut row);
            Ok(row)
        });
        self.in_statements(connection, rows, Verb::Spend).await
    }

    async fn in_statements(
        &self,
        connection: &mut AnyConnection,
        mut rows: impl ExactSizeIterator<Item = error::Result<Vec<Value>>>,
        verb: Verb,
    ) -> Result<(), Unwritten> {
        let marks = Marks::of(connection);
        while rows.len() > 0 {
            let count = ROWS_PER_STATEMENT.into_iter().find(|count| *count <= rows.len());
            let count = count.expect("one row always fits");
            let mut binds = Binds::default();
            for row in rows.by_ref().take(count) {
                let row = row?;
                self.keepable(&row)?;
                binds.push_all(row);
            }
            let sql = self.statement(count, verb, marks);
            query_with(AssertSqlSafe(sql), binds.into_arguments())
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    fn statement(&self, rows: usize, verb: Verb, marks: Marks) -> Arc<str> {
        let mut statements = STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = statements.entry((self.name, rows, verb, marks));
        let make = || match verb {
            Verb::Insert(existing) => {
                insert_sql(self.name, self.columns, self.keys, rows, existing, marks)
            }
            Verb::Spend => self.spend_sql(rows, marks),
        };
        known.or_insert_with(|| make().into()).clone()
    }

    fn spend_sql(&self, rows: usize, marks: Marks) -> String {
        let Table { name, columns, keys, .. } = self;
        let mut sql = format!("UPDATE {name} SET cost = spent.column{} FROM (VALUES ", keys + 1);
        write_marks(&mut sql, rows, keys + 1, marks);
        sql.push_str(") AS spent WHERE ");
        for (at, column) in columns[..*keys].iter().enumerate() {
            let and = if at == 0 { "" } else { " AND " };
            let _ = write!(sql, "{and}{name}.\"{column}\" = spent.column{}", at + 1);
        }
        sql
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
    write_marks(&mut sql, rows, columns.len(), marks);
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

/// `(?, ?), (?, ?)`: what stands for so many rows of so many values.
fn write_marks(sql: &mut String, rows: usize, columns: usize, marks: Marks) {
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns {
            let comma = if column == 0 { "" } else { ", " };
            let _ = match marks {
                Marks::Bare => write!(sql, "{comma}?"),
                Marks::Numbered => write!(sql, "{comma}${}", row * columns + column + 1),
            };
        }
        sql.push(')');
    }
}

/// Why rows were not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// One of them cannot be kept.
    Row(Error),
    Database(sqlx::Error),
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Unwritten {
        Unwritten::Row(error)
    }
}

impl From<sqlx::Error> for Unwritten {
    fn from(error: sqlx::Error) -> Unwritten {
        Unwritten::Database(error)
    }
}

pub(crate) fn read<R: Row>(row: &AnyRow) -> Result<R, BoxDynError> {
    R::read(&mut Reader::new(row))
}

pub(crate) fn quoted(columns: &[&str]) -> String {
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    quoted.join(", ")
}
