//! The shape of the database, in numbered steps. A step that was released is never edited.

use crate::address::Backend;
use crate::error::{Error, Result};
use ring::digest::{SHA256, digest};
use sqlx::AnyConnection;
use sqlx::{AssertSqlSafe, Row, query, raw_sql};

struct Step {
    version: i64,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step { version: 1, sql: include_str!("../migrations/0001_start.sql") },
    Step { version: 2, sql: include_str!("../migrations/0002_snapshot_parts.sql") },
    Step { version: 3, sql: include_str!("../migrations/0003_schedule_reason.sql") },
    Step { version: 4, sql: include_str!("../migrations/0004_keyed_audit.sql") },
    Step { version: 5, sql: include_str!("../migrations/0005_job_pages.sql") },
    Step { version: 6, sql: include_str!("../migrations/0006_figures.sql") },
    Step { version: 7, sql: include_str!("../migrations/0007_energy.sql") },
    Step { version: 8, sql: include_str!("../migrations/0008_sessions.sql") },
    Step { version: 9, sql: include_str!("../migrations/0009_portal.sql") },
    Step { version: 10, sql: include_str!("../migrations/0010_made_by.sql") },
    Step { version: 11, sql: include_str!("../migrations/0011_session_keys.sql") },
    Step { version: 12, sql: include_str!("../migrations/0012_blobs.sql") },
];

pub(crate) const NEWEST: i64 = STEPS[STEPS.len() - 1].version;

/// Remembers the steps. It is not in a backup: that names its version itself.
const STEPS_TABLE: &str = "CREATE TABLE schema_steps (
    version {int} PRIMARY KEY,
    checksum {text} NOT NULL
){strict}";

impl Step {
    fn checksum(&self) -> String {
        hex::encode(digest(&SHA256, self.sql.as_bytes()).as_ref())
    }
}

fn dialect(sql: &str, backend: Backend) -> String {
    let (int, text, strict) = match backend {
        Backend::Sqlite => ("INTEGER", "TEXT", " STRICT"),
        Backend::Postgres => ("BIGINT", "TEXT COLLATE \"C\"", ""),
    };
    sql.replace("{int}", int).replace("{text}", text).replace("{strict}", strict)
}

/// The version that is there; zero for a database without tables.
pub(crate) async fn version(
    connection: &mut AnyConnection,
    backend: Backend,
    database: &str,
) -> Result<i64> {
    let failed = |source| Error::sql(database, "read its schema", source);
    let tables = tables(connection, backend).await.map_err(failed)?;
    if tables.is_empty() {
        return Ok(0);
    }
    if !tables.iter().any(|table| table == "schema_steps") {
        return Err(Error::Foreign { database: database.to_owned() });
    }
    let rows = query("SELECT version, checksum FROM schema_steps ORDER BY version")
        .fetch_all(connection)
        .await
        .map_err(failed)?;
    let mut newest = 0;
    for row in rows {
        newest = row.try_get(0).map_err(failed)?;
        let checksum: String = row.try_get(1).map_err(failed)?;
        let Some(step) = STEPS.iter().find(|step| step.version == newest) else {
            continue;
        };
        if step.checksum() != checksum {
            return Err(Error::Altered { database: database.to_owned(), version: newest });
        }
    }
    if newest > NEWEST {
        return Err(Error::Newer { database: database.to_owned(), found: newest, known: NEWEST });
    }
    Ok(newest)
}

/// Takes the steps from one version up to another, each whole or not at all.
pub(crate) async fn migrate(
    connection: &mut AnyConnection,
    backend: Backend,
    database: &str,
    (from, to): (i64, i64),
) -> Result<()> {
    let failed = |source| Error::sql(database, "bring its schema up to date", source);
    for step in STEPS.iter().filter(|step| from < step.version && step.version <= to) {
        let mut sql = String::from("BEGIN;\n");
        if step.version == 1 {
            sql.push_str(&dialect(STEPS_TABLE, backend));
            sql.push_str(";\n");
        }
        sql.push_str(&dialect(step.sql, backend));
        sql.push_str(&format!(
            "INSERT INTO schema_steps VALUES ({}, '{}');\nCOMMIT;",
            step.version,
            step.checksum()
        ));
        raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

/// The names of all tables that are not the database's own.
pub(crate) async fn tables(
    connection: &mut AnyConnection,
    backend: Backend,
) -> sqlx::Result<Vec<String>> {
    let sql = match backend {
        Backend::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
             ORDER BY name"
        }
        Backend::Postgres => {
            "SELECT CAST(table_name AS TEXT) FROM information_schema.tables \
             WHERE table_schema = current_schema() ORDER BY 1"
        }
    };
    query(sql).fetch_all(connection).await?.iter().map(|row| row.try_get(0)).collect()
}
