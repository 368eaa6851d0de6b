//! Moves a run to another experiment. The numbers of metric keys and data sets are per experiment, so
//! Berth rewrites the rows that refer to them.

use super::group::Group;
use super::runs::{done, refused};
use super::{Applied, Writer};
use crate::read::dataset;
use crate::rows::{Bind, arguments, execute};
use berth_tracker::RunHead;
use sqlx::{AnyConnection, AssertSqlSafe, Row, query_with};

impl Writer {
    pub(super) async fn move_run(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        run: &RunHead,
        to: i64,
    ) -> Applied {
        if let Some(error) = self.inactive(connection, run).await? {
            return refused(error);
        }
        let from = self.state(connection, run.no).await?.experiment;
        if from == to {
            return done();
        }
        let kept = match self.room_for_a_run(connection, to).await? {
            Ok(kept) => kept,
            Err(error) => return refused(error),
        };
        let backend = self.backend();
        // Write the points of this group first: they have the old numbers.
        group.flush(connection, backend).await?;
        let sql = "SELECT l.key, k.name FROM latest l JOIN metric_keys k ON k.no = l.key \
                   WHERE l.run = ? ORDER BY l.key";
        let sql = AssertSqlSafe(backend.sql(sql));
        let rows = query_with(sql, arguments(vec![Bind::Int(run.no)]));
        let mut keys: Vec<(i64, i64)> = Vec::new();
        for row in rows.fetch_all(&mut *connection).await? {
            let (old, name): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            match self.key(connection, group, to, &name).await? {
                Ok(new) => keys.push((old, new)),
                Err(error) => return refused(error),
            }
        }
        for (old, new) in &keys {
            for sql in [
                "UPDATE points SET key = ? WHERE run = ? AND key = ?",
                "UPDATE latest SET key = ? WHERE run = ? AND key = ?",
            ] {
                let binds = [*new, run.no, *old].map(Bind::Int).to_vec();
                execute(connection, backend, sql, binds).await?;
            }
        }
        self.move_datasets(connection, run.no, to).await?;
        let sql = "UPDATE runs SET experiment = ? WHERE no = ?";
        execute(connection, backend, sql, vec![Bind::Int(to), Bind::Int(run.no)]).await?;
        let state = self.state(connection, run.no).await?;
        state.experiment = to;
        state.keys = keys.into_iter().map(|(_, new)| new).collect();
        self.runs_of_experiment.insert(to, kept + 1);
        if let Some(kept) = self.runs_of_experiment.get_mut(&from) {
            *kept = kept.saturating_sub(1);
        }
        group.heads.push(RunHead { experiment: to, ..run.clone() });
        done()
    }

    async fn move_datasets(
        &mut self,
        connection: &mut AnyConnection,
        run: i64,
        to: i64,
    ) -> sqlx::Result<()> {
        let backend = self.backend();
        let sql = "SELECT d.no, d.name, d.digest, d.source_type, d.source, d.schema_json, d.profile \
                   FROM run_datasets r JOIN datasets d ON d.no = r.dataset WHERE r.run = ? \
                   ORDER BY d.no";
        let sql = AssertSqlSafe(backend.sql(sql));
        let rows = query_with(sql, arguments(vec![Bind::Int(run)]));
        for row in rows.fetch_all(&mut *connection).await? {
            let old: i64 = row.try_get(0)?;
            let dataset = dataset(&row, 1)?;
            let new = self.dataset(connection, to, &dataset).await?;
            let sql = "UPDATE run_datasets SET dataset = ? WHERE run = ? AND dataset = ?";
            let binds = [new, run, old].map(Bind::Int).to_vec();
            execute(connection, backend, sql, binds).await?;
        }
        Ok(())
    }
}
