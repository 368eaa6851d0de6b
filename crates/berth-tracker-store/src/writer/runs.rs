//! Changes of runs.

use super::group::Group;
use super::{Applied, RunState, Writer};
use crate::rows::{Bind, arguments, execute, insert};
use berth_tracker::{
    Dataset, Error, Input, Metric, NewRun, RunChange, RunHead, RunModel, Status, limits,
};
use sqlx::{AnyConnection, AssertSqlSafe, Row, query_with};
use std::collections::HashSet;

const NAME_TAG: &str = "mlflow.runName";
const PUT_TAGS: (&str, usize, &str) = (
    "INSERT INTO tags (run, key, value)",
    3,
    "ON CONFLICT (run, key) DO UPDATE SET value = excluded.value",
);

/// Keys with their values.
type Pairs = Vec<(String, String)>;

pub(super) fn done() -> Applied {
    Ok(Ok(Vec::new()))
}

pub(super) fn refused(error: Error) -> Applied {
    Ok(Err(error))
}

impl Writer {
    pub(super) async fn apply_run(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        change: RunChange,
    ) -> Applied {
        match change {
            RunChange::Create(new) => self.create(connection, group, new).await,
            RunChange::Update { run, status, end, name } => {
                self.update(connection, &run, (status, end, name)).await
            }
            RunChange::Stage { run, deleted, at } => {
                self.state(connection, run.no).await?.deleted = deleted;
                let binds = vec![
                    Bind::Int(deleted.into()),
                    Bind::MaybeInt(deleted.then_some(at)),
                    Bind::Int(run.no),
                ];
                let sql = "UPDATE runs SET deleted = ?, deleted_at = ? WHERE no = ?";
                if execute(connection, self.backend(), sql, binds).await? == 0 {
                    self.runs.remove(&run.no);
                    return refused(Error::absent(format!("Run with id={} not found", run.id)));
                }
                done()
            }
            RunChange::Log { run, metrics, params, tags } => {
                self.log(connection, group, &run, (metrics, params, tags)).await
            }
            RunChange::DeleteTag { run, key } => self.delete_tag(connection, &run, &key).await,
            RunChange::Inputs { run, datasets, models } => {
                self.inputs(connection, &run, datasets, models).await
            }
            RunChange::Move { run, experiment } => {
                self.move_run(connection, group, &run, experiment).await
            }
        }
    }

    pub(super) async fn one(
        &mut self,
        connection: &mut AnyConnection,
        sql: &'static str,
        binds: Vec<Bind>,
    ) -> sqlx::Result<i64> {
        let sql = AssertSqlSafe(self.backend().sql(sql));
        query_with(sql, arguments(binds)).fetch_one(connection).await?.try_get(0)
    }

    /// The cached state of a run, read on first use.
    pub(super) async fn state(
        &mut self,
        connection: &mut AnyConnection,
        run: i64,
    ) -> sqlx::Result<&mut RunState> {
        if !self.runs.contains_key(&run) {
            let backend = self.backend();
            let sql = AssertSqlSafe(
                backend.sql("SELECT deleted, points, experiment FROM runs WHERE no = ?"),
            );
            let row = query_with(sql, arguments(vec![Bind::Int(run)]));
            let Some(row) = row.fetch_optional(&mut *connection).await? else {
                // The run was removed for good. A database error would roll back the whole group, so refuse.
                let gone = RunState { deleted: true, ..RunState::default() };
                return Ok(self.runs.entry(run).or_insert(gone));
            };
            let (deleted, points): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            let experiment = row.try_get(2)?;
            let sql = AssertSqlSafe(backend.sql("SELECT key FROM latest WHERE run = ?"));
            let rows = query_with(sql, arguments(vec![Bind::Int(run)]));
            let rows = rows.fetch_all(&mut *connection).await?;
            let keys = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
            let state = RunState {
                deleted: deleted != 0,
                points: points.cast_unsigned(),
                experiment,
                keys,
                params: None,
                tags: None,
            };
            self.runs.insert(run, state);
        }
        Ok(self.runs.get_mut(&run).expect("it was just put there"))
    }

