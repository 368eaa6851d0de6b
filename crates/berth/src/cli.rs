//! The command line as a whole.

use crate::cmd::Command;
use crate::settings::Flags;
use crate::show::Format;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Schedules jobs on GPUs: which job gets which GPU, when and at what cost.
#[derive(Parser)]
#[command(name = "berth", version, arg_required_else_help = true, after_help = EXITS)]
pub struct Cli {
    /// Output format (table)
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    output: Option<Format>,
    /// Address of the server, such as http://127.0.0.1:7117
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    server: Option<String>,
    /// Do not show long output in a pager
    #[arg(long, global = true, help_heading = "Global options")]
    no_pager: bool,
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 refused by policy, budget or rights, 4 not found, \
5 no server.
`run` (attached or with --wait) and `shell --` exit with the code of the job or command, and with \
125 if Berth itself fails.
Settings: flag, then BERTH_*, then .berth.toml, then ~/.config/berth/config.toml; see `berth \
config explain`.";

impl Cli {
    pub fn flags(&self) -> Flags {
        Flags { server: self.server.clone(), output: self.output, no_pager: self.no_pager }
    }
}

/// What other schedulers call what `berth` does too.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["cancel", "kill", "delete", "rm", "scancel", "abort"], "`berth stop JOB` stops a job"),
    (&["list", "ls", "jobs", "job", "squeue", "status", "sacct"], "`berth ps` lists jobs"),
    (&["submit", "sbatch", "srun", "exec", "start"], "`berth run -- COMMAND` runs a job"),
    (&["attach", "ssh", "salloc"], "`berth shell JOB` opens a terminal in a job"),
    (&["info", "inspect", "get", "scontrol"], "`berth show JOB` shows all about a job"),
    (&["log", "tail", "output"], "`berth logs -f JOB` follows the output of a job"),
    (&["serve", "server"], "`berth up` starts the server"),
    (&["sinfo", "node"], "`berth nodes` lists the machines"),
    (&["requeue", "rerun", "restart"], "`berth clone JOB` runs a job again"),
    (&["hold", "suspend"], "`berth pause JOB` pauses a job"),
    (&["release", "unpause", "continue"], "`berth resume JOB` lets a paused job go on"),
    (&["update", "modify", "edit"], "`berth set JOB KEY=VALUE` changes a job"),
];

/// What was meant by a command that there is not, where it is known by another name.
pub fn tip(error: &clap::Error) -> Option<&'static str> {
    let word = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => word.as_str(),
        _ => return None,
    };
    let (_, tip) = ELSEWHERE.iter().find(|(words, _)| words.contains(&word))?;
    Some(tip)
}

/// Whether a command line that could not be read stands for a job: `run` without `-d`, or `shell`
/// with a command.
pub fn is_attached(words: &[String]) -> bool {
    let own = words.iter().take_while(|word| *word != "--");
    let own: Vec<&str> = own.map(String::as_str).collect();
    let command = own.iter().position(|word| ["run", "shell"].contains(word));
    // Only global options stand before the command: `-o FORMAT`, `--server URL`.
    let after_options = |at: &usize| {
        let before = &own[..*at];
        let flags = before.iter().filter(|word| word.starts_with('-')).count();
        before.is_empty() || (own[0].starts_with('-') && (flags == *at || flags * 2 == *at))
    };
    let Some(at) = command.filter(after_options) else { return false };
    match own[at] {
        "run" => !own[at..].iter().any(|w| ["-d", "--detach", "--dry-run"].contains(w)),
        _ => own.len() < words.len(),
    }
}

#[cfg(test)]
mod hints;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod tests;
