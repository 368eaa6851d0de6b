//! Connections with their settings, and the numbered migrations of the tables.

use crate::error::OpenError;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection, Row, query, raw_sql};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Connections for readers. The writer has another one.
    pub readers: u32,
    /// How long a reader waits for a connection.
    pub acquire_timeout: Duration,
    /// How long to wait until the former leader releases the lock.
    pub lock_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            readers: 4,
            acquire_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(15),
        }
    }
}

/// The location of the tables.
#[derive(Clone)]
pub(crate) struct Database {
    pub backend: Backend,
    /// The URL without the password.
    pub shown: String,
    connect: AnyConnectOptions,
}

struct Step {
    version: i64,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step { version: 1, sql: include_str!("../migrations/0001_start.sql") },
    Step { version: 2, sql: include_str!("../migrations/0002_runs_by_data.sql") },
    Step { version: 3, sql: include_str!("../migrations/0003_removals.sql") },
    Step { version: 4, sql: include_str!("../migrations/0004_docs_by_name.sql") },
];
/// The newest migration that this program knows.
pub(crate) const NEWEST: i64 = STEPS[STEPS.len() - 1].version;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Reading,
    Writing,
}

/// Configures a connection so that a commit is durable when it returns. On SQLite, each connection keeps few
/// pages: a reader drops all of them after any commit, and the system's cache has the others.
async fn prepare(connection: &mut AnyConnection, backend: Backend, use_: Use) -> sqlx::Result<()> {
    let sql = match (backend, use_) {
        (Backend::Sqlite, Use::Writing) => {
            "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA cache_size = -2000; PRAGMA wal_autocheckpoint = 4000; \
             PRAGMA journal_size_limit = 67108864;"
        }
        // LIKE is case-sensitive, as in PostgreSQL.
        (Backend::Sqlite, Use::Reading) => {
            "PRAGMA busy_timeout = 10000; PRAGMA query_only = ON; PRAGMA cache_size = -500; \
             PRAGMA case_sensitive_like = ON;"
        }
        (Backend::Postgres, Use::Writing) => {
            "SET search_path TO berth_tracking; SET synchronous_commit = on"
        }
        (Backend::Postgres, Use::Reading) => {
            "SET search_path TO berth_tracking; SET default_transaction_read_only = on"
        }
    };
    raw_sql(sql).execute(connection).await.map(drop)
}

impl Database {
    /// `url` begins with `sqlite:` or `postgres:`.
    pub fn at(url: &str, shown: &str) -> Result<Database, OpenError> {
        install_default_drivers();
        let backend = match url.starts_with("sqlite:") {
            true => Backend::Sqlite,
            false => Backend::Postgres,
        };
        let database = shown.to_owned();
        let connect = AnyConnectOptions::from_str(url).map_err(|source| OpenError::Sql {
            action: "find",
            database,
            source,
        })?;
        Ok(Database { backend, shown: shown.to_owned(), connect })
    }

    fn failed(&self, action: &'static str) -> impl Fn(sqlx::Error) -> OpenError + use<> {
        let database = self.shown.clone();
        move |source| OpenError::Sql { action, database: database.clone(), source }
    }

    /// A connection for writing.
    pub async fn connect(&self) -> sqlx::Result<AnyConnection> {
        self.connect_for(Use::Writing).await
    }

    /// A connection for reading outside of the pool.
    pub async fn connect_to_read(&self) -> sqlx::Result<AnyConnection> {
        self.connect_for(Use::Reading).await
    }

    async fn connect_for(&self, use_: Use) -> sqlx::Result<AnyConnection> {
        let mut connection = AnyConnection::connect_with(&self.connect).await?;
        prepare(&mut connection, self.backend, use_).await?;
        Ok(connection)
    }

    pub fn pool(&self, options: &Options) -> AnyPool {
        let backend = self.backend;
        AnyPoolOptions::new()
            .max_connections(options.readers.max(1))
            .acquire_timeout(options.acquire_timeout)
            // A SQLite connection does not break, and the check costs as much as a short statement.
            .test_before_acquire(backend == Backend::Postgres)
            .after_connect(move |connection, _| {
                Box::pin(async move { prepare(connection, backend, Use::Reading).await })
            })
            .connect_lazy_with(self.connect.clone())
    }

