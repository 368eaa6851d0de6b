//! Reading documents and runs.

use crate::database::Backend;
use crate::error::{TooLarge, failed};
use crate::memory::Memory;
use crate::removal::{Removal, removal};
use crate::rows::{Bind, arguments, numbers};
use berth_tracker::{
    Dataset, DatasetSummary, DocKey, Error, Input, Kind, Latest, Load, ModelMetric, Point, ReadBy,
    Run, RunHead, RunModel, pairs_of_json,
};
use futures_util::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Row, query, query_with};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The maximum number of ids in one statement.
const MOST_NUMBERS: usize = 1000;
/// The maximum number of bytes of documents or runs in memory for one request.
const MOST_BYTES: usize = 256 << 20;

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

type Read<T> = Result<T, Error>;

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

    pub async fn runs(&self, wanted: &[i64]) -> Read<Vec<Run>> {
        let mut found = Vec::with_capacity(wanted.len());
        for some in wanted.chunks(MOST_NUMBERS) {
            let read = async {
                let mut connection = self.pool.acquire().await?;
                self.some_runs(&mut connection, some).await
            };
            found.extend(read.await.map_err(|error| failed("read runs", &error))?);
        }
        Ok(found)
    }

    /// The rows of these runs. `sql` has one placeholder `{}` for their numbers.
    async fn of_runs(
        &self,
        connection: &mut AnyConnection,
        sql: &'static str,
        runs: &[i64],
    ) -> sqlx::Result<Vec<AnyRow>> {
        let mut all = Vec::new();
        let keep = |row: AnyRow| {
            all.push(row);
            Ok(0)
        };
        self.each_of_runs(connection, (sql, runs), &mut 0, keep).await?;
        Ok(all)
    }

    /// Streams the rows of these runs. `take` returns how many bytes it has kept of a row.
    async fn each_of_runs(
        &self,
        connection: &mut AnyConnection,
        (sql, runs): (&'static str, &[i64]),
        bytes: &mut usize,
        mut take: impl FnMut(AnyRow) -> sqlx::Result<usize>,
    ) -> sqlx::Result<()> {
        let mut rows = match runs {
            [one] => {
                // One text for all calls, so that the database prepares it once.
                let sql = AssertSqlSafe(self.backend.sql_of(sql.replace("{}", "?")));
                query_with(sql, arguments(vec![Bind::Int(*one)])).fetch(connection)
            }
            several => {
                let sql = AssertSqlSafe(sql.replace("{}", &numbers(several)));
                query_with(sql, arguments(Vec::new())).persistent(false).fetch(connection)
            }
        };
        while let Some(row) = rows.try_next().await? {
            *bytes += take(row)?;
            if *bytes > MOST_BYTES {
                return Err(TooLarge::error(MOST_BYTES));
            }
        }
        Ok(())
    }

    async fn some_runs(
        &self,
        connection: &mut AnyConnection,
        wanted: &[i64],
    ) -> sqlx::Result<Vec<Run>> {
        let sql = "SELECT no, id, experiment, name, user_id, status, start_time, end_time, deleted, \
                   has_inputs FROM runs WHERE no IN ({})";
        let mut runs: HashMap<i64, Run> = HashMap::with_capacity(wanted.len());
        let mut with_inputs = Vec::new();
        for row in self.of_runs(connection, sql, wanted).await? {
            let run = run(&row)?;
            if row.try_get::<i64, _>(9)? != 0 {
                with_inputs.push(run.no);
            }
            runs.insert(run.no, run);
        }
        let sql = "SELECT run, key, value FROM params WHERE run IN ({}) ORDER BY run, key";
        let mut bytes = 0;
        let keep = |row: AnyRow| {
            let (key, value): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            let kept = key.len() + value.len();
            if let Some(run) = runs.get_mut(&row.try_get(0)?) {
                run.params.push((key, value));
            }
            Ok(kept)
        };
        self.each_of_runs(connection, (sql, wanted), &mut bytes, keep).await?;
        let sql = "SELECT run, key, value FROM tags WHERE run IN ({}) ORDER BY run, key";
        let keep = |row: AnyRow| {
            let (key, value): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            let kept = key.len() + value.len();
            if let Some(run) = runs.get_mut(&row.try_get(0)?) {
                run.tags.push((key, value));
            }
            Ok(kept)
        };
        self.each_of_runs(connection, (sql, wanted), &mut bytes, keep).await?;
        let sql =
            "SELECT run, key, step, at, value FROM latest WHERE run IN ({}) ORDER BY run, key";
        let rows = self.of_runs(connection, sql, wanted).await?;
        let names = self.key_names(connection, &rows).await?;
        for row in rows {
            let (run, key): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            if let (Some(run), Some(key)) = (runs.get_mut(&run), names.get(&key)) {
                run.metrics.push(Latest { key: key.clone(), point: point(&row, 2)? });
            }
        }
        if !with_inputs.is_empty() {
            self.inputs(connection, &with_inputs, &mut runs, &mut bytes).await?;
        }
        Ok(wanted.iter().filter_map(|no| runs.remove(no)).collect())
    }

    /// The names of the keys in the second column.
    async fn key_names(
        &self,
        connection: &mut AnyConnection,
        rows: &[AnyRow],
    ) -> sqlx::Result<HashMap<i64, Arc<str>>> {
        let mut names: HashMap<i64, Arc<str>> = HashMap::new();
        let mut unknown = Vec::new();
        for row in rows {
            let no: i64 = row.try_get(1)?;
            if names.contains_key(&no) {
                continue;
            }
            match self.memory.key_name(no) {
                Some(name) => drop(names.insert(no, name)),
                None => unknown.push(no),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        for some in unknown.chunks(MOST_NUMBERS) {
            let sql = "SELECT no, name FROM metric_keys WHERE no IN ({})";
            for row in self.of_runs(connection, sql, some).await? {
                let (no, name): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                names.insert(no, self.memory.put_key_name(no, &name));
            }
        }
        Ok(names)
    }

    async fn inputs(
        &self,
        connection: &mut AnyConnection,
        of: &[i64],
        runs: &mut HashMap<i64, Run>,
        bytes: &mut usize,
    ) -> sqlx::Result<()> {
        let sql = "SELECT r.run, r.tags, d.name, d.digest, d.source_type, d.source, d.schema_json, \
                   d.profile FROM run_datasets r JOIN datasets d ON d.no = r.dataset \
                   WHERE r.run IN ({}) ORDER BY r.run, r.dataset";
        let keep = |row: AnyRow| {
            let tags: String = row.try_get(1)?;
            let dataset = dataset(&row, 2)?;
            let long = [&dataset.schema, &dataset.profile].into_iter().flatten();
            let kept = tags.len() + dataset.source.len() + long.map(String::len).sum::<usize>();
            if let Some(run) = runs.get_mut(&row.try_get(0)?) {
                run.datasets.push(Input { dataset, tags: pairs_of_json(&tags) });
            }
            Ok(kept)
        };
        self.each_of_runs(connection, (sql, of), bytes, keep).await?;
        let sql = "SELECT run, output, model, step FROM run_models WHERE run IN ({}) \
                   ORDER BY run, output, model";
        for row in self.of_runs(connection, sql, of).await? {
            let Some(run) = runs.get_mut(&row.try_get(0)?) else { continue };
            let is_output = row.try_get::<i64, _>(1)? != 0;
            run.models.push(RunModel { id: row.try_get(2)?, is_output, step: row.try_get(3)? });
        }
        Ok(())
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

fn run(row: &AnyRow) -> sqlx::Result<Run> {
    Ok(Run {
        no: row.try_get(0)?,
        id: row.try_get(1)?,
        experiment: row.try_get(2)?,
        name: row.try_get(3)?,
        user: row.try_get(4)?,
        status: row.try_get(5)?,
        start: row.try_get(6)?,
        end: row.try_get(7)?,
        deleted: row.try_get::<i64, _>(8)? != 0,
        metrics: Vec::new(),
        params: Vec::new(),
        tags: Vec::new(),
        datasets: Vec::new(),
        models: Vec::new(),
    })
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
pub(crate) fn point(row: &AnyRow, from: usize) -> sqlx::Result<Point> {
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
