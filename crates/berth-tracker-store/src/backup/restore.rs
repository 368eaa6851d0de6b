//! Restoring.

use super::BackupError;
use super::format::{FORMAT, Footer, Header, Shape, parse};
use super::write::export;
use crate::database::{Database, NEWEST, Options, create_private};
use crate::rows::{Bind, insert};
use sqlx::{AnyConnection, Connection, query, raw_sql};
use std::path::Path;
use tokio::io::{AsyncBufRead, Lines, Sink};

/// The rows and bytes of one statement. The bytes need a limit because the profile of a data set may
/// have 16 MiB.
const AT_ONCE: usize = 128;
const MOST_BYTES: usize = 4 << 20;

/// The result of a restore.
pub enum Restored {
    /// The tables have the rows of the backup after a commit.
    Filled(Box<Filled>),
    /// The tables were not empty, and are unchanged.
    Kept { database: String },
}

/// Tables with the rows of a backup. Without a commit, the rows are rolled back.
pub struct Filled {
    database: Database,
    connection: AnyConnection,
    rows: u64,
}

/// Restores this part of a backup into the tables at `url`, if they are empty, and compares them
/// with the backup. `file` is the file of a SQLite database, and `shown` the URL without the
/// password.
pub async fn restore<R: AsyncBufRead + Unpin + Send>(
    lines: &mut Lines<R>,
    (url, shown, file): (&str, &str, Option<&Path>),
    options: &Options,
) -> Result<Restored, BackupError> {
    let header = first_line(lines).await?;
    if let Some(file) = file {
        let made = create_private(file);
        made.map_err(|source| BackupError::Io { action: "make a database for", source })?;
    }
    let database = Database::at(url, shown).map_err(BackupError::Open)?;
    let begun = database.begin(options, header.schema).await;
    let mut connection = begun.map_err(BackupError::Open)?;
    let failed = |source| sql(&database, source);
    raw_sql("BEGIN").execute(&mut connection).await.map_err(failed)?;
    for shape in &header.tables {
        let any = format!("SELECT 1 FROM {} LIMIT 1", shape.name);
        let found = query(sqlx::AssertSqlSafe(any)).fetch_optional(&mut connection).await;
        if found.map_err(failed)?.is_some() {
            let _ = connection.close().await;
            return Ok(Restored::Kept { database: shown.to_owned() });
        }
    }
    let footer = fill(&mut connection, &database, &header, lines).await?;
    let found = export(&mut connection, &header, None::<&mut Sink>, shown).await?;
    if found != footer {
        let (found, wanted) = (found.rows, footer.rows);
        let why = format!("{found} of {wanted} rows were read back, or other ones");
        return Err(BackupError::Bad { why });
    }
    Ok(Restored::Filled(Box::new(Filled { database, connection, rows: footer.rows })))
}

impl Filled {
    /// Commits the rows and returns their number.
    pub async fn commit(mut self) -> Result<u64, BackupError> {
        let committed = raw_sql("COMMIT").execute(&mut self.connection).await;
        committed.map_err(|source| sql(&self.database, source))?;
        let migrated = self.database.migrate(&mut self.connection, NEWEST).await;
        migrated.map_err(BackupError::Open)?;
        let _ = self.connection.close().await;
        Ok(self.rows)
    }
}

fn sql(database: &Database, source: sqlx::Error) -> BackupError {
    BackupError::Sql { action: "fill", database: database.shown.clone(), source }
}

async fn next<R: AsyncBufRead + Unpin>(
    lines: &mut Lines<R>,
) -> Result<Option<String>, BackupError> {
    lines.next_line().await.map_err(|source| BackupError::Io { action: "read", source })
}

async fn first_line<R: AsyncBufRead + Unpin>(lines: &mut Lines<R>) -> Result<Header, BackupError> {
    let first = next(lines).await?.ok_or_else(|| BackupError::bad("they are missing"))?;
    let header: Header = serde_json::from_str(&first)
        .map_err(|_| BackupError::bad("they do not begin as they should"))?;
    if header.berth_tracking > FORMAT || header.schema > NEWEST {
        let why = "a newer version of Berth wrote them; restore the backup with that version";
        return Err(BackupError::bad(why));
    }
    match header.is_sound() && (1..=NEWEST).contains(&header.schema) {
        true => Ok(header),
        false => Err(BackupError::bad("their first line is damaged")),
    }
}

/// Inserts all rows and returns the last line.
async fn fill<R: AsyncBufRead + Unpin>(
    connection: &mut AnyConnection,
    database: &Database,
    header: &Header,
    lines: &mut Lines<R>,
) -> Result<Footer, BackupError> {
    let mut waiting: Vec<Vec<Bind>> = Vec::new();
    let mut bytes = 0;
    let mut of: Option<&Shape> = None;
    loop {
        let line = next(lines).await?.ok_or_else(|| BackupError::bad("their end is missing"))?;
        let row = line.starts_with('[').then(|| parse(header, &line)).transpose()?;
        let table = row.as_ref().map(|(shape, _)| *shape);
        if let Some(shape) = of
            && (table != of || waiting.len() >= AT_ONCE || bytes >= MOST_BYTES)
        {
            bytes = 0;
            let rows = std::mem::take(&mut waiting);
            let into = shape.insert();
            let into = (into.as_str(), shape.columns.len(), "");
            let inserted = insert(connection, database.backend, into, rows).await;
            inserted.map_err(|source| sql(database, source))?;
        }
        let Some((shape, row)) = row else {
            return serde_json::from_str(&line)
                .map_err(|_| BackupError::bad("their last line is damaged"));
        };
        of = Some(shape);
        bytes += line.len();
        waiting.push(row);
    }
}
