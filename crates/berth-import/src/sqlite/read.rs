//! The database as a source.

use super::Database;
use crate::error::{Error, Result};
use crate::files::disk;
use crate::model::{
    Content, Experiment, FileInfo, LoggedModel, Place, Point, RegisteredModel, Run, Version,
};
use crate::source::{Fut, Pages, Source};
use sqlx::{Row, query};
use std::path::PathBuf;

impl Database {
    async fn all_experiments(&self) -> Result<Vec<Experiment>> {
        let has_times = self.shape.has("experiments", &["creation_time", "artifact_location"]);
        let sql = match has_times {
            true => {
                "SELECT CAST(experiment_id AS TEXT), CAST(name AS TEXT), \
                 CAST(lifecycle_stage AS TEXT), CAST(creation_time AS INTEGER), \
                 CAST(artifact_location AS TEXT) FROM experiments ORDER BY experiment_id"
            }
            false => {
                "SELECT CAST(experiment_id AS TEXT), CAST(name AS TEXT), \
                 CAST(lifecycle_stage AS TEXT), NULL, NULL FROM experiments ORDER BY experiment_id"
            }
        };
        let rows = query(sql).fetch_all(&self.pool).await;
        let rows = rows.map_err(self.failed("reading experiments"))?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = || -> sqlx::Result<Experiment> {
                let stage: Option<String> = row.try_get(2)?;
                Ok(Experiment {
                    id: row.try_get(0)?,
                    name: row.try_get(1)?,
                    deleted: stage.as_deref() == Some("deleted"),
                    created: row.try_get(3)?,
                    tags: Vec::new(),
                    location: row.try_get::<Option<String>, _>(4)?.unwrap_or_default(),
                })
            };
            let mut experiment = read().map_err(self.failed("reading an experiment"))?;
            if self.shape.has("experiment_tags", &["experiment_id", "key", "value"]) {
                let sql = "SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM experiment_tags \
                           WHERE experiment_id = CAST(? AS INTEGER)";
                experiment.tags = self.pairs(sql, &experiment.id).await?;
            }
            found.push(experiment);
        }
        Ok(found)
    }

    fn place(&self, place: &Place) -> Result<PathBuf> {
        let elsewhere = || {
            let why = "the files are on no disk of this machine; import from MLflow's server, \
                       which can read them";
            Error::odd(place.uri.clone(), why)
        };
        self.folder_of(&place.uri).ok_or_else(elsewhere)
    }

    /// A run without files has no folder. But if the folder of its experiment and its parent are also missing,
    /// the files are elsewhere.
    fn must_be_near(&self, place: &Place, folder: &std::path::Path) -> Result<()> {
        let near = folder.ancestors().take(4).any(std::path::Path::is_dir);
        if near || self.artifacts.iter().any(|folder| folder.is_dir()) {
            return Ok(());
        }
        let why = "the folder of its files is not there; name the one that they are in now with \
                   --artifacts";
        Err(Error::odd(place.uri.clone(), why))
    }
}

impl Source for Database {
    fn name(&self) -> &str {
        &self.name
    }

    fn experiments(&self) -> Fut<'_, Vec<Experiment>> {
        Box::pin(self.all_experiments())
    }

    fn runs<'a>(&'a self, of: &'a Experiment) -> Pages<'a, Run> {
        self.run_pages(&of.id)
    }

    fn points<'a>(&'a self, run: &'a Run, key: &'a str) -> Pages<'a, Point> {
        self.point_pages(&run.id, key)
    }

    fn logged_models<'a>(&'a self, of: &'a Experiment) -> Pages<'a, LoggedModel> {
        self.logged_model_pages(&of.id)
    }

    fn registered_models(&self) -> Pages<'_, RegisteredModel> {
        self.registered_pages()
    }

    fn versions<'a>(&'a self, model: &'a str) -> Fut<'a, Vec<Version>> {
        Box::pin(self.all_versions(model))
    }

    fn files<'a>(&'a self, place: &'a Place) -> Fut<'a, Vec<FileInfo>> {
        Box::pin(async move {
            let folder = self.place(place)?;
            self.must_be_near(place, &folder)?;
            disk::files(&folder).await
        })
    }

    fn open<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Content> {
        Box::pin(async move { disk::open(&self.place(place)?.join(path)).await })
    }
}
