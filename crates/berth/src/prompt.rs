//! Questions to whoever sits at the terminal.

use crate::context::someone_is_there;
use crate::fail::{Exit, Failure, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, Read, Write};

/// `Proceed? [Y/n]`. Nobody there is a yes: a script has made up its mind.
pub fn proceed() -> Result<bool> {
    if !someone_is_there() {
        return Ok(true);
    }
    let failed = |error| Failure::io("asking", &error);
    write!(io::stderr(), "Proceed? [Y/n] ").map_err(failed)?;
    let mut answer = String::new();
    // The end of input is no answer, and no answer is no yes.
    if io::stdin().lock().read_line(&mut answer).map_err(failed)? == 0 {
        return Ok(false);
    }
    Ok(is_yes(&answer))
}

/// `QUESTION [y/N]`, for what cannot be undone: only a yes is one. Nobody there is a yes, too.
pub fn is_sure(question: &str) -> Result<bool> {
    if !someone_is_there() {
        return Ok(true);
    }
    let failed = |error| Failure::io("asking", &error);
    write!(io::stderr(), "{question} [y/N] ").map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(is_spoken_yes(&answer))
}

/// The return key alone says nothing.
fn is_spoken_yes(answer: &str) -> bool {
    !answer.trim().is_empty() && is_yes(answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

/// A value that is not shown while it is typed, or all of standard input.
pub fn secret(what: &str) -> Result<String> {
    let failed = |error| Failure::io(format!("reading {what}"), &error);
    let mut value = String::new();
    if !someone_is_there() {
        io::stdin().read_to_string(&mut value).map_err(failed)?;
    } else {
        write!(io::stderr(), "{what}: ").map_err(failed)?;
        let _quiet = Quiet::start().map_err(failed)?;
        let read = io::stdin().lock().read_line(&mut value);
        let _ = writeln!(io::stderr());
        read.map_err(failed)?;
        if value.contains('\u{3}') {
            return Err(Failure::silent(Exit::Interrupted));
        }
    }
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let value = value.strip_suffix('\r').unwrap_or(value);
    match value.is_empty() {
        true => Err(Failure::usage(format!("{what} is empty"))),
        false => Ok(value.to_owned()),
    }
}

/// A terminal that shows nothing that is typed, until dropped.
struct Quiet(Termios);

impl Quiet {
    fn start() -> io::Result<Quiet> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        // Ctrl-C comes as a letter, lest it end us before the terminal is as it was.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Quiet(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{is_spoken_yes, is_yes};

    #[test]
    fn only_yes_and_the_return_key_mean_yes() {
        assert!(["\n", "y\n", "Yes\r\n"].into_iter().all(is_yes));
        assert!(!["n\n", "no", "maybe\n", "nope"].into_iter().any(is_yes));
    }

    #[test]
    fn what_cannot_be_undone_takes_a_spoken_yes() {
        assert!(["y\n", "Yes\r\n"].into_iter().all(is_spoken_yes));
        assert!(!["", "\n", " \n", "n\n", "sure\n"].into_iter().any(is_spoken_yes));
    }
}
