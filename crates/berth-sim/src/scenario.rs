//! Scenarios: a world whose events are played, and what is expected of it.

mod eval;

use crate::driver::{Driver, Settings};
use crate::play;
use crate::record::Recorder;
use crate::world::{Check, Error, Expectation, Loaded, When};
use berth_model::{Span, Time};
use eval::{View, holds};
use serde::Serialize;
use std::collections::BTreeSet;

/// How a scenario went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub expectations: usize,
    /// Events that went through the log, decisions among them.
    pub events: u64,
    /// A mark of the state at the end: two runs must agree on it.
    pub hash: u64,
    pub failures: Vec<Failure>,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Something that was not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Of the expectation; nothing where none was needed to see that it is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub at: String,
    /// Time since the world began.
    pub after: String,
    pub expected: String,
    pub found: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        let Failure { at, after, expected, found, .. } = self;
        write!(f, "at {after} ({at}): expected {expected}; {found}")
    }
}

/// Plays the events and tests what is expected.
pub fn check(loaded: &Loaded) -> Result<Verdict, Error> {
    let settings = Settings { script: loaded.driver.clone(), at_once: false, rounds: None };
    let mut driver = play::driver(loaded, settings)?;
    for event in &loaded.events {
        driver.schedule(event.at, event.action.clone());
    }
    let mut evaluation = Evaluation::new(loaded);
    for point in points(loaded) {
        while driver.next_time().is_some_and(|next| next <= point) {
            if let Some(at) = driver.step() {
                evaluation.check_during(&mut driver, at);
            }
        }
        driver.bring_to(point);
        evaluation.check_at(&mut driver, point);
    }
    let failures = evaluation.close(&driver);
    Ok(Verdict {
        name: loaded.name.clone(),
        expectations: loaded.expect.len(),
        events: driver.observer.events,
        hash: driver.state().hash(),
        failures,
    })
}

/// The moments somebody asks about, and that of the last event.
fn points(loaded: &Loaded) -> BTreeSet<Time> {
    let mut points: BTreeSet<Time> = loaded.events.iter().map(|event| event.at).collect();
    for expectation in &loaded.expect {
        match expectation.when {
            When::At(at) => points.insert(at),
            When::Between(from, to) => points.insert(from) | points.insert(to),
        };
    }
    points.insert(loaded.snapshot.now);
    points
}

struct Evaluation<'a> {
    loaded: &'a Loaded,
    failures: Vec<Failure>,
    /// Expectations that failed already: one failure each is enough.
    closed: BTreeSet<usize>,
}

impl<'a> Evaluation<'a> {
    fn new(loaded: &'a Loaded) -> Evaluation<'a> {
        Evaluation { loaded, failures: Vec::new(), closed: BTreeSet::new() }
    }

    /// Tests what must hold all the time, after something has happened.
    fn check_during(&mut self, driver: &mut Driver<Recorder>, at: Time) {
        let lasting = |expectation: &Expectation| match expectation.when {
            When::At(_) => false,
            When::Between(from, to) => from <= at && at <= to,
        };
        self.test(driver, at, lasting, |check| !check.is_summary());
    }

    /// Tests what must hold at this very moment, and the sums of what ends here.
    fn check_at(&mut self, driver: &mut Driver<Recorder>, at: Time) {
        self.test(driver, at, |expectation| expectation.when == When::At(at), |_| true);
        let begins = |expectation: &Expectation| match expectation.when {
            When::At(_) => false,
            When::Between(from, to) => from == at || to == at,
        };
        self.test(driver, at, begins, |check| !check.is_summary());
        let ends = |expectation: &Expectation| match expectation.when {
            When::At(_) => false,
            When::Between(_, to) => to == at,
        };
        self.test(driver, at, ends, Check::is_summary);
    }

    fn test(
        &mut self,
        driver: &mut Driver<Recorder>,
        at: Time,
        due: impl Fn(&Expectation) -> bool,
        kind: impl Fn(&Check) -> bool,
    ) {
        let open: Vec<usize> = (0..self.loaded.expect.len())
            .filter(|index| !self.closed.contains(index) && due(&self.loaded.expect[*index]))
            .collect();
        if open.is_empty() {
            return;
        }
        let mut view = View::new(driver, self.loaded);
        for index in open {
            let expectation = &self.loaded.expect[index];
            let wanted = expectation.checks.iter().filter(|check| kind(check));
            for check in wanted {
                if let Err(mismatch) = holds(check, expectation.when, &mut view) {
                    self.closed.insert(index);
                    self.failures.push(Failure {
                        line: Some(expectation.position.line),
                        at: at.to_string(),
                        after: since(self.loaded, at),
                        expected: mismatch.expected,
                        found: mismatch.found,
                    });
                    break;
                }
            }
        }
    }

    /// What is wrong without anyone having to expect it.
    fn close(mut self, driver: &Driver<Recorder>) -> Vec<Failure> {
        let recorder = &driver.observer;
        let foreseen = |at: Time, code: &str| {
            self.loaded.expect.iter().any(|expectation| {
                let then = match expectation.when {
                    When::At(when) => when == at,
                    When::Between(from, to) => from <= at && at <= to,
                };
                let named = |check: &Check| {
                    matches!(check, Check::Rejected(codes) if codes.iter().any(|c| c == code))
                };
                then && expectation.checks.iter().any(named)
            })
        };
        let mut more: Vec<(Time, &str, String)> = Vec::new();
        for refusal in &recorder.refusals {
            if !foreseen(refusal.at, refusal.code) {
                let found = format!("one was refused ({}): {}", refusal.code, refusal.text);
                more.push((refusal.at, "every event to be taken", found));
            }
        }
        for (at, job, finding) in &recorder.aside {
            let job = job.map_or("a gang".to_owned(), |job| format!("job {job}"));
            more.push((*at, "a sound plan", format!("{job} was put aside: {finding}")));
        }
        if let Some(at) = recorder.gave_up {
            more.push((at, "the plans to come to an end", "they went on and on".to_owned()));
        }
        for (at, expected, found) in more {
            self.failures.push(Failure {
                line: None,
                at: at.to_string(),
                after: since(self.loaded, at),
                expected: expected.to_owned(),
                found,
            });
        }
        self.failures
    }
}

fn since(loaded: &Loaded, at: Time) -> String {
    let span: Span = at - loaded.snapshot.now;
    span.to_string()
}
