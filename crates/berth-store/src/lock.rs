//! Only one server writes. On SQLite that is a lock on a file beside the database, on PostgreSQL
//! one that belongs to a connection; both go when their process goes, however it ends.

use crate::address::Address;
use crate::error::{Error, Result};
use sqlx::AnyConnection;
use sqlx::{Row, query};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(crate) enum Lock {
    File(#[expect(dead_code, reason = "holding it open is its use")] File),
    /// It lives and dies with the connection that took it.
    Connection,
}

/// The name of the lock among all advisory locks of a PostgreSQL database. It depends on the
/// schema, so that two Berths can share a database server and even a database.
const TAKE: &str =
    "SELECT pg_try_advisory_lock(hashtext('berth writer'), hashtext(current_schema()))";
const RELEASE: &str =
    "SELECT pg_advisory_unlock(hashtext('berth writer'), hashtext(current_schema()))";

/// How long a lock that is held is waited for, and between two looks.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

impl Lock {
    /// Takes the lock, or tells who has it.
    pub async fn take(address: &Address, connection: &mut AnyConnection) -> Result<Lock> {
        let taken = match &address.path {
            Some(path) => lock_file(path)?.map(Lock::File),
            None => lock_connection(address, connection).await?.then_some(Lock::Connection),
        };
        match taken {
            Some(lock) => Ok(lock),
            None => Err(Error::Locked {
                database: address.shown.clone(),
                holder: holder(connection).await,
            }),
        }
    }

    pub async fn release(self, connection: &mut AnyConnection) {
        if let Lock::Connection = self {
            // If this fails the connection is gone, and the lock with it.
            let _ = query(RELEASE).execute(connection).await;
        }
    }
}

/// PostgreSQL notices a moment later that the process behind a connection has gone; a server that
/// takes over from a killed one must not be refused for that.
async fn lock_connection(address: &Address, connection: &mut AnyConnection) -> Result<bool> {
    let failed = |source| Error::sql(&address.shown, "take its lock", source);
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let row = query(TAKE).fetch_one(&mut *connection).await.map_err(failed)?;
        let taken = row.try_get::<bool, _>(0).map_err(failed)?;
        if taken || Instant::now() >= deadline {
            return Ok(taken);
        }
        sleep(PAUSE).await;
    }
}

/// Who was last known to write. A database that is only being set up cannot tell.
async fn holder(connection: &mut AnyConnection) -> String {
    let row = query("SELECT holder FROM log").fetch_one(connection).await;
    let holder = row.and_then(|row| row.try_get::<String, _>(0)).unwrap_or_default();
    if holder.is_empty() { "another server".to_owned() } else { holder }
}

fn lock_file(database: &Path) -> Result<Option<File>> {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| Error::io("open the lock file", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", &path, error)),
    }
}
