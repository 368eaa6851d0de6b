//! The one who writes.

mod commit;
mod head;
mod retain;
mod snapshot;

#[cfg(test)]
mod tests;

pub use retain::Retained;

use crate::address::Backend;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::store::{AuditEnd, Store};
use crate::table::Unwritten;
use crate::value::{Binds, Value};
use head::Head;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use sqlx::{Connection, Row, query, query_with};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The right to write. There is one at a time for each database.
///
/// Two things hold that together. A lock keeps a second server from starting. And a number, the
/// epoch, which each new writer raises and each transaction is conditional on, stops a writer
/// that has lost its lock without noticing.
///
/// After an error that may pass ([`Error::retry`]) the same writer can be used again: it connects
/// anew, takes its lock again, and makes sure that no other process has written in between.
pub struct Writer {
    store: Store,
    connection: Option<AnyConnection>,
    /// Of a SQLite database; it is kept over connections.
    file_lock: Option<Lock>,
    epoch: i64,
    head: Head,
    standing: CommitState,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Writer { store, epoch, head, standing, .. } = self;
        let mut out = f.debug_struct("Writer");
        out.field("store", store).field("epoch", epoch).field("head", head);
        out.field("standing", standing).finish_non_exhaustive()
    }
}

/// How far the last transaction got, also when its future was dropped half-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitState {
    /// It is over, and what it did is known.
    Settled,
    /// It was begun. Its commit was not asked for, so it changes nothing.
    Begun,
    /// Its commit was asked for, and no answer came.
    InDoubt,
}

/// What [`Writer::recover`] found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the transaction that was in doubt took place.
    pub applied: bool,
    /// The last event of the log.
    pub last_seq: u64,
}

impl Store {
    /// Where the log stands, if the epoch is still this one. Belongs to the store because a
    /// connection cannot be looked at by two threads, so neither can a writer.
    async fn read_head(&self, connection: &mut AnyConnection, epoch: i64) -> Result<Head> {
        let row = self.read_head_row(connection).await;
        let row = row.map_err(|source| self.error("read where its log ends", source))?;
        let (found, head) = Head::read(&row).map_err(|why| self.unreadable("the log", why))?;
        if found != epoch {
            let holder = row.try_get::<String, _>("holder").unwrap_or_default();
            return Err(Error::Fenced { database: self.database().to_owned(), holder });
        }
        Ok(head)
    }

    async fn read_head_row(&self, connection: &mut AnyConnection) -> sqlx::Result<AnyRow> {
        query(self.begin_sql()).execute(&mut *connection).await?;
        let row = query(Head::SELECT).fetch_one(&mut *connection).await?;
        query("COMMIT").execute(connection).await?;
        Ok(row)
    }

    fn begin_sql(&self) -> &'static str {
        match self.backend() {
            // Waits for its turn here, not at the first write, where waiting may be refused.
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres => "BEGIN",
        }
    }

    /// Becomes the writer. `holder` tells others who it is: a machine and a process, say.
    pub async fn writer(&self, holder: &str) -> Result<Writer> {
        let mut connection = self.connect().await?;
        let lock = Lock::take(self.address(), &mut connection).await?;
        let failed = |source| self.error("become its writer", source);
        let mut binds = Binds::default();
        binds.push(Value::Text(Some(holder.to_owned())));
        // Not RETURNING: the driver would end such a statement before SQLite has committed it.
        query_with("UPDATE log SET epoch = epoch + 1, holder = $1", binds.into_arguments())
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        let row = query(Head::SELECT).fetch_one(&mut connection).await.map_err(failed)?;
        let (epoch, head) = Head::read(&row).map_err(|why| self.unreadable("the log", why))?;
        let file_lock = match lock {
            Lock::File(_) => Some(lock),
            Lock::Connection => None,
        };
        Ok(Writer {
            store: self.clone(),
            connection: Some(connection),
            file_lock,
            epoch,
            head,
            standing: CommitState::Settled,
        })
    }
}

impl Writer {
    /// The last event of the log, as far as this writer knows.
    pub fn last_seq(&self) -> u64 {
        self.head.last_seq
    }