    /// Refuses to log to a deleted run.
    pub(super) async fn inactive(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
    ) -> sqlx::Result<Option<Error>> {
        let deleted = self.state(connection, run.no).await?.deleted;
        Ok(deleted.then(|| {
            Error::invalid(format!(
                "The run {} must be in the 'active' state. Current state is deleted.",
                run.id
            ))
        }))
    }

    async fn create(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        new: NewRun,
    ) -> Applied {
        let experiment = new.experiment;
        let kept = match self.room_for_a_run(connection, experiment).await? {
            Ok(kept) => kept,
            Err(error) => return refused(error),
        };
        let no = self.next.run;
        self.next.run += 1;
        let binds = vec![
            Bind::Int(no),
            Bind::from(&new.id),
            Bind::Int(experiment),
            Bind::from(&new.name),
            Bind::from(&new.user),
            Bind::from(&new.by),
            Bind::from(Status::Running.word()),
            Bind::Int(new.start),
        ];
        let sql = "INSERT INTO runs (no, id, experiment, name, user_id, made_by, status, \
                   start_time, deleted, points, has_inputs) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0) \
                   ON CONFLICT (id) DO NOTHING";
        // A database error would roll back the whole group, so refuse instead.
        if execute(connection, self.backend(), sql, binds).await? == 0 {
            return refused(Error::exists(format!("Run with id={} already exists", new.id)));
        }
        self.runs_of_experiment.insert(experiment, kept + 1);
        let tags = new.tags.len() as u64;
        self.put_tags(connection, no, &new.tags).await?;
        let state =
            RunState { experiment, params: Some(0), tags: Some(tags), ..RunState::default() };
        self.runs.insert(no, state);
        group.heads.push(RunHead { no, id: new.id.into(), experiment, by: new.by.into() });
        done()
    }

    /// Counts the runs of an experiment, and refuses when the limit is reached.
    pub(super) async fn room_for_a_run(
        &mut self,
        connection: &mut AnyConnection,
        experiment: i64,
    ) -> sqlx::Result<Result<u64, Error>> {
        let kept = match self.runs_of_experiment.get(&experiment) {
            Some(kept) => *kept,
            None => {
                let sql = "SELECT COUNT(*) FROM runs WHERE experiment = ?";
                self.one(connection, sql, vec![Bind::Int(experiment)]).await?.cast_unsigned()
            }
        };
        Ok(match kept < limits::RUNS_PER_EXPERIMENT {
            true => Ok(kept),
            false => Err(Error::over_limit(format!(
                "Experiment {experiment} has {kept} runs, which is the limit. Use another \
                 experiment"
            ))),
        })
    }

    async fn put_tags(
        &mut self,
        connection: &mut AnyConnection,
        run: i64,
        tags: &[(String, String)],
    ) -> sqlx::Result<()> {
        let row = |(key, value): &(String, String)| vec![run.into(), key.into(), value.into()];
        insert(connection, self.backend(), PUT_TAGS, tags.iter().map(row).collect()).await
    }

    async fn update(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
        (status, end, name): (Option<Status>, Option<i64>, Option<String>),
    ) -> Applied {
        if let Some(error) = self.inactive(connection, run).await? {
            return refused(error);
        }
        let binds = vec![
            Bind::MaybeText(status.map(|status| status.word().to_owned())),
            Bind::MaybeInt(end),
            Bind::MaybeText(name.clone()),
            Bind::Int(run.no),
        ];
        let sql = "UPDATE runs SET status = COALESCE(?, status), end_time = COALESCE(?, end_time), \
                   name = COALESCE(?, name) WHERE no = ?";
        execute(connection, self.backend(), sql, binds).await?;
        if let Some(name) = name {
            self.put_tags(connection, run.no, &[(NAME_TAG.to_owned(), name)]).await?;
        }
        done()
    }

