//! Logged and registered models in a file store, and the store as a sink.

use super::layout::{ALIASES, ARTIFACTS, META, METRICS, MODELS, PARAMS, TAGS, file_of};
use super::write::{append, now, number, put_pairs, set_fields};
use super::{FileStore, disk, models, runs, yaml};
use crate::error::{Error, Result};
use crate::model::{
    Content, Experiment, LoggedModel, ModelMetric, Owner, Pairs, Place, RegisteredModel,
};
use crate::sink::{Cuts, NewRun, NewVersion, Sink, Target, Write};
use crate::source::Fut;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

impl FileStore {
    fn new_logged_model(
        &self,
        of: &Experiment,
        model: &LoggedModel,
        run: Option<&str>,
        tags: &Pairs,
    ) -> Result<(String, Place)> {
        let folder = file_of(&PathBuf::from(&of.location).join(MODELS), &model.id)?;
        let uri = disk::uri_of_path(&folder.join(ARTIFACTS));
        let at = model.created.unwrap_or_else(now);
        let meta = yaml::write(&[
            ("artifact_location", json!(uri)),
            ("creation_timestamp", json!(at)),
            ("experiment_id", json!(of.id)),
            ("last_updated_timestamp", json!(at)),
            ("lifecycle_stage", json!("active")),
            ("model_id", json!(model.id)),
            ("model_type", json!(model.model_type)),
            ("name", json!(model.name)),
            ("source_run_id", json!(run)),
            ("status", json!(models::status_number("PENDING"))),
            ("status_message", Value::Null),
        ]);
        put_pairs(&folder.join(PARAMS), &model.params)?;
        put_pairs(&folder.join(TAGS), tags)?;
        let metrics = folder.join(METRICS);
        std::fs::create_dir_all(&metrics).map_err(Error::file("making", &metrics))?;
        disk::write_text(&folder.join(META), &meta)?;
        let id = model.id.clone();
        Ok((id.clone(), Place { uri, owner: Owner::Model(id) }))
    }

    fn model_folder(&self, of: &Experiment, model: &str) -> Result<PathBuf> {
        file_of(&PathBuf::from(&of.location).join(MODELS), model)
    }

    fn add_model_metrics(&self, folder: &Path, run: &str, metrics: &[ModelMetric]) -> Result<()> {
        for one in metrics {
            let point = &one.point;
            let mut line =
                format!("{} {} {} {run}", point.timestamp, number(point.value()), point.step);
            if !one.dataset_name.is_empty() {
                line = format!("{line} {} {}", one.dataset_name, one.dataset_digest);
            }
            append(&file_of(&folder.join(METRICS), &one.key)?, &format!("{line}\n"))?;
        }
        Ok(())
    }

    fn new_registered_model(
        &self,
        name: &str,
        model: &RegisteredModel,
        tags: &Pairs,
    ) -> Result<()> {
        if name.contains(['/', '%']) {
            let why = "MLflow's file store takes no name with / or % in it".to_owned();
            return Err(Error::Refused { what: format!("model {name}"), why });
        }
        let folder = file_of(&self.root.join(MODELS), name)?;
        let at = model.created.unwrap_or_else(now);
        let meta = yaml::write(&[
            ("aliases", json!({})),
            ("creation_timestamp", json!(at)),
            ("description", json!(model.description)),
            ("last_updated_timestamp", json!(at)),
            ("name", json!(name)),
        ]);
        put_pairs(&folder.join(TAGS), tags)?;
        disk::write_text(&folder.join(META), &meta)
    }

