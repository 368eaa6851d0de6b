//! Runs and their points, from the tables.

use super::Database;
use crate::error::Result;
use crate::model::{Dataset, Owner, Pairs, Place, Point, Run};
use crate::source::Pages;
use futures_util::StreamExt;
use futures_util::stream;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, query};

/// The page sizes of runs and points.
const RUNS: i64 = 50;
const POINTS: i64 = 10_000;

fn pair(row: &SqliteRow) -> sqlx::Result<(String, String)> {
    Ok((row.try_get(0)?, row.try_get::<Option<String>, _>(1)?.unwrap_or_default()))
}

impl Database {
    /// Pairs of an entity with a text id.
    pub(super) async fn pairs(&self, sql: &'static str, id: &str) -> Result<Pairs> {
        let rows = query(sql).bind(id).fetch_all(&self.pool).await;
        let pairs = rows.and_then(|rows| rows.iter().map(pair).collect());
        pairs.map_err(self.failed("reading pairs"))
    }

    pub(super) async fn texts(&self, sql: &'static str, id: &str) -> Result<Vec<String>> {
        let rows = query(sql).bind(id).fetch_all(&self.pool).await;
        let texts = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        texts.map_err(self.failed("reading"))
    }

    pub(super) fn run_pages<'a>(&'a self, experiment: &'a str) -> Pages<'a, Run> {
        stream::try_unfold(Some(0), move |after| async move {
            let Some(after) = after else { return Ok(None) };
            let sql = "SELECT rowid, CAST(run_uuid AS TEXT), CAST(name AS TEXT), \
                       CAST(user_id AS TEXT), CAST(status AS TEXT), CAST(start_time AS INTEGER), \
                       CAST(end_time AS INTEGER), CAST(lifecycle_stage AS TEXT), \
                       CAST(artifact_uri AS TEXT) FROM runs \
                       WHERE experiment_id = CAST(? AS INTEGER) AND rowid > ? \
                       ORDER BY rowid LIMIT ?";
            let rows = query(sql).bind(experiment).bind(after).bind(RUNS).fetch_all(&self.pool);
            let rows = rows.await.map_err(self.failed("reading runs"))?;
            let mut last = None;
            let mut runs = Vec::with_capacity(rows.len());
            for row in &rows {
                let (number, head) = head(row, experiment).map_err(self.failed("reading a run"))?;
                last = Some(number);
                runs.push(self.fill(head).await?);
            }
            let is_over = rows.len() < RUNS.unsigned_abs() as usize;
            Ok(Some((runs, last.filter(|_| !is_over))))
        })
        .boxed_local()
    }

    async fn fill(&self, mut run: Run) -> Result<Run> {
        let id = run.id.clone();
        let sql = "SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM params WHERE run_uuid = ?";
        run.params = self.pairs(sql, &id).await?;
        let sql = "SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM tags WHERE run_uuid = ?";
        run.tags = self.pairs(sql, &id).await?;
        // The newest points are in a separate, short table.
        let sql = match self.shape.has("latest_metrics", &["run_uuid", "key"]) {
            true => "SELECT DISTINCT CAST(key AS TEXT) FROM latest_metrics WHERE run_uuid = ?",
            false => "SELECT DISTINCT CAST(key AS TEXT) FROM metrics WHERE run_uuid = ?",
        };
        run.metrics = self.texts(sql, &id).await?;
        if self.shape.has("inputs", &["source_type", "source_id", "destination_id", "input_uuid"]) {
            run.datasets = self.datasets(&id).await?;
            let sql = "SELECT CAST(destination_id AS TEXT) FROM inputs WHERE source_id = ? \
                       AND source_type = 'RUN_INPUT' AND destination_type = 'MODEL_INPUT'";
            run.reads = self.texts(sql, &id).await?;
            run.makes = self.makes(&id).await?;
        }
        if run.name.is_empty() {
            let tagged = crate::tags::value(&run.tags, crate::tags::RUN_NAME);
            run.name = tagged.unwrap_or_default().to_owned();
        }
        Ok(run)
    }

    async fn makes(&self, run: &str) -> Result<Vec<(String, i64)>> {
        let sql = match self.shape.has("inputs", &["step"]) {
            true => {
                "SELECT CAST(destination_id AS TEXT), CAST(step AS INTEGER) FROM inputs \
                 WHERE source_id = ? AND source_type = 'RUN_OUTPUT' \
                 AND destination_type = 'MODEL_OUTPUT'"
            }
            false => return Ok(Vec::new()),
        };
        let rows = query(sql).bind(run).fetch_all(&self.pool).await;
        let read = |row: &SqliteRow| Ok((row.try_get(0)?, row.try_get::<Option<i64>, _>(1)?));
        let made: sqlx::Result<Vec<(String, Option<i64>)>> =
            rows.and_then(|rows| rows.iter().map(read).collect());
        let made = made.map_err(self.failed("reading outputs"))?;
        Ok(made.into_iter().map(|(id, step)| (id, step.unwrap_or(0))).collect())
    }

