//! Finds or creates the experiment of a run.

use super::facts::Facts;
use berth_tracker::{
    Actor, DEFAULT_EXPERIMENT, Error, Experiment, File, Fut, Request, Result, Right, Store, answer,
    find,
};
use serde_json::json;
use std::sync::Arc;

/// The server as actor: in the team of a job, on behalf of its user.
struct Keeper<'a>(&'a Facts);

impl Actor for Keeper<'_> {
    fn user(&self) -> &str {
        &self.0.user
    }
    fn team(&self) -> Option<&str> {
        Some(&self.0.team)
    }
    fn may(&self, _: Right, team: &str, _: Option<&str>) -> bool {
        team == self.0.team
    }
    fn is_team(&self, name: &str) -> bool {
        name == self.0.team
    }
    /// This actor only creates experiments, which needs no files.
    fn files<'a>(&'a self, _: &'a str) -> Fut<'a, Vec<File>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Gets or creates the experiment for the run of a job. If that fails, for example because the experiment
/// is deleted, uses the default experiment of the team.
pub async fn experiment(store: &dyn Store, facts: &Facts, now: i64) -> Result<Arc<Experiment>> {
    let numbered = facts.experiment_no.and_then(|no| store.experiment(no));
    if let Some(found) = numbered.filter(|found| found.team == facts.team && !found.deleted) {
        return Ok(found);
    }
    if let Some(name) = &facts.experiment {
        match named(store, facts, name, now).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) if error.code.status() >= 500 => return Err(error),
            Err(error) => {
                tracing::warn!(%error, team = facts.team, name, "cannot create an experiment");
            }
        }
    }
    ask(store, facts, "GET", "2.0/mlflow/experiments/get", "experiment_id=0", &[], now).await?;
    let found = store.experiment_named(&facts.team, DEFAULT_EXPERIMENT);
    found.ok_or_else(|| Error::internal("the default experiment was not made"))
}

async fn named(
    store: &dyn Store,
    facts: &Facts,
    name: &str,
    now: i64,
) -> Result<Option<Arc<Experiment>>> {
    let there = || store.experiment_named(&facts.team, name);
    if there().is_none() {
        let body = json!({ "name": name }).to_string();
        let path = "2.0/mlflow/experiments/create";
        let made = ask(store, facts, "POST", path, "", body.as_bytes(), now).await;
        // Another run may have created it at the same time.
        if let Err(error) = made
            && there().is_none()
        {
            return Err(error);
        }
    }
    Ok(there().filter(|found| !found.deleted))
}

async fn ask(
    store: &dyn Store,
    facts: &Facts,
    method: &str,
    path: &str,
    query: &str,
    body: &[u8],
    now: i64,
) -> Result<()> {
    let (op, parts) = find(method, path)?;
    let request = Request { query, body, parts, now };
    answer(op, store, &Keeper(facts), request).await.map(drop)
}