    /// Connects for writing, and migrates the tables to at least that version.
    pub async fn begin(&self, options: &Options, to: i64) -> Result<AnyConnection, OpenError> {
        let mut connection = self.connect().await.map_err(self.failed("connect to"))?;
        if self.backend == Backend::Postgres {
            let made = raw_sql("CREATE SCHEMA IF NOT EXISTS berth_tracking");
            made.execute(&mut connection).await.map_err(self.failed("make the schema of"))?;
        }
        self.lock(&mut connection, options.lock_timeout).await?;
        self.migrate(&mut connection, to).await?;
        Ok(connection)
    }

    /// Only one server writes. On SQLite, the lock of the server's home guarantees it. On PostgreSQL, the
    /// former leader may need a moment to release its lock.
    pub async fn lock(
        &self,
        connection: &mut AnyConnection,
        timeout: Duration,
    ) -> Result<(), OpenError> {
        if self.backend == Backend::Sqlite {
            return Ok(());
        }
        const TAKE: &str =
            "SELECT pg_try_advisory_lock(hashtext('berth tracking'), hashtext(current_schema()))";
        let until = Instant::now() + timeout;
        loop {
            let row = query(TAKE).fetch_one(&mut *connection).await;
            let taken = row.and_then(|row| row.try_get(0)).map_err(self.failed("lock"))?;
            if taken {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(OpenError::InUse { database: self.shown.clone() });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn migrate(&self, connection: &mut AnyConnection, to: i64) -> Result<(), OpenError> {
        let failed = self.failed("bring up to date");
        let there = match self.backend {
            Backend::Sqlite => "SELECT name FROM sqlite_master WHERE name = 'schema_steps'",
            Backend::Postgres => {
                "SELECT table_name::text FROM information_schema.tables \
                 WHERE table_schema = 'berth_tracking' AND table_name = 'schema_steps'"
            }
        };
        let there = query(there).fetch_optional(&mut *connection).await.map_err(&failed)?;
        let mut from: i64 = 0;
        if there.is_some() {
            let row = query("SELECT version FROM schema_steps ORDER BY version DESC LIMIT 1");
            let row = row.fetch_one(&mut *connection).await.map_err(&failed)?;
            from = row.try_get(0).map_err(&failed)?;
        }
        if from > NEWEST {
            let database = self.shown.clone();
            return Err(OpenError::Newer { database, found: from, known: NEWEST });
        }
        for step in STEPS.iter().filter(|step| step.version > from && step.version <= to) {
            let mut sql = String::from("BEGIN;\n");
            if step.version == 1 {
                sql.push_str(
                    &self.dialect("CREATE TABLE schema_steps (version {int} PRIMARY KEY);\n"),
                );
            }
            sql.push_str(&self.dialect(step.sql));
            let _ = write!(sql, "INSERT INTO schema_steps VALUES ({});\nCOMMIT;", step.version);
            raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await.map_err(&failed)?;
        }
        Ok(())
    }

    fn dialect(&self, sql: &str) -> String {
        let (int, text, strict, keyed) = match self.backend {
            Backend::Sqlite => ("INTEGER", "TEXT", " STRICT", " STRICT, WITHOUT ROWID"),
            Backend::Postgres => ("BIGINT", "TEXT COLLATE \"C\"", "", ""),
        };
        let sql = sql.replace("{int}", int).replace("{text}", text);
        sql.replace("{strict}", strict).replace("{keyed}", keyed)
    }
}

impl Backend {
    /// Converts the placeholders `?` to those of this database. The statement has no other `?`.
    pub fn sql(self, sql: &'static str) -> Cow<'static, str> {
        match self {
            Backend::Sqlite => Cow::Borrowed(sql),
            Backend::Postgres => Cow::Owned(numbered(sql)),
        }
    }

    /// The same, for a generated statement.
    pub fn sql_of(self, sql: String) -> String {
        match self {
            Backend::Sqlite => sql,
            Backend::Postgres => numbered(&sql),
        }
    }
}

fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 32);
    let mut number = 0;
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            number += 1;
            let _ = write!(out, "${number}");
        }
        out.push_str(part);
    }
    out
}

/// Creates a SQLite file that only its owner can read. SQLite creates the files beside it with the
/// same mode.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match opened {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
