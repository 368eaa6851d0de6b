//! Removes deleted runs and experiments for good, in batches. A run first moves from its own table to the
//! removals. From then on no request finds it, and a restarted server continues the removal.

use super::group::Group;
use super::{Applied, Writer};
use crate::removal::{Clean, Cleaned, Removal};
use crate::rows::{Bind, arguments, execute};
use berth_tracker::{DocKey, Experiment, Kind, LoggedModel, ModelVersion, read};
use futures_util::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row, query, query_with};
use std::collections::HashSet;

/// The deleted runs that one step checks, and the points that it removes.
const MOST_RUNS: i64 = 200;
const MOST_POINTS: i64 = 20_000;
/// The documents and other rows of an experiment that one step removes.
const MOST_ROWS: i64 = 5_000;

fn answer(cleaned: &Cleaned) -> Applied {
    Ok(Ok(serde_json::to_vec(cleaned).expect("removals are plain data")))
}

impl Writer {
    pub(super) async fn clean(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        step: Clean,
    ) -> Applied {
        // Earlier changes of the same group may belong to this run.
        group.flush(connection, self.backend()).await?;
        match step {
            Clean::Runs { before, after, dry } => {
                self.begin_runs(connection, group, (before, after), dry).await
            }
            Clean::Experiment { no, before } => {
                self.begin_experiment(connection, group, no, before).await
            }
            Clean::Team { team } => self.begin_team(connection, group, &team).await,
            Clean::Rows(of) if of.is_run => self.rows_of_run(connection, group, &of).await,
            Clean::Rows(of) => self.rows_of_experiment(connection, &of).await,
            Clean::End(of) => {
                let sql = match of.is_run {
                    true => "DELETE FROM removals WHERE kind = ? AND no = ?",
                    false => "UPDATE removals SET done = 1 WHERE kind = ? AND no = ?",
                };
                let binds = [of.kind(), of.no].map(Bind::Int).to_vec();
                execute(connection, self.backend(), sql, binds).await?;
                answer(&Cleaned::default())
            }
        }
    }

    async fn all(
        &mut self,
        connection: &mut AnyConnection,
        sql: &'static str,
        binds: Vec<Bind>,
    ) -> sqlx::Result<Vec<AnyRow>> {
        let sql = AssertSqlSafe(self.backend().sql(sql));
        query_with(sql, arguments(binds)).fetch_all(connection).await
    }

    async fn begin_runs(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        (before, after): (i64, i64),
        dry: bool,
    ) -> Applied {
        let sql = "SELECT no, id, experiment, deleted_at FROM runs WHERE deleted = 1 AND no > ? \
                   ORDER BY no LIMIT ?";
        let rows = self.all(connection, sql, vec![Bind::Int(after), Bind::Int(MOST_RUNS)]).await?;
        let mut cleaned = Cleaned::default();
        if rows.len() as i64 == MOST_RUNS {
            cleaned.next = rows.last().map(|row| row.try_get(0)).transpose()?;
        }
        for row in rows {
            let (no, id): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            let experiment: i64 = row.try_get(2)?;
            let deleted_at: Option<i64> = row.try_get(3)?;
            if deleted_at.is_none_or(|at| at >= before) {
                continue;
            }
            let Some(of) = self.memory.experiment(experiment) else { continue };
            if self.named(connection).await?.contains(&id)
                || self.made_a_named_model(connection, no).await?
            {
                continue;
            }
            let path = format!("{experiment}/{id}");
            let begun = Removal { is_run: true, no, experiment, team: of.team.clone(), path };
            if dry {
                cleaned.begun.push(begun);
                continue;
            }
            self.begin_run(connection, group, &begun, id).await?;
            cleaned.begun.push(begun);
        }
        answer(&cleaned)
    }

    async fn begin_run(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        begun: &Removal,
        id: String,
    ) -> sqlx::Result<()> {
        self.begin(connection, begun).await?;
        let sql = "DELETE FROM runs WHERE no = ?";
        execute(connection, self.backend(), sql, vec![Bind::Int(begun.no)]).await?;
        self.runs.remove(&begun.no);
        if let Some(kept) = self.runs_of_experiment.get_mut(&begun.experiment) {
            *kept = kept.saturating_sub(1);
        }
        group.gone.push(id);
        Ok(())
    }

