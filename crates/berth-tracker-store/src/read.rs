//! Reading documents, and what runs have read and made.

use crate::database::Backend;
use crate::error::{TooLarge, failed};
use crate::memory::Memory;
use crate::removal::{Removal, removal};
use crate::rows::{Bind, arguments, numbers};
use berth_tracker::{
    Dataset, DatasetSummary, DocKey, Error, Kind, Load, ModelMetric, Point, ReadBy, RunHead,
};
use futures_util::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Row, query, query_with};
use std::collections::BTreeSet;

/// The maximum number of ids in one statement.
pub(crate) const MOST_NUMBERS: usize = 1000;
/// The maximum number of bytes of documents or runs in memory for one request.
pub(crate) const MOST_BYTES: usize = 256 << 20;

fn kind(number: i64) -> Option<Kind> {
    use Kind::{Experiment, LoggedModel, ModelShare, ModelVersion, RegisteredModel, Webhook};
    [Experiment, RegisteredModel, ModelVersion, LoggedModel, Webhook, ModelShare]
        .into_iter()
        .find(|kind| *kind as i64 == number)
}

fn doc(row: &AnyRow) -> sqlx::Result<(DocKey, String)> {
    let unknown = || sqlx::Error::Decode("a kind of documents is unknown".into());
    let key = DocKey {
        kind: kind(row.try_get(0)?).ok_or_else(unknown)?,
        scope: row.try_get(1)?,
        name: row.try_get(2)?,
        sub: row.try_get(3)?,
    };
    Ok((key, row.try_get(4)?))
}

/// Reads documents by scope, name or number, up to a limit of bytes.
pub(crate) async fn docs_of(
    connection: &mut AnyConnection,
    backend: Backend,
    load: &Load,
) -> sqlx::Result<Vec<(DocKey, String)>> {
    let mut sql =
        String::from("SELECT kind, scope, name, sub, doc FROM docs WHERE kind = ? AND scope = ?");
    let mut binds = vec![Bind::Int(load.kind as i64), Bind::from(&load.scope)];
    if let Some(name) = &load.name {
        sql.push_str(" AND name = ?");
        binds.push(Bind::from(name));
    }
    if let Some(sub) = load.sub {
        sql.push_str(" AND sub = ?");
        binds.push(Bind::Int(sub));
    }
    sql.push_str(" ORDER BY name, sub");
    let sql = AssertSqlSafe(backend.sql_of(sql));
    let mut rows = query_with(sql, arguments(binds)).fetch(connection);
    let (mut docs, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let (key, doc) = doc(&row)?;
        bytes += doc.len();
        if bytes > MOST_BYTES {
            return Err(TooLarge::error(MOST_BYTES));
        }
        docs.push((key, doc));
    }
    Ok(docs)
}

/// All experiments, for the cache.
pub(crate) async fn experiments(connection: &mut AnyConnection) -> sqlx::Result<Vec<String>> {
    let rows = query("SELECT doc FROM docs WHERE kind = 1").fetch_all(connection).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Reads through the pool of connections.
pub(crate) struct Reader<'a> {
    pub pool: &'a AnyPool,
    pub backend: Backend,
    pub memory: &'a Memory,
}

pub(crate) type Read<T> = Result<T, Error>;

