//! Calls of MLflow's routes for the commands about experiments, runs and models.

use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::Look;
use berth_api::routes::Method;
use berth_api::wire::At;
use berth_model::{JobId, Time};
use serde_json::{Value, json};

/// The size of a page.
const PAGE: u32 = 1000;
/// The maximum number of experiments to search by default.
const MOST_EXPERIMENTS: usize = 1000;
/// The maximum number of runs with the same name in an error.
const MOST_NAMED: usize = 5;

/// Calls of MLflow's routes for one team.
pub struct Tracker<'a> {
    context: &'a Context,
    team: Option<String>,
}

impl<'a> Tracker<'a> {
    pub fn new(context: &'a Context, team: Option<&str>) -> Tracker<'a> {
        Tracker { context, team: context.team(team) }
    }

    pub async fn ask(&self, method: Method, path: &str, fields: Value) -> Result<Value> {
        let path = format!("2.0/mlflow/{path}");
        let client = self.context.client()?;
        Ok(client.tracked((method, &path), &fields, self.team.as_deref()).await?)
    }

    /// All results of a search, page by page, up to a limit.
    pub async fn all(
        &self,
        (method, path, list): (Method, &str, &str),
        mut fields: Value,
        most: usize,
    ) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        loop {
            let page = u32::try_from(most - found.len()).unwrap_or(PAGE).min(PAGE);
            fields["max_results"] = json!(page);
            let mut answer = self.ask(method, path, fields.clone()).await?;
            if let Some(Value::Array(items)) = answer.get_mut(list).map(Value::take) {
                found.extend(items);
            }
            let next = answer["next_page_token"].as_str().unwrap_or_default();
            if next.is_empty() || found.len() >= most {
                return Ok(found);
            }
            fields["page_token"] = json!(next);
        }
    }

    /// The id of an experiment, by its name or its id.
    pub async fn experiment(&self, named: &str) -> Result<String> {
        if named.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(named.to_owned());
        }
        let asked = json!({ "experiment_name": named });
        let found = self.ask(Method::Get, "experiments/get-by-name", asked).await?;
        Ok(text(&found["experiment"]["experiment_id"]))
    }

    /// The id of the given experiment, or of all that the team can read.
    pub async fn experiments(&self, named: Option<&str>) -> Result<Vec<String>> {
        if let Some(named) = named {
            return Ok(vec![self.experiment(named).await?]);
        }
        let route = (Method::Post, "experiments/search", "experiments");
        let found = self.all(route, json!({}), MOST_EXPERIMENTS).await?;
        Ok(found.iter().map(|one| text(&one["experiment_id"])).collect())
    }

    /// A run by its id, by the number of its job, or by its name.
    pub async fn run(&self, named: &str) -> Result<Value> {
        self.run_of(named, "ACTIVE_ONLY").await
    }

    /// The same, for deleted runs.
    pub async fn deleted_run(&self, named: &str) -> Result<Value> {
        self.run_of(named, "DELETED_ONLY").await
    }

    async fn run_of(&self, named: &str, view: &str) -> Result<Value> {
        let named = named.strip_prefix("run:").unwrap_or(named);
        if named.len() == 32 && named.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let asked = json!({ "run_id": named.to_ascii_lowercase() });
            return Ok(self.ask(Method::Get, "runs/get", asked).await?["run"].take());
        }
        let job = named.strip_prefix("job:").unwrap_or(named);
        if named.contains(['\'', '\\']) {
            return Err(Failure::new(Exit::Usage, format!("`{named}` is not the name of a run")));
        }
        let filter = match job.parse::<JobId>() {
            Ok(job) => format!("tags.`berth.job` = '{job}'"),
            Err(_) => format!("attributes.run_name = '{named}'"),
        };
        let experiments = self.experiments(None).await?;
        let fields =
            json!({ "experiment_ids": experiments, "filter": filter, "run_view_type": view });
        let route = (Method::Post, "runs/search", "runs");
        let mut found = self.all(route, fields, MOST_NAMED).await?;
        match found.len() {
            0 => Err(Failure::new(Exit::NotFound, format!("there is no run `{named}`"))
                .next("`berth runs` lists runs; name the team of another with --team")),
            1 => Ok(found.remove(0)),
            _ => {
                let ids: Vec<String> =
                    found.iter().map(|run| text(&run["info"]["run_id"])).collect();
                let said = format!("several runs are called `{named}`");
                Err(Failure::new(Exit::Failed, said)
                    .next(format!("name one of {}", ids.join(", "))))
            }
        }
    }
}

/// A text without its quotes; empty if missing.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn time(look: &Look, value: &Value) -> String {
    look.maybe_at(value.as_i64().map(|ms| At(Time(ms))))
}
