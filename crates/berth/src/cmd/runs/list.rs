//! Runs as a table.

use super::cells::{aligned, cell, cost, gpu_ms};
use super::{group, short};
use crate::cmd::tracker::{Tracker, text};
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page};
use berth_api::routes::Method;
use clap::Args;
use serde_json::{Value, json};

#[derive(Args, Debug)]
pub struct List {
    /// The experiment, by name or id (all that the team can read)
    #[arg(short, long, value_name = "EXPERIMENT")]
    experiment: Option<String>,
    /// A filter, such as "metrics.loss < 0.2 AND params.lr = '0.1' AND cost < 50"
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Sort by a key, such as metrics.loss or cost; `-metrics.acc` begins with the highest
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Columns, such as run_id,name,cost,gpu-hours,metrics.loss,params.lr,tags.note
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Group the runs with the same value of a key, such as params.lr
    #[arg(long, value_name = "KEY", conflicts_with = "columns")]
    group_by: Option<String>,
    /// The maximum number of runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=50_000))]
    limit: u32,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

/// The contents of a table of runs.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct RunList {
    runs: Vec<Value>,
    #[serde(skip)]
    columns: Vec<String>,
}

const COLUMNS: &[&str] = &["run_id", "name", "status", "user", "start", "took"];

pub async fn run(context: &Context, args: &List) -> Result<()> {
    let tracker = Tracker::new(context, args.team.as_deref());
    let experiments = tracker.experiments(args.experiment.as_deref()).await?;
    let order: Vec<String> = args
        .sort
        .iter()
        .map(|key| match key.strip_prefix('-') {
            Some(key) => format!("{} DESC", short::key(key)),
            None => format!("{} ASC", short::key(key)),
        })
        .collect();
    let filter = args.filter.as_deref().map(short::filter);
    let fields = json!({ "experiment_ids": experiments, "filter": filter, "order_by": order });
    let route = (Method::Post, "runs/search", "runs");
    let runs = tracker.all(route, fields, args.limit as usize).await?;
    if let Some(key) = &args.group_by {
        let best = args.sort.first().map(|key| key.trim_start_matches('-'));
        return group::show(context, &runs, key, best);
    }
    let columns = columns(&runs, &args.columns, &args.sort);
    let ids = |all: &RunList| all.runs.iter().map(|run| text(&run["info"]["run_id"])).collect();
    context.show(&Page::new(RunList { runs, columns }, table, ids))
}

/// The requested columns; by default what the runs have, with the sort keys.
fn columns(runs: &[Value], asked: &[String], sort: &[String]) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let mut columns: Vec<String> = COLUMNS.iter().map(|column| (*column).to_owned()).collect();
    // Runs without a job have neither cost nor GPU-hours.
    for (column, has) in [
        ("cost", runs.iter().any(|run| cost(run).is_some())),
        ("gpu-hours", runs.iter().any(|run| gpu_ms(run).is_some())),
    ] {
        columns.extend(has.then(|| column.to_owned()));
    }
    for key in sort.iter().map(|key| key.trim_start_matches('-')) {
        let is_shown = columns.iter().any(|column| column == key);
        if !is_shown && (key.contains('.') || short::key(key) != key) {
            columns.push(key.to_owned());
        }
    }
    columns
}

fn table(all: &RunList, look: &Look) -> String {
    if all.runs.is_empty() {
        return "No runs.\n".to_owned();
    }
    let titles: Vec<String> = all.columns.iter().map(|column| column.to_uppercase()).collect();
    let row = |run: &Value| all.columns.iter().map(|column| cell(run, column, look)).collect();
    aligned(&titles, &all.runs.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::words;

    fn cells(shown: &str, line: usize) -> Vec<&str> {
        let cells = shown.lines().nth(line).expect("a line").split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect()
    }

    #[test]
    fn a_table_of_runs_has_the_columns_that_were_asked_for_and_a_dash_for_what_is_missing() {
        let run = json!({
            "info": { "run_id": "r1", "run_name": "a\u{1b}b", "start_time": 0, "end_time": 90_000 },
            "data": { "metrics": [{ "key": "val.loss", "value": 0.25 }], "params": [], "tags": [] },
        });
        let columns = ["run_id", "name", "took", "metrics.val.loss", "params.lr", "cost"];
        let columns = columns.map(str::to_owned).to_vec();
        let shown = table(&RunList { runs: vec![run], columns }, &Look::fixed());
        let titles = ["RUN_ID", "NAME", "TOOK", "METRICS.VAL.LOSS", "PARAMS.LR", "COST"];
        assert_eq!(cells(&shown, 0), titles);
        assert_eq!(cells(&shown, 1), ["r1", "a b", &words::span(90_000), "0.25", "-", "-"]);
    }

    #[test]
    fn runs_of_jobs_show_money_and_hours_of_gpus() {
        let run = json!({
            "info": { "run_id": "r1" },
            "data": {
                "metrics": [
                    { "key": "berth.cost", "value": 12.5 },
                    { "key": "berth.gpu_hours", "value": 3.25 },
                    { "key": "berth.gpu_use", "value": 0.823 },
                ],
                "tags": [{ "key": "berth.job", "value": "17_3" }],
            },
        });
        let runs = vec![run];
        let chosen = columns(&runs, &[], &["-cost".into(), "job".into(), "start".into()]);
        assert_eq!(chosen[COLUMNS.len()..], ["cost", "gpu-hours", "job"]);
        let columns = ["cost", "gpu-hours", "gpu-use", "job", "metrics.berth.cost"];
        let columns = columns.map(str::to_owned).to_vec();
        let shown = table(&RunList { runs, columns }, &Look::fixed());
        assert_eq!(cells(&shown, 1), ["$12.50", "3.25", "82%", "17_3", "12.5"]);
        assert_eq!(super::columns(&[], &[], &[]).len(), COLUMNS.len());
    }
}