    async fn log(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        run: &RunHead,
        (metrics, params, tags): (Vec<Metric>, Pairs, Pairs),
    ) -> Applied {
        // Checks all limits before the first write, so that a refusal leaves no partial batch.
        if let Some(error) = self.inactive(connection, run).await? {
            return refused(error);
        }
        let new = match self.new_params(connection, run, params).await? {
            Ok(new) => new,
            Err(error) => return refused(error),
        };
        if let Some(error) = self.too_many_tags(connection, run, tags.len()).await? {
            return refused(error);
        }
        if let Some(error) = self.too_many_of_models(connection, &metrics).await? {
            return refused(error);
        }
        let mut keys = Vec::with_capacity(metrics.len());
        // The run may have moved since the caller read it.
        let experiment = self.state(connection, run.no).await?.experiment;
        for metric in &metrics {
            match self.key(connection, group, experiment, &metric.key).await? {
                Ok(key) => keys.push(key),
                Err(error) => return refused(error),
            }
        }
        let sent = metrics.len() as u64;
        let state = self.state(connection, run.no).await?;
        let fresh: HashSet<i64> =
            keys.iter().filter(|key| !state.keys.contains(key)).copied().collect();
        if state.keys.len() + fresh.len() > limits::METRIC_KEYS_PER_RUN {
            let most = limits::METRIC_KEYS_PER_RUN;
            let said = format!("Run {} would have more than {most} metrics", run.id);
            return refused(Error::over_limit(said));
        }
        if state.points + sent > limits::POINTS_PER_RUN {
            let most = limits::POINTS_PER_RUN;
            let said = format!("Run {} would have more than {most} points of metrics", run.id);
            return refused(Error::over_limit(said));
        }
        state.keys.extend(fresh);
        state.points += sent;
        for (metric, key) in metrics.into_iter().zip(keys) {
            group.point(run.no, key, metric.point);
            if let Some(of) = metric.model {
                group.of_model(of, metric.key, run.id.to_string(), metric.point);
            }
        }
        if !new.is_empty() {
            let row =
                |(key, value): &(String, String)| vec![run.no.into(), key.into(), value.into()];
            let into = ("INSERT INTO params (run, key, value)", 3, "");
            insert(connection, self.backend(), into, new.iter().map(row).collect()).await?;
        }
        if !tags.is_empty() {
            self.put_tags(connection, run.no, &tags).await?;
            if let Some((_, name)) = tags.iter().find(|(key, _)| key == NAME_TAG) {
                let binds = vec![Bind::from(name), Bind::Int(run.no)];
                let sql = "UPDATE runs SET name = ? WHERE no = ?";
                execute(connection, self.backend(), sql, binds).await?;
            }
        }
        done()
    }

    /// Returns the new params. An existing param keeps its value.
    async fn new_params(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
        params: Vec<(String, String)>,
    ) -> sqlx::Result<Result<Vec<(String, String)>, Error>> {
        if params.is_empty() {
            return Ok(Ok(params));
        }
        let places = vec!["?"; params.len()].join(",");
        let sql = format!("SELECT key, value FROM params WHERE run = ? AND key IN ({places})");
        let mut binds = vec![Bind::Int(run.no)];
        binds.extend(params.iter().map(|(key, _)| Bind::from(key)));
        let sql = AssertSqlSafe(self.backend().sql_of(sql));
        let rows = query_with(sql, arguments(binds)).fetch_all(&mut *connection).await?;
        let mut there = Vec::with_capacity(rows.len());
        for row in rows {
            there.push((row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?));
        }
        let mut new = Vec::new();
        for (key, value) in params {
            match there.iter().find(|(old, _)| *old == key) {
                None => new.push((key, value)),
                Some((_, old)) if *old == value => {}
                Some((_, old)) => {
                    return Ok(Err(Error::invalid(format!(
                        "Changing param values is not allowed. Param with key='{key}' was already \
                         logged with value='{old}' for run ID='{}'. Attempted logging new value \
                         '{value}'.",
                        run.id
                    ))));
                }
            }
        }
        let known = self.state(connection, run.no).await?.params;
        let kept = match known {
            Some(kept) => kept,
            None => {
                let sql = "SELECT COUNT(*) FROM params WHERE run = ?";
                self.one(connection, sql, vec![Bind::Int(run.no)]).await?.cast_unsigned()
            }
        };
        let kept = kept + new.len() as u64;
        if kept > limits::PARAMS_PER_RUN {
            let most = limits::PARAMS_PER_RUN;
            let said = format!("Run {} would have more than {most} params", run.id);
            return Ok(Err(Error::over_limit(said)));
        }
        self.state(connection, run.no).await?.params = Some(kept);
        Ok(Ok(new))
    }

