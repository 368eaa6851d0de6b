//! The `berth` command.
//!
//! The only place that reads files, prints and ends the process; everything it shows is computed
//! by the crates below.

mod faults;
mod heap;
mod sim;
mod tables;
mod trace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Decides which job gets which GPU, when and at what cost.
#[derive(Parser)]
#[command(name = "berth", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plan, settle and check worlds without a cluster
    #[command(subcommand, arg_required_else_help = true)]
    Sim(sim::Sim),
}

fn main() -> ExitCode {
    let Cli { command: Command::Sim(command) } = Cli::parse();
    heap::ask_for_huge_pages();
    match sim::run(&command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
