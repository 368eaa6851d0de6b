//! Letting go of what is old, and of no sum.

use super::Writer;
use crate::error::Result;
use crate::value::{Binds, Value};
use berth_model::{Span, Time};
use sqlx::AnyConnection;
use sqlx::{Row, query_with};

const RETAIN: &str = "delete old rows";

/// What one step of [`Writer::retain`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    pub events: u64,
    pub leases: u64,
    /// Rows of cost that became part of a day's total.
    pub costs: u64,
    /// Whether there is more to do.
    pub more: bool,
}

/// The end of the events that may go: those before the time that all kept snapshots cover.
const EVENTS_END: &str = "SELECT MIN(seq) FROM (\
     SELECT MIN(seq) + $2 AS seq FROM events \
     UNION ALL SELECT MIN(seq) FROM events WHERE at >= $1 \
     UNION ALL SELECT COALESCE(MIN(seq), 0) + 1 FROM snapshots) AS bounds";

/// Rows of cost that are old, and whose job will get no more of them.
const OLD_COSTS: &str = "id IN (SELECT c.id FROM costs AS c \
     LEFT JOIN jobs AS j ON j.id = c.job AND j.element = c.element \
     WHERE c.\"from\" < $1 AND (c.job IS NULL OR j.ended < $1) ORDER BY c.id LIMIT $2)";

const KEYS: &str = "day, job, element, team, project, experiment, \"user\", kind";

const OLD_LEASES: &str = "DELETE FROM leases WHERE (job, element, task, attempt) IN (\
     SELECT l.job, l.element, l.task, l.attempt FROM leases AS l \
     JOIN jobs AS j ON j.id = l.job AND j.element = l.element \
     WHERE l.closed < $1 AND j.ended < $1 LIMIT $2)";

impl Writer {
    /// Lets go of what is older than `before`, up to `limit` rows of each kind; call it until
    /// nothing is left. That is: events that every kept snapshot covers; leases and cost rows of
    /// jobs that have ended, the latter added up by day, so that no sum over whole days changes;
    /// answers kept for requests that may come again, and notices that were sent. Jobs and the
    /// audit log stay.
    ///
    /// `before` is rounded down to a day (in UTC), so that no day is added up in part.
    pub async fn retain(&mut self, before: Time, limit: u32) -> Result<Retained> {
        let day = Span::days(1).0;
        let before = Time(before.0.div_euclid(day) * day);
        self.patiently(RETAIN, 6, async |writer| writer.retain_now(before, limit).await).await
    }

    async fn retain_now(&mut self, before: Time, limit: u32) -> Result<Retained> {
        let next = self.head.next();
        self.begin(RETAIN, &next).await?;
        match let_go(self.transaction(), before, limit).await {
            Ok(retained) => {
                self.finish(RETAIN, next).await?;
                Ok(retained)
            }
            Err(source) => Err(self.failed(RETAIN, source).await),
        }
    }
}

async fn let_go(
    connection: &mut AnyConnection,
    before: Time,
    limit: u32,
) -> sqlx::Result<Retained> {
    let bounds = [before.0, i64::from(limit)];
    let events = drop_events(connection, bounds).await?;
    let costs = fold_costs(connection, bounds).await?;
    let leases = execute(connection, OLD_LEASES, &bounds).await?;
    let before = &bounds[..1];
    let energy = fold_energy(connection, bounds[0]).await?;
    execute(connection, "DELETE FROM idempotency WHERE at < $1", before).await?;
    execute(connection, "DELETE FROM notices WHERE sent < $1", before).await?;
    let more = [events, costs, leases].into_iter().any(|rows| rows >= u64::from(limit));
    Ok(Retained { events, leases, costs, more: more || energy > 0 })
}

async fn drop_events(connection: &mut AnyConnection, bounds: [i64; 2]) -> sqlx::Result<u64> {
    let end = query_with(EVENTS_END, binds(&bounds).into_arguments());
    let end: Option<i64> = end.fetch_one(&mut *connection).await?.try_get(0)?;
    let Some(end) = end else {
        return Ok(0);
    };
    execute(connection, "DELETE FROM events WHERE seq < $1", &[end]).await
}

async fn fold_costs(connection: &mut AnyConnection, bounds: [i64; 2]) -> sqlx::Result<u64> {
    let day = Span::days(1).0;
    let add = format!(
        "INSERT INTO cost_totals ({KEYS}, amount, gpu_us) \
         SELECT \"from\" / {day}, COALESCE(job, -1), COALESCE(element, -1), team, project, \
         experiment, \"user\", kind, CAST(SUM(amount) AS BIGINT), \
         CAST(SUM(gpus * (\"to\" - \"from\")) AS BIGINT) \
         FROM costs WHERE {OLD_COSTS} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 \
         ON CONFLICT ({KEYS}) DO UPDATE SET amount = cost_totals.amount + excluded.amount, \
         gpu_us = cost_totals.gpu_us + excluded.gpu_us"
    );
    execute(connection, &add, &bounds).await?;
    // The same rows: nothing else can change within the transaction.
    execute(connection, &format!("DELETE FROM costs WHERE {OLD_COSTS}"), &bounds).await
}

/// Makes one row of those of the oldest day that still has several for a lease. It begins with the
/// day, and does not say any more where the counters stood.
async fn fold_energy(connection: &mut AnyConnection, before: i64) -> sqlx::Result<u64> {
    let day = Span::days(1).0;
    let oldest = format!("SELECT MIN(start) FROM energy WHERE start < $1 AND start % {day} <> 0");
    let oldest = query_with(sqlx::AssertSqlSafe(oldest), binds(&[before]).into_arguments());
    let oldest: Option<i64> = oldest.fetch_one(&mut *connection).await?.try_get(0)?;
    let Some(oldest) = oldest else { return Ok(0) };
    let start = oldest.div_euclid(day) * day;
    let bounds = [start, start + day];
    let which = "start > $1 AND start < $2";
    let add = format!(
        "INSERT INTO energy (job, element, task, attempt, start, \"end\", energy_mj, counters) \
         SELECT job, element, task, attempt, CAST($1 AS BIGINT), MAX(\"end\"), \
         CAST(SUM(energy_mj) AS BIGINT), '' \
         FROM energy WHERE {which} GROUP BY job, element, task, attempt \
         ON CONFLICT (job, element, task, attempt, start) DO UPDATE SET \
         energy_mj = energy.energy_mj + excluded.energy_mj, \"end\" = excluded.\"end\""
    );
    execute(connection, &add, &bounds).await?;
    execute(connection, &format!("DELETE FROM energy WHERE {which}"), &bounds).await
}

async fn execute(connection: &mut AnyConnection, sql: &str, bounds: &[i64]) -> sqlx::Result<u64> {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    let done = query_with(sql, binds(bounds).into_arguments()).execute(connection).await?;
    Ok(done.rows_affected())
}

fn binds(numbers: &[i64]) -> Binds {
    let mut binds = Binds::default();
    binds.push_all(numbers.iter().map(|number| Value::Int(Some(*number))));
    binds
}
