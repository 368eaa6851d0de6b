//! Writing.

use super::BackupError;
use super::format::{Checksum, Footer, Header};
use crate::database::{Backend, NEWEST};
use crate::store::TrackingStore;
use futures_util::TryStreamExt;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, query, raw_sql};
use tokio::io::{AsyncWrite, AsyncWriteExt};

impl TrackingStore {
    /// Writes a snapshot of all rows and returns their number. Clients continue to read and write.
    pub async fn backup(
        &self,
        file: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, BackupError> {
        let database = self.database();
        let failed =
            |source| BackupError::Sql { action: "read", database: database.shown.clone(), source };
        let mut connection = database.connect_to_read().await.map_err(failed)?;
        let begin = match database.backend {
            Backend::Sqlite => "BEGIN",
            Backend::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        raw_sql(begin).execute(&mut connection).await.map_err(failed)?;
        let header = Header::current(NEWEST);
        let footer = export(&mut connection, &header, Some(file), &database.shown).await;
        // The transaction only read, so it needs no commit.
        let _ = connection.close().await;
        let footer = footer?;
        let line = serde_json::to_string(&footer).expect("a footer is plain data");
        put(file, &line).await?;
        Ok(footer.rows)
    }
}

/// Reads every row, writes it into the file if given, and returns the last line.
pub async fn export<F: AsyncWrite + Unpin + Send>(
    connection: &mut AnyConnection,
    header: &Header,
    mut file: Option<&mut F>,
    database: &str,
) -> Result<Footer, BackupError> {
    let failed =
        |source| BackupError::Sql { action: "read", database: database.to_owned(), source };
    let mut checksum = Checksum::new();
    let first = serde_json::to_string(header).expect("a header is plain data");
    checksum.add(&first);
    if let Some(file) = &mut file {
        put(*file, &first).await?;
    }
    for shape in &header.tables {
        let sql = AssertSqlSafe(shape.select());
        let mut rows = query(sql).persistent(false).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let line = shape.line(&row).map_err(failed)?;
            checksum.add(&line);
            if let Some(file) = &mut file {
                put(*file, &line).await?;
            }
        }
    }
    Ok(checksum.footer())
}

async fn put(file: &mut (impl AsyncWrite + Unpin + Send), line: &str) -> Result<(), BackupError> {
    let written = async {
        file.write_all(line.as_bytes()).await?;
        file.write_all(b"\n").await
    };
    written.await.map_err(|source| BackupError::Io { action: "write", source })
}
