//! Writing a batch.

use super::Writer;
use super::head::Head;
use crate::batch::{Batch, Change, What};
use crate::error::{Error, Result};
use crate::rows::{AuditRow, CostRow, EVENTS, IdempotencyRow, JobRow, LeaseRow, NoticeRow, chain};
use crate::table::{Existing, Row, Table};
use crate::value::{Field, Value};
use berth_model::Stamped;
use sqlx::AnyConnection;

const WRITE: &str = "write a batch";

impl Writer {
    /// Writes a batch in one transaction: all of it or nothing. When this returns, it is on disk.
    ///
    /// An error means that nothing was written, with one exception: after
    /// [`Error::Unresolved`], and after the future was dropped, nobody knows until
    /// [`Writer::recover`] has found out.
    pub async fn commit(&mut self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.patiently(WRITE, 1, async |writer| writer.commit_now(batch).await).await
    }

    async fn commit_now(&mut self, batch: &Batch) -> Result<()> {
        self.check_sequence(&batch.events)?;
        let (next, writes) = encode(batch, &self.head)?;
        self.begin(WRITE, &next).await?;
        if let Err(source) = write(self.transaction(), writes, &batch.changes).await {
            return Err(self.failed(WRITE, source).await);
        }
        self.finish(WRITE, next).await
    }

    fn check_sequence(&self, events: &[Stamped]) -> Result<()> {
        for (expected, event) in (self.head.last_seq + 1..).zip(events) {
            if event.seq != expected {
                let database = self.database();
                return Err(Error::Sequence { database, expected, found: event.seq });
            }
        }
        Ok(())
    }
}

/// Rows for one table.
struct Write {
    table: Table,
    rows: Vec<Vec<Value>>,
    existing: Existing,
}

/// Turns a batch into rows, and says where the log stands after them. Rows are looked at before
/// anything is written, so that one that cannot be kept costs no transaction.
fn encode(batch: &Batch, head: &Head) -> Result<(Head, Vec<Write>)> {
    let mut next = head.next();
    let events = batch.events.iter().map(encode_event).collect::<Result<_>>()?;
    next.last_seq += batch.events.len() as u64;
    let costs = batch.costs.iter().map(|cost| {
        next.cost_id += 1;
        CostRow { id: next.cost_id, ..cost.clone() }.values()
    });
    let costs = costs.collect();
    let audit = batch.audit.iter().map(|entry| {
        next.audit_seq += 1;
        let row = chain(next.audit_seq, next.audit_hash.clone(), entry.clone());
        next.audit_hash.clone_from(&row.hash);
        row.values()
    });
    let audit = audit.collect();
    let writes = vec![
        Write { table: EVENTS, rows: events, existing: Existing::Refuse },
        Write { table: JobRow::TABLE, rows: values(&batch.jobs), existing: Existing::Replace },
        Write { table: LeaseRow::TABLE, rows: values(&batch.leases), existing: Existing::Replace },
        Write { table: CostRow::TABLE, rows: costs, existing: Existing::Refuse },
        Write { table: AuditRow::TABLE, rows: audit, existing: Existing::Refuse },
        Write {
            table: IdempotencyRow::TABLE,
            rows: values(&batch.idempotency),
            existing: Existing::Refuse,
        },
        Write {
            table: NoticeRow::TABLE,
            rows: values(&batch.notices),
            existing: Existing::Replace,
        },
    ];
    for write in &writes {
        write.rows.iter().try_for_each(|row| write.table.keepable(row))?;
    }
    batch.changes.iter().try_for_each(Change::check)?;
    Ok((next, writes))
}

fn encode_event(stamped: &Stamped) -> Result<Vec<Value>> {
    let body = serde_json::to_string(&stamped.event)
        .map_err(|error| Error::Encode { what: "an event", why: error.to_string() })?;
    let mut row = Vec::with_capacity(EVENTS.columns.len());
    stamped.seq.write(&mut row);
    stamped.at.write(&mut row);
    body.write(&mut row);
    Ok(row)
}

fn values<R: Row>(rows: &[R]) -> Vec<Vec<Value>> {
    rows.iter().map(R::values).collect()
}

async fn write(
    connection: &mut AnyConnection,
    writes: Vec<Write>,
    changes: &[Change],
) -> sqlx::Result<()> {
    for Write { table, rows, existing } in writes {
        table.insert(connection, rows, existing).await?;
    }
    for Change { table, what } in changes {
        match what {
            What::Put(row) => {
                table.insert(connection, vec![row.clone()], Existing::Replace).await?;
            }
            What::Delete(key) => table.delete(connection, key.clone()).await?,
        }
    }
    Ok(())
}
