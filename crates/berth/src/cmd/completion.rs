//! `berth completion`. The shell asks this program on every tab, which knows the commands and asks
//! the server for names.

use crate::fail::{Failure, Result};
use crate::show;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;

/// Set by the shell when it asks for completions.
pub const VARIABLE: &str = "BERTH_COMPLETE";

#[derive(Args, Debug)]
pub struct Completion {
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl Shell {
    fn word(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
            Shell::Elvish => "elvish",
            Shell::Powershell => "powershell",
        }
    }
}

pub fn run(args: &Completion) -> Result<()> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::io("finding where this program lies", &error))?;
    show::print(&script(args.shell, &program.display().to_string())?)
}

fn script(shell: Shell, program: &str) -> Result<String> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell.word());
    let completer = completer.ok_or_else(|| Failure::internal("a shell without completion"))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "berth", "berth", program, &mut script)
        .map_err(|error| Failure::io("writing the completion", &error))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_told_to_ask_this_program() {
        for shell in Shell::value_variants() {
            let script = script(*shell, "/opt/berth").unwrap();
            assert!(script.contains("/opt/berth"), "{}", shell.word());
            assert!(script.contains(VARIABLE), "{}", shell.word());
        }
    }
}