    async fn datasets(&self, run: &str) -> Result<Vec<Dataset>> {
        let sql = "SELECT CAST(i.input_uuid AS TEXT), d.name, d.digest, d.dataset_source_type, \
                   d.dataset_source, d.dataset_schema, d.dataset_profile FROM inputs i \
                   JOIN datasets d ON d.dataset_uuid = i.source_id WHERE i.destination_id = ? \
                   AND i.source_type = 'DATASET' AND i.destination_type = 'RUN'";
        let rows = query(sql).bind(run).fetch_all(&self.pool).await;
        let rows = rows.map_err(self.failed("reading data sets"))?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = || -> sqlx::Result<(String, Dataset)> {
                let dataset = Dataset {
                    name: row.try_get(1)?,
                    digest: row.try_get(2)?,
                    source_type: row.try_get(3)?,
                    source: row.try_get(4)?,
                    schema: row.try_get(5)?,
                    profile: row.try_get(6)?,
                    tags: Vec::new(),
                };
                Ok((row.try_get(0)?, dataset))
            };
            let (id, mut dataset) = read().map_err(self.failed("reading a data set"))?;
            let sql = "SELECT CAST(name AS TEXT), CAST(value AS TEXT) FROM input_tags \
                       WHERE input_uuid = ?";
            if self.shape.has("input_tags", &["input_uuid", "name", "value"]) {
                dataset.tags = self.pairs(sql, &id).await?;
            }
            found.push(dataset);
        }
        Ok(found)
    }

    pub(super) fn point_pages<'a>(&'a self, run: &'a str, key: &'a str) -> Pages<'a, Point> {
        // Ordered by an index of newer databases.
        stream::try_unfold(Some((i64::MIN, 0_i64)), move |after| async move {
            let Some((step, number)) = after else { return Ok(None) };
            let sql = "SELECT rowid, CAST(step AS INTEGER), CAST(timestamp AS INTEGER), \
                       CAST(value AS REAL), CAST(is_nan AS INTEGER) FROM metrics \
                       WHERE run_uuid = ? AND key = ? AND (step, rowid) > (?, ?) \
                       ORDER BY step, rowid LIMIT ?";
            let rows = query(sql).bind(run).bind(key).bind(step).bind(number).bind(POINTS);
            let rows = rows.fetch_all(&self.pool).await.map_err(self.failed("reading points"))?;
            let read = |row: &SqliteRow| -> sqlx::Result<((i64, i64), Point)> {
                let step = row.try_get::<Option<i64>, _>(1)?.unwrap_or(0);
                let time = row.try_get::<Option<i64>, _>(2)?.unwrap_or(0);
                let is_nan = row.try_get::<Option<i64>, _>(4)?.unwrap_or(0) != 0;
                let value = row.try_get::<Option<f64>, _>(3)?.filter(|_| !is_nan);
                let point = Point::new(step, time, value.unwrap_or(f64::NAN));
                Ok(((step, row.try_get(0)?), point))
            };
            let found: sqlx::Result<Vec<_>> = rows.iter().map(read).collect();
            let found = found.map_err(self.failed("reading a point"))?;
            let last = found.last().map(|(at, _)| *at);
            let is_over = found.len() < POINTS.unsigned_abs() as usize;
            let points = found.into_iter().map(|(_, point)| point).collect();
            Ok(Some((points, last.filter(|_| !is_over))))
        })
        .boxed_local()
    }
}

fn head(row: &SqliteRow, experiment: &str) -> sqlx::Result<(i64, Run)> {
    let text = |at: usize| -> sqlx::Result<String> {
        Ok(row.try_get::<Option<String>, _>(at)?.unwrap_or_default())
    };
    let id = text(1)?;
    let run = Run {
        experiment: experiment.to_owned(),
        name: text(2)?,
        user: text(3)?,
        status: text(4)?,
        start: row.try_get::<Option<i64>, _>(5)?.filter(|at| *at > 0),
        end: row.try_get::<Option<i64>, _>(6)?.filter(|at| *at > 0),
        deleted: text(7)? == "deleted",
        params: Vec::new(),
        tags: Vec::new(),
        metrics: Vec::new(),
        datasets: Vec::new(),
        reads: Vec::new(),
        makes: Vec::new(),
        place: Place { uri: text(8)?, owner: Owner::Run(id.clone()) },
        id,
    };
    Ok((row.try_get(0)?, run))
}
