//! Points of metrics.

use crate::error::failed;
use crate::packed;
use crate::read::Reader;
use crate::rows::{Bind, arguments};
use berth_tracker::{Error, HistoryQuery, NewerQuery, Point, RunHead, SampleQuery};
use serde::Deserialize;
use sqlx::{AssertSqlSafe, Row, query_with};

/// How many points the database puts into one row. More would save little time, and each connection keeps
/// the memory for its largest row.
const PACKED_POINTS: usize = 2_000;
/// The columns of [`Packed`].
const COLUMNS: &str = "step, at, value";

#[derive(Deserialize)]
struct Packed(i64, i64, i64);

impl From<Packed> for Point {
    fn from(Packed(step, timestamp, value): Packed) -> Point {
        Point { step, timestamp, value }
    }
}

/// Points of one metric of a run, in their order.
struct Page {
    run: i64,
    key: i64,
    after: Option<Point>,
    offset: u64,
    limit: usize,
}

impl Reader<'_> {
    async fn key(&self, run: &RunHead, name: &str) -> sqlx::Result<Option<i64>> {
        let sql = "SELECT no FROM metric_keys WHERE experiment = ? AND name = ?";
        let rows = self.rows(sql, vec![Bind::Int(run.experiment), Bind::from(name)]).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }

    async fn points(&self, page: Page) -> sqlx::Result<Vec<Point>> {
        let columns = packed::rows(self.backend, COLUMNS);
        let mut connection = self.pool.acquire().await?;
        let (mut points, mut after, mut offset) = (Vec::new(), page.after, page.offset);
        loop {
            let most = (page.limit - points.len()).min(PACKED_POINTS);
            let mut binds = vec![page.run, page.key];
            let term = match after {
                Some(Point { step, timestamp, value }) => {
                    binds.extend([step, timestamp, value]);
                    " AND (step, at, value) > (?, ?, ?)"
                }
                None => "",
            };
            binds.extend([most as i64, offset.cast_signed()]);
            let sql = self.backend.sql_of(format!(
                "SELECT {columns} FROM (SELECT {COLUMNS} FROM points WHERE run = ? AND key = ?{term} \
                 ORDER BY step, at, value LIMIT ? OFFSET ?) AS page"
            ));
            let binds = arguments(binds.into_iter().map(Bind::Int).collect());
            let row = query_with(AssertSqlSafe(sql), binds).fetch_one(&mut *connection).await?;
            let found: Vec<Packed> = packed::read(&row, 0)?;
            let is_end = found.len() < most;
            points.extend(found.into_iter().map(Point::from));
            if is_end || points.len() >= page.limit {
                return Ok(points);
            }
            (after, offset) = (points.last().copied(), 0);
        }
    }

    pub async fn history(&self, query: HistoryQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let (run, offset, limit) = (query.run.no, query.offset, query.limit);
            self.points(Page { run, key, after: None, offset, limit }).await
        };
        read.await.map_err(|error| failed("read the points of a metric", &error))
    }

    pub async fn newer(&self, query: NewerQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let last = |(step, timestamp)| Point { step, timestamp, value: i64::MAX };
            let (after, limit) = (query.after.map(last), query.limit);
            self.points(Page { run: query.run.no, key, after, offset: 0, limit }).await
        };
        read.await.map_err(|error| failed("read the points of a metric", &error))
    }

    /// Every n-th point, and the last.
    pub async fn samples(&self, query: SampleQuery<'_>) -> Result<Vec<Point>, Error> {
        let read = async {
            let Some(key) = self.key(query.run, query.key).await? else { return Ok(Vec::new()) };
            let (from, to) = query.steps.unwrap_or((i64::MIN, i64::MAX));
            let mut binds = [query.run.no, key, from, to].map(Bind::Int).to_vec();
            let sql = "SELECT COUNT(*) FROM points WHERE run = ? AND key = ? AND step >= ? \
                       AND step <= ?";
            let rows = self.rows(sql, binds.clone()).await?;
            let count: i64 = rows[0].try_get(0)?;
            let most = query.most.max(1) as i64;
            let columns = packed::rows(self.backend, COLUMNS);
            let sql = if count <= most {
                format!(
                    "SELECT {columns} FROM (SELECT {COLUMNS} FROM points WHERE run = ? AND key = ? \
                     AND step >= ? AND step <= ? ORDER BY step, at, value) AS page"
                )
            } else {
                // The first, the last, and evenly spaced points between them.
                let stride = (count - 1 + (most - 2).max(0)) / (most - 1).max(1);
                binds.extend([stride, count].map(Bind::Int));
                format!(
                    "SELECT {columns} FROM (SELECT {COLUMNS} FROM (SELECT {COLUMNS}, ROW_NUMBER() OVER \
                     (ORDER BY step, at, value) - 1 AS place FROM points WHERE run = ? \
                     AND key = ? AND step >= ? AND step <= ?) AS placed \
                     WHERE place % ? = 0 OR place = ? - 1 ORDER BY step, at, value) AS page"
                )
            };
            let sql = AssertSqlSafe(self.backend.sql_of(sql));
            let row = query_with(sql, arguments(binds)).fetch_one(self.pool).await?;
            let found: Vec<Packed> = packed::read(&row, 0)?;
            Ok(found.into_iter().map(Point::from).collect::<Vec<_>>())
        };
        let mut found = read.await.map_err(|error| failed("sample a metric", &error))?;
        found.truncate(query.most);
        Ok(found)
    }
}
