//! Opening a database, and reading from it.

use crate::address::{Address, Backend};
use crate::audit_keys::AuditKeys;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::lock::Lock;
use crate::schema;
use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::{AnyConnection, AnyPool, Connection, Row, query, raw_sql};
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Options {
    /// Connections for reading. The writer has one of its own.
    pub readers: u32,
    /// How long to wait for a server that does not answer.
    pub timeout: Duration,
    /// How long a reader waits for a connection; a request waits for the reader.
    pub acquire_timeout: Duration,
    /// What the audit log is signed with. Rows are not signed where there are none.
    pub audit_keys: AuditKeys,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            readers: 4,
            timeout: Duration::from_secs(10),
            acquire_timeout: Duration::from_secs(3),
            audit_keys: AuditKeys::default(),
        }
    }
}

/// An open database. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    readers: AnyPool,
}

struct Inner {
    address: Address,
    options: Options,
    /// Of a SQLite database.
    files: Option<Files>,
    /// Why the database is lost, once somebody has found out.
    lost: watch::Sender<Option<String>>,
    /// Where the audit log ends, as the writer of this process left it.
    audit_end: watch::Sender<Option<AuditEnd>>,
}

/// Where the audit log ends.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AuditEnd {
    pub seq: u64,
    pub hash: String,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.address).finish()
    }
}

impl Store {
    /// Opens the database at `url` and brings its schema up to date. A SQLite file is created
    /// where there is none, readable by its owner only, and looked through for damage.
    ///
    /// Bringing the schema up to date takes the writer's lock: it fails while a server of an
    /// older version still writes.
    pub async fn open(url: &str, options: Options) -> Result<Store> {
        let store = Store::open_as_is(url, options).await?;
        let mut connection = store.connect().await?;
        if store.backend() == Backend::Sqlite {
            store.look_for_damage(&mut connection).await?;
        }
        let version = store.version(&mut connection).await?;
        if version < schema::NEWEST {
            store.upgrade(&mut connection, schema::NEWEST).await?;
        }
        // It has served; how it ends is of no consequence.
        let _ = connection.close().await;
        Ok(store)
    }

    /// Opens it with whatever schema it has.
    pub(crate) async fn open_as_is(url: &str, options: Options) -> Result<Store> {
        install_default_drivers();
        let address = Address::parse(url)?;
        if let Some(path) = &address.path {
            create_private(path)?;
        }
        let readers = pool(&address, &options, options.readers);
        let files = address.path.as_deref().map(Files::of);
        let ((lost, _), (audit_end, _)) = (watch::channel(None), watch::channel(None));
        let inner = Inner { address, options, files, lost, audit_end };
        Ok(Store { inner: Arc::new(inner), readers })
    }

    /// The same database, read by a connection of its own: whoever reads by it waits for no
    /// reader of the others.
    pub fn with_own_reader(&self) -> Store {
        let readers = pool(&self.inner.address, &self.inner.options, 1);
        Store { inner: self.inner.clone(), readers }
    }

    /// Takes the schema to a version, unless another process has done so in the meantime.
    pub(crate) async fn upgrade(&self, connection: &mut AnyConnection, to: i64) -> Result<()> {
        let lock = Lock::take(&self.inner.address, connection).await?;
        let from = self.version(connection).await?;
        let database = self.database();
        let upgraded = schema::migrate(connection, self.backend(), database, (from, to)).await;
        lock.release(connection).await;
        upgraded
    }

    pub(crate) async fn version(&self, connection: &mut AnyConnection) -> Result<i64> {
        schema::version(connection, self.backend(), self.database()).await
    }

    async fn look_for_damage(&self, connection: &mut AnyConnection) -> Result<()> {
        let failed = |source| self.error("look through it for damage", source);
        let row = query("PRAGMA quick_check(1)").fetch_one(connection).await.map_err(failed)?;
        let verdict: String = row.try_get(0).map_err(failed)?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(Error::Corrupt { database: self.database().to_owned(), detail: verdict })
    }

