//! `berth runs`: a table of runs, one run in full, and comparisons.

mod cells;
mod compare;
mod group;
mod list;
mod short;
mod show;
mod stage;

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use berth_api::wire::RunsClean;
use clap::{Args, Subcommand};

/// List, show, compare, delete and restore runs of experiments
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: list::List,
}

#[derive(Subcommand, Debug)]
pub enum RunsCommand {
    /// Show one run in full
    Show {
        /// A run, by its id, its name or the number of its job
        #[arg(value_name = "RUN")]
        run: String,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Show the differences between runs: params, tags, data, code and metrics
    Compare {
        /// Runs, by their ids, their names or the numbers of their jobs
        #[arg(value_name = "RUN", required = true, num_args = 2..=20)]
        runs: Vec<String>,
        /// Also show equal values
        #[arg(short, long)]
        all: bool,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Delete runs; until the server removes them for good, `restore` brings them back
    Delete {
        /// Runs, by their ids, their names or the numbers of their jobs
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove deleted runs and experiments of all teams for good, before the retention ends (admins)
    Clean {
        /// Only runs deleted at least this long ago, such as 7d (30d)
        #[arg(long, value_name = "TIME")]
        older_than: Option<String>,
        /// Show how much it would remove
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Restore deleted runs
    Restore {
        /// Runs, by their ids, their names or the numbers of their jobs
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
}

pub async fn run(context: &Context, args: &Runs) -> Result<()> {
    match &args.command {
        None => list::run(context, &args.list).await,
        Some(RunsCommand::Show { run, team }) => show::run(context, run, team.as_deref()).await,
        Some(RunsCommand::Compare { runs, all, team }) => {
            compare::run(context, runs, *all, team.as_deref()).await
        }
        Some(RunsCommand::Delete { runs, team, yes }) => {
            stage::delete(context, runs, team.as_deref(), *yes).await
        }
        Some(RunsCommand::Clean { older_than, dry_run, yes }) => {
            let wish = RunsClean { older_than: older_than.clone(), dry_run: *dry_run };
            stage::clean(context, &wish, *yes).await
        }
        Some(RunsCommand::Restore { runs, team }) => {
            stage::restore(context, runs, team.as_deref()).await
        }
    }
}
