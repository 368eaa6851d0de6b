//! What went wrong with a request, as RFC 9457 has it.

use crate::code::Code;
use berth_file::job::{FlagError, Mistakes, Parsed, Refused};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A problem. People read `detail` and `next`; programs go by `code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem, like `code`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What is wrong this time.
    pub detail: String,
    /// This very request; the server's log names it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// docs/errors has a page for each.
    #[schema(value_type = Code)]
    pub code: String,
    /// What to do.
    pub next: String,
    /// Where it is wrong, when that can be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// One mistake in what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The key; empty for the text as a whole.
    pub path: String,
    /// From 1, where the text has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:berth:problem:{}", code.code()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            instance: None,
            code: code.code().to_owned(),
            next: code.next().to_owned(),
            errors: Vec::new(),
        }
    }

    /// Says what to do in this very case.
    pub fn next(mut self, next: impl Into<String>) -> Problem {
        self.next = next.into();
        self
    }

    pub fn errors(mut self, errors: Vec<FieldError>) -> Problem {
        self.errors = errors;
        self
    }

    pub fn instance(mut self, instance: impl Into<String>) -> Problem {
        self.instance = Some(instance.into());
        self
    }

    /// The code, unless the server is newer than this program and has another one.
    pub fn known_code(&self) -> Option<Code> {
        Code::find(&self.code)
    }

    /// A job file that could not be read.
    pub fn of_mistakes(mistakes: &Mistakes) -> Problem {
        let errors: Vec<FieldError> = mistakes
            .0
            .iter()
            .map(|mistake| FieldError {
                path: mistake.key.clone().unwrap_or_default(),
                line: Some(mistake.at.line),
                column: Some(mistake.at.column),
                message: mistake.message.clone(),
            })
            .collect();
        Problem::new(Code::BadJobFile, mistakes.to_string()).errors(errors)
    }

    /// A job file that was read and cannot be run as written.
    pub fn of_refused(refused: &Refused, parsed: Option<&Parsed>) -> Problem {
        Problem::of_refusals(std::slice::from_ref(refused), parsed)
    }

    /// The same for everything that is wrong with it.
    pub fn of_refusals(refused: &[Refused], parsed: Option<&Parsed>) -> Problem {
        let details: Vec<String> = refused.iter().map(ToString::to_string).collect();
        let errors = refused.iter().map(|one| of_key(one, parsed)).collect();
        Problem::new(Code::JobRefused, details.join("\n")).errors(errors)
    }

    /// Adds what is wrong with the keys that could be read of a file with mistakes.
    pub fn and_refused(mut self, refused: &[Refused], parsed: &Parsed) -> Problem {
        for one in refused {
            self.errors.push(of_key(one, Some(parsed)));
        }
        // Without a line, a key is missing.
        self.errors.sort_by_key(|error| error.line.unwrap_or(usize::MAX));
        let details: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        self.detail = details.join("\n");
        self
    }

    /// A flag that could not be read.
    pub fn of_flag(error: &FlagError) -> Problem {
        Problem::new(Code::BadJobFile, error.to_string())
    }
}

fn of_key(refused: &Refused, parsed: Option<&Parsed>) -> FieldError {
    let at = parsed.and_then(|parsed| parsed.at(refused.key));
    FieldError {
        path: refused.key.to_owned(),
        line: at.map(|at| at.line),
        column: at.map(|at| at.column),
        message: refused.message.clone(),
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_code_status_and_what_to_do() {
        let problem = Problem::new(Code::NoSuchJob, "there is no job 17").instance("req-1");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["type"], "urn:berth:problem:BRT0008");
        assert_eq!((&json["status"], &json["code"]), (&404.into(), &"BRT0008".into()));
        assert_eq!(json["next"], "List jobs with `berth ps --all`.");
        assert!(json.get("errors").is_none());
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }

    #[test]
    fn a_problem_of_a_newer_server_is_understood_as_far_as_it_goes() {
        let json = r#"{"type":"x","title":"t","status":418,"detail":"d","code":"BRT9999","next":"n",
            "more": 1}"#;
        let problem: Problem = serde_json::from_str(json).unwrap();
        assert_eq!((problem.known_code(), problem.status), (None, 418));
    }

    #[test]
    fn every_mistake_of_a_job_file_keeps_its_place() {
        let mistakes = berth_file::job::read("gpu: 1\nnodes: 0\n").unwrap_err();
        let problem = Problem::of_mistakes(&mistakes);
        let shown: Vec<String> = problem.errors.iter().map(ToString::to_string).collect();
        assert_eq!(shown[0], "line 1, column 1: unknown key `gpu`; did you mean `gpus`?");
        assert_eq!((problem.errors[1].path.as_str(), problem.errors[1].line), ("nodes", Some(2)));
    }
}
