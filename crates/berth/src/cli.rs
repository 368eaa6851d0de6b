//! The command line as a whole.

use crate::cmd::Command;
use crate::settings::Flags;
use crate::show::Format;
use clap::Parser;

/// Decides which job gets which GPU, when and at what cost.
#[derive(Parser)]
#[command(name = "berth", version, arg_required_else_help = true, after_help = EXITS)]
pub struct Cli {
    /// How the answer is shown (table)
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    output: Option<Format>,
    /// The address of the server, such as http://127.0.0.1:7117
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    server: Option<String>,
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str = "\
Exit codes: 0 ok, 1 the job or command failed, 2 usage, 3 refused by policy, budget or rights, \
4 not found, 5 no server.
Settings: flag, then BERTH_*, then .berth.toml, then ~/.config/berth/config.toml; see `berth \
config explain`.";

impl Cli {
    pub fn flags(&self) -> Flags {
        Flags { server: self.server.clone(), output: self.output }
    }
}

#[cfg(test)]
mod tests;
