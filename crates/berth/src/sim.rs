//! `berth sim`: worlds from files, reports to the terminal.

use crate::show::ReportFormat;
use crate::{tables, trace};
use anyhow::{Context, Result, anyhow, bail};
use berth_model::{JobId, Span};
use berth_sim::play::{self, Settle};
use berth_sim::report::Report;
use berth_sim::scenario::{self, Verdict};
use berth_sim::world::{Loaded, World};
use clap::{Args, Subcommand};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FIRST_WORLD: &str = include_str!("../../../examples/first-world.yaml");

#[derive(Subcommand)]
pub enum Sim {
    /// Print one plan for a world file
    Once(WorldArgs),
    /// Plan and apply until nothing changes, and print the result
    Settle {
        #[command(flatten)]
        look: WorldArgs,
        /// Time between rounds, such as 1m (none)
        #[arg(long, value_name = "SPAN")]
        tick: Option<Span>,
        /// The most rounds that decide something
        #[arg(long, value_name = "N")]
        rounds: Option<u32>,
    },
    /// Run scenarios and test what they expect
    Check {
        /// Scenario files (YAML or JSON)
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Run random worlds in which machines, messages and the scheduler fail
    Faults(crate::faults::Options),
    /// Run a recorded workload under several policies and compare them
    Trace(Box<trace::Trace>),
    /// Find how many nodes keep the waiting times of a workload below a limit
    Size(Box<trace::Size>),
    /// Run the bundled world: plans, reasons and costs in one minute
    Demo,
}

#[derive(Args)]
pub struct WorldArgs {
    /// A world file (YAML or JSON); `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show when this job will start, and what would start it now
    #[arg(long, value_name = "JOB")]
    why: Option<String>,
}

impl WorldArgs {
    /// The job that `--why` names.
    fn job(&self, loaded: &Loaded) -> Result<Option<JobId>> {
        let Some(name) = &self.why else { return Ok(None) };
        match loaded.names.named(name) {
            Some(job) => Ok(Some(job)),
            None => bail!("there is no job `{name}` in {}", self.file.display()),
        }
    }
}

pub fn run(command: &Sim, output: ReportFormat) -> Result<ExitCode> {
    match command {
        Sim::Once(look) => {
            let loaded = load(&look.file)?;
            let why = look.job(&loaded)?;
            let report = play::once(&loaded, why).map_err(|error| at(&look.file, &error))?;
            print(&report, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Sim::Settle { look, tick, rounds } => {
            let loaded = load(&look.file)?;
            let options = Settle { tick: *tick, rounds: *rounds, why: look.job(&loaded)? };
            let report = play::settle(&loaded, &options).map_err(|error| at(&look.file, &error))?;
            print(&report, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Sim::Check { files } => check(files, output),
        Sim::Faults(options) => crate::faults::run(options, output),
        Sim::Trace(args) => trace::run(args, output),
        Sim::Size(args) => trace::run_size(args, output),
        Sim::Demo => demo(output),
    }
}

fn read(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn load(path: &Path) -> Result<Loaded> {
    World::parse(&read(path)?).map_err(|error| at(path, &error))
}

/// `file:line:column: message`, which editors can jump to.
fn at(path: &Path, error: &berth_sim::world::Error) -> anyhow::Error {
    anyhow!("{}:{}:{}: {}", path.display(), error.at.line, error.at.column, error.message)
}

fn print(report: &Report, output: ReportFormat) -> Result<()> {
    match output {
        ReportFormat::Json => println!("{}", serde_json::to_string_pretty(report)?),
        ReportFormat::Table => print!("{}", tables::report(report)),
    }
    Ok(())
}

/// A scenario's file with how it went, or why it could not be played.
struct Played<'a> {
    file: &'a Path,
    verdict: Result<Verdict>,
}

fn check(files: &[PathBuf], output: ReportFormat) -> Result<ExitCode> {
    let played: Vec<Played<'_>> = files
        .iter()
        .map(|file| {
            let verdict = load(file)
                .and_then(|loaded| scenario::check(&loaded).map_err(|error| at(file, &error)));
            Played { file, verdict }
        })
        .collect();
    match output {
        ReportFormat::Table => played.iter().for_each(print_line),
        ReportFormat::Json => println!("{}", serde_json::to_string_pretty(&verdicts(&played))?),
    }
    let code = |played: &Played<'_>| match &played.verdict {
        Ok(verdict) if verdict.passed() => 0,
        Ok(_) => 1,
        Err(_) => 2,
    };
    Ok(ExitCode::from(played.iter().map(code).max().unwrap_or(0)))
}

fn print_line(played: &Played<'_>) {
    let file = played.file.display();
    match &played.verdict {
        Err(error) => println!("BAD   {error:#}"),
        Ok(verdict) => {
            let name = verdict.name.as_ref().map_or(String::new(), |name| format!(": {name}"));
            let word = if verdict.passed() { "ok  " } else { "FAIL" };
            println!("{word}  {file}{name} ({} expectations)", verdict.expectations);
            for failure in &verdict.failures {
                println!("      {failure}");
            }
        }
    }
}

fn verdicts(played: &[Played<'_>]) -> serde_json::Value {
    let one = |played: &Played<'_>| {
        let file = played.file.display().to_string();
        match &played.verdict {
            Ok(verdict) => serde_json::json!({
                "file": file, "passed": verdict.passed(), "verdict": verdict,
            }),
            Err(error) => serde_json::json!({
                "file": file, "passed": false, "error": format!("{error:#}"),
            }),
        }
    };
    played.iter().map(one).collect()
}

fn demo(output: ReportFormat) -> Result<ExitCode> {
    let loaded = World::parse(FIRST_WORLD)?;
    let report = play::settle(&loaded, &Settle::default())?;
    if output == ReportFormat::Json {
        print(&report, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("Berth on {}: 18 GPUs, two teams.", loaded.name.as_deref().unwrap_or("a world"));
    println!("Research has borrowed GPUs; production wants a gang of eight back.\n");
    print(&report, output)?;
    println!(
        "\nNothing above ran anywhere: it is the scheduler of the server on a world in a file."
    );
    println!("Try next:");
    for (command, what) in [
        ("berth sim once examples/first-world.yaml", "the first of these plans alone"),
        ("berth sim settle examples/first-world.yaml --tick 30m", "with time passing"),
        (
            "berth sim once examples/first-world.yaml --why huge",
            "when a job starts, and why not now",
        ),
        ("berth sim settle examples/first-world.yaml -o json", "the same for a program"),
    ] {
        println!("  {command:<58} {what}");
    }
    Ok(ExitCode::SUCCESS)
}
