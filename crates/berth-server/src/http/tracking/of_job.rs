//! Requests of jobs with their tracking tokens. Creates the run of a job before its first request, and moves
//! it to the experiment that its script sets before it logs.

use crate::app::App;
use berth_model::JobId;
use berth_tracker::{Op, Reply, RunHead};
use serde_json::Value;

/// The routes that `mlflow.set_experiment` calls.
const CHOICES: [&str; 3] = ["get_experiment_by_name", "get_experiment", "create_experiment"];

/// Runs before the request. Returns the run.
pub async fn begins(app: &App, job: JobId) -> Option<RunHead> {
    app.tracking.runs.prepare(job).await.unwrap_or_else(|error| {
        // The request may concern other runs, so continue without the run.
        tracing::warn!(%job, %error, "cannot create the run of a job");
        None
    })
}

/// Runs after the request, before the answer goes to the job.
pub async fn was_answered(app: &App, job: JobId, op: &Op, reply: &Reply) {
    if !CHOICES.contains(&op.id) {
        return;
    }
    let Some(experiment) = chosen(&reply.body) else { return };
    if let Err(error) = app.tracking.runs.chose(job, experiment).await {
        tracing::warn!(%job, %error, "cannot move the run of a job to its new experiment");
    }
}

/// The number of the experiment in an answer.
fn chosen(body: &[u8]) -> Option<i64> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let id = answer.get("experiment").unwrap_or(&answer).get("experiment_id")?;
    id.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_experiment_that_was_found_or_made() {
        assert_eq!(chosen(br#"{"experiment":{"experiment_id":"5","name":"a"}}"#), Some(5));
        assert_eq!(chosen(br#"{"experiment_id":"6"}"#), Some(6));
        assert_eq!(chosen(b"{}"), None);
        assert_eq!(chosen(b"no JSON"), None);
    }
}
