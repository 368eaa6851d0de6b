//! Keeping the whole state, so that a start need not read the whole log.

use super::Writer;
use crate::error::{Error, Result};
use crate::rows::{SNAPSHOT_PARTS, SNAPSHOTS};
use crate::table::Existing;
use crate::value::{Binds, Field, Value};
use berth_model::{JobId, JobSnapshot, Snapshot};
use serde::Serialize;
use sqlx::query_with;

const WRITE: &str = "write a snapshot";

/// The newest, and the one before as a second chance.
const KEPT: i64 = 2;

/// Parts of snapshots that are no longer there.
const STRAY: &str = "DELETE FROM snapshot_parts WHERE seq NOT IN (SELECT seq FROM snapshots)";

impl Writer {
    /// Keeps a snapshot of the state as it was after an event of the log. The jobs that it lacks
    /// are asked for some at a time, as those after one, in the order of their ids: all of a large
    /// cluster are tens of megabytes. They may not change meanwhile.
    pub async fn snapshot(
        &mut self,
        outline: &Snapshot,
        jobs: impl Fn(Option<JobId>) -> Vec<JobSnapshot> + Sync,
    ) -> Result<()> {
        if outline.seq > self.head.last_seq {
            return Err(Error::Sequence {
                database: self.database(),
                expected: self.head.last_seq,
                found: outline.seq,
            });
        }
        self.patiently(WRITE, 6, async |writer| writer.snapshot_now(outline, &jobs).await).await
    }

    async fn snapshot_now(
        &mut self,
        outline: &Snapshot,
        jobs: &(impl Fn(Option<JobId>) -> Vec<JobSnapshot> + Sync),
    ) -> Result<()> {
        let next = self.head.next();
        self.begin(WRITE, &next).await?;
        let connection = self.transaction();
        let written = async {
            let (mut parts, mut some) = (0_u64, jobs(None));
            while let Some(last) = some.last() {
                let after = last.id();
                let part = row(outline.seq, &parts, &some);
                SNAPSHOT_PARTS.insert(connection, std::iter::once(part), Existing::Replace).await?;
                parts += 1;
                some = jobs(Some(after));
            }
            let head = row(outline.seq, &outline.now, outline).map(|mut row| {
                parts.write(&mut row);
                row
            });
            SNAPSHOTS.insert(connection, std::iter::once(head), Existing::Replace).await?;
            let sql = "DELETE FROM snapshots WHERE seq NOT IN \
                       (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT $1)";
            let mut binds = Binds::default();
            binds.push(Value::Int(Some(KEPT)));
            query_with(sql, binds.into_arguments()).execute(&mut *connection).await?;
            query_with(STRAY, Binds::default().into_arguments()).execute(connection).await?;
            Ok(())
        };
        if let Err(why) = written.await {
            return Err(self.unwritten(WRITE, why).await);
        }
        self.finish(WRITE, next).await
    }
}

/// The first columns of a row, the last of which is its body.
fn row(seq: u64, second: &impl Field, body: &impl Serialize) -> Result<Vec<Value>> {
    let body = serde_json::to_string(body)
        .map_err(|error| Error::Encode { what: "a snapshot", why: error.to_string() })?;
    let mut row = Vec::new();
    seq.write(&mut row);
    second.write(&mut row);
    // Moved, not copied.
    row.push(Value::Text(Some(body)));
    Ok(row)
}
