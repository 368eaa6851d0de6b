//! Waits, completions and slowdowns of a group of jobs.

use super::seconds;
use crate::outcome::Outcome;
use berth_model::Span;
use serde::{Deserialize, Serialize};

/// A quantity over many jobs. The quantile of *p* is the smallest value that a part *p* of all
/// values does not exceed, so it is a value that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Figures {
    fn new(mut values: Vec<i64>, shown: impl Fn(i64) -> f64, unit: f64) -> Figures {
        values.sort_unstable();
        let Some(largest) = values.last() else { return Figures::default() };
        let at = |percent: usize| shown(values[(values.len() * percent).div_ceil(100).max(1) - 1]);
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        Figures {
            mean: sum as f64 / (values.len() as f64 * unit),
            p50: at(50),
            p95: at(95),
            p99: at(99),
            max: shown(*largest),
        }
    }

    fn of_spans(values: impl Iterator<Item = Span>) -> Figures {
        Figures::new(values.map(|span| span.0).collect(), |ms| seconds(Span(ms)), 1_000.0)
    }
}

/// Figures of the jobs of a group that were done; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    pub jobs: u64,
    /// Not running, between submission and end.
    pub wait: Figures,
    pub wait_for_first_start: Figures,
    /// From submission to end.
    pub completion: Figures,
    /// Completion over duration, where a duration below ten seconds counts as ten: otherwise the
    /// shortest jobs alone would make the mean.
    pub slowdown: Figures,
}

const SHORTEST: Span = Span::secs(10);
/// Slowdowns are summed in millionths.
const PARTS: i64 = 1_000_000;

impl Group {
    pub(super) fn new<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Group {
        let done: Vec<&Outcome> =
            outcomes.into_iter().filter(|outcome| outcome.end.is_some()).collect();
        let all = || done.iter();
        let slowdowns = all().filter_map(|outcome| slowdown(outcome)).collect();
        Group {
            jobs: done.len() as u64,
            wait: Figures::of_spans(all().filter_map(|outcome| outcome.wait())),
            wait_for_first_start: Figures::of_spans(
                all().filter_map(|outcome| outcome.wait_for_first_start()),
            ),
            completion: Figures::of_spans(all().filter_map(|outcome| outcome.completion())),
            slowdown: Figures::new(slowdowns, |parts| parts as f64 / PARTS as f64, PARTS as f64),
        }
    }
}

fn slowdown(outcome: &Outcome) -> Option<i64> {
    let base = outcome.duration.max(SHORTEST);
    let parts = i128::from(outcome.completion()?.0) * i128::from(PARTS) / i128::from(base.0);
    Some(i64::try_from(parts).unwrap_or(i64::MAX))
}