    /// Marks the runs of one experiment of a team, or the experiment after its last run, or removes the
    /// documents of a team without experiments. What versions name goes too: the team's artifacts are gone.
    async fn begin_team(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        team: &str,
    ) -> Applied {
        let mut cleaned = Cleaned { next: Some(0), ..Cleaned::default() };
        let sql = "SELECT sub, name FROM docs WHERE kind = 1 AND scope = ? LIMIT 1";
        let first = self.all(connection, sql, vec![Bind::from(team)]).await?;
        if let Some(row) = first.first() {
            let (experiment, name): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            let sql = "SELECT no, id FROM runs WHERE experiment = ? ORDER BY no LIMIT ?";
            let binds = [experiment, MOST_RUNS].map(Bind::Int).to_vec();
            let runs = self.all(connection, sql, binds).await?;
            for row in &runs {
                let (no, id): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                let (team, path) = (team.to_owned(), format!("{experiment}/{id}"));
                let begun = Removal { is_run: true, no, experiment, team, path };
                self.begin_run(connection, group, &begun, id).await?;
                cleaned.begun.push(begun);
            }
            if (runs.len() as i64) < MOST_RUNS {
                let (scope, path) = (team.to_owned(), experiment.to_string());
                let key = DocKey { kind: Kind::Experiment, scope, name, sub: experiment };
                let (no, team) = (experiment, team.to_owned());
                let begun = Removal { is_run: false, no, experiment, team, path };
                self.begin(connection, &begun).await?;
                self.remove_doc(connection, &key).await?;
                group.gone_experiments.push(experiment);
                cleaned.begun.push(begun);
            }
            return answer(&cleaned);
        }
        let sql = "SELECT kind, name, sub FROM docs WHERE scope = ? AND kind IN (2, 3, 5) LIMIT ?";
        let docs = self.all(connection, sql, vec![Bind::from(team), Bind::Int(MOST_ROWS)]).await?;
        for row in &docs {
            let kind = match row.try_get::<i64, _>(0)? {
                2 => Kind::RegisteredModel,
                3 => Kind::ModelVersion,
                _ => Kind::Webhook,
            };
            cleaned.models += u64::from(kind == Kind::RegisteredModel);
            let (scope, name, sub): (_, String, i64) =
                (team.to_owned(), row.try_get(1)?, row.try_get(2)?);
            if kind == Kind::RegisteredModel {
                // Its entries in the lists of the teams that it is shared with.
                let sql = "DELETE FROM docs WHERE name = ? AND +kind = 6";
                let binds = vec![Bind::Text(format!("{team}/{name}"))];
                execute(connection, self.backend(), sql, binds).await?;
            }
            self.remove_doc(connection, &DocKey { kind, scope, name, sub }).await?;
            self.named = None;
        }
        if (docs.len() as i64) < MOST_ROWS {
            cleaned.next = None;
        }
        answer(&cleaned)
    }

    async fn begin(&mut self, connection: &mut AnyConnection, of: &Removal) -> sqlx::Result<()> {
        let sql = "INSERT INTO removals (kind, no, experiment, team, path, done) \
                   VALUES (?, ?, ?, ?, ?, 0)";
        let binds = vec![
            Bind::Int(of.kind()),
            Bind::Int(of.no),
            Bind::Int(of.experiment),
            Bind::from(&of.team),
            Bind::from(&of.path),
        ];
        execute(connection, self.backend(), sql, binds).await.map(drop)
    }

    /// Runs and logged models that versions of registered models name. Berth reads them again after each
    /// change of a version.
    async fn named(&mut self, connection: &mut AnyConnection) -> sqlx::Result<&HashSet<String>> {
        if self.named.is_none() {
            let mut named = HashSet::new();
            // Stream the versions of all teams, because they may not fit into memory.
            let sql = query("SELECT doc FROM docs WHERE kind = 3");
            let mut rows = sql.fetch(&mut *connection);
            while let Some(row) = rows.try_next().await? {
                let doc: String = row.try_get(0)?;
                let Ok(version) = read::<ModelVersion>(&doc) else { continue };
                // A source such as runs:/RUN/model, and the folder that it resolves to.
                for place in [&version.source, &version.storage] {
                    named.extend(place.split('/').map(str::to_owned));
                }
                named.extend(version.run);
                named.extend(version.model);
            }
            drop(rows);
            let models: Vec<String> =
                named.iter().filter(|id| id.starts_with("m-")).cloned().collect();
            for id in models {
                let sql = "SELECT doc FROM docs WHERE name = ? AND +kind = 4";
                for row in self.all(connection, sql, vec![Bind::Text(id)]).await? {
                    let doc: String = row.try_get(0)?;
                    let Ok(model) = read::<LoggedModel>(&doc) else { continue };
                    named.insert(model.run);
                }
            }
            self.named = Some(named);
        }
        Ok(self.named.get_or_insert_default())
    }

