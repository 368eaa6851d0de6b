//! Writing a batch.

use super::Writer;
use super::head::Head;
use crate::audit_keys::AuditKeys;
use crate::batch::{Batch, Change, RowChange};
use crate::error::{Error, Result};
use crate::rows::seals::Seal;
use crate::rows::{AuditRow, CostRecord, EVENTS, JobRow, LeaseRow, chain};
use crate::table::{Existing, Row, Unwritten};
use crate::value::{Field, Value};
use berth_model::Stamped;
use sqlx::AnyConnection;
use std::collections::BTreeMap;

const WRITE: &str = "write a batch";

/// A batch of so many rows more may take that much longer: all running jobs are billed at once.
const ROWS_IN_TIME: usize = 10_000;

impl Writer {
    /// Writes a batch in one transaction: all of it or nothing. When this returns, it is on disk.
    ///
    /// An error means that nothing was written, with one exception: after
    /// [`Error::Unresolved`], and after the future was dropped, it is not known before
    /// [`Writer::recover`] has found out.
    pub async fn commit(&mut self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let factor = u32::try_from(1 + batch.len() / ROWS_IN_TIME).unwrap_or(u32::MAX);
        self.patiently(WRITE, factor, async |writer| writer.commit_now(batch).await).await
    }

    async fn commit_now(&mut self, batch: &Batch) -> Result<()> {
        self.check_sequence(&batch.events)?;
        batch.changes.iter().try_for_each(Change::check)?;
        let last_cost = self.head.cost_id;
        let mut next = self.head.next();
        next.last_seq += batch.events.len() as u64;
        next.cost_id += batch.costs.len() as u64;
        let audit = chained(batch, &mut next, self.store.audit_keys());
        self.begin(WRITE, &next).await?;
        match write(self.transaction(), batch, audit, last_cost).await {
            Ok(()) => self.finish(WRITE, next).await,
            Err(why) => Err(self.unwritten(WRITE, why).await),
        }
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

/// The entries as rows, each with the hash of the one before it. The last one has the seals of all
/// rights that change with the batch.
fn chained(batch: &Batch, next: &mut Head, keys: &AuditKeys) -> Vec<AuditRow> {
    let seals = batch.seals();
    let last = batch.audit.len().saturating_sub(1);
    let chained = batch.audit.iter().enumerate().map(|(at, entry)| {
        next.audit_seq += 1;
        let seals: &[Seal] = if at == last { &seals } else { &[] };
        let row = chain(next.audit_seq, next.audit_hash.clone(), entry.clone(), seals, keys);
        next.audit_hash.clone_from(&row.hash);
        row
    });
    chained.collect()
}

async fn write(
    connection: &mut AnyConnection,
    batch: &Batch,
    audit: Vec<AuditRow>,
    last_cost: u64,
) -> Result<(), Unwritten> {
    EVENTS.insert(connection, batch.events.iter().map(event), Existing::Refuse).await?;
    replace(connection, &batch.jobs).await?;
    replace(connection, &batch.leases).await?;
    let costs = batch.costs.iter().enumerate().map(|(before, cost)| {
        let id = last_cost + 1 + before as u64;
        Ok(CostRecord { id, ..cost.clone() }.values())
    });
    CostRecord::TABLE.insert(connection, costs, Existing::Refuse).await?;
    JobRow::TABLE.spend(connection, &batch.spent.jobs).await?;
    LeaseRow::TABLE.spend(connection, &batch.spent.leases).await?;
    add(connection, &audit).await?;
    add(connection, &batch.idempotency).await?;
    replace(connection, &batch.notices).await?;
    for Change { table, what, .. } in &batch.changes {
        match what {
            RowChange::Put(row) => {
                let row = std::iter::once(Ok(row.clone()));
                table.insert(connection, row, Existing::Replace).await?;
            }
            RowChange::Delete(key) => table.delete(connection, key.clone()).await?,
        }
    }
    Ok(())
}

async fn add<R: Row>(connection: &mut AnyConnection, rows: &[R]) -> Result<(), Unwritten> {
    R::TABLE.insert(connection, rows.iter().map(|row| Ok(row.values())), Existing::Refuse).await
}

async fn replace<R: Row>(connection: &mut AnyConnection, rows: &[R]) -> Result<(), Unwritten> {
    let rows = newest(rows).into_iter().map(|row| Ok(row.values()));
    R::TABLE.insert(connection, rows, Existing::Replace).await
}

/// The last row of each key, as PostgreSQL refuses to replace a row twice in one statement.
fn newest<R: Row>(rows: &[R]) -> Vec<&R> {
    if rows.is_sorted_by(|one, next| one.key() < next.key()) {
        return rows.iter().collect();
    }
    let by_key: BTreeMap<Vec<Value>, &R> = rows.iter().map(|row| (row.key(), row)).collect();
    by_key.into_values().collect()
}

fn event(stamped: &Stamped) -> Result<Vec<Value>> {
    let body = serde_json::to_string(&stamped.event)
        .map_err(|error| Error::Encode { what: "an event", why: error.to_string() })?;
    let mut row = Vec::with_capacity(EVENTS.columns.len());
    stamped.seq.write(&mut row);
    stamped.at.write(&mut row);
    row.push(Value::Text(Some(body)));
    Ok(row)
}
