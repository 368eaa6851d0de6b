//! What a group of changes writes in bulk at its end, and caches after the commit.

use crate::database::Backend;
use crate::memory::Memory;
use crate::rows::{Bind, execute, insert};
use berth_tracker::{Experiment, OfModel, Point, RunHead};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Group {
    /// Runs and keys by number.
    points: Vec<(i64, i64, Point)>,
    latest: BTreeMap<(i64, i64), Point>,
    of_models: BTreeMap<(OfModel, String, String), Point>,
    counts: BTreeMap<i64, u64>,
    /// Points in the requests.
    pub sent: u64,
    /// Runs with new points; some are repeated.
    logged: Vec<i64>,
    pub experiments: Vec<Experiment>,
    pub heads: Vec<RunHead>,
    pub names: Vec<(i64, String)>,
    /// Removed runs by id, and removed experiments by number.
    pub gone: Vec<String>,
    pub gone_experiments: Vec<i64>,
    pub gone_points: u64,
}

impl Group {
    pub fn point(&mut self, run: i64, key: i64, point: Point) {
        self.sent += 1;
        if self.logged.last() != Some(&run) {
            self.logged.push(run);
        }
        self.points.push((run, key, point));
        *self.counts.entry(run).or_default() += 1;
        let latest = self.latest.entry((run, key)).or_insert(point);
        *latest = (*latest).max(point);
    }

    pub fn of_model(&mut self, of: OfModel, key: String, run: String, point: Point) {
        let latest = self.of_models.entry((of, key, run)).or_insert(point);
        *latest = (*latest).max(point);
    }

    /// Writes the points of the group. Skips duplicates: a client that retries sends the same point again.
    pub async fn flush(
        &mut self,
        connection: &mut AnyConnection,
        backend: Backend,
    ) -> sqlx::Result<()> {
        // Sorted rows touch each page of the index once.
        self.points.sort_unstable();
        self.points.dedup();
        let values = |(run, key, point): &(i64, i64, Point)| {
            [*run, *key, point.step, point.timestamp, point.value].map(Bind::Int).to_vec()
        };
        let rows = self.points.iter().map(values).collect();
        let into = "INSERT INTO points (run, key, step, at, value)";
        insert(connection, backend, (into, 5, "ON CONFLICT DO NOTHING"), rows).await?;
        let rows = self.latest.iter().map(|((run, key), point)| values(&(*run, *key, *point)));
        let into = "INSERT INTO latest (run, key, step, at, value)";
        let newer = "ON CONFLICT (run, key) DO UPDATE SET step = excluded.step, at = excluded.at, \
                     value = excluded.value WHERE (excluded.step, excluded.at, excluded.value) > \
                     (latest.step, latest.at, latest.value)";
        insert(connection, backend, (into, 5, newer), rows.collect()).await?;
        for (run, count) in &self.counts {
            let binds = vec![Bind::Int(count.cast_signed()), Bind::Int(*run)];
            let sql = "UPDATE runs SET points = points + ? WHERE no = ?";
            execute(connection, backend, sql, binds).await?;
        }
        let rows = self.of_models.iter().map(|((of, key, run), point)| {
            let mut row: Vec<Bind> =
                [&of.id, key, run, &of.dataset_name, &of.dataset_digest].map(Bind::from).to_vec();
            row.extend([point.step, point.timestamp, point.value].map(Bind::Int));
            row
        });
        let into = "INSERT INTO model_metrics (model, key, run_id, dataset_name, dataset_digest, \
                    step, at, value)";
        let newer = "ON CONFLICT (model, key, run_id, dataset_name, dataset_digest) DO UPDATE SET \
                     step = excluded.step, at = excluded.at, value = excluded.value \
                     WHERE (excluded.step, excluded.at, excluded.value) > \
                     (model_metrics.step, model_metrics.at, model_metrics.value)";
        insert(connection, backend, (into, 8, newer), rows.collect()).await?;
        self.points.clear();
        self.latest.clear();
        self.counts.clear();
        self.of_models.clear();
        Ok(())
    }

    /// Updates the caches after the commit.
    pub fn remember(&self, memory: &Memory) {
        memory.watch.note(&self.logged);
        for experiment in &self.experiments {
            memory.put_experiment(experiment.clone());
        }
        for head in &self.heads {
            memory.put_head(head.clone());
        }
        for (no, name) in &self.names {
            memory.put_key_name(*no, name);
        }
        for id in &self.gone {
            memory.forget_head(id);
        }
        for no in &self.gone_experiments {
            memory.forget_experiment(*no);
        }
    }
}