    async fn too_many_tags(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
        more: usize,
    ) -> sqlx::Result<Option<Error>> {
        if more == 0 {
            return Ok(None);
        }
        let known = self.state(connection, run.no).await?.tags;
        let most = limits::TAGS_PER_RUN;
        // A tag counts each time it is set, so the bound may be too high.
        let kept = match known.filter(|kept| kept + more as u64 <= most) {
            Some(kept) => kept,
            None => {
                let sql = "SELECT COUNT(*) FROM tags WHERE run = ?";
                self.one(connection, sql, vec![Bind::Int(run.no)]).await?.cast_unsigned()
            }
        };
        let kept = kept + more as u64;
        if kept > most {
            let said = format!("Run {} would have more than {most} tags", run.id);
            return Ok(Some(Error::over_limit(said)));
        }
        self.state(connection, run.no).await?.tags = Some(kept);
        Ok(None)
    }

    /// The number of a key of metrics in an experiment.
    pub(super) async fn key(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        experiment: i64,
        name: &str,
    ) -> sqlx::Result<Result<i64, Error>> {
        let of = (experiment, name.to_owned());
        if let Some(no) = self.keys.get(&of) {
            return Ok(Ok(*no));
        }
        let backend = self.backend();
        let sql = backend.sql("SELECT no FROM metric_keys WHERE experiment = ? AND name = ?");
        let binds = vec![Bind::Int(experiment), Bind::from(name)];
        let row = query_with(AssertSqlSafe(sql), arguments(binds.clone()));
        let row = row.fetch_optional(&mut *connection).await?;
        let no = match row {
            Some(row) => row.try_get(0)?,
            None => {
                let kept = match self.keys_of_experiment.get(&experiment) {
                    Some(kept) => *kept,
                    None => {
                        let sql = "SELECT COUNT(*) FROM metric_keys WHERE experiment = ?";
                        let binds = vec![Bind::Int(experiment)];
                        self.one(connection, sql, binds).await?.cast_unsigned()
                    }
                };
                if kept >= limits::METRIC_KEYS_PER_EXPERIMENT {
                    return Ok(Err(Error::over_limit(format!(
                        "Experiment {experiment} has {kept} names of metrics, which is the \
                         limit"
                    ))));
                }
                self.keys_of_experiment.insert(experiment, kept + 1);
                let no = self.next.key;
                self.next.key += 1;
                let mut all = vec![Bind::Int(no)];
                all.extend(binds);
                let sql = "INSERT INTO metric_keys (no, experiment, name) VALUES (?, ?, ?)";
                execute(connection, backend, sql, all).await?;
                group.names.push((no, name.to_owned()));
                no
            }
        };
        self.keys.insert(of, no);
        Ok(Ok(no))
    }