    /// A connection of its own, for writing.
    pub(crate) async fn connect(&self) -> Result<AnyConnection> {
        let connecting = async {
            let mut connection = AnyConnection::connect_with(&self.inner.address.connect).await?;
            prepare(&mut connection, self.backend(), Use::Writing).await?;
            Ok(connection)
        };
        match tokio::time::timeout(self.timeout(), connecting).await {
            Ok(connected) => {
                let connected = connected.map_err(|source| self.error("connect", source))?;
                // Another file may have taken its place since the last connection.
                self.check_files()?;
                Ok(connected)
            }
            Err(_) => {
                Err(Error::Silent { database: self.database().to_owned(), action: "connect" })
            }
        }
    }

    pub fn backend(&self) -> Backend {
        self.inner.address.backend
    }

    /// The address, without a password.
    pub fn database(&self) -> &str {
        &self.inner.address.shown
    }

    /// Ends the connections for reading.
    pub async fn close(&self) {
        self.readers.close().await;
    }

    pub fn audit_keys(&self) -> &AuditKeys {
        &self.inner.options.audit_keys
    }

    /// Where the audit log ends, after every commit of this process that added to it. It comes
    /// from memory, not from the database.
    pub fn follow_audit_end(&self) -> watch::Receiver<Option<AuditEnd>> {
        self.inner.audit_end.subscribe()
    }

    pub(crate) fn set_audit_end(&self, end: AuditEnd) {
        let set = |now: &mut Option<AuditEnd>| {
            let is_news = now.as_ref() != Some(&end);
            *now = Some(end);
            is_news
        };
        self.inner.audit_end.send_if_modified(set);
    }

    pub(crate) fn address(&self) -> &Address {
        &self.inner.address
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.inner.options.timeout
    }

    pub(crate) fn readers(&self) -> &AnyPool {
        &self.readers
    }

    pub(crate) fn files(&self) -> Option<&Files> {
        self.inner.files.as_ref()
    }

    pub(crate) fn lost_sender(&self) -> &watch::Sender<Option<String>> {
        &self.inner.lost
    }

    pub(crate) fn unreadable(&self, what: impl Into<String>, why: impl ToString) -> Error {
        Error::Decode {
            database: self.database().to_owned(),
            what: what.into(),
            why: why.to_string(),
        }
    }
}

/// Connections for reading, made as they are needed.
fn pool(address: &Address, options: &Options, most: u32) -> AnyPool {
    let backend = address.backend;
    AnyPoolOptions::new()
        .max_connections(most.max(1))
        .acquire_timeout(options.acquire_timeout)
        .after_connect(move |connection, _| {
            Box::pin(async move { prepare(connection, backend, Use::Reading).await })
        })
        .connect_lazy_with(address.connect.clone())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Reading,
    Writing,
}

/// What has to be said on every new connection. A commit is durable when it returns, whatever the
/// server's own setting: `synchronous = FULL` and `synchronous_commit = on`.
async fn prepare(connection: &mut AnyConnection, backend: Backend, use_: Use) -> sqlx::Result<()> {
    let sql = match (backend, use_) {
        (Backend::Sqlite, Use::Writing) => {
            "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA foreign_keys = ON;"
        }
        (Backend::Sqlite, Use::Reading) => "PRAGMA busy_timeout = 10000; PRAGMA query_only = ON;",
        (Backend::Postgres, Use::Writing) => "SET synchronous_commit = on",
        (Backend::Postgres, Use::Reading) => "SET default_transaction_read_only = on",
    };
    raw_sql(sql).execute(connection).await.map(drop)
}

/// SQLite gives the files beside the database the same permissions.
fn create_private(path: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io("create the database", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_a_reader_of_their_own_waits_for_no_other_reader() {
        let folder = tempfile::tempdir().unwrap();
        let url = crate::sqlite_url(&folder.path().join("berth.db"));
        let acquire_timeout = Duration::from_millis(50);
        let options = Options { readers: 2, acquire_timeout, ..Options::default() };
        let store = Store::open(&url, options).await.unwrap();
        let own = store.with_own_reader();
        let _busy = (store.readers().acquire().await, store.readers().acquire().await);
        assert!(store.audit_end().await.is_err(), "all readers are busy");
        assert_eq!(own.audit_end().await.unwrap().seq, 0);
    }
}
