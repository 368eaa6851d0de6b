//! The report: what was moved, problems and differences.

use crate::error::{Error, Result};
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// The maximum number of problems in a report. It only counts further ones.
const MOST_NAMED: usize = 1000;

/// A skipped entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub what: String,
    pub why: String,
}

/// Collects problems.
#[derive(Debug, Default)]
pub struct Problems {
    found: Mutex<(Vec<Problem>, u64)>,
}

impl Problems {
    pub fn add(&self, what: impl Into<String>, why: impl Into<String>) {
        let problem = Problem { what: what.into(), why: why.into() };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // The comparison reads the place a second time and finds the same problems again, so skip duplicates.
        if found.0.contains(&problem) {
            return;
        }
        found.1 += 1;
        if found.0.len() < MOST_NAMED {
            found.0.push(problem);
        }
    }

    pub fn all(&self) -> (Vec<Problem>, u64) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails at the first problem with `--strict`.
    pub fn must_be_none(&self, strict: bool) -> Result<()> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match found.0.first().filter(|_| strict) {
            Some(first) => Err(Error::Strict(format!("{}: {}", first.what, first.why))),
            None => Ok(()),
        }
    }
}

/// Counts of entities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub runs: u64,
    pub points: u64,
    pub params: u64,
    pub tags: u64,
    pub datasets: u64,
    pub logged_models: u64,
    pub files: u64,
    pub bytes: u64,
    /// A sum over all of the above.
    pub sha256: String,
}

/// A difference between both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub what: String,
    /// Such as `points`.
    pub part: String,
    pub source: String,
    pub target: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExperimentReport {
    /// At the source, and at the target.
    pub name: String,
    pub target: String,
    pub runs: u64,
    /// Runs from an earlier import.
    pub runs_before: u64,
    pub logged_models: u64,
    /// `None` without a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_source: Option<Totals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_target: Option<Totals>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ModelsReport {
    pub models: u64,
    pub versions: u64,
    /// Versions from an earlier import.
    pub versions_before: u64,
    pub aliases: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub source: String,
    pub target: String,
    /// A dry run, which writes nothing.
    pub dry_run: bool,
    pub experiments: Vec<ExperimentReport>,
    pub registered: ModelsReport,
    pub problems: Vec<Problem>,
    pub problem_count: u64,
    pub differences: Vec<Difference>,
    pub difference_count: u64,
    /// Whether the target has everything, according to the comparison.
    pub complete: bool,
}

impl Report {
    pub fn differs(&mut self, difference: Difference) {
        self.difference_count += 1;
        if self.differences.len() < MOST_NAMED {
            self.differences.push(difference);
        }
    }

    pub fn finish(&mut self, problems: &Problems) {
        (self.problems, self.problem_count) = problems.all();
        self.complete = self.problem_count == 0 && self.difference_count == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_is_found_twice_is_counted_once_and_strict_stops_at_it() {
        let problems = Problems::default();
        assert!(problems.must_be_none(true).is_ok());
        problems.add("run a", "no file");
        problems.add("run a", "no file");
        problems.add("run b", "no file");
        assert_eq!(problems.all().1, 2);
        assert!(problems.must_be_none(false).is_ok());
        let said = problems.must_be_none(true).unwrap_err().to_string();
        assert!(said.contains("run a: no file"), "{said}");
    }
}
