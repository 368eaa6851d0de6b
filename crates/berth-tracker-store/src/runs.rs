//! Reading runs with all that was logged to them.

use crate::error::{TooLarge, failed};
use crate::packed;
use crate::read::{MOST_BYTES, MOST_NUMBERS, Read, Reader, dataset};
use crate::rows::{Bind, arguments, numbers};
use berth_tracker::{Input, Latest, Point, Run, RunModel, pairs_of_json};
use futures_util::TryStreamExt;
use serde::Deserialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row, query_with};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// About how many bytes of runs the database puts into one row. More would save little time, and each
/// connection keeps the memory for its largest row.
const PACKED_BYTES: usize = 128 << 10;
/// A run with more than this is not packed.
const LARGE_BYTES: usize = 1 << 20;

/// The columns of [`Head`]. A latest value counts as 64 bytes.
const HEAD: &str = "no, id, experiment, name, user_id, status, start_time, end_time, deleted, has_inputs, \
     (SELECT COALESCE(SUM(OCTET_LENGTH(key) + OCTET_LENGTH(value)), 0) FROM params WHERE run = no) \
     + (SELECT COALESCE(SUM(OCTET_LENGTH(key) + OCTET_LENGTH(value)), 0) FROM tags WHERE run = no) \
     + 64 * (SELECT COUNT(*) FROM latest WHERE run = no)";
const PAIR: &str = "run, key, value";
const LATEST: &str = "run, key, step, at, value";

type Pair = (i64, String, String);
type Value = (i64, i64, i64, i64, i64);

/// A row of `runs`, and the size of what was logged to the run.
#[derive(Deserialize)]
struct Head {
    no: i64,
    id: String,
    experiment: i64,
    name: String,
    user: String,
    status: String,
    start: Option<i64>,
    end: Option<i64>,
    deleted: i64,
    has_inputs: i64,
    bytes: usize,
}

impl Head {
    fn run(self) -> Run {
        Run {
            no: self.no,
            id: self.id,
            experiment: self.experiment,
            name: self.name,
            user: self.user,
            status: self.status,
            start: self.start,
            end: self.end,
            deleted: self.deleted != 0,
            metrics: Vec::new(),
            params: Vec::new(),
            tags: Vec::new(),
            datasets: Vec::new(),
            models: Vec::new(),
        }
    }
}

/// Runs by number, while their parts arrive.
type Runs = HashMap<i64, Run>;

