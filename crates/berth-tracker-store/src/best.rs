//! The best values of runs, and when they reached a goal.

use crate::error::failed;
use crate::read::Reader;
use crate::rows::{Bind, arguments, numbers};
use berth_tracker::{Best, BestQuery, Error, ReachedQuery, value};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row, query_with};

/// The maximum number of runs in one statement.
const MOST_NUMBERS: usize = 1000;

impl Reader<'_> {
    pub async fn bests(&self, query: BestQuery<'_>) -> Result<Vec<Best>, Error> {
        let best = if query.higher { "MAX(value)" } else { "MIN(value)" };
        let read = self.of_points(query, best, "", None).await;
        let read = read.and_then(|rows| {
            let best = |row: &AnyRow| Ok(Best { run: row.try_get(0)?, value: row.try_get(1)? });
            rows.iter().map(best).collect()
        });
        read.map_err(|error| failed("read the best values of runs", &error))
    }

    pub async fn reached(&self, query: ReachedQuery<'_>) -> Result<Vec<(i64, i64)>, Error> {
        let term = if query.of.higher { " AND value >= ?" } else { " AND value <= ?" };
        let read = self.of_points(query.of, "MIN(at)", term, Some(query.goal)).await;
        let read = read.and_then(|rows| {
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        });
        read.map_err(|error| failed("read when runs reached a goal", &error))
    }

    /// One value for each run with such points, in any order.
    async fn of_points(
        &self,
        query: BestQuery<'_>,
        figure: &str,
        term: &str,
        bound: Option<i64>,
    ) -> sqlx::Result<Vec<AnyRow>> {
        let sql = "SELECT no FROM metric_keys WHERE experiment = ? AND name = ?";
        let binds = vec![Bind::Int(query.experiment), Bind::from(query.key)];
        let keys = self.rows(sql, binds).await?;
        let Some(key) = keys.first() else { return Ok(Vec::new()) };
        let key: i64 = key.try_get(0)?;
        let mut found = Vec::new();
        for some in query.runs.chunks(MOST_NUMBERS) {
            let sql = format!(
                "SELECT run, {figure} FROM points WHERE run IN ({}) AND key = ? AND value < ?{term} \
                 GROUP BY run",
                numbers(some)
            );
            let mut binds = vec![Bind::Int(key), Bind::Int(value::NAN)];
            binds.extend(bound.map(Bind::Int));
            let sql = AssertSqlSafe(self.backend.sql_of(sql));
            let rows = query_with(sql, arguments(binds)).persistent(false);
            found.extend(rows.fetch_all(self.pool).await?);
        }
        Ok(found)
    }
}