    fn new_version(&self, new: &NewVersion<'_>) -> Result<u64> {
        let folder = self.version_folder(new.model, new.version)?;
        let at = now();
        // The location where the client looks for the files.
        let storage = match new.logged_model {
            Some(id) => self.files_of_model(id).unwrap_or_else(|| new.source.to_owned()),
            None => new.source.to_owned(),
        };
        let meta = yaml::write(&[
            ("creation_timestamp", json!(at)),
            ("current_stage", json!("None")),
            ("description", json!(new.description)),
            ("last_updated_timestamp", json!(at)),
            ("model_id", json!(new.logged_model)),
            ("name", json!(new.model)),
            ("run_id", json!(new.run)),
            ("run_link", json!(new.run_link)),
            ("source", json!(new.source)),
            ("status", json!("READY")),
            ("status_message", Value::Null),
            ("storage_location", json!(storage)),
            ("user_id", Value::Null),
            ("version", json!(new.version)),
        ]);
        put_pairs(&folder.join(TAGS), &new.tags)?;
        disk::write_text(&folder.join(META), &meta)?;
        Ok(new.version)
    }

    fn change(&self, write: Write<'_>) -> Result<()> {
        match write {
            Write::TagExperiment(of, tags) => {
                put_pairs(&PathBuf::from(&of.location).join(TAGS), tags)
            }
            Write::DeleteExperiment(of) => self.trash(of),
            Write::BeginPoints(run) => self.no_points(run),
            Write::Points(run, metrics) => self.add_points(run, metrics),
            Write::Params(run, params) => put_pairs(&self.folder_of(run).join(PARAMS), params),
            Write::Tags(run, tags) => put_pairs(&self.folder_of(run).join(TAGS), tags),
            Write::Datasets(run, datasets) => self.add_datasets(run, datasets),
            Write::Models(run, reads, makes) => self.add_models(run, reads, makes),
            Write::EndRun(run, status, end) => {
                let status = runs::status_number(status);
                self.change_run(run, &[("status", json!(status)), ("end_time", json!(end))])
            }
            Write::DeleteRun(run) => {
                let fields =
                    [("lifecycle_stage", json!("deleted")), ("deleted_time", json!(now()))];
                self.change_run(run, &fields)
            }
            Write::ModelMetrics((of, model), run, metrics) => {
                self.add_model_metrics(&self.model_folder(of, model)?, run, metrics)
            }
            Write::EndModel((of, model), status, tags) => {
                let folder = self.model_folder(of, model)?;
                put_pairs(&folder.join(TAGS), &tags)?;
                let status = json!(models::status_number(status));
                set_fields(&folder.join(META), &[("status", status)])
            }
            Write::RegisteredModel(name, model, tags) => {
                self.new_registered_model(name, model, &tags)
            }
            Write::Stage(model, version, stage) => {
                let folder = self.version_folder(model, version)?;
                set_fields(&folder.join(META), &[("current_stage", json!(stage))])
            }
            Write::Alias(model, alias, version) => {
                let folder = file_of(&self.root.join(MODELS), model)?;
                put_pairs(&folder.join(ALIASES), &[(alias.to_owned(), version.to_string())])
            }
        }
    }

    fn version_folder(&self, model: &str, version: u64) -> Result<PathBuf> {
        Ok(file_of(&self.root.join(MODELS), model)?.join(format!("version-{version}")))
    }

    fn files_of_model(&self, id: &str) -> Option<String> {
        let folders = super::layout::folders(&self.root).ok()?;
        let found = folders.into_iter().map(|folder| folder.join(MODELS).join(id));
        let found = found.into_iter().find(|folder| folder.join(META).is_file())?;
        Some(disk::uri_of_path(&found.join(ARTIFACTS)))
    }
}

fn done<'a, T: 'a>(result: Result<T>) -> Fut<'a, T> {
    Box::pin(std::future::ready(result))
}

impl Sink for FileStore {
    fn cuts(&self) -> Cuts {
        Cuts::NONE
    }

