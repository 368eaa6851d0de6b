//! How a command fails: what is wrong, what to do next, and the exit code.

use berth_api::client::Error;
use berth_api::{Code, Problem, code};
use serde_json::json;
use std::fmt;
use std::io;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// What the program ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A job, or the command itself, failed.
    Failed = 1,
    Usage = 2,
    /// By policy, a budget, or rights.
    Refused = 3,
    NotFound = 4,
    Unreachable = 5,
    /// By Ctrl-C, as shells have it.
    Interrupted = 130,
}

/// Berth itself failed while a command stood for a job, as with `docker run`.
pub const BERTH_FAILED: u8 = 125;

impl From<code::Exit> for Exit {
    fn from(exit: code::Exit) -> Exit {
        match exit {
            code::Exit::Failed => Exit::Failed,
            code::Exit::Usage => Exit::Usage,
            code::Exit::Refused => Exit::Refused,
            code::Exit::NotFound => Exit::NotFound,
        }
    }
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// What the program ends with instead of that: the exit code of a job, or 125.
    status: Option<u8>,
    detail: String,
    next: Option<String>,
    /// As the server wrote it.
    problem: Option<Box<Problem>>,
    /// It has been said already.
    silent: bool,
}

impl Failure {
    pub fn new(exit: Exit, detail: impl Into<String>) -> Failure {
        let detail = detail.into();
        Failure { exit, status: None, detail, next: None, problem: None, silent: false }
    }

    pub fn usage(detail: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, detail)
    }

    pub fn io(doing: impl fmt::Display, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format!("{doing}: {error}"))
    }

    pub fn internal(detail: impl Into<String>) -> Failure {
        Failure::new(Exit::Failed, detail).next("This is a bug in Berth; please report it.")
    }

    /// Only an exit code: the answer that was printed says it all.
    pub fn silent(exit: Exit) -> Failure {
        Failure { silent: true, ..Failure::new(exit, "") }
    }

    /// The job has failed with this code, and so does the command that ran it.
    pub fn of_job(code: u8) -> Failure {
        Failure { status: Some(code), ..Failure::silent(Exit::Failed) }
    }

    /// A failure of Berth where any other code would be taken for the job's. Ctrl-C stays 130.
    pub fn while_attached(mut self) -> Failure {
        if self.status.is_none() && self.exit != Exit::Interrupted {
            self.status = Some(BERTH_FAILED);
        }
        self
    }

    /// What the program ends with.
    pub fn status(&self) -> u8 {
        self.status.unwrap_or(self.exit as u8)
    }

    pub fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = Some(next.into());
        self
    }

    /// The server's code, where it is the server that refused.
    pub fn code(&self) -> Option<Code> {
        self.problem.as_ref().and_then(|problem| problem.known_code())
    }

    /// What is wrong, and what to do.
    pub fn parts(&self) -> (String, Option<String>) {
        (self.detail.clone(), self.next.clone())
    }

    /// What to write to standard error.
    pub fn text(&self, as_json: bool) -> Option<String> {
        match (self.silent, as_json) {
            (true, _) => None,
            (false, true) => Some(self.json()),
            (false, false) => Some(self.to_string()),
        }
    }

    fn json(&self) -> String {
        let value = match &self.problem {
            Some(problem) => json!(problem),
            None => json!({ "detail": self.detail, "next": self.next, "exit": self.status() }),
        };
        format!("{value:#}")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.detail)?;
        let errors = self.problem.iter().flat_map(|problem| &problem.errors);
        for error in errors.filter(|error| !self.detail.contains(&error.message)) {
            write!(f, "\n       {error}")?;
        }
        if let Some(next) = &self.next {
            write!(f, "\nnext: {next}")?;
        }
        if let Some(problem) = &self.problem {
            write!(f, "\n{}: {}", problem.code, problem.title)?;
            if problem.known_code().is_some() {
                write!(f, " (docs/errors/{}.md)", problem.code)?;
            }
            if let Some(instance) = &problem.instance {
                write!(f, ", request {instance}")?;
            }
        }
        Ok(())
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        let exit = match problem.known_code() {
            Some(code) => code.exit().into(),
            // A newer server's; its status says as much.
            None => match problem.status {
                404 => Exit::NotFound,
                401 | 403 | 409 | 422 => Exit::Refused,
                400..=499 => Exit::Usage,
                _ => Exit::Failed,
            },
        };
        let (detail, next) = (problem.detail.clone(), Some(problem.next.clone()));
        let problem = Some(Box::new(problem));
        Failure { exit, status: None, detail, next, problem, silent: false }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let detail = chain(&error);
        match error {
            Error::Problem(problem) => Failure::from(*problem),
            Error::Unreachable { url, source } => {
                let why = root(&source);
                Failure::new(Exit::Unreachable, format!("no server answers at {url} ({why})"))
                    .next(UP)
            }
            Error::Timeout { .. } | Error::Lost { .. } | Error::ShellLost { .. } => {
                Failure::new(Exit::Unreachable, detail).next(
                    "Check first whether the change was made, because its answer was lost; then try again.",
                )
            }
            Error::Status { .. } => Failure::new(Exit::Unreachable, detail).next(EXPLAIN),
            Error::BadUrl { .. } | Error::BadToken | Error::Certificate { .. } => {
                Failure::usage(detail).next(EXPLAIN)
            }
            Error::NoRandomness
            | Error::Setup { .. }
            | Error::Decode { .. }
            | Error::Encode { .. }
            | Error::LongLine { .. } => Failure::new(Exit::Failed, detail),
        }
    }
}

