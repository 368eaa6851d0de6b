//! Long output goes through a pager at a terminal, as git's does.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Quits by itself where all fits, keeps colours, and leaves what was shown.
const USUAL: &str = "less -FRX";

/// The command that long output goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pager {
    command: String,
    rows: usize,
}

impl Pager {
    /// `BERTH_PAGER`, `PAGER` or less; none off a terminal, or where one of them says so.
    pub fn find(wanted: bool) -> Option<Pager> {
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let rows = size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
        let variable = |name: &str| std::env::var(name).ok();
        let command = choose(variable).filter(|_| wanted && terminal)?;
        Some(Pager { command, rows: rows? })
    }

    /// Whether a text is longer than the screen.
    pub fn is_for(&self, text: &str) -> bool {
        text.lines().count() >= self.rows
    }

    /// Whether the text was shown; where the pager does not start, it is to be printed as it is.
    pub fn show(&self, text: &str) -> bool {
        // Ctrl-C is for the pager, which shall not outlive us.
        let _ignored = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        let Ok(mut child) = shell.spawn() else { return false };
        if let Some(mut input) = child.stdin.take() {
            // A pager that is quit early has read enough.
            let _ = input.write_all(text.as_bytes());
        }
        // 127: the shell has not found it.
        child.wait().is_ok_and(|ended| ended.code() != Some(127))
    }
}

fn choose(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let named = variable("BERTH_PAGER").or_else(|| variable("PAGER"));
    let command = named.unwrap_or_else(|| USUAL.to_owned());
    let command = command.trim();
    (!command.is_empty() && command != "cat").then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(pairs: &[(&str, &str)]) -> Option<String> {
        choose(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }

    #[test]
    fn berths_own_variable_goes_before_the_usual_one() {
        assert_eq!(chosen(&[]).as_deref(), Some("less -FRX"));
        assert_eq!(chosen(&[("PAGER", "more")]).as_deref(), Some("more"));
        let both = [("PAGER", "more"), ("BERTH_PAGER", "most -s")];
        assert_eq!(chosen(&both).as_deref(), Some("most -s"));
        assert_eq!(chosen(&[("PAGER", "more"), ("BERTH_PAGER", "")]), None);
        assert_eq!(chosen(&[("PAGER", "cat")]), None);
    }

    #[test]
    fn only_what_is_longer_than_the_screen_is_paged() {
        let pager = Pager { command: "less".into(), rows: 4 };
        assert!(!pager.is_for("a\nb\nc\n") && pager.is_for("a\nb\nc\nd\n"));
    }
}
