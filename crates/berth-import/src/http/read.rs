//! Reading from a server.

use super::json::{self, text};
use super::{Server, quoted};
use crate::error::{Error, Result};
use crate::model::{
    Content, Experiment, FileInfo, LoggedModel, Place, Point, RegisteredModel, Run, Version,
};
use crate::source::{Fut, Pages, Source};
use crate::tags::IS_PROMPT;
use berth_api::routes::Method;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

const EXPERIMENTS: u32 = 1000;
/// The page size for runs, which can be large.
const RUNS: u32 = 50;
/// Runs that are asked for one by one.
const RUNS_AT_ONCE: usize = 8;
const POINTS: u32 = 25_000;
const MODELS: u32 = 100;
const VERSIONS: u32 = 1000;

impl Server {
    /// The team of the caller, if the server has teams. Files of its experiments are at
    /// `mlflow-artifacts:/TEAM/ID`.
    async fn own_team(&self) -> Result<Option<String>> {
        if let Some(known) = self.own.get() {
            return Ok(known.clone());
        }
        let asked = json!({ "experiment_name": "Default" });
        let team = match self.ask((Method::Get, "experiments/get-by-name"), &asked).await {
            Ok(answer) => team_of(&json::experiment(&answer["experiment"])),
            Err(error) if error.is_absent() => None,
            Err(error) => return Err(error),
        };
        Ok(self.own.get_or_init(|| team).clone())
    }

    pub(super) async fn all_experiments(&self) -> Result<Vec<Experiment>> {
        let own = self.own_team().await?;
        let fields = json!({ "view_type": "ALL", "max_results": EXPERIMENTS });
        let route = (Method::Post, "experiments/search", "experiments");
        let read =
            |_: &Server, found: &Value| Ok(json::list(found).map(json::experiment).collect());
        let mut all: Vec<Experiment> = self.search(route, fields, read).try_concat().await?;
        // Skip experiments that other teams share.
        if let Some(team) = own {
            let start = format!("mlflow-artifacts:/{team}/");
            all.retain(|one| one.location.starts_with(&start));
        }
        Ok(all)
    }

    /// A search at MLflow's server leaves out the models that a run reads. Asked for alone, a run has
    /// them.
    async fn with_models_read(&self, runs: Vec<Run>) -> Result<Vec<Run>> {
        if self.own_team().await?.is_some() {
            return Ok(runs);
        }
        let whole = runs.into_iter().map(|run| async move {
            let fields = json!({ "run_id": run.id });
            match self.ask((Method::Get, "runs/get"), &fields).await {
                Ok(answer) => Ok(Run { reads: json::run(&answer["run"]).reads, ..run }),
                // It was removed meanwhile.
                Err(error) if error.is_absent() => Ok(run),
                Err(error) => Err(error),
            }
        });
        stream::iter(whole).buffered(RUNS_AT_ONCE).try_collect().await
    }

    /// The versions of a model, in order. A search hides prompts, unless it is for them.
    pub(super) async fn versions_of(&self, model: &str) -> Result<Vec<Version>> {
        let Some(name) = quoted(model) else {
            let why = "its name has both kinds of quotes, which no search can say";
            return Err(Error::odd(format!("model {model}"), why));
        };
        let mut all = self.versions_where(format!("name = {name}")).await?;
        if all.is_empty() {
            let prompts = format!("name = {name} AND tags.`{IS_PROMPT}` = 'true'");
            all = self.versions_where(prompts).await?;
        }
        all.sort_by_key(|one| one.version);
        Ok(all)
    }

    async fn versions_where(&self, filter: String) -> Result<Vec<Version>> {
        let fields = json!({ "filter": filter, "max_results": VERSIONS });
        let route = (Method::Get, "model-versions/search", "model_versions");
        let read =
            |_: &Server, found: &Value| Ok(json::list(found).filter_map(json::version).collect());
        self.search(route, fields, read).try_concat().await
    }