impl Reader<'_> {
    pub async fn rows(&self, sql: &'static str, binds: Vec<Bind>) -> sqlx::Result<Vec<AnyRow>> {
        let sql = AssertSqlSafe(self.backend.sql(sql));
        query_with(sql, arguments(binds)).fetch_all(self.pool).await
    }

    pub async fn docs(&self, load: &Load) -> Read<Vec<(DocKey, String)>> {
        let read = async {
            let mut connection = self.pool.acquire().await?;
            docs_of(&mut connection, self.backend, load).await
        };
        read.await.map_err(|error| failed("read documents", &error))
    }

    pub async fn count(&self, kind: Kind, scope: &str) -> Read<u64> {
        let sql = "SELECT COUNT(*) FROM docs WHERE kind = ? AND scope = ?";
        let binds = vec![Bind::Int(kind as i64), Bind::from(scope)];
        let rows = self.rows(sql, binds).await;
        let count = rows.and_then(|rows| rows[0].try_get::<i64, _>(0));
        count.map(i64::cast_unsigned).map_err(|error| failed("count documents", &error))
    }

    pub async fn named(&self, kind: Kind, name: &str) -> Read<Option<(DocKey, String)>> {
        // The unary plus keeps SQLite from an index that reads all documents of the kind.
        let sql = "SELECT kind, scope, name, sub, doc FROM docs WHERE name = ? AND +kind = ?";
        let rows = self.rows(sql, vec![Bind::from(name), Bind::Int(kind as i64)]).await;
        let found = rows.and_then(|rows| rows.first().map(doc).transpose());
        found.map_err(|error| failed("read a document", &error))
    }

    /// The teams that have models or webhooks.
    pub async fn scopes(&self) -> Read<BTreeSet<String>> {
        // A model that is shared with every team has the scope `*`.
        let sql = "SELECT DISTINCT scope FROM docs WHERE kind IN (2, 3, 5, 6) AND scope <> '*'";
        let rows = self.rows(sql, Vec::new()).await;
        let read = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        read.map_err(|error| failed("read the teams", &error))
    }

    pub async fn removals(&self, most: u32) -> Read<Vec<Removal>> {
        let sql = "SELECT kind, no, experiment, team, path FROM removals WHERE done = 0 \
                   ORDER BY kind DESC, no LIMIT ?";
        let rows = self.rows(sql, vec![Bind::Int(most.into())]).await;
        let read = rows.and_then(|rows| rows.iter().map(removal).collect());
        read.map_err(|error| failed("read removals", &error))
    }

    pub async fn head(&self, id: &str) -> Read<Option<RunHead>> {
        if let Some(head) = self.memory.head(id) {
            return Ok(Some(head));
        }
        let read = async {
            let sql = "SELECT no, experiment, made_by FROM runs WHERE id = ?";
            let rows = self.rows(sql, vec![Bind::from(id)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let (no, experiment) = (row.try_get(0)?, row.try_get(1)?);
            let by: String = row.try_get(2)?;
            Ok(Some(RunHead { no, id: id.into(), experiment, by: by.into() }))
        };
        let found = read.await.map_err(|error| failed("read a run", &error))?;
        if let Some(head) = &found {
            self.memory.note_head(head.clone());
        }
        Ok(found)
    }

    pub async fn model_metrics(&self, models: &[String]) -> Read<Vec<ModelMetric>> {
        let mut found = Vec::new();
        for some in models.chunks(MOST_NUMBERS) {
            let places = vec!["?"; some.len()].join(",");
            let sql = format!(
                "SELECT step, at, value, model, key, run_id, dataset_name, dataset_digest \
                 FROM model_metrics WHERE model IN ({places}) ORDER BY model, key, run_id"
            );
            let sql = AssertSqlSafe(self.backend.sql_of(sql));
            let binds = some.iter().map(Bind::from).collect();
            let rows = query_with(sql, arguments(binds)).persistent(some.len() == 1);
            let rows = rows.fetch_all(self.pool).await;
            let read = rows.and_then(|rows| rows.iter().map(model_metric).collect());
            let read: Vec<ModelMetric> =
                read.map_err(|error| failed("read metrics of models", &error))?;
            found.extend(read);
        }
        Ok(found)
    }

    /// Numbers of runs, newest first.
    pub async fn runs_that_read(&self, of: ReadBy<'_>, limit: usize) -> Read<Vec<i64>> {
        let (sql, key) = match of {
            ReadBy::Digest(digest) => (
                "SELECT r.run FROM datasets d JOIN run_datasets r ON r.dataset = d.no \
                 WHERE d.digest = ? GROUP BY r.run ORDER BY r.run DESC LIMIT ?",
                digest,
            ),
            ReadBy::Model(id) => (
                "SELECT run FROM run_models WHERE model = ? AND output = 0 \
                 ORDER BY run DESC LIMIT ?",
                id,
            ),
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(sql, vec![Bind::from(key), Bind::Int(limit)]).await;
        let read = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        read.map_err(|error| failed("read runs", &error))
    }

    pub async fn datasets(&self, experiments: &[i64]) -> Read<Vec<DatasetSummary>> {
        let sql = format!(
            "SELECT DISTINCT d.experiment, d.name, d.digest, r.context FROM datasets d \
             JOIN run_datasets r ON r.dataset = d.no WHERE d.experiment IN ({}) \
             ORDER BY d.experiment, d.name, d.digest, r.context LIMIT 1000",
            numbers(experiments)
        );
        if experiments.is_empty() {
            return Ok(Vec::new());
        }
        let rows = query(AssertSqlSafe(sql)).persistent(false).fetch_all(self.pool).await;
        let summary = |row: &AnyRow| {
            Ok(DatasetSummary {
                experiment: row.try_get(0)?,
                name: row.try_get(1)?,
                digest: row.try_get(2)?,
                context: row.try_get(3)?,
            })
        };
        let read = rows.and_then(|rows| rows.iter().map(summary).collect());
        read.map_err(|error| failed("read data sets", &error))
    }
}

/// A data set, from that column on.
pub(crate) fn dataset(row: &AnyRow, from: usize) -> sqlx::Result<Dataset> {
    Ok(Dataset {
        name: row.try_get(from)?,
        digest: row.try_get(from + 1)?,
        source_type: row.try_get(from + 2)?,
        source: row.try_get(from + 3)?,
        schema: row.try_get(from + 4)?,
        profile: row.try_get(from + 5)?,
    })
}

/// A step, a time and a value, from that column on.
fn point(row: &AnyRow, from: usize) -> sqlx::Result<Point> {
    Ok(Point {
        step: row.try_get(from)?,
        timestamp: row.try_get(from + 1)?,
        value: row.try_get(from + 2)?,
    })
}

fn model_metric(row: &AnyRow) -> sqlx::Result<ModelMetric> {
    Ok(ModelMetric {
        point: point(row, 0)?,
        model: row.try_get(3)?,
        key: row.try_get(4)?,
        run: row.try_get(5)?,
        dataset_name: row.try_get(6)?,
        dataset_digest: row.try_get(7)?,
    })
}
