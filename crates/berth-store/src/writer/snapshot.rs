//! Keeping the whole state, so that a start need not read the whole log.

use super::Writer;
use crate::error::{Error, Result};
use crate::rows::SNAPSHOTS;
use crate::table::Existing;
use crate::value::{Binds, Field, Value};
use berth_model::Snapshot;
use sqlx::query_with;

const WRITE: &str = "write a snapshot";

/// The newest, and the one before as a second chance.
const KEPT: i64 = 2;

impl Writer {
    /// Keeps a snapshot of the state as it was after an event of the log.
    pub async fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.seq > self.head.last_seq {
            return Err(Error::Sequence {
                database: self.database(),
                expected: self.head.last_seq,
                found: snapshot.seq,
            });
        }
        let body = serde_json::to_string(snapshot)
            .map_err(|error| Error::Encode { what: "a snapshot", why: error.to_string() })?;
        let mut row = Vec::new();
        snapshot.seq.write(&mut row);
        snapshot.now.write(&mut row);
        // Moved, not copied: that of a large cluster is tens of megabytes.
        row.push(Value::Text(Some(body)));
        self.patiently(WRITE, 6, async |writer| writer.snapshot_now(row).await).await
    }

    async fn snapshot_now(&mut self, row: Vec<Value>) -> Result<()> {
        let next = self.head.next();
        self.begin(WRITE, &next).await?;
        let connection = self.transaction();
        let written = async {
            let row = std::iter::once(Ok(row));
            SNAPSHOTS.insert(connection, row, Existing::Replace).await?;
            let sql = "DELETE FROM snapshots WHERE seq NOT IN \
                       (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT $1)";
            let mut binds = Binds::default();
            binds.push(Value::Int(Some(KEPT)));
            query_with(sql, binds.into_arguments()).execute(connection).await?;
            Ok(())
        };
        if let Err(why) = written.await {
            return Err(self.unwritten(WRITE, why).await);
        }
        self.finish(WRITE, next).await
    }
}
