//! The `berth` command.
//!
//! The only place that reads files, prints and ends the process; everything it shows is computed
//! by the crates below, or by a server.

mod blob_flags;
mod cli;
mod cmd;
mod complete;
mod context;
mod data_get;
mod fail;
mod faults;
mod fetch_code;
mod figure_flags;
mod heap;
mod kept;
mod kube;
mod node_agent;
mod node_cache;
mod outage;
mod prompt;
mod reach;
mod reserve;
mod restore;
mod settings;
mod show;
mod sign_in_flags;
mod sim;
mod tables;
mod trace;
mod up;
mod watch;

use berth_node::OpenFiles;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use cli::Cli;
use cmd::{ClientCommand, Command};
use context::Context;
use fail::{Exit, Failure};
use show::{Format, ReportFormat};
use std::process::ExitCode;

/// How a node's driver calls this program to look after a task.
pub(crate) const HELPER: &str = "__node";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    // First of all: a helper has nothing to do with anything below.
    if args.next().is_some_and(|first| first == HELPER) {
        // What people run has the limit that the server was started with.
        args.next_if(|word| OpenFiles::restore(word));
        return berth_node::helper(args);
    }
    // Answers a shell that asks for completions, and goes on otherwise.
    CompleteEnv::with_factory(Cli::command).var(cmd::COMPLETE).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    let flags = cli.flags();
    let mut format = flags.output.unwrap_or_default();
    let ended = match cli.command {
        Command::Sim(command) => return simulate(&command, format),
        Command::Up(args) => up::run(&args),
        Command::Kube(args) => kube::run(*args),
        Command::Reserve(args) => reserve::run(&args),
        Command::NodeAgent(args) => node_agent::run(&args),
        Command::FetchCode(args) => fetch_code::run(&flags, &args),
        Command::Restore(args) => restore::run(&args),
        Command::Client(args) => match Context::new(&flags) {
            Ok(context) => {
                format = context.format;
                serve(&context, args)
            }
            Err(failure) if cli::is_attached(&words()) => Err(failure.while_attached()),
            Err(failure) => Err(failure),
        },
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, format == Format::Json),
    }
}

/// Help is no mistake; a mistake in front of a job must not look like the job's own exit code.
fn misused(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if let Some(tip) = cli::tip(error) {
        show::note(&format!("\n  tip: {tip}"));
    }
    match (error.use_stderr(), cli::is_attached(&words())) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(fail::BERTH_FAILED),
        (true, false) => ExitCode::from(Exit::Usage as u8),
    }
}

/// The command line. What is no text there cannot be a command.
fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// One command at a time needs one thread.
fn serve(context: &Context, args: ClientCommand) -> fail::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting", &error))?;
    let ended = runtime.block_on(cmd::run(context, args));
    // A thread that waits for a key would keep the program from ending.
    runtime.shutdown_background();
    ended
}

fn report(failure: &Failure, as_json: bool) -> ExitCode {
    if let Some(text) = failure.text(as_json) {
        show::note(&text);
    }
    ExitCode::from(failure.status())
}

fn simulate(command: &sim::Sim, format: Format) -> ExitCode {
    let ran = ReportFormat::try_from(format).and_then(|output| sim::run(command, output));
    match ran {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(Exit::Usage as u8)
        }
    }
}