    async fn delete_tag(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
        key: &str,
    ) -> Applied {
        if let Some(error) = self.inactive(connection, run).await? {
            return refused(error);
        }
        let sql = "DELETE FROM tags WHERE run = ? AND key = ?";
        let binds = vec![Bind::Int(run.no), Bind::from(key)];
        if execute(connection, self.backend(), sql, binds).await? == 0 {
            let said = format!("No tag with name: {key} in run with id {}", run.id);
            return refused(Error::absent(said));
        }
        done()
    }

    async fn inputs(
        &mut self,
        connection: &mut AnyConnection,
        run: &RunHead,
        datasets: Vec<Input>,
        models: Vec<RunModel>,
    ) -> Applied {
        if let Some(error) = self.inactive(connection, run).await? {
            return refused(error);
        }
        for (what, more, most) in [
            ("run_datasets", datasets.len(), limits::DATASETS_PER_RUN),
            ("run_models", models.len(), limits::MODELS_PER_RUN),
        ] {
            let sql = match what {
                "run_datasets" => "SELECT COUNT(*) FROM run_datasets WHERE run = ?",
                _ => "SELECT COUNT(*) FROM run_models WHERE run = ?",
            };
            let kept = self.one(connection, sql, vec![Bind::Int(run.no)]).await?;
            if more > 0 && kept.cast_unsigned() + more as u64 > most {
                let said = format!("Run {} would have more than {most} in {what}", run.id);
                return refused(Error::over_limit(said));
            }
        }
        let experiment = self.state(connection, run.no).await?.experiment;
        for input in &datasets {
            let dataset = self.dataset(connection, experiment, &input.dataset).await?;
            let tags = berth_tracker::pairs_to_json(&input.tags);
            let binds = vec![
                Bind::Int(run.no),
                Bind::Int(dataset),
                Bind::from(input.context().unwrap_or("")),
                Bind::Text(tags),
            ];
            let sql = "INSERT INTO run_datasets (run, dataset, context, tags) VALUES (?, ?, ?, ?) \
                       ON CONFLICT (run, dataset) DO UPDATE SET context = excluded.context, \
                       tags = excluded.tags";
            execute(connection, self.backend(), sql, binds).await?;
        }
        for model in &models {
            let binds = vec![
                Bind::Int(run.no),
                Bind::Int(model.is_output.into()),
                Bind::from(&model.id),
                Bind::Int(model.step),
            ];
            let sql = "INSERT INTO run_models (run, output, model, step) VALUES (?, ?, ?, ?) \
                       ON CONFLICT (run, output, model) DO UPDATE SET step = excluded.step";
            execute(connection, self.backend(), sql, binds).await?;
        }
        let sql = "UPDATE runs SET has_inputs = 1 WHERE no = ?";
        execute(connection, self.backend(), sql, vec![Bind::Int(run.no)]).await?;
        done()
    }

    /// The number of a data set. An experiment stores each data set once.
    pub(super) async fn dataset(
        &mut self,
        connection: &mut AnyConnection,
        experiment: i64,
        of: &Dataset,
    ) -> sqlx::Result<i64> {
        let backend = self.backend();
        let sql = "SELECT no FROM datasets WHERE experiment = ? AND name = ? AND digest = ?";
        let binds = vec![Bind::Int(experiment), Bind::from(&of.name), Bind::from(&of.digest)];
        let row = query_with(AssertSqlSafe(backend.sql(sql)), arguments(binds));
        if let Some(row) = row.fetch_optional(&mut *connection).await? {
            return row.try_get(0);
        }
        let no = self.next.dataset;
        self.next.dataset += 1;
        let binds = vec![
            Bind::Int(no),
            Bind::Int(experiment),
            Bind::from(&of.name),
            Bind::from(&of.digest),
            Bind::from(&of.source_type),
            Bind::from(&of.source),
            Bind::MaybeText(of.schema.clone()),
            Bind::MaybeText(of.profile.clone()),
        ];
        let sql = "INSERT INTO datasets (no, experiment, name, digest, source_type, source, \
                   schema_json, profile) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        execute(connection, backend, sql, binds).await?;
        Ok(no)
    }
}
