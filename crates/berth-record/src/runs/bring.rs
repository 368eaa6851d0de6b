//! Updates one run. Each step is idempotent: it reads the run before it writes.

use super::facts::{End, Facts};
use super::{place, told};
use berth_model::JobState;
use berth_tracker::{
    Code, Dataset, Error, Input, NewRun, Result, Run, RunChange, RunHead, Status, Store, limits,
};
use serde_json::json;

/// An updated run.
pub struct Brought {
    pub head: RunHead,
    pub run: Run,
}

/// Creates the run of a job if it is missing, and updates its status, tags and metrics.
pub async fn brought(store: &dyn Store, facts: &Facts, now: i64) -> Result<Brought> {
    let head = made(store, facts, now).await?;
    let run = read(store, &head).await?;
    // A user has deleted the run.
    if run.deleted {
        return Ok(Brought { head, run });
    }
    if let Some((status, end)) = status(&run, facts) {
        let change = RunChange::Update { run: head.clone(), status: Some(status), end, name: None };
        store.write(change).await?;
    }
    // Write the end last: it marks the run as complete.
    let tags = told::changed(&run, told::of_job(facts));
    if !tags.is_empty() {
        log(store, &head, Vec::new(), tags).await?;
    }
    Ok(Brought { head, run })
}

/// Gets or creates the run of a job.
pub async fn made(store: &dyn Store, facts: &Facts, now: i64) -> Result<RunHead> {
    let head = match store.run_head(&facts.run).await? {
        Some(head) => head,
        None => create(store, facts, now).await?,
    };
    let run = read(store, &head).await?;
    if told::tag(&run, told::ATTEMPTS).is_none() && !run.deleted {
        finish_making(store, facts, &head).await?;
    }
    Ok(head)
}

async fn create(store: &dyn Store, facts: &Facts, now: i64) -> Result<RunHead> {
    let experiment = place::experiment(store, facts, now).await?;
    let new = NewRun {
        id: facts.run.clone(),
        experiment: experiment.no,
        name: limits::cut(facts.name.clone(), limits::RUN_NAME),
        user: limits::cut(facts.user.clone(), limits::USER),
        by: facts.user.clone(),
        start: facts.started.map_or(now, |at| at.0),
        tags: told::at_start(facts),
    };
    match store.write(RunChange::Create(new)).await {
        // A request of the job may have created it at the same time.
        Err(error) if error.code != Code::AlreadyExists => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let head = store.run_head(&facts.run).await?;
    head.ok_or_else(|| Error::internal("the run of a job was not made"))
}

/// Writes params, tags and inputs of a new run. Values that the script has already logged take precedence.
async fn finish_making(store: &dyn Store, facts: &Facts, head: &RunHead) -> Result<()> {
    for params in facts.params.chunks(limits::PARAMS_PER_BATCH) {
        let params = params.to_vec();
        skip_refusal("params", facts, log(store, head, params, Vec::new()).await)?;
    }
    let datasets: Vec<Input> = facts.data.iter().map(input).collect();
    if !datasets.is_empty() {
        let change = RunChange::Inputs { run: head.clone(), datasets, models: Vec::new() };
        skip_refusal("data sets", facts, store.write(change).await)?;
    }
    let tags = vec![(told::ATTEMPTS.to_owned(), facts.attempts.to_string())];
    log(store, head, Vec::new(), tags).await
}

fn skip_refusal(what: &str, facts: &Facts, written: Result<()>) -> Result<()> {
    match written {
        Err(error) if error.code.status() < 500 => {
            tracing::warn!(run = facts.run, %error, "cannot log the {what} of a job to its run");
            Ok(())
        }
        written => written,
    }
}

fn input(mounted: &super::facts::Mounted) -> Input {
    let source = json!({ "path": mounted.path, "data": format!("dvc:{}", mounted.version) });
    let dataset = Dataset {
        name: mounted.version.clone(),
        digest: limits::cut(mounted.hash.clone(), limits::DATASET_DIGEST),
        source_type: told::SOURCE.to_owned(),
        source: source.to_string(),
        schema: None,
        profile: None,
    };
    Input { dataset, tags: vec![("mlflow.data.context".to_owned(), "data".to_owned())] }
}

/// The new status of a run, and its end. A script may end its run before its job ends. Only another
/// attempt reopens the run.
fn status(run: &Run, facts: &Facts) -> Option<(Status, Option<i64>)> {
    let is = |status: Status| run.status == status.word();
    match &facts.end {
        Some(End { state, at, .. }) => {
            let status = match state {
                JobState::Done => Status::Finished,
                JobState::Cancelled => Status::Killed,
                _ => Status::Failed,
            };
            // A script may have written such a tag itself.
            let is_told = told::tag(run, told::END) == Some(state.as_str());
            (!is_told).then_some((status, Some(at.0)))
        }
        None if facts.runs => {
            let attempts = facts.attempts.to_string();
            let is_new = told::tag(run, told::ATTEMPTS) != Some(&attempts);
            (is(Status::Scheduled) || (is_new && !is(Status::Running)))
                .then_some((Status::Running, None))
        }
        None => (!is(Status::Scheduled)).then_some((Status::Scheduled, None)),
    }
}

/// Moves the run of a job to another experiment of its team, unless another client has logged to it.
/// Returns the former experiment.
pub async fn moved(store: &dyn Store, facts: &Facts, to: i64) -> Result<Option<i64>> {
    let Some(head) = store.run_head(&facts.run).await? else { return Ok(None) };
    let fits = |to: &berth_tracker::Experiment| to.team == facts.team && !to.deleted;
    if head.experiment == to || !store.experiment(to).is_some_and(|to| fits(&to)) {
        return Ok(None);
    }
    let run = read(store, &head).await?;
    if run.deleted || !told::is_untouched(&run, facts) {
        return Ok(None);
    }
    let from = head.experiment;
    store.write(RunChange::Move { run: head, experiment: to }).await?;
    Ok(Some(from))
}

pub async fn read(store: &dyn Store, head: &RunHead) -> Result<Run> {
    let mut found = store.runs(&[head.no]).await?;
    found.pop().ok_or_else(|| Error::internal("a run cannot be read"))
}

async fn log(
    store: &dyn Store,
    head: &RunHead,
    params: Vec<(String, String)>,
    tags: Vec<(String, String)>,
) -> Result<()> {
    let run = head.clone();
    store.write(RunChange::Log { run, metrics: Vec::new(), params, tags }).await
}

#[cfg(test)]
mod tests;