    async fn made_a_named_model(
        &mut self,
        connection: &mut AnyConnection,
        run: i64,
    ) -> sqlx::Result<bool> {
        let sql = "SELECT model FROM run_models WHERE run = ? AND output = 1";
        let rows = self.all(connection, sql, vec![Bind::Int(run)]).await?;
        let named = self.named(connection).await?;
        for row in rows {
            if named.contains(&row.try_get::<String, _>(0)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn rows_of_run(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        of: &Removal,
    ) -> Applied {
        let run = || vec![Bind::Int(of.no)];
        let sql = "SELECT key, step, at, value FROM points WHERE run = ? \
                   ORDER BY key, step, at, value LIMIT 1 OFFSET ?";
        let binds = [of.no, MOST_POINTS].map(Bind::Int).to_vec();
        let limit = self.all(connection, sql, binds).await?;
        if let Some(row) = limit.first() {
            let mut binds = run();
            for column in 0..4 {
                binds.push(Bind::Int(row.try_get(column)?));
            }
            let sql = "DELETE FROM points WHERE run = ? AND (key, step, at, value) < (?, ?, ?, ?)";
            group.gone_points += execute(connection, self.backend(), sql, binds).await?;
            return answer(&Cleaned { next: Some(0), ..Cleaned::default() });
        }
        let sql = "SELECT dataset FROM run_datasets WHERE run = ?";
        let datasets = self.all(connection, sql, run()).await?;
        let sql = "DELETE FROM points WHERE run = ?";
        group.gone_points += execute(connection, self.backend(), sql, run()).await?;
        for sql in [
            "DELETE FROM latest WHERE run = ?",
            "DELETE FROM params WHERE run = ?",
            "DELETE FROM tags WHERE run = ?",
            "DELETE FROM run_datasets WHERE run = ?",
            "DELETE FROM run_models WHERE run = ?",
        ] {
            execute(connection, self.backend(), sql, run()).await?;
        }
        for row in datasets {
            let no: i64 = row.try_get(0)?;
            let sql = "DELETE FROM datasets WHERE no = ? AND NOT EXISTS \
                       (SELECT 1 FROM run_datasets WHERE dataset = ?)";
            execute(connection, self.backend(), sql, vec![Bind::Int(no), Bind::Int(no)]).await?;
        }
        answer(&Cleaned::default())
    }

    async fn begin_experiment(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        no: i64,
        before: i64,
    ) -> Applied {
        let sql = "SELECT scope, name, doc FROM docs WHERE kind = 1 AND sub = ?";
        let rows = self.all(connection, sql, vec![Bind::Int(no)]).await?;
        let Some(row) = rows.first() else { return answer(&Cleaned::default()) };
        let (team, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let of: Experiment = match read(&row.try_get::<String, _>(2)?) {
            Ok(of) => of,
            Err(error) => return Ok(Err(error)),
        };
        let sql = "SELECT no FROM runs WHERE experiment = ? LIMIT 1";
        let has_runs = !self.all(connection, sql, vec![Bind::Int(no)]).await?.is_empty();
        let sql = "SELECT no FROM removals WHERE kind = 2 AND experiment = ? AND done = 0 LIMIT 1";
        let loses_runs = !self.all(connection, sql, vec![Bind::Int(no)]).await?.is_empty();
        if !of.deleted || of.updated >= before || has_runs || loses_runs {
            return answer(&Cleaned::default());
        }
        let sql = "SELECT name FROM docs WHERE kind = 4 AND scope = ?";
        let models = self.all(connection, sql, vec![Bind::Text(no.to_string())]).await?;
        let named = self.named(connection).await?;
        for row in models {
            if named.contains(&row.try_get::<String, _>(0)?) {
                return answer(&Cleaned::default());
            }
        }
        let key = DocKey { kind: Kind::Experiment, scope: team.clone(), name, sub: no };
        let path = no.to_string();
        let begun = Removal { is_run: false, no, experiment: no, team, path };
        self.begin(connection, &begun).await?;
        self.remove_doc(connection, &key).await?;
        group.gone_experiments.push(no);
        answer(&Cleaned { begun: vec![begun], ..Cleaned::default() })
    }

    async fn rows_of_experiment(
        &mut self,
        connection: &mut AnyConnection,
        of: &Removal,
    ) -> Applied {
        let backend = self.backend();
        let sql = "SELECT name FROM docs WHERE kind = 4 AND scope = ? ORDER BY name LIMIT ?";
        let binds = vec![Bind::Text(of.no.to_string()), Bind::Int(MOST_ROWS)];
        let models = self.all(connection, sql, binds).await?;
        let last = models.len() as i64 == MOST_ROWS;
        for row in models {
            let name: String = row.try_get(0)?;
            let sql = "DELETE FROM model_metrics WHERE model = ?";
            execute(connection, backend, sql, vec![Bind::from(&name)]).await?;
            let scope = of.no.to_string();
            self.remove_doc(connection, &DocKey { kind: Kind::LoggedModel, scope, name, sub: 0 })
                .await?;
        }
        if last {
            return answer(&Cleaned { next: Some(0), ..Cleaned::default() });
        }
        for sql in [
            "DELETE FROM datasets WHERE experiment = ?",
            "DELETE FROM metric_keys WHERE experiment = ?",
        ] {
            execute(connection, backend, sql, vec![Bind::Int(of.no)]).await?;
        }
        self.keys.retain(|(experiment, _), _| *experiment != of.no);
        self.keys_of_experiment.remove(&of.no);
        self.runs_of_experiment.remove(&of.no);
        answer(&Cleaned::default())
    }
}