    /// The number of the last row of cost.
    pub fn last_cost(&self) -> u64 {
        self.head.cost_id
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether it is not known what became of the last transaction.
    pub fn is_in_doubt(&self) -> bool {
        self.standing == CommitState::InDoubt
    }

    /// Finds out what became of a transaction that is in doubt. Also good for seeing whether the
    /// database is back, and still ours.
    pub async fn recover(&mut self) -> Result<Recovered> {
        self.drop_connection();
        let head = self.relink().await?;
        let in_doubt = self.standing == CommitState::InDoubt;
        let applied = in_doubt && head.commits == self.head.commits + 1;
        self.head = head;
        self.standing = CommitState::Settled;
        if applied {
            self.tell_audit_end();
        }
        Ok(Recovered { applied, last_seq: self.head.last_seq })
    }

    /// Gives up the right to write.
    pub async fn close(mut self) -> Result<()> {
        self.forget_files();
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        connection.close().await.map_err(|source| self.store.error("close", source))
    }

    /// Sees to it that there is a connection on which a transaction can begin.
    async fn link(&mut self) -> Result<()> {
        match self.standing {
            CommitState::InDoubt => {
                return Err(Error::Unresolved { database: self.database() });
            }
            CommitState::Begun => {
                self.drop_connection();
                self.standing = CommitState::Settled;
            }
            CommitState::Settled => {}
        }
        if self.connection.is_none() {
            self.relink().await?;
        }
        Ok(())
    }

    /// Connects anew, takes the lock again and sees whether the epoch is still ours.
    ///
    /// A connection that was lost may live on at its server for a moment, with the lock and a
    /// transaction that is being committed. So the lock is waited for, and what is stored is read
    /// only under it; on SQLite, where the lock is never lost, in a transaction that waits for
    /// any other.
    async fn relink(&mut self) -> Result<Head> {
        let until = Instant::now() + self.store.timeout();
        let mut connection = self.store.connect().await?;
        while self.file_lock.is_none() {
            match Lock::take(self.store.address(), &mut connection).await {
                Ok(_) => break,
                Err(error @ Error::Locked { .. }) => {
                    self.store.read_head(&mut connection, self.epoch).await?;
                    if Instant::now() >= until {
                        return Err(error);
                    }
                    sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(error),
            }
        }
        let head = self.store.read_head(&mut connection, self.epoch).await?;
        self.connection = Some(connection);
        Ok(head)
    }

    /// Begins a transaction that takes the log to `next`, and changes nothing if the right to
    /// write is lost.
    async fn begin(&mut self, action: &'static str, next: &Head) -> Result<()> {
        self.link().await?;
        // A file that was cut short would grow by this, and look whole again.
        self.store.check_files()?;
        self.standing = CommitState::Begun;
        let begun = self.try_begin(next).await;
        match begun {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.roll_back().await;
                self.link().await?;
                let mut connection = self.connection.take().expect("linked just now");
                self.store.read_head(&mut connection, self.epoch).await?;
                self.connection = Some(connection);
                Err(self.store.unreadable("the log", "another program changed it"))
            }
            Err(source) => Err(self.failed(action, source).await),
        }
    }

    async fn try_begin(&mut self, next: &Head) -> sqlx::Result<bool> {
        let begin = self.store.begin_sql();
        let (epoch, commits) = (self.epoch, self.head.commits);
        let connection = self.transaction();
        query(begin).execute(&mut *connection).await?;
        let advance = query_with(Head::ADVANCE, next.binds(epoch, commits).into_arguments());
        Ok(advance.execute(connection).await?.rows_affected() == 1)
    }

    /// The connection of a transaction that was begun.
    fn transaction(&mut self) -> &mut AnyConnection {
        self.connection.as_mut().expect("a transaction has a connection")
    }

    /// Undoes a transaction after an error.
    async fn failed(&mut self, action: &'static str, source: sqlx::Error) -> Error {
        self.roll_back().await;
        self.store.error(action, source)
    }

    /// Undoes a transaction whose rows could not be written.
    async fn unwritten(&mut self, action: &'static str, why: Unwritten) -> Error {
        match why {
            Unwritten::Database(source) => self.failed(action, source).await,
            Unwritten::Row(error) => {
                self.roll_back().await;
                error
            }
        }
    }

    async fn roll_back(&mut self) {
        if let Some(connection) = self.connection.as_mut()
            && query("ROLLBACK").execute(connection).await.is_err()
        {
            self.drop_connection();
        }
        self.standing = CommitState::Settled;
    }

    /// Ends a transaction. When this returns without an error, it is on disk.
    async fn finish(&mut self, action: &'static str, next: Head) -> Result<()> {
        self.standing = CommitState::InDoubt;
        let committed = query("COMMIT").execute(self.transaction()).await;
        let Err(source) = committed else {
            // A commit to a file that is not there any more succeeds, and nobody finds it again.
            self.check_files()?;
            self.head = next;
            self.standing = CommitState::Settled;
            self.tell_audit_end();
            return Ok(());
        };
        tracing::warn!(database = self.store.database(), error = %source, "a commit was not answered");
        match self.recover().await {
            Ok(Recovered { applied: true, .. }) => Ok(()),
            Ok(Recovered { applied: false, .. }) => Err(self.store.error(action, source)),
            Err(error @ Error::Fenced { .. }) => Err(error),
            Err(_) => Err(Error::Unresolved { database: self.database() }),
        }
    }

    /// Limits how long a server may keep us waiting. A local file answers when the disk does.
    async fn patiently<T>(
        &mut self,
        action: &'static str,
        factor: u32,
        work: impl AsyncFnOnce(&mut Writer) -> Result<T>,
    ) -> Result<T> {
        if self.store.backend() == Backend::Sqlite {
            return work(self).await;
        }
        let limit = self.store.timeout() * factor;
        if let Ok(result) = timeout(limit, work(self)).await {
            return result;
        }
        self.drop_connection();
        match self.standing {
            CommitState::InDoubt => Err(Error::Unresolved { database: self.database() }),
            CommitState::Settled | CommitState::Begun => {
                Err(Error::Silent { database: self.database(), action })
            }
        }
    }

    fn database(&self) -> String {
        self.store.database().to_owned()
    }

    /// Only after a commit: the end must never be told ahead of what is on disk.
    fn tell_audit_end(&self) {
        let Head { audit_seq: seq, audit_hash: hash, .. } = &self.head;
        self.store.set_audit_end(AuditEnd { seq: *seq, hash: hash.clone() });
    }

    fn check_files(&self) -> Result<()> {
        if let Some(files) = self.store.files() {
            files.note_beside();
        }
        self.store.check_files()
    }

    /// SQLite deletes the files beside the database with the last connection to it.
    fn forget_files(&self) {
        if let Some(files) = self.store.files() {
            files.forget_beside();
        }
    }

    fn drop_connection(&mut self) {
        self.forget_files();
        self.connection = None;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.drop_connection();
    }
}
