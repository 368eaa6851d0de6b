//! `berth experiments`, `berth runs` and `berth models`: clients of the same routes as MLflow's.

use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{Look, Page, Table, words};
use berth_api::routes::Method;
use berth_api::wire::At;
use berth_model::Time;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Runs of one page, which the server gives at once.
const PAGE: u32 = 1000;
/// Experiments that runs are looked for in, where none is named.
const MOST_EXPERIMENTS: usize = 1000;

#[derive(Subcommand, Debug)]
pub enum Experiments {
    /// List experiments of a team, and those that are shared with it
    List {
        /// Which ones, such as "name LIKE 'bert%' AND tags.task = 'qa'"
        #[arg(long, value_name = "FILTER")]
        filter: Option<String>,
        /// Deleted ones too
        #[arg(short, long)]
        all: bool,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Let another team read an experiment
    Share(ShareArgs),
    /// Take that right away again
    Unshare(ShareArgs),
    /// Delete an experiment with its runs; MLflow's client can restore it
    Delete {
        /// Name or id
        #[arg(value_name = "EXPERIMENT")]
        experiment: String,
        /// Its team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub struct ShareArgs {
    /// Name or id
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// The team that may read it; `*` is every team
    #[arg(long, value_name = "TEAM", required = true, add = complete::teams())]
    with: String,
    /// The team of the experiment (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

/// List runs of experiments
#[derive(Args, Debug)]
pub struct Runs {
    /// Those of one experiment, by name or id (of all that the team sees)
    #[arg(short, long, value_name = "EXPERIMENT")]
    experiment: Option<String>,
    /// Which ones, such as "metrics.loss < 0.2 AND params.lr = '0.1'"
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Order by a key, such as metrics.loss; `-metrics.acc` begins with the highest
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Columns, such as run_id,name,metrics.loss,params.lr,tags.note
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=50_000))]
    limit: u32,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum Models {
    /// List registered models of a team
    List {
        /// Which ones, such as "name LIKE 'chat%'"
        #[arg(long, value_name = "FILTER")]
        filter: Option<String>,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// List the versions of a model
    Versions {
        #[arg(value_name = "MODEL")]
        model: String,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Give a version of a model a name, or take it away
    Alias {
        #[arg(value_name = "MODEL")]
        model: String,
        #[arg(value_name = "ALIAS")]
        alias: String,
        /// The version that it names from now on
        #[arg(value_name = "VERSION", required_unless_present = "delete")]
        version: Option<u64>,
        /// Take the name away
        #[arg(long, conflicts_with = "version")]
        delete: bool,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
}

/// Calls of MLflow's routes for one team.
struct Tracker<'a> {
    context: &'a Context,
    team: Option<String>,
}

impl<'a> Tracker<'a> {
    fn new(context: &'a Context, team: Option<&str>) -> Tracker<'a> {
        Tracker { context, team: context.team(team) }
    }

    async fn ask(&self, method: Method, path: &str, fields: Value) -> Result<Value> {
        let path = format!("2.0/mlflow/{path}");
        let client = self.context.client()?;
        Ok(client.tracked((method, &path), &fields, self.team.as_deref()).await?)
    }

    /// Everything that a search finds, page by page, up to a number.
    async fn all(
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
    async fn experiment(&self, named: &str) -> Result<String> {
        if named.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(named.to_owned());
        }
        let asked = json!({ "experiment_name": named });
        let found = self.ask(Method::Get, "experiments/get-by-name", asked).await?;
        Ok(text(&found["experiment"]["experiment_id"]))
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn time(look: &Look, value: &Value) -> String {
    look.maybe_at(value.as_i64().map(|ms| At(Time(ms))))
}

pub async fn experiments(context: &Context, args: &Experiments) -> Result<()> {
    match args {
        Experiments::List { filter, all, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let view = if *all { "ALL" } else { "ACTIVE_ONLY" };
            let fields = json!({ "filter": filter, "view_type": view });
            let route = (Method::Post, "experiments/search", "experiments");
            let found = tracker.all(route, fields, usize::MAX).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["name"])).collect();
            context.show(&Page::new(found, |all, look| list_experiments(all, look), names))
        }
        Experiments::Share(args) => share(context, args, "experiments/share", "may read").await,
        Experiments::Unshare(args) => {
            share(context, args, "experiments/unshare", "may not read").await
        }
        Experiments::Delete { experiment, team, yes } => {
            let tracker = Tracker::new(context, team.as_deref());
            let id = tracker.experiment(experiment).await?;
            let question = format!("Delete the experiment {experiment} with all its runs?");
            if !yes && !prompt::is_sure(&question)? {
                return Err(Failure::new(Exit::Failed, "nothing was deleted"));
            }
            let fields = json!({ "experiment_id": id });
            tracker.ask(Method::Post, "experiments/delete", fields).await?;
            context.gone(experiment, &format!("Deleted experiment {experiment}"))
        }
    }
}

async fn share(context: &Context, args: &ShareArgs, path: &str, may: &str) -> Result<()> {
    let ShareArgs { experiment, with, team } = args;
    let tracker = Tracker::new(context, team.as_deref());
    let id = tracker.experiment(experiment).await?;
    tracker.ask(Method::Post, path, json!({ "experiment_id": id, "team": with })).await?;
    let whom = if with == "*" { "every team".to_owned() } else { format!("team {with}") };
    context.gone(experiment, &format!("{} {may} experiment {experiment}", capital(&whom)))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}

fn list_experiments(all: &[Value], look: &Look) -> String {
    let mut table = Table::new(&["ID", "NAME", "STATE", "SINCE", "CHANGED"]);
    for one in all {
        table.row(vec![
            text(&one["experiment_id"]).into(),
            text(&one["name"]).into(),
            text(&one["lifecycle_stage"]).into(),
            time(look, &one["creation_time"]).into(),
            time(look, &one["last_update_time"]).into(),
        ]);
    }
    table.or(look, "No experiments.")
}

/// What a table of runs is made of.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct RunList {
    runs: Vec<Value>,
    #[serde(skip)]
    columns: Vec<String>,
}

const COLUMNS: &[&str] = &["run_id", "name", "status", "user", "start", "took"];

pub async fn runs(context: &Context, args: &Runs) -> Result<()> {
    let tracker = Tracker::new(context, args.team.as_deref());
    let experiments = match &args.experiment {
        Some(named) => vec![tracker.experiment(named).await?],
        None => {
            let route = (Method::Post, "experiments/search", "experiments");
            let found = tracker.all(route, json!({}), MOST_EXPERIMENTS).await?;
            found.iter().map(|one| text(&one["experiment_id"])).collect()
        }
    };
    let order: Vec<String> = args
        .sort
        .iter()
        .map(|key| match key.strip_prefix('-') {
            Some(key) => format!("{key} DESC"),
            None => format!("{key} ASC"),
        })
        .collect();
    let fields = json!({ "experiment_ids": experiments, "filter": args.filter, "order_by": order });
    let route = (Method::Post, "runs/search", "runs");
    let runs = tracker.all(route, fields, args.limit as usize).await?;
    let mut columns = args.columns.clone();
    if columns.is_empty() {
        columns = COLUMNS.iter().map(|column| (*column).to_owned()).collect();
        // What the runs are ordered by is what is looked at.
        let sorted = args.sort.iter().map(|key| key.trim_start_matches('-').to_owned());
        columns.extend(sorted.filter(|key| key.contains('.')));
    }
    let ids = |all: &RunList| all.runs.iter().map(|run| text(&run["info"]["run_id"])).collect();
    context.show(&Page::new(RunList { runs, columns }, list_runs, ids))
}

fn list_runs(all: &RunList, look: &Look) -> String {
    let titles: Vec<String> = all.columns.iter().map(|column| column.to_uppercase()).collect();
    let rows = all.runs.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|run| all.columns.iter().map(|column| cell(run, column, look)).collect())
        .collect();
    // The titles of a table are written in the program, and these are the user's.
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([titles[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    if rows.is_empty() {
        return "No runs.\n".to_owned();
    }
    let mut out = String::new();
    for row in std::iter::once(&titles).chain(&rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn cell(run: &Value, column: &str, look: &Look) -> String {
    let info = &run["info"];
    let of = |list: &str, key: &str| {
        let items = run["data"][list].as_array().into_iter().flatten();
        let found = items.filter(|one| one["key"] == key).map(|one| text(&one["value"])).next();
        found.unwrap_or_default()
    };
    let shown = match column.split_once('.') {
        Some(("metrics" | "metric", key)) => of("metrics", key),
        Some(("params" | "param", key)) => of("params", key),
        Some(("tags" | "tag", key)) => of("tags", key),
        _ => match column {
            "name" | "run_name" => text(&info["run_name"]),
            "user" | "user_id" => text(&info["user_id"]),
            "experiment" => text(&info["experiment_id"]),
            "start" | "start_time" => time(look, &info["start_time"]),
            "end" | "end_time" => time(look, &info["end_time"]),
            "took" => match (info["start_time"].as_i64(), info["end_time"].as_i64()) {
                (Some(start), Some(end)) => words::span(end - start),
                _ => String::new(),
            },
            other => match &info[other] {
                Value::Null => String::new(),
                found => text(found),
            },
        },
    };
    let plain: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.is_empty() { "-".to_owned() } else { plain }
}

pub async fn models(context: &Context, args: &Models) -> Result<()> {
    match args {
        Models::List { filter, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let route = (Method::Get, "registered-models/search", "registered_models");
            let found = tracker.all(route, json!({ "filter": filter }), usize::MAX).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["name"])).collect();
            context.show(&Page::new(found, |all, look| list_models(all, look), names))
        }
        Models::Versions { model, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            // One that is not there has no versions, and should say so.
            let asked = json!({ "name": model });
            tracker.ask(Method::Get, "registered-models/get", asked).await?;
            let name = model.replace('\'', "");
            let route = (Method::Get, "model-versions/search", "model_versions");
            let fields = json!({ "filter": format!("name = '{name}'") });
            let found = tracker.all(route, fields, usize::MAX).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["version"])).collect();
            context.show(&Page::new(found, |all, look| list_versions(all, look), names))
        }
        Models::Alias { model, alias, version, delete, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let mut fields = json!({ "name": model, "alias": alias });
            if *delete {
                tracker.ask(Method::Delete, "registered-models/alias", fields).await?;
                return context.gone(alias, &format!("{model} has no alias {alias} any more"));
            }
            let version = version.unwrap_or_default();
            fields["version"] = json!(version.to_string());
            tracker.ask(Method::Post, "registered-models/alias", fields).await?;
            context.gone(alias, &format!("{model}@{alias} is version {version}"))
        }
    }
}

fn list_models(all: &[Value], look: &Look) -> String {
    let mut table = Table::new(&["NAME", "VERSION", "ALIASES", "CHANGED", "DESCRIPTION"]);
    for one in all {
        let versions = one["latest_versions"].as_array().into_iter().flatten();
        let newest = versions.filter_map(|one| text(&one["version"]).parse::<u64>().ok()).max();
        let aliases = one["aliases"].as_array().into_iter().flatten();
        let aliases: Vec<String> = aliases
            .map(|one| format!("{}={}", text(&one["alias"]), text(&one["version"])))
            .collect();
        table.row(vec![
            text(&one["name"]).into(),
            newest.into(),
            aliases.join(" ").into(),
            time(look, &one["last_updated_timestamp"]).into(),
            one["description"].as_str().unwrap_or_default().into(),
        ]);
    }
    table.or(look, "No models.")
}

fn list_versions(all: &[Value], look: &Look) -> String {
    let mut table = Table::new(&["VERSION", "STAGE", "ALIASES", "RUN", "BY", "SINCE"]);
    for one in all {
        let aliases = one["aliases"].as_array().into_iter().flatten();
        table.row(vec![
            text(&one["version"]).into(),
            text(&one["current_stage"]).into(),
            aliases.map(text).collect::<Vec<_>>().join(" ").into(),
            one["run_id"].as_str().unwrap_or_default().into(),
            one["user_id"].as_str().unwrap_or_default().into(),
            time(look, &one["creation_timestamp"]).into(),
        ]);
    }
    table.or(look, "No versions.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_runs_has_the_columns_that_were_asked_for_and_a_dash_for_what_is_missing() {
        let run = json!({
            "info": { "run_id": "r1", "run_name": "a\u{1b}b", "start_time": 0, "end_time": 90_000 },
            "data": { "metrics": [{ "key": "val.loss", "value": 0.25 }], "params": [], "tags": [] },
        });
        let columns = ["run_id", "name", "took", "metrics.val.loss", "params.lr"];
        let columns = columns.map(str::to_owned).to_vec();
        let shown = list_runs(&RunList { runs: vec![run], columns }, &Look::fixed());
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
        let cells = |line: usize| -> Vec<&str> {
            lines[line].iter().copied().filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(cells(0), ["RUN_ID", "NAME", "TOOK", "METRICS.VAL.LOSS", "PARAMS.LR"]);
        assert_eq!(cells(1), ["r1", "a b", &words::span(90_000), "0.25", "-"]);
    }
}
