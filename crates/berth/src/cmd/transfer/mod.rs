//! `berth import` and `berth export` of experiments, runs and models.

mod place;
mod progress;
mod show;

use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::Page;
use berth_import::{Checked, Error, FileStore, Options, Problems, Report, Server, Sink, Source};
use clap::{Args, Subcommand, ValueEnum};
use place::Place;
use progress::Bar;
use std::path::PathBuf;
use std::rc::Rc;

/// Runs to move at once.
const AT_ONCE: usize = 4;

#[derive(Subcommand, Debug)]
pub enum Import {
    /// Import experiments, runs, models and artifacts of MLflow
    Mlflow(Box<ImportArgs>),
}

#[derive(Subcommand, Debug)]
pub enum Export {
    /// Export experiments, runs, models and artifacts to MLflow
    Mlflow(Box<ExportArgs>),
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// A server (http://HOST:5000), a database (sqlite:///mlflow.db) or a folder (mlruns)
    #[arg(value_name = "SOURCE")]
    source: String,
    /// The folder with the artifacts of a database (mlartifacts or mlruns beside it)
    #[arg(long, value_name = "FOLDER")]
    artifacts: Option<PathBuf>,
    #[command(flatten)]
    what: What,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// A server (http://HOST:5000), or a folder (mlruns), which may be new
    #[arg(value_name = "DEST")]
    dest: String,
    #[command(flatten)]
    what: What,
}

#[derive(Args, Debug)]
struct What {
    /// The team in Berth (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
    /// Only this experiment; repeatable. Berth then moves no registered models
    #[arg(short, long, value_name = "NAME")]
    experiment: Vec<String>,
    /// Only this registered model; repeatable
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Put this before the names of experiments and models at the destination
    #[arg(long, value_name = "PREFIX", default_value = "")]
    prefix: String,
    /// Show what it would move, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Resume an earlier import: move only what is missing
    #[arg(long)]
    resume: bool,
    /// Stop at the first problem
    #[arg(long)]
    strict: bool,
    /// What to compare at the end
    #[arg(long, value_enum, value_name = "WHAT", default_value = "full")]
    check: Check,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Everything, with the content of files
    Full,
    /// Everything, with the sizes of files
    Sizes,
    /// Nothing
    None,
}

impl What {
    fn options(&self) -> Options {
        Options {
            experiments: self.experiment.clone(),
            models: self.model.clone(),
            prefix: self.prefix.clone(),
            resume: self.resume,
            dry_run: self.dry_run,
            strict: self.strict,
            at_once: AT_ONCE,
            checked: match self.check {
                Check::Full => Checked::Full,
                Check::Sizes => Checked::Sizes,
                Check::None => Checked::Nothing,
            },
        }
    }
}

pub async fn import(context: &Context, args: &Import) -> Result<()> {
    let Import::Mlflow(args) = args;
    let problems = Rc::new(Problems::default());
    let source = place::source(&args.source, args.artifacts.as_deref(), &problems).await?;
    let berth = berth(context, &args.what)?;
    transfer(context, (&*source, &berth), &args.what, &problems).await
}

pub async fn export(context: &Context, args: &Export) -> Result<()> {
    let Export::Mlflow(args) = args;
    let problems = Rc::new(Problems::default());
    let berth = berth(context, &args.what)?;
    match Place::of(&args.dest)? {
        Place::Server(url) => {
            let to = place::server(&url)?;
            transfer(context, (&berth, &to), &args.what, &problems).await
        }
        Place::Folder(path) => {
            let to = FileStore::create(&path, args.what.dry_run, problems.clone());
            let to = to.map_err(failure)?;
            transfer(context, (&berth, &to), &args.what, &problems).await
        }
        Place::Sqlite(_) => Err(Failure::usage("Berth reads databases of MLflow and writes none")
            .next("Export to the server of that database, or to a folder.")),
    }
}

fn berth(context: &Context, what: &What) -> Result<Server> {
    let client = context.client()?.clone();
    Ok(Server::new(client, context.team(what.team.as_deref())))
}

async fn transfer(
    context: &Context,
    (source, sink): (&dyn Source, &dyn Sink),
    what: &What,
    problems: &Problems,
) -> Result<()> {
    let bar = Bar::new(context.format.is_for_programs());
    let moved = berth_import::copy(source, sink, &what.options(), problems, &bar).await;
    drop(bar);
    let report = moved.map_err(failure)?;
    let is_complete = report.complete;
    let names = |report: &Report| report.experiments.iter().map(|of| of.target.clone()).collect();
    context.show(&Page::new(report, show::report, names))?;
    match is_complete {
        true => Ok(()),
        // The report has the reasons.
        false => Err(Failure::silent(Exit::Failed)),
    }
}

fn failure(error: Error) -> Failure {
    let detail = error.whole();
    match error {
        Error::NotASource { .. } => Failure::usage(detail).next(place::EXPECTED),
        Error::Absent(_) => Failure::new(Exit::NotFound, detail),
        Error::Begun(_) => Failure::new(Exit::Failed, detail)
            .next("Add --resume to go on, or --prefix to move it once more beside the first."),
        Error::Strict(_) => Failure::new(Exit::Failed, detail)
            .next("Mend it and go on with --resume, or leave out --strict."),
        Error::Server { source, .. } => {
            let exit = Failure::from(*source).exit;
            Failure::new(exit, detail).next(
                "What was moved so far is there; try again with --resume. For MLflow's server set \
                 MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.",
            )
        }
        Error::Database { .. } | Error::File { .. } | Error::Odd { .. } | Error::Refused { .. } => {
            Failure::new(Exit::Failed, detail)
                .next("What was moved so far is there; go on with --resume.")
        }
    }
}
