//! `berth experiments` and `berth models`: clients of the same routes as MLflow's.

use super::identity;
use super::returns;
use super::tracker::{Tracker, text, time};
use super::webhooks;
use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{Look, Page, Table};
use berth_api::routes::Method;
use berth_api::wire::{ExperimentShares, ModelShares};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// List, share and delete experiments, and show their cost and results
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Experiments {
    #[command(subcommand)]
    command: Option<ExperimentsCommand>,
    #[command(flatten)]
    returns: returns::Args,
}

#[derive(Subcommand, Debug)]
pub enum ExperimentsCommand {
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
    /// List the teams that an experiment is shared with
    Shares {
        /// Name or id
        #[arg(value_name = "EXPERIMENT")]
        experiment: String,
        /// The team of the experiment (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Restore a deleted experiment with its runs
    Restore {
        /// Name or id
        #[arg(value_name = "EXPERIMENT")]
        experiment: String,
        /// Its team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Delete an experiment with its runs; until the server removes it for good, `restore` brings it
    /// back
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

#[derive(Args, Debug)]
pub struct ShareModelArgs {
    #[arg(value_name = "MODEL")]
    model: String,
    /// The team that may read it; `*` is every team
    #[arg(long, value_name = "TEAM", required = true, add = complete::teams())]
    with: String,
    /// The team of the model (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum Models {
    /// List, add, test and remove webhooks, which get messages about models; for leads of a team
    #[command(subcommand)]
    Webhook(webhooks::Webhook),
    /// List registered models of a team, and those that are shared with it
    List {
        /// Which ones, such as "name LIKE 'chat%'"
        #[arg(long, value_name = "FILTER")]
        filter: Option<String>,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Let another team read a model and its versions
    Share(ShareModelArgs),
    /// Take that right away again
    Unshare(ShareModelArgs),
    /// List the teams that a model is shared with
    Shares {
        #[arg(value_name = "MODEL")]
        model: String,
        /// The team of the model (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// List the versions of a model
    Versions {
        /// A name; `TEAM/NAME` is a model that another team shares
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

pub async fn experiments(context: &Context, args: &Experiments) -> Result<()> {
    let Some(command) = &args.command else { return returns::run(context, &args.returns).await };
    match command {
        ExperimentsCommand::List { filter, all, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let view = if *all { "ALL" } else { "ACTIVE_ONLY" };
            let fields = json!({ "filter": filter, "view_type": view });
            let route = (Method::Post, "experiments/search", "experiments");
            let found = tracker.all(route, fields, usize::MAX).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["name"])).collect();
            context.show(&Page::new(found, |all, look| list_experiments(all, look), names))
        }
        ExperimentsCommand::Share(args) => share(context, args, true).await,
        ExperimentsCommand::Unshare(args) => share(context, args, false).await,
        ExperimentsCommand::Shares { experiment, team } => {
            let (team, id) = place(context, experiment, team.as_deref()).await?;
            let found = context.client()?.experiment_shares(&team, &id).await?;
            let table = |of: &ExperimentShares, look: &Look| list_shares(&of.teams, look);
            context.show(&Page::new(found, table, |of: &ExperimentShares| of.teams.clone()))
        }
        ExperimentsCommand::Restore { experiment, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let fields = json!({ "experiment_id": tracker.experiment(experiment).await? });
            tracker.ask(Method::Post, "experiments/restore", fields).await?;
            context.gone(experiment, &format!("Restored experiment {experiment}"))
        }
        ExperimentsCommand::Delete { experiment, team, yes } => {
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

/// The team and the id of an experiment, from its artifact location.
async fn place(
    context: &Context,
    experiment: &str,
    team: Option<&str>,
) -> Result<(String, String)> {
    let tracker = Tracker::new(context, team);
    let id = tracker.experiment(experiment).await?;
    let found = tracker.ask(Method::Get, "experiments/get", json!({ "experiment_id": id })).await?;
    let place = text(&found["experiment"]["artifact_location"]);
    let place = place.strip_prefix("mlflow-artifacts:/").and_then(|place| place.split_once('/'));
    let odd = || Failure::new(Exit::Failed, format!("the server does not say whose {id} is"));
    place.map(|(team, id)| (team.to_owned(), id.to_owned())).ok_or_else(odd)
}

fn list_shares(teams: &[String], look: &Look) -> String {
    let mut table = Table::new(&["TEAM"]);
    teams.iter().for_each(|team| table.row(vec![team.clone().into()]));
    table.or(look, "Not shared.")
}

async fn share(context: &Context, args: &ShareArgs, shared: bool) -> Result<()> {
    let ShareArgs { experiment, with, team } = args;
    let (team, id) = place(context, experiment, team.as_deref()).await?;
    let client = context.client()?;
    let may = match shared {
        true => client.share_experiment(&team, &id, with).await.map(|_| "may read")?,
        false => client.unshare_experiment(&team, &id, with).await.map(|_| "may not read")?,
    };
    context.gone(experiment, &format!("{} {may} experiment {experiment}", whom(with)))
}

/// The team of a registered model, without the name of the model: `TEAM/NAME` names both.
async fn team_of<'a>(
    context: &Context,
    model: &'a str,
    team: Option<&str>,
) -> Result<(String, &'a str)> {
    match model.split_once('/') {
        Some((of, name)) => Ok((of.to_owned(), name)),
        None => Ok((identity::team_of(context, team).await?, model)),
    }
}

async fn share_model(context: &Context, args: &ShareModelArgs, shared: bool) -> Result<()> {
    let ShareModelArgs { model, with, team } = args;
    let (team, name) = team_of(context, model, team.as_deref()).await?;
    let client = context.client()?;
    let may = match shared {
        true => client.share_model(&team, name, with).await.map(|_| "may read")?,
        false => client.unshare_model(&team, name, with).await.map(|_| "may not read")?,
    };
    context.gone(model, &format!("{} {may} model {team}/{name}", whom(with)))
}

fn whom(with: &str) -> String {
    if with == "*" { "Every team".to_owned() } else { format!("Team {with}") }
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

pub async fn models(context: &Context, args: &Models) -> Result<()> {
    match args {
        Models::Webhook(args) => webhooks::run(context, args).await,
        Models::List { filter, team } => {
            let tracker = Tracker::new(context, team.as_deref());
            let route = (Method::Get, "registered-models/search", "registered_models");
            let found = tracker.all(route, json!({ "filter": filter }), usize::MAX).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["name"])).collect();
            context.show(&Page::new(found, |all, look| list_models(all, look), names))
        }
        Models::Share(args) => share_model(context, args, true).await,
        Models::Unshare(args) => share_model(context, args, false).await,
        Models::Shares { model, team } => {
            let (team, name) = team_of(context, model, team.as_deref()).await?;
            let found = context.client()?.model_shares(&team, name).await?;
            let table = |of: &ModelShares, look: &Look| list_shares(&of.teams, look);
            context.show(&Page::new(found, table, |of: &ModelShares| of.teams.clone()))
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
