//! Logged and registered models, from the tables.

use super::Database;
use crate::error::Result;
use crate::model::{LoggedModel, ModelMetric, Owner, Place, Point, RegisteredModel, Version};
use crate::source::Pages;
use futures_util::{StreamExt, stream};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, query};

const PAGE: i64 = 50;

fn text(row: &SqliteRow, at: usize) -> sqlx::Result<String> {
    Ok(some(row, at)?.unwrap_or_default())
}

fn some(row: &SqliteRow, at: usize) -> sqlx::Result<Option<String>> {
    Ok(row.try_get::<Option<String>, _>(at)?.filter(|text| !text.is_empty()))
}

fn status_of(number: Option<i64>) -> &'static str {
    match number {
        Some(2) => "READY",
        Some(3) => "FAILED",
        _ => "PENDING",
    }
}

impl Database {
    pub(super) fn logged_model_pages<'a>(&'a self, experiment: &'a str) -> Pages<'a, LoggedModel> {
        let needed = ["model_id", "experiment_id", "name", "artifact_location", "status"];
        if !self.shape.has("logged_models", &needed) {
            return stream::empty().boxed_local();
        }
        stream::try_unfold(Some(0_i64), move |after| async move {
            let Some(after) = after else { return Ok(None) };
            let sql = "SELECT rowid, CAST(model_id AS TEXT), CAST(name AS TEXT), \
                       CAST(artifact_location AS TEXT), CAST(creation_timestamp_ms AS INTEGER), \
                       CAST(status AS INTEGER), CAST(model_type AS TEXT), \
                       CAST(source_run_id AS TEXT) FROM logged_models \
                       WHERE experiment_id = CAST(? AS INTEGER) AND lifecycle_stage = 'active' \
                       AND rowid > ? ORDER BY rowid LIMIT ?";
            let rows = query(sql).bind(experiment).bind(after).bind(PAGE).fetch_all(&self.pool);
            let rows = rows.await.map_err(self.failed("reading logged models"))?;
            let (mut last, mut models) = (None, Vec::new());
            for row in &rows {
                let read = || -> sqlx::Result<(i64, LoggedModel)> {
                    let id = text(row, 1)?;
                    let model = LoggedModel {
                        experiment: experiment.to_owned(),
                        name: text(row, 2)?,
                        created: row.try_get(4)?,
                        status: status_of(row.try_get(5)?).to_owned(),
                        model_type: text(row, 6)?,
                        run: some(row, 7)?,
                        tags: Vec::new(),
                        params: Vec::new(),
                        metrics: Vec::new(),
                        place: Place { uri: text(row, 3)?, owner: Owner::Model(id.clone()) },
                        id,
                    };
                    Ok((row.try_get(0)?, model))
                };
                let (number, mut model) = read().map_err(self.failed("reading a logged model"))?;
                last = Some(number);
                let sql = "SELECT CAST(tag_key AS TEXT), CAST(tag_value AS TEXT) \
                           FROM logged_model_tags WHERE model_id = ?";
                model.tags = self.pairs(sql, &model.id).await?;
                let sql = "SELECT CAST(param_key AS TEXT), CAST(param_value AS TEXT) \
                           FROM logged_model_params WHERE model_id = ?";
                model.params = self.pairs(sql, &model.id).await?;
                model.metrics = self.model_metrics(&model.id).await?;
                models.push(model);
            }
            let is_over = rows.len() < PAGE.unsigned_abs() as usize;
            Ok(Some((models, last.filter(|_| !is_over))))
        })
        .boxed_local()
    }

    async fn model_metrics(&self, model: &str) -> Result<Vec<ModelMetric>> {
        let sql = "SELECT CAST(metric_name AS TEXT), CAST(metric_step AS INTEGER), \
                   CAST(metric_timestamp_ms AS INTEGER), CAST(metric_value AS REAL), \
                   CAST(run_id AS TEXT), CAST(dataset_name AS TEXT), CAST(dataset_digest AS TEXT) \
                   FROM logged_model_metrics WHERE model_id = ?";
        let rows = query(sql).bind(model).fetch_all(&self.pool).await;
        let read = |row: &SqliteRow| -> sqlx::Result<ModelMetric> {
            let value = row.try_get::<Option<f64>, _>(3)?.unwrap_or(f64::NAN);
            Ok(ModelMetric {
                key: text(row, 0)?,
                point: Point::new(row.try_get(1)?, row.try_get(2)?, value),
                run: text(row, 4)?,
                dataset_name: text(row, 5)?,
                dataset_digest: text(row, 6)?,
            })
        };
        let found = rows.and_then(|rows| rows.iter().map(read).collect());
        found.map_err(self.failed("reading metrics of a logged model"))
    }