    fn models_where(&self, filter: Option<String>) -> Pages<'_, RegisteredModel> {
        let fields = json!({ "filter": filter, "max_results": MODELS });
        let route = (Method::Get, "registered-models/search", "registered_models");
        let read = |server: &Server, found: &Value| {
            let all = json::list(found).map(json::registered_model);
            // Skip models that other teams share.
            let is_berth = server.own.get().is_some_and(Option::is_some);
            Ok(all.filter(|model| !is_berth || !model.name.contains('/')).collect())
        };
        self.search(route, fields, read)
    }
}

impl Source for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn experiments(&self) -> Fut<'_, Vec<Experiment>> {
        Box::pin(self.all_experiments())
    }

    fn runs<'a>(&'a self, of: &'a Experiment) -> Pages<'a, Run> {
        let fields = json!({
            "experiment_ids": [of.id],
            "run_view_type": "ALL",
            "max_results": RUNS,
            // With this order, new runs come last and do not shift the pages.
            "order_by": ["attributes.start_time ASC"],
        });
        let read = |_: &Server, found: &Value| Ok(json::list(found).map(json::run).collect());
        let pages = self.search((Method::Post, "runs/search", "runs"), fields, read);
        Box::pin(pages.and_then(|page| self.with_models_read(page)))
    }

    fn points<'a>(&'a self, run: &'a Run, key: &'a str) -> Pages<'a, Point> {
        let fields = json!({ "run_id": run.id, "metric_key": key, "max_results": POINTS });
        let read = |_: &Server, found: &Value| Ok(json::list(found).map(json::point).collect());
        self.search((Method::Get, "metrics/get-history", "metrics"), fields, read)
    }

    fn logged_models<'a>(&'a self, of: &'a Experiment) -> Pages<'a, LoggedModel> {
        let fields = json!({ "experiment_ids": [of.id], "max_results": MODELS });
        let read = |_: &Server, found: &Value| {
            Ok(json::list(found).map(json::logged_model).collect::<Vec<_>>())
        };
        let pages = self.search((Method::Post, "logged-models/search", "models"), fields, read);
        // Servers before MLflow 3 have none.
        let pages = pages.map(|page| match page {
            Err(error) if error.is_absent() => Ok(Vec::new()),
            page => page,
        });
        Box::pin(pages)
    }

    fn registered_models(&self) -> Pages<'_, RegisteredModel> {
        let prompts = format!("tags.`{IS_PROMPT}` = 'true'");
        Box::pin(self.models_where(None).chain(self.models_where(Some(prompts))))
    }

    fn versions<'a>(&'a self, model: &'a str) -> Fut<'a, Vec<Version>> {
        Box::pin(self.versions_of(model))
    }

    fn files<'a>(&'a self, place: &'a Place) -> Fut<'a, Vec<FileInfo>> {
        Box::pin(self.list_files(place))
    }

    fn open<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Content> {
        Box::pin(self.open_file(place, path))
    }

    fn known_sum<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Option<String>> {
        Box::pin(self.sum_of_file(place, path))
    }
}

/// The team of Berth's default experiment. At MLflow's server its id is 0, and there are no teams.
fn team_of(default: &Experiment) -> Option<String> {
    let path = default.location.strip_prefix("mlflow-artifacts:/")?;
    let (team, id) = path.split_once('/')?;
    (id == default.id && id != "0").then(|| team.to_owned())
}

/// An id in an answer.
pub(super) fn id_of(answer: &Value, at: &[&str]) -> Result<String> {
    let found = at.iter().fold(answer, |value, part| &value[*part]);
    match text(found) {
        id if id.is_empty() => {
            Err(Error::odd(at.join("."), "the server made something and gave it no id"))
        }
        id => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_berth_has_teams() {
        let team = |id: &str, location: &str| {
            let default = json!({ "experiment_id": id, "artifact_location": location });
            team_of(&json::experiment(&default))
        };
        assert_eq!(team("3", "mlflow-artifacts:/nlp/3").as_deref(), Some("nlp"));
        assert_eq!(team("0", "mlflow-artifacts:/0"), None);
        assert_eq!(team("0", "mlflow-artifacts:/proxied/0"), None);
        assert_eq!(team("0", "s3://bucket/0"), None);
    }
}
