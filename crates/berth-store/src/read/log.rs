//! The log, for a server that starts.

use crate::error::{Error, Result};
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::{Event, JobSnapshot, Snapshot, Stamped, Time};
use sqlx::any::AnyRow;

/// Events per page: enough that a round trip does not count, few enough to hold in memory.
const PAGE: u32 = 2_000;

/// The newest snapshot, and the events after it page by page.
#[derive(Debug)]
pub struct Loading {
    store: Store,
    /// Taken out by whoever loads it; it may be large.
    pub snapshot: Option<Snapshot>,
    last_seq: u64,
}

impl Store {
    /// Begins to load the state. Only the process that has the writer may call this, so that no other
    /// one writes meanwhile.
    pub async fn load(&self) -> Result<Loading> {
        let sql = "SELECT seq, parts, body FROM snapshots ORDER BY seq DESC LIMIT 1";
        let rows = self.rows("snapshots", sql.to_owned(), Binds::default()).await?;
        let snapshot = match rows.first() {
            Some(row) => Some(self.read_snapshot(row).await?),
            None => None,
        };
        let last_seq = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        Ok(Loading { store: self.clone(), snapshot, last_seq })
    }

    /// Up to `limit` events after the one numbered `after`, in their order.
    pub async fn events(&self, after: u64, limit: u32) -> Result<Vec<Stamped>> {
        let mut binds = Binds::default();
        let mut from = Vec::new();
        after.write(&mut from);
        binds.push_all(from);
        let limit = binds.mark(Value::Int(Some(i64::from(limit))));
        let sql =
            format!("SELECT seq, at, body FROM events WHERE seq > $1 ORDER BY seq LIMIT {limit}");
        let rows = self.rows("events", sql, binds).await?;
        rows.iter().map(|row| self.read_event(row)).collect()
    }

    /// The last event that was ever written. It is remembered when its event is not.
    pub async fn last_seq(&self) -> Result<u64> {
        self.number("SELECT last_seq FROM log").await
    }

    /// The highest number of a job; the next one is above it.
    pub async fn last_job(&self) -> Result<u64> {
        self.number("SELECT COALESCE(MAX(id), 0) FROM jobs").await
    }

    async fn number(&self, sql: &str) -> Result<u64> {
        let rows = self.rows("events", sql.to_owned(), Binds::default()).await?;
        let row = rows.first().ok_or_else(|| self.unreadable("the log", "its row is missing"))?;
        u64::read(&mut Reader::new(row)).map_err(|why| self.unreadable("the log", why))
    }

    fn read_event(&self, row: &AnyRow) -> Result<Stamped> {
        let from = &mut Reader::new(row);
        let bad = |why: &dyn ToString| self.unreadable("an event", why.to_string());
        let seq = u64::read(from).map_err(|why| bad(&why))?;
        let at = Time::read(from).map_err(|why| bad(&why))?;
        let body = String::read(from).map_err(|why| bad(&why))?;
        let event: Event = serde_json::from_str(&body)
            .map_err(|why| self.unreadable(format!("event {seq}"), why))?;
        Ok(Stamped { seq, at, event })
    }

    async fn read_snapshot(&self, row: &AnyRow) -> Result<Snapshot> {
        let (seq, parts, mut snapshot) = {
            let from = &mut Reader::new(row);
            let bad = |why| self.unreadable("a snapshot", why);
            let seq = u64::read(from).map_err(bad)?;
            let parts = u64::read(from).map_err(bad)?;
            let body = String::read(from).map_err(bad)?;
            let snapshot: Snapshot = serde_json::from_str(&body)
                .map_err(|why| self.unreadable(format!("the snapshot at {seq}"), why))?;
            (seq, parts, snapshot)
        };
        for part in 0..parts {
            snapshot.jobs.extend(self.read_part(seq, part).await?);
        }
        Ok(snapshot)
    }

    async fn read_part(&self, seq: u64, part: u64) -> Result<Vec<JobSnapshot>> {
        let mut key = Vec::new();
        seq.write(&mut key);
        part.write(&mut key);
        let mut binds = Binds::default();
        binds.push_all(key);
        let sql = "SELECT body FROM snapshot_parts WHERE seq = $1 AND part = $2";
        let rows = self.rows("snapshots", sql.to_owned(), binds).await?;
        let what = || format!("part {part} of the snapshot at {seq}");
        let row = rows.first().ok_or_else(|| self.unreadable(what(), "it is missing"))?;
        let body = String::read(&mut Reader::new(row));
        let body = body.map_err(|why| self.unreadable(what(), why))?;
        serde_json::from_str(&body).map_err(|why| self.unreadable(what(), why))
    }
}

impl Loading {
    /// The next events; none when all were read. A log with a hole in it is an error.
    pub async fn next_page(&mut self) -> Result<Vec<Stamped>> {
        let page = self.store.events(self.last_seq, PAGE).await?;
        for event in &page {
            self.follow(event.seq)?;
        }
        if page.is_empty() {
            // The log remembers where it ends, also where its last events are missing.
            let end = self.store.last_seq().await?;
            if end != self.last_seq {
                return Err(self.gap(end));
            }
        }
        Ok(page)
    }

    fn follow(&mut self, seq: u64) -> Result<()> {
        if seq != self.last_seq + 1 {
            return Err(self.gap(seq));
        }
        self.last_seq = seq;
        Ok(())
    }

    fn gap(&self, found: u64) -> Error {
        let database = self.store.database().to_owned();
        Error::Gap { database, expected: self.last_seq + 1, found }
    }
}