    pub(super) fn registered_pages(&self) -> Pages<'_, RegisteredModel> {
        if !self.shape.has("registered_models", &["name", "creation_time", "description"]) {
            return stream::empty().boxed_local();
        }
        stream::try_unfold(Some(0_i64), move |after| async move {
            let Some(after) = after else { return Ok(None) };
            let sql = "SELECT rowid, CAST(name AS TEXT), CAST(description AS TEXT), \
                       CAST(creation_time AS INTEGER) FROM registered_models WHERE rowid > ? \
                       ORDER BY rowid LIMIT ?";
            let rows = query(sql).bind(after).bind(PAGE).fetch_all(&self.pool).await;
            let rows = rows.map_err(self.failed("reading registered models"))?;
            let (mut last, mut models) = (None, Vec::new());
            for row in &rows {
                let read = || -> sqlx::Result<(i64, RegisteredModel)> {
                    let model = RegisteredModel {
                        name: text(row, 1)?,
                        description: text(row, 2)?,
                        created: row.try_get(3)?,
                        tags: Vec::new(),
                        aliases: Vec::new(),
                    };
                    Ok((row.try_get(0)?, model))
                };
                let (number, mut model) = read().map_err(self.failed("reading a model"))?;
                last = Some(number);
                let sql = "SELECT CAST(key AS TEXT), CAST(value AS TEXT) \
                           FROM registered_model_tags WHERE name = ?";
                model.tags = self.pairs(sql, &model.name).await?;
                if self.shape.has("registered_model_aliases", &["name", "alias", "version"]) {
                    let sql = "SELECT CAST(alias AS TEXT), CAST(version AS TEXT) \
                               FROM registered_model_aliases WHERE name = ?";
                    let pairs = self.pairs(sql, &model.name).await?.into_iter();
                    let number =
                        |(alias, version): (String, String)| Some((alias, version.parse().ok()?));
                    model.aliases = pairs.filter_map(number).collect();
                }
                models.push(model);
            }
            let is_over = rows.len() < PAGE.unsigned_abs() as usize;
            Ok(Some((models, last.filter(|_| !is_over))))
        })
        .boxed_local()
    }

    pub(super) async fn all_versions(&self, model: &str) -> Result<Vec<Version>> {
        let sql = "SELECT CAST(version AS INTEGER), CAST(description AS TEXT), \
                   CAST(current_stage AS TEXT), CAST(source AS TEXT), CAST(run_id AS TEXT), \
                   CAST(user_id AS TEXT), CAST(creation_time AS INTEGER) FROM model_versions \
                   WHERE name = ? AND current_stage <> 'Deleted_Internal' ORDER BY version";
        let rows = query(sql).bind(model).fetch_all(&self.pool).await;
        let rows = rows.map_err(self.failed("reading versions"))?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = || -> sqlx::Result<Version> {
                let version: i64 = row.try_get(0)?;
                Ok(Version {
                    version: version.unsigned_abs(),
                    description: text(row, 1)?,
                    stage: some(row, 2)?.unwrap_or_else(|| "None".to_owned()),
                    source: text(row, 3)?,
                    run: some(row, 4)?,
                    run_link: None,
                    model: None,
                    user: some(row, 5)?,
                    created: row.try_get(6)?,
                    tags: Vec::new(),
                })
            };
            let mut version = read().map_err(self.failed("reading a version"))?;
            version.tags = self.version_tags(model, version.version).await?;
            found.push(version);
        }
        Ok(found)
    }

    async fn version_tags(&self, model: &str, version: u64) -> Result<Vec<(String, String)>> {
        if !self.shape.has("model_version_tags", &["name", "version", "key", "value"]) {
            return Ok(Vec::new());
        }
        let sql = "SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM model_version_tags \
                   WHERE name = ? AND version = ?";
        let rows = query(sql).bind(model).bind(version.cast_signed()).fetch_all(&self.pool).await;
        let read = |row: &SqliteRow| Ok((text(row, 0)?, text(row, 1)?));
        let found: sqlx::Result<_> = rows.and_then(|rows| rows.iter().map(read).collect());
        found.map_err(self.failed("reading tags of a version"))
    }
}
