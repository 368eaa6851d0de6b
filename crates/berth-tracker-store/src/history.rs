//! Points of metrics.

use crate::error::failed;
use crate::read::{Reader, point};
use crate::rows::{Bind, arguments};
use berth_tracker::{Error, HistoryQuery, NewerQuery, Point, RunHead, SampleQuery};
use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Row, query_with};

impl Reader<'_> {
    async fn key(&self, run: &RunHead, name: &str) -> sqlx::Result<Option<i64>> {
        let sql = "SELECT no FROM metric_keys WHERE experiment = ? AND name = ?";
        let rows = self.rows(sql, vec![Bind::Int(run.experiment), Bind::from(name)]).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }

    async fn points(&self, sql: &'static str, binds: Vec<Bind>) -> sqlx::Result<Vec<Point>> {
        let sql = AssertSqlSafe(self.backend.sql(sql));
        let mut rows = query_with(sql, arguments(binds)).fetch(self.pool);
        let mut points = Vec::new();
        while let Some(row) = rows.try_next().await? {
            points.push(point(&row, 0)?);
        }
        Ok(points)
    }

    pub async fn history(&self, query: HistoryQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let (limit, offset) = (query.limit as i64, query.offset.cast_signed());
            let sql = "SELECT step, at, value FROM points WHERE run = ? AND key = ? \
                       ORDER BY step, at, value LIMIT ? OFFSET ?";
            let binds = [query.run.no, key, limit, offset].map(Bind::Int).to_vec();
            self.points(sql, binds).await
        };
        read.await.map_err(|error| failed("read the points of a metric", &error))
    }

    pub async fn newer(&self, query: NewerQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let limit = query.limit as i64;
            let Some((step, at)) = query.after else {
                let sql = "SELECT step, at, value FROM points WHERE run = ? AND key = ? \
                           ORDER BY step, at, value LIMIT ?";
                return self.points(sql, [query.run.no, key, limit].map(Bind::Int).to_vec()).await;
            };
            let sql = "SELECT step, at, value FROM points WHERE run = ? AND key = ? \
                       AND (step > ? OR (step = ? AND at > ?)) ORDER BY step, at, value LIMIT ?";
            let binds = [query.run.no, key, step, step, at, limit].map(Bind::Int).to_vec();
            self.points(sql, binds).await
        };
        read.await.map_err(|error| failed("read the points of a metric", &error))
    }

    /// Every n-th point, and the last.
    pub async fn samples(&self, query: SampleQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let (from, to) = query.steps.unwrap_or((i64::MIN, i64::MAX));
            let binds = || [query.run.no, key, from, to].map(Bind::Int).to_vec();
            let sql = "SELECT COUNT(*) FROM points WHERE run = ? AND key = ? AND step >= ? \
                       AND step <= ?";
            let rows = self.rows(sql, binds()).await?;
            let count: i64 = rows[0].try_get(0)?;
            let most = query.most.max(1) as i64;
            let mut all = binds();
            if count <= most {
                let sql = "SELECT step, at, value FROM points WHERE run = ? AND key = ? \
                           AND step >= ? AND step <= ? ORDER BY step, at, value";
                return self.points(sql, all).await;
            }
            // The first, the last, and evenly spaced points between them.
            let stride = (count - 1 + (most - 2).max(0)) / (most - 1).max(1);
            all.extend([stride, count].map(Bind::Int));
            let sql = "SELECT step, at, value FROM (SELECT step, at, value, ROW_NUMBER() OVER \
                       (ORDER BY step, at, value) - 1 AS place FROM points WHERE run = ? \
                       AND key = ? AND step >= ? AND step <= ?) AS placed \
                       WHERE place % ? = 0 OR place = ? - 1 ORDER BY step, at, value";
            self.points(sql, all).await
        };
        let mut found = read.await.map_err(|error| failed("sample a metric", &error))?;
        found.truncate(query.most);
        Ok(found)
    }
}
