//! `berth runs delete`, `berth runs restore` and `berth runs clean`.

use crate::cmd::tracker::{Tracker, text};
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::words;
use berth_api::routes::Method;
use berth_api::wire::{RunsClean, RunsCleaned};
use serde_json::json;

pub async fn delete(
    context: &Context,
    runs: &[String],
    team: Option<&str>,
    yes: bool,
) -> Result<()> {
    let question = match runs {
        [one] => format!("Delete the run {one}?"),
        several => format!("Delete {} runs?", several.len()),
    };
    if !yes && !prompt::is_sure(&question)? {
        return Err(Failure::new(Exit::Failed, "nothing was deleted"));
    }
    let tracker = Tracker::new(context, team);
    for named in runs {
        let id = text(&tracker.run(named).await?["info"]["run_id"]);
        tracker.ask(Method::Post, "runs/delete", json!({ "run_id": id })).await?;
        context.gone(named, &format!("Deleted run {named}"))?;
    }
    Ok(())
}

pub async fn restore(context: &Context, runs: &[String], team: Option<&str>) -> Result<()> {
    let tracker = Tracker::new(context, team);
    for named in runs {
        let id = text(&tracker.deleted_run(named).await?["info"]["run_id"]);
        tracker.ask(Method::Post, "runs/restore", json!({ "run_id": id })).await?;
        context.gone(named, &format!("Restored run {named}"))?;
    }
    Ok(())
}

pub async fn clean(context: &Context, wish: &RunsClean, yes: bool) -> Result<()> {
    let question = "Remove deleted runs and experiments of all teams for good?";
    if !wish.dry_run && !yes && !prompt::is_sure(question)? {
        return Err(Failure::new(Exit::Failed, "nothing was removed"));
    }
    let cleaned = context.client()?.clean_runs(wish).await?;
    let said = |cleaned: &RunsCleaned| {
        let verb = if cleaned.dry_run { "Would remove" } else { "Removing" };
        let runs = words::count(cleaned.runs, "run");
        format!("{verb} {runs} and {}", words::count(cleaned.experiments, "experiment"))
    };
    context.done(cleaned, |cleaned| cleaned.runs.to_string(), said)
}
