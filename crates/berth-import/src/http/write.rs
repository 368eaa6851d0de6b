//! Writing to a server.

use super::Server;
use super::json::{self, of_pairs, some_text, value_of};
use super::read::id_of;
use crate::error::{Error, Result};
use crate::model::{
    Content, Dataset, Experiment, LoggedModel, ModelMetric, Owner, Pairs, Place, Point,
};
use crate::sink::{Cuts, NewRun, NewVersion, Sink, Target, Write};
use crate::source::Fut;
use crate::tags;
use berth_api::routes::Method;
use serde_json::{Value, json};

/// The maximum number of data sets in one request. The description of each may have megabytes.
const DATASET_BYTES: usize = 8 << 20;

impl Server {
    async fn experiment_named(&self, name: &str) -> Result<Option<Experiment>> {
        let asked = json!({ "experiment_name": name });
        match self.ask((Method::Get, "experiments/get-by-name"), &asked).await {
            Ok(found) => Ok(Some(json::experiment(&found["experiment"]))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn new_experiment(&self, name: &str, tags: Pairs) -> Result<Experiment> {
        let fields = json!({ "name": name, "tags": of_pairs(&tags) });
        let find = || async { Ok(self.experiment_named(name).await?.is_some()) };
        match self.make("experiments/create", &fields, find).await {
            Err(error) if !error.is_there_already() => return Err(error),
            _ => {}
        }
        let found = self.experiment_named(name).await?;
        found.ok_or_else(|| Error::Absent(format!("experiment {name} was made and is not there")))
    }

    /// The run at the target for a run of the source.
    async fn run_of(&self, experiment: &str, source: &str) -> Result<Option<Value>> {
        let fields = json!({
            "experiment_ids": [experiment],
            "run_view_type": "ALL",
            "filter": format!("tags.`{}` = '{source}'", tags::RUN),
            "max_results": 1,
        });
        let mut found = self.ask((Method::Post, "runs/search"), &fields).await?;
        Ok(found["runs"].get_mut(0).map(Value::take))
    }

    async fn new_run(&self, of: &Experiment, new: NewRun<'_>) -> Result<Target> {
        let mut fields = json!({
            "experiment_id": of.id,
            "user_id": new.user,
            "start_time": new.start,
            "tags": of_pairs(&new.tags),
        });
        if !new.name.is_empty() {
            fields["run_name"] = json!(new.name);
        }
        let find = || async { Ok(self.run_of(&of.id, new.id).await?.is_some()) };
        let made = self.make("runs/create", &fields, find).await?.map(|made| made["run"].clone());
        let made = match made {
            Some(made) => made,
            None => self.run_of(&of.id, new.id).await?.unwrap_or_default(),
        };
        let id = id_of(&made, &["info", "run_id"])?;
        let uri = json::text(&made["info"]["artifact_uri"]);
        let place = Place { uri, owner: Owner::Run(id.clone()) };
        Ok(Target { experiment: of.id.clone(), id, place })
    }

    async fn batch(&self, run: &str, list: &str, items: Value) -> Result<()> {
        let fields = json!({ "run_id": run, list: items });
        self.ask((Method::Post, "runs/log-batch"), &fields).await.map(drop)
    }

    async fn datasets(&self, run: &str, datasets: &[Dataset]) -> Result<()> {
        let mut rest = datasets;
        while !rest.is_empty() {
            let mut bytes = 0;
            let size = |one: &Dataset| {
                let texts = [&one.schema, &one.profile].into_iter().flatten().map(String::len);
                texts.sum::<usize>() + one.source.len()
            };
            let fits = rest.iter().take_while(|one| {
                bytes += size(one);
                bytes <= DATASET_BYTES
            });
            let (some, after) = rest.split_at(fits.count().clamp(1, rest.len().min(100)));
            rest = after;
            let some: Value = some.iter().map(json::of_dataset).collect();
            let fields = json!({ "run_id": run, "datasets": some });
            self.ask((Method::Post, "runs/log-inputs"), &fields).await?;
        }
        Ok(())
    }

    async fn models(&self, run: &str, reads: &[String], makes: &[(String, i64)]) -> Result<()> {
        if !reads.is_empty() {
            let models: Value = reads.iter().map(|id| json!({ "model_id": id })).collect();
            let fields = json!({ "run_id": run, "models": models });
            self.ask((Method::Post, "runs/log-inputs"), &fields).await?;
        }
        if !makes.is_empty() {
            let models: Value =
                makes.iter().map(|(id, step)| json!({ "model_id": id, "step": step })).collect();
            let fields = json!({ "run_id": run, "models": models });
            self.ask((Method::Post, "runs/outputs"), &fields).await?;
        }
        Ok(())
    }

    async fn logged_model_of(&self, experiment: &str, source: &str) -> Result<Option<Value>> {
        let fields = json!({
            "experiment_ids": [experiment],
            "filter": format!("tags.`{}` = '{source}'", tags::MODEL),
            "max_results": 1,
        });
        let mut found = self.ask((Method::Post, "logged-models/search"), &fields).await?;
        Ok(found["models"].get_mut(0).map(Value::take))
    }

    async fn new_logged_model(
        &self,
        of: &Experiment,
        model: &LoggedModel,
        run: Option<&str>,
        tags: Pairs,
    ) -> Result<(String, Place)> {
        let fields = json!({
            "experiment_id": of.id,
            "name": model.name,
            "model_type": model.model_type,
            "source_run_id": run,
            "params": of_pairs(&model.params),
            "tags": of_pairs(&tags),
        });
        let find = || async { Ok(self.logged_model_of(&of.id, &model.id).await?.is_some()) };
        let made =
            self.make("logged-models", &fields, find).await?.map(|made| made["model"].clone());
        let made = match made {
            Some(made) => made,
            None => self.logged_model_of(&of.id, &model.id).await?.unwrap_or_default(),
        };
        let id = id_of(&made, &["info", "model_id"])?;
        let uri = json::text(&made["info"]["artifact_uri"]);
        Ok((id.clone(), Place { uri, owner: Owner::Model(id) }))
    }

    async fn change(&self, write: Write<'_>) -> Result<()> {
        match write {
            Write::TagExperiment(of, tags) => {
                for (key, value) in tags {
                    let fields = json!({ "experiment_id": of.id, "key": key, "value": value });
                    self.post("experiments/set-experiment-tag", fields).await?;
                }
                Ok(())
            }
            Write::DeleteExperiment(of) => {
                match self.post("experiments/delete", json!({ "experiment_id": of.id })).await {
                    Err(error) if !error.is_absent() => Err(error),
                    _ => Ok(()),
                }
            }
            // The server keeps one of two equal points.
            Write::BeginPoints(_) => Ok(()),
            Write::Points(run, metrics) => {
                let metrics = metrics.iter().map(|one| metric(&one.key, &one.point)).collect();
                self.batch(&run.id, "metrics", metrics).await
            }
            Write::Params(run, params) => self.batch(&run.id, "params", of_pairs(params)).await,
            Write::Tags(run, tags) => self.batch(&run.id, "tags", of_pairs(tags)).await,
            Write::Datasets(run, datasets) => self.datasets(&run.id, datasets).await,
            Write::Models(run, reads, makes) => self.models(&run.id, reads, makes).await,
            Write::EndRun(run, status, end) => {
                let fields = json!({ "run_id": run.id, "status": status, "end_time": end });
                self.post("runs/update", fields).await
            }
            Write::DeleteRun(run) => self.post("runs/delete", json!({ "run_id": run.id })).await,
            Write::ModelMetrics((_, model), run, metrics) => {
                let metrics = metrics.iter().map(|one| model_metric(model, one)).collect();
                self.batch(run, "metrics", metrics).await
            }
            Write::EndModel((_, model), status, tags) => self.end_model(model, status, tags).await,
            Write::RegisteredModel(name, model, tags) => {
                self.new_registered_model(name, model, tags).await
            }
            Write::Stage(model, version, stage) => self.stage(model, version, stage).await,
            Write::Alias(model, alias, version) => self.alias(model, alias, version).await,
        }
    }

    async fn post(&self, path: &str, fields: Value) -> Result<()> {
        self.ask((Method::Post, path), &fields).await.map(drop)
    }

    async fn end_model(&self, model: &str, status: &str, tags: Pairs) -> Result<()> {
        let status = match status {
            "READY" => Some("LOGGED_MODEL_READY"),
            "FAILED" => Some("LOGGED_MODEL_UPLOAD_FAILED"),
            _ => None,
        };
        let path = format!("logged-models/{model}");
        if let Some(status) = status {
            let fields = json!({ "model_id": model, "status": status });
            self.ask((Method::Patch, &path), &fields).await?;
        }
        let fields = json!({ "model_id": model, "tags": of_pairs(&tags) });
        self.ask((Method::Patch, &format!("{path}/tags")), &fields).await.map(drop)
    }
}

fn metric(key: &str, point: &Point) -> Value {
    json!({
        "key": key,
        "value": value_of(point),
        "timestamp": point.timestamp,
        "step": point.step,
    })
}

fn model_metric(model: &str, one: &ModelMetric) -> Value {
    let mut item = metric(&one.key, &one.point);
    item["model_id"] = json!(model);
    if let Some(name) = some_text(&json!(one.dataset_name)) {
        item["dataset_name"] = json!(name);
        item["dataset_digest"] = json!(one.dataset_digest);
    }
    item
}

impl Sink for Server {
    fn cuts(&self) -> Cuts {
        Cuts { param: 6000, tag: 8000, name: 250 }
    }

    fn create_experiment<'a>(
        &'a self,
        name: &'a str,
        _id: &'a str,
        tags: Pairs,
    ) -> Fut<'a, Experiment> {
        Box::pin(self.new_experiment(name, tags))
    }

    fn create_run<'a>(&'a self, of: &'a Experiment, new: NewRun<'a>) -> Fut<'a, Target> {
        Box::pin(self.new_run(of, new))
    }

    fn create_logged_model<'a>(
        &'a self,
        of: &'a Experiment,
        model: &'a LoggedModel,
        run: Option<&'a str>,
        tags: Pairs,
    ) -> Fut<'a, (String, Place)> {
        Box::pin(self.new_logged_model(of, model, run, tags))
    }

    fn create_version<'a>(&'a self, new: NewVersion<'a>) -> Fut<'a, u64> {
        Box::pin(self.new_version(new))
    }

    fn write<'a>(&'a self, write: Write<'a>) -> Fut<'a, ()> {
        Box::pin(self.change(write))
    }

    fn put<'a>(
        &'a self,
        place: &'a Place,
        path: &'a str,
        open: &'a (dyn Fn() -> Fut<'a, Content> + 'a),
    ) -> Fut<'a, ()> {
        Box::pin(self.put_file(place, path, open))
    }
}