impl Reader<'_> {
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

    async fn some_runs(
        &self,
        connection: &mut AnyConnection,
        wanted: &[i64],
    ) -> sqlx::Result<Vec<Run>> {
        let sql =
            format!("SELECT {} FROM runs WHERE no IN ({{}})", packed::rows(self.backend, HEAD));
        let mut heads: Vec<Head> = Vec::new();
        self.each(connection, (&sql, wanted), |row| {
            heads = packed::read(&row, 0)?;
            Ok(())
        })
        .await?;
        let mut bytes = heads.iter().map(|head| head.bytes).sum();
        if bytes > MOST_BYTES {
            return Err(TooLarge::error(MOST_BYTES));
        }
        let (mut small, mut large) = (vec![Vec::new()], Vec::new());
        let (mut with_inputs, mut together) = (Vec::new(), 0);
        let mut runs = Runs::with_capacity(heads.len());
        for head in heads {
            let no = head.no;
            together += head.bytes;
            if head.bytes > LARGE_BYTES {
                large.push(no);
                together -= head.bytes;
            } else if together > PACKED_BYTES {
                small.push(vec![no]);
                together = head.bytes;
            } else if let Some(last) = small.last_mut() {
                last.push(no);
            }
            if head.has_inputs != 0 {
                with_inputs.push(no);
            }
            runs.insert(no, head.run());
        }
        for some in small.into_iter().filter(|some| !some.is_empty()) {
            self.logged(connection, &some, &mut runs).await?;
        }
        for one in large {
            self.logged_much(connection, one, &mut runs).await?;
        }
        if !with_inputs.is_empty() {
            self.inputs(connection, &with_inputs, &mut runs, &mut bytes).await?;
        }
        Ok(wanted.iter().filter_map(|no| runs.remove(no)).collect())
    }

    /// Reads what was logged to these runs, in one row.
    async fn logged(
        &self,
        connection: &mut AnyConnection,
        of: &[i64],
        runs: &mut Runs,
    ) -> sqlx::Result<()> {
        let pairs = packed::rows(self.backend, PAIR);
        let latest = packed::rows(self.backend, LATEST);
        let sql = format!(
            "SELECT (SELECT {pairs} FROM params WHERE run IN ({{}})), \
             (SELECT {pairs} FROM tags WHERE run IN ({{}})), \
             (SELECT {latest} FROM latest WHERE run IN ({{}}))"
        );
        let (mut params, mut tags, mut values) = (Vec::new(), Vec::new(), Vec::new());
        self.each(connection, (&sql, of), |row| {
            params = packed::read(&row, 0)?;
            tags = packed::read(&row, 1)?;
            values = packed::read(&row, 2)?;
            Ok(())
        })
        .await?;
        put_pairs(runs, params, |run| &mut run.params);
        put_pairs(runs, tags, |run| &mut run.tags);
        self.put_values(connection, runs, values).await
    }

    /// Reads what was logged to a run that has much of it, with one row for each param and tag.
    async fn logged_much(
        &self,
        connection: &mut AnyConnection,
        of: i64,
        runs: &mut Runs,
    ) -> sqlx::Result<()> {
        let columns = packed::rows(self.backend, PAIR);
        for (table, into) in [
            ("params", (|run| &mut run.params) as fn(&mut Run) -> &mut Vec<(String, String)>),
            ("tags", |run| &mut run.tags),
        ] {
            let sql = format!("SELECT {columns} FROM {table} WHERE run IN ({{}}) GROUP BY key");
            let mut pairs = Vec::new();
            self.each(connection, (&sql, &[of]), |row| {
                pairs.append(&mut packed::read(&row, 0)?);
                Ok(())
            })
            .await?;
            put_pairs(runs, pairs, into);
        }
        let columns = packed::rows(self.backend, LATEST);
        let sql = format!("SELECT {columns} FROM latest WHERE run IN ({{}})");
        let mut values = Vec::new();
        self.each(connection, (&sql, &[of]), |row| {
            values = packed::read(&row, 0)?;
            Ok(())
        })
        .await?;
        self.put_values(connection, runs, values).await
    }

    async fn put_values(
        &self,
        connection: &mut AnyConnection,
        runs: &mut Runs,
        mut values: Vec<Value>,
    ) -> sqlx::Result<()> {
        values.sort_unstable();
        let names = self.key_names(connection, values.iter().map(|value| value.1)).await?;
        for (run, key, step, timestamp, value) in values {
            if let (Some(run), Some(key)) = (runs.get_mut(&run), names.get(&key)) {
                let point = Point { step, timestamp, value };
                run.metrics.push(Latest { key: key.clone(), point });
            }
        }
        Ok(())
    }

    /// The names of the keys with these numbers.
    async fn key_names(
        &self,
        connection: &mut AnyConnection,
        of: impl Iterator<Item = i64>,
    ) -> sqlx::Result<HashMap<i64, Arc<str>>> {
        let mut names: HashMap<i64, Arc<str>> = HashMap::new();
        let mut unknown = BTreeSet::new();
        for no in of {
            if names.contains_key(&no) {
                continue;
            }
            match self.memory.key_name(no) {
                Some(name) => drop(names.insert(no, name)),
                None => drop(unknown.insert(no)),
            }
        }
        let unknown: Vec<i64> = unknown.into_iter().collect();
        let columns = packed::rows(self.backend, "no, name");
        let sql = format!("SELECT {columns} FROM metric_keys WHERE no IN ({{}})");
        for some in unknown.chunks(MOST_NUMBERS) {
            let mut found: Vec<(i64, String)> = Vec::new();
            self.each(connection, (&sql, some), |row| {
                found = packed::read(&row, 0)?;
                Ok(())
            })
            .await?;
            for (no, name) in found {
                names.insert(no, self.memory.put_key_name(no, &name));
            }
        }
        Ok(names)
    }

    async fn inputs(
        &self,
        connection: &mut AnyConnection,
        of: &[i64],
        runs: &mut Runs,
        bytes: &mut usize,
    ) -> sqlx::Result<()> {
        let sql = "SELECT r.run, r.tags, d.name, d.digest, d.source_type, d.source, d.schema_json, \
                   d.profile FROM run_datasets r JOIN datasets d ON d.no = r.dataset \
                   WHERE r.run IN ({}) ORDER BY r.run, r.dataset";
        let keep = |row: AnyRow| {
            let tags: String = row.try_get(1)?;
            let dataset = dataset(&row, 2)?;
            let long = [&dataset.schema, &dataset.profile].into_iter().flatten();
            *bytes += tags.len() + dataset.source.len() + long.map(String::len).sum::<usize>();
            if *bytes > MOST_BYTES {
                return Err(TooLarge::error(MOST_BYTES));
            }
            if let Some(run) = runs.get_mut(&row.try_get(0)?) {
                run.datasets.push(Input { dataset, tags: pairs_of_json(&tags) });
            }
            Ok(())
        };
        self.each(connection, (sql, of), keep).await?;
        let sql = "SELECT run, output, model, step FROM run_models WHERE run IN ({}) \
                   ORDER BY run, output, model";
        let keep = |row: AnyRow| {
            let Some(run) = runs.get_mut(&row.try_get(0)?) else { return Ok(()) };
            let is_output = row.try_get::<i64, _>(1)? != 0;
            run.models.push(RunModel { id: row.try_get(2)?, is_output, step: row.try_get(3)? });
            Ok(())
        };
        self.each(connection, (sql, of), keep).await
    }

    /// Takes the rows of a statement as they arrive. Each `{}` in it stands for these numbers.
    async fn each(
        &self,
        connection: &mut AnyConnection,
        (sql, of): (&str, &[i64]),
        mut take: impl FnMut(AnyRow) -> sqlx::Result<()>,
    ) -> sqlx::Result<()> {
        let mut rows = match of {
            [one] => {
                // One text for all calls, so that the database prepares it once.
                let binds = vec![Bind::Int(*one); sql.matches("{}").count()];
                let sql = AssertSqlSafe(self.backend.sql_of(sql.replace("{}", "?")));
                query_with(sql, arguments(binds)).fetch(connection)
            }
            several => {
                let sql = AssertSqlSafe(sql.replace("{}", &numbers(several)));
                query_with(sql, arguments(Vec::new())).persistent(false).fetch(connection)
            }
        };
        while let Some(row) = rows.try_next().await? {
            take(row)?;
        }
        Ok(())
    }
}

/// Adds pairs to their runs, in the order of their keys.
fn put_pairs(
    runs: &mut Runs,
    mut pairs: Vec<Pair>,
    into: impl Fn(&mut Run) -> &mut Vec<(String, String)>,
) {
    pairs.sort_unstable();
    for (run, key, value) in pairs {
        if let Some(run) = runs.get_mut(&run) {
            into(run).push((key, value));
        }
    }
}
