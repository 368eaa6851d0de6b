//! `berth runs delete` and `berth runs restore`.

use crate::cmd::tracker::{Tracker, text};
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use berth_api::routes::Method;
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