const UP: &str = "Start a server with `berth up`, or choose another one with --server; `berth config explain` \
     shows where the address comes from.";
const EXPLAIN: &str = "`berth config explain` shows where the address and the token come from.";

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// The first cause: what is between it and us says only that it failed.
fn root(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// Why the value of a flag was refused; clap names the flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(pub String);

impl BadValue {
    pub fn new(message: impl Into<String>) -> BadValue {
        BadValue(message.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_is_wrong_what_to_do_and_where_to_read_more() {
        let problem = Problem::new(Code::NoSuchJob, "there is no job 17").instance("req-9");
        let failure = Failure::from(problem);
        assert_eq!(failure.exit, Exit::NotFound);
        assert_eq!(
            failure.to_string(),
            "error: there is no job 17\nnext: List jobs with `berth ps --all`.\n\
             BRT0008: There is no such job (docs/errors/BRT0008.md), request req-9"
        );
        let json: serde_json::Value = serde_json::from_str(&failure.text(true).unwrap()).unwrap();
        assert_eq!(json["code"], "BRT0008");
    }

    #[test]
    fn a_command_that_stands_for_a_job_ends_with_its_code_or_with_125() {
        assert_eq!(Failure::of_job(7).while_attached().status(), 7);
        assert_eq!(Failure::usage("no").while_attached().status(), BERTH_FAILED);
        assert_eq!(Failure::usage("no").status(), 2);
        assert_eq!(Failure::silent(Exit::Interrupted).while_attached().status(), 130);
    }

    #[test]
    fn every_code_has_the_exit_code_of_its_page() {
        for code in Code::ALL {
            let failure = Failure::from(Problem::new(*code, "x"));
            assert_eq!(failure.exit as i32, code.exit() as i32, "{}", code.code());
        }
    }

    #[test]
    fn a_problem_of_a_newer_server_ends_by_its_status() {
        let newer = |status: u16| {
            let mut problem = Problem::new(Code::Internal, "x");
            (problem.code, problem.status) = ("BRT9999".into(), status);
            Failure::from(problem).exit
        };
        assert_eq!([newer(404), newer(403)], [Exit::NotFound, Exit::Refused]);
        assert_eq!([newer(418), newer(500)], [Exit::Usage, Exit::Failed]);
    }

    #[test]
    fn a_failure_of_our_own_is_json_too() {
        let failure = Failure::usage("no").next("yes");
        let json: serde_json::Value = serde_json::from_str(&failure.text(true).unwrap()).unwrap();
        assert_eq!(json, json!({"detail": "no", "next": "yes", "exit": 2}));
        assert_eq!(Failure::silent(Exit::Failed).text(true), None);
    }
}
