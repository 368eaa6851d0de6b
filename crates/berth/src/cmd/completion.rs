//! `berth completion`. The shell asks this program on every tab, which knows the commands and asks
//! the server for names.

use crate::fail::{Failure, Result};
use crate::show;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use std::path::PathBuf;

/// Set by the shell when it asks for completions.
pub const VARIABLE: &str = "BERTH_COMPLETE";

#[derive(Args, Debug)]
pub struct Completion {
    /// The shell (the one of $SHELL)
    shell: Option<Shell>,
    /// Write it where the shell looks for completions, and say what was done: bash, zsh and fish
    #[arg(long)]
    install: bool,
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
    let shell = match args.shell {
        Some(shell) => shell,
        None => usual(std::env::var("SHELL").ok().as_deref())?,
    };
    let program =
        std::env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
    let script = script(shell, &program.display().to_string())?;
    match args.install {
        true => install(shell, &script),
        false => show::print(&script),
    }
}

/// The shell of `$SHELL`, such as `/bin/zsh`.
fn usual(path: Option<&str>) -> Result<Shell> {
    let name = path.and_then(|path| path.rsplit('/').next());
    name.and_then(|name| Shell::from_str(name, true).ok()).ok_or_else(|| {
        Failure::usage("$SHELL does not name a known shell")
            .next("Name it: `berth completion bash`, zsh, fish, elvish or powershell.")
    })
}

/// Where a shell looks for completions, and what is left to do.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    path: PathBuf,
    next: String,
}

fn target(shell: Shell, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Target> {
    let home = || {
        variable("HOME").ok_or_else(|| {
            Failure::usage("HOME is not set")
                .next("Set it, or print the script and save it yourself.")
        })
    };
    let again = "Start a new shell to use it.".to_owned();
    match shell {
        Shell::Bash => {
            let data = match variable("XDG_DATA_HOME") {
                Some(data) => data,
                None => home()?.join(".local/share"),
            };
            let next = format!("{again} It needs the package bash-completion.");
            Ok(Target { path: data.join("bash-completion/completions/berth"), next })
        }
        Shell::Zsh => {
            let folder = match variable("ZDOTDIR") {
                Some(folder) => folder,
                None => home()?,
            };
            let (path, rc) = (folder.join(".zfunc/_berth"), folder.join(".zshrc"));
            let line = format!("fpath=({} $fpath)", folder.join(".zfunc").display());
            let is_there = std::fs::read_to_string(&rc).is_ok_and(|text| text.contains(".zfunc"));
            let next = match is_there {
                true => again,
                false => format!(
                    "Add `{line}` before `compinit` to {}, and start a new shell.",
                    rc.display()
                ),
            };
            Ok(Target { path, next })
        }
        Shell::Fish => {
            let config = match variable("XDG_CONFIG_HOME") {
                Some(config) => config,
                None => home()?.join(".config"),
            };
            Ok(Target { path: config.join("fish/completions/berth.fish"), next: again })
        }
        Shell::Elvish | Shell::Powershell => {
            let word = shell.word();
            Err(Failure::usage(format!("{word} has no folder for completions"))
                .next(format!("Add the output of `berth completion {word}` to its profile.")))
        }
    }
}

fn install(shell: Shell, script: &str) -> Result<()> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let Target { path, next } = target(shell, variable)?;
    let mut script = script.to_owned();
    if shell == Shell::Zsh {
        // zsh reads the file at the first tab, as the function that completes.
        script.push_str("\nif [ \"$funcstack[1]\" = \"_berth\" ]; then\n    _clap_dynamic_completer_berth \"$@\"\nfi\n");
    }
    let failed = |error| Failure::io(format!("writing {}", path.display()), &error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(&path, script).map_err(failed)?;
    show::print(&format!("Wrote {}\n{next}\n", path.display()))
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
    fn completions_go_where_the_shell_looks_for_them() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/kim"));
        let path = |shell| target(shell, home).map(|target| target.path.display().to_string());
        assert_eq!(
            path(Shell::Bash).unwrap(),
            "/home/kim/.local/share/bash-completion/completions/berth"
        );
        assert_eq!(path(Shell::Zsh).unwrap(), "/home/kim/.zfunc/_berth");
        assert_eq!(path(Shell::Fish).unwrap(), "/home/kim/.config/fish/completions/berth.fish");
        assert!(target(Shell::Zsh, home).unwrap().next.contains("fpath=(/home/kim/.zfunc $fpath)"));
        assert!(target(Shell::Elvish, home).unwrap_err().to_string().contains("its profile"));
        assert!(target(Shell::Bash, |_| None).is_err());
    }

    #[test]
    fn the_shell_of_the_user_is_the_usual_one() {
        assert_eq!(usual(Some("/usr/bin/zsh")).unwrap(), Shell::Zsh);
        assert!(
            usual(Some("/bin/tcsh")).unwrap_err().to_string().contains("berth completion bash")
        );
        assert!(usual(None).is_err());
    }

    #[test]
    fn zsh_calls_the_function_that_the_script_defines() {
        assert!(
            script(Shell::Zsh, "/opt/berth").unwrap().contains("_clap_dynamic_completer_berth")
        );
    }

    #[test]
    fn every_shell_is_told_to_ask_this_program() {
        for shell in Shell::value_variants() {
            let script = script(*shell, "/opt/berth").unwrap();
            assert!(script.contains("/opt/berth"), "{}", shell.word());
            assert!(script.contains(VARIABLE), "{}", shell.word());
        }
    }
}
