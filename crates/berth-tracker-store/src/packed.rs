//! Many rows in one. A connection runs on a thread of its own, and each row that it hands over costs about
//! ten microseconds, far more than finding it. So the database itself puts rows that are read together into
//! one text, as JSON.

use crate::database::Backend;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

/// A column with the values of all rows, in the order in which the rows arrive.
pub(crate) fn list(backend: Backend, value: &str) -> String {
    match backend {
        Backend::Sqlite => format!("json_group_array({value})"),
        // Without rows this is NULL.
        Backend::Postgres => format!("CAST(json_agg({value}) AS TEXT)"),
    }
}

/// The same for several columns: a list of lists.
pub(crate) fn rows(backend: Backend, columns: &str) -> String {
    match backend {
        Backend::Sqlite => list(backend, &format!("json_array({columns})")),
        Backend::Postgres => list(backend, &format!("json_build_array({columns})")),
    }
}

/// The rows in that column.
pub(crate) fn read<T: DeserializeOwned>(row: &AnyRow, column: usize) -> sqlx::Result<Vec<T>> {
    let Some(text) = row.try_get::<Option<&str>, _>(column)? else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