    fn create_experiment<'a>(
        &'a self,
        name: &'a str,
        id: &'a str,
        tags: Pairs,
    ) -> Fut<'a, Experiment> {
        done(self.new_experiment(name, id, &tags))
    }

    fn create_run<'a>(&'a self, of: &'a Experiment, new: NewRun<'a>) -> Fut<'a, Target> {
        done(self.new_run(of, &new))
    }

    fn create_logged_model<'a>(
        &'a self,
        of: &'a Experiment,
        model: &'a LoggedModel,
        run: Option<&'a str>,
        tags: Pairs,
    ) -> Fut<'a, (String, Place)> {
        done(self.new_logged_model(of, model, run, &tags))
    }

    fn create_version<'a>(&'a self, new: NewVersion<'a>) -> Fut<'a, u64> {
        done(self.new_version(&new))
    }

    fn write<'a>(&'a self, write: Write<'a>) -> Fut<'a, ()> {
        done(self.change(write))
    }

    fn put<'a>(
        &'a self,
        place: &'a Place,
        path: &'a str,
        open: &'a (dyn Fn() -> Fut<'a, Content> + 'a),
    ) -> Fut<'a, ()> {
        Box::pin(async move {
            let folder = disk::path_of_uri(&place.uri).unwrap_or_default();
            let path = file_of(&folder, path)?;
            disk::write(&path, open().await?).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Problems;
    use crate::source::Source;
    use crate::{Metric, Point, tags};
    use futures_util::TryStreamExt;
    use std::rc::Rc;

    #[tokio::test]
    async fn what_is_written_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let problems = Rc::new(Problems::default());
        let store = FileStore::create(&root.path().join("new"), false, problems.clone()).unwrap();
        let tags = vec![("task".to_owned(), "a: b".to_owned())];
        let experiment = store.create_experiment("digits", "17", tags).await.unwrap();
        assert_eq!(experiment.id, "17");
        let new = NewRun {
            id: "abc",
            name: "first",
            user: "kim",
            start: Some(5),
            tags: vec![(tags::RUN.to_owned(), "abc".to_owned())],
        };
        let run = store.create_run(&experiment, new).await.unwrap();
        let points: Vec<Metric> = (0..3)
            .map(|step| Metric { key: "val/acc".to_owned(), point: Point::new(step, 1, 0.1) })
            .collect();
        // Sending twice creates no duplicate.
        for _ in 0..2 {
            store.write(Write::BeginPoints(&run)).await.unwrap();
            store.write(Write::Points(&run, &points)).await.unwrap();
        }
        let params = [("lr".to_owned(), "0.1\n".to_owned())];
        store.write(Write::Params(&run, &params)).await.unwrap();
        store.write(Write::EndRun(&run, "FAILED", Some(9))).await.unwrap();
        store.write(Write::DeleteRun(&run)).await.unwrap();
        store.write(Write::DeleteExperiment(&experiment)).await.unwrap();
        let again = FileStore::open(&root.path().join("new"), problems.clone()).unwrap();
        let found = again.experiments().await.unwrap();
        assert!(found[0].deleted && found[0].name == "digits");
        let runs = again.runs(&found[0]).try_concat().await.unwrap();
        assert!(runs[0].deleted && runs[0].status == "FAILED" && runs[0].end == Some(9));
        assert_eq!(runs[0].params, [("lr".to_owned(), "0.1\n".to_owned())]);
        let read = again.points(&runs[0], "val/acc").try_concat().await.unwrap();
        assert_eq!(read, points.iter().map(|one| one.point).collect::<Vec<_>>());
        assert_eq!(problems.all().1, 0, "{:?}", problems.all());
    }

    #[test]
    fn a_folder_that_is_no_file_store_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("photos")).unwrap();
        let problems = Rc::new(Problems::default());
        let said = FileStore::open(root.path(), problems.clone()).err().unwrap().to_string();
        assert!(said.contains("it is no file store of MLflow"), "{said}");
        let said = FileStore::open(&root.path().join("x"), problems).err().unwrap().to_string();
        assert!(said.contains("there is no such folder"), "{said}");
    }
}
