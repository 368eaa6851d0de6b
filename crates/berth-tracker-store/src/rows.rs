//! Statements over several rows.

use crate::database::Backend;
use sqlx::Arguments as _;
use sqlx::any::AnyArguments;
use sqlx::{AnyConnection, AssertSqlSafe, query_with};

/// One value of a row.
#[derive(Debug, Clone)]
pub(crate) enum Bind {
    Int(i64),
    MaybeInt(Option<i64>),
    Text(String),
    MaybeText(Option<String>),
    Number(f64),
}

impl From<i64> for Bind {
    fn from(int: i64) -> Bind {
        Bind::Int(int)
    }
}

impl From<&str> for Bind {
    fn from(text: &str) -> Bind {
        Bind::Text(text.to_owned())
    }
}

impl From<&String> for Bind {
    fn from(text: &String) -> Bind {
        Bind::Text(text.clone())
    }
}

pub(crate) fn arguments(binds: Vec<Bind>) -> AnyArguments {
    let mut arguments = AnyArguments::default();
    for bind in binds {
        let added = match bind {
            Bind::Int(int) => arguments.add(int),
            Bind::MaybeInt(int) => arguments.add(int),
            Bind::Text(text) => arguments.add(text),
            Bind::MaybeText(text) => arguments.add(text),
            Bind::Number(number) => arguments.add(number),
        };
        added.expect("every kind of value can be bound");
    }
    arguments
}

/// Runs one statement.
pub(crate) async fn execute(
    connection: &mut AnyConnection,
    backend: Backend,
    sql: &'static str,
    binds: Vec<Bind>,
) -> sqlx::Result<u64> {
    let sql = AssertSqlSafe(backend.sql(sql));
    Ok(query_with(sql, arguments(binds)).execute(connection).await?.rows_affected())
}

/// The sizes of batches. Few sizes mean few statements to prepare.
const SIZES: [usize; 3] = [128, 16, 1];

/// Inserts rows. `end` follows the values in the statement.
pub(crate) async fn insert(
    connection: &mut AnyConnection,
    backend: Backend,
    (begin, columns, end): (&str, usize, &str),
    rows: Vec<Vec<Bind>>,
) -> sqlx::Result<()> {
    let mut rows = rows.into_iter();
    while rows.len() > 0 {
        let left = rows.len();
        let size = SIZES.into_iter().find(|size| *size <= left).expect("one is the least");
        let row = format!("({})", vec!["?"; columns].join(","));
        let sql = format!("{begin} VALUES {} {end}", vec![row.as_str(); size].join(","));
        let binds = rows.by_ref().take(size).flatten().collect();
        let sql = AssertSqlSafe(backend.sql_of(sql));
        query_with(sql, arguments(binds)).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Joins integers with commas, for a statement.
pub(crate) fn numbers(numbers: &[i64]) -> String {
    let mut out = String::with_capacity(numbers.len() * 8);
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&number.to_string());
    }
    out
}
