//! Whether forecasts can be believed: how many jobs start by the time they were told.
//!
//! What a forecast errs by depends on the cluster and its users, and it changes with the load. So
//! the corrected P90 is multiplied by a factor that follows the forecasts before it: the one under
//! which nine of ten of the last of them would have been right, as far as their outcome was known
//! when the job was submitted. One that still waits counts with the time it has waited so far.

use crate::outcome::Outcome;
use crate::replay::StartForecast;
use berth_model::{Span, Time};
use serde::Serialize;

/// Added to both sides of the factor, so that waits of seconds do not make it.
const LEAST: Span = Span::mins(1);
/// Forecasts that the factor follows, and how many there must be.
const FOLLOWED: usize = 200;
const ENOUGH: usize = 20;

/// How forecasts fared over some jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Accuracy {
    /// Jobs that were told something and started in the end.
    pub jobs: u64,
    /// Of them, those that did not start at once.
    pub waited: u64,
    /// The part that had started by its P50, and by its P90.
    pub by_p50: f64,
    pub by_p90: f64,
    /// The same among those that did not start at once.
    pub waited_by_p50: f64,
    pub waited_by_p90: f64,
    /// By their P90 times the factor that was learned.
    pub by_corrected: f64,
    pub waited_by_corrected: f64,
}

impl Accuracy {
    /// Several sets of jobs taken as one.
    pub fn together(sets: &[Accuracy]) -> Accuracy {
        let jobs: u64 = sets.iter().map(|set| set.jobs).sum();
        let waited: u64 = sets.iter().map(|set| set.waited).sum();
        let mean = |part: fn(&Accuracy) -> f64, of: fn(&Accuracy) -> u64, all: u64| {
            let sum: f64 = sets.iter().map(|set| part(set) * of(set) as f64).sum();
            sum / all.max(1) as f64
        };
        let of_all = |part| mean(part, |set| set.jobs, jobs);
        let of_waited = |part| mean(part, |set| set.waited, waited);
        Accuracy {
            jobs,
            waited,
            by_p50: of_all(|set| set.by_p50),
            by_p90: of_all(|set| set.by_p90),
            waited_by_p50: of_waited(|set| set.waited_by_p50),
            waited_by_p90: of_waited(|set| set.waited_by_p90),
            by_corrected: of_all(|set| set.by_corrected),
            waited_by_corrected: of_waited(|set| set.waited_by_corrected),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// What the P90 was multiplied by, in the middle of those that were held back.
    pub factor: f64,
    /// Jobs submitted before the time that is held back, and those after it.
    pub learned: Accuracy,
    pub held_back: Accuracy,
}

/// A job's forecast beside what came of it; waits in seconds.
struct Pair {
    submit: Time,
    p50: f64,
    p90: f64,
    real: f64,
    /// What is known to multiply the P90 by when it is told.
    factor: f64,
}

impl Calibration {
    /// Jobs are told in their order of submission; those before `held_back` are told apart.
    pub fn new(forecast: &[StartForecast], outcomes: &[Outcome], held_back: Time) -> Calibration {
        let seconds = |span: Span| span.0 as f64 / 1_000.0;
        let far = |span: Option<Span>| span.map_or(f64::INFINITY, seconds);
        let pair = |forecast: &StartForecast| {
            let outcome = &outcomes[forecast.job as usize];
            let real = seconds(outcome.wait_for_first_start()?);
            let (p50, p90) = (far(forecast.p50), far(forecast.p90));
            Some(Pair { submit: outcome.submit, p50, p90, real, factor: 1.0 })
        };
        let mut pairs: Vec<Pair> = forecast.iter().filter_map(pair).collect();
        let mut before: Vec<usize> = Vec::new();
        for at in 0..pairs.len() {
            pairs[at].factor = factor(&pairs, &before, pairs[at].submit);
            // One that starts at once teaches nothing about those that do not.
            if pairs[at].real > 0.0 && pairs[at].p90.is_finite() {
                before.push(at);
            }
        }
        let (past, later): (Vec<Pair>, Vec<Pair>) =
            pairs.into_iter().partition(|pair| pair.submit < held_back);
        let mut factors: Vec<f64> = later.iter().map(|pair| pair.factor).collect();
        factors.sort_by(f64::total_cmp);
        let factor = factors.get(factors.len() / 2).copied().unwrap_or(1.0);
        Calibration { factor, learned: accuracy(&past), held_back: accuracy(&later) }
    }
}

/// The factor under which nine of ten of the last forecasts would have been right, as far as it is
/// known then.
fn factor(pairs: &[Pair], before: &[usize], now: Time) -> f64 {
    let least = LEAST.0 as f64 / 1_000.0;
    let ratio = |at: &usize| {
        let pair = &pairs[*at];
        let so_far = (now - pair.submit).0 as f64 / 1_000.0;
        (pair.real.min(so_far) + least) / (pair.p90 + least)
    };
    let last = &before[before.len().saturating_sub(FOLLOWED)..];
    let mut ratios: Vec<f64> = last.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    match ratios.len() {
        ..ENOUGH => 1.0,
        count => ratios[(count * 9).div_ceil(10) - 1].max(1.0),
    }
}

fn accuracy(pairs: &[Pair]) -> Accuracy {
    let least = LEAST.0 as f64 / 1_000.0;
    let part = |all: &[&Pair], holds: &dyn Fn(&Pair) -> bool| match all.len() {
        0 => 0.0,
        count => all.iter().filter(|pair| holds(pair)).count() as f64 / count as f64,
    };
    let all: Vec<&Pair> = pairs.iter().collect();
    let waited: Vec<&Pair> = pairs.iter().filter(|pair| pair.real > 0.0).collect();
    let p50 = |pair: &Pair| pair.real <= pair.p50;
    let p90 = |pair: &Pair| pair.real <= pair.p90;
    let corrected = |pair: &Pair| pair.real <= (pair.p90 + least) * pair.factor - least;
    Accuracy {
        jobs: all.len() as u64,
        waited: waited.len() as u64,
        by_p50: part(&all, &p50),
        by_p90: part(&all, &p90),
        waited_by_p50: part(&waited, &p50),
        waited_by_p90: part(&waited, &p90),
        by_corrected: part(&all, &corrected),
        waited_by_corrected: part(&waited, &corrected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Segment;
    use crate::peers::{self, Job};

    /// Real waits in minutes beside a P90 of ten minutes, one job an hour.
    fn calibration(waits: &[i64], held_back: i64) -> Calibration {
        let one = |(number, wait): (usize, &i64)| {
            let submit = Time(0) + Span::hours(number as i64);
            let (duration, estimate) = (Span::mins(1), Span::mins(1));
            let job = Job { submit, duration, estimate, gpus: 1, team: 0, models: 1 };
            let mut outcome = peers::blank(number, &job);
            let from = submit + Span::mins(*wait);
            outcome.segments.push(Segment::new(from, from + duration));
            outcome
        };
        let outcomes: Vec<Outcome> = waits.iter().enumerate().map(one).collect();
        let (p50, p90) = (Some(Span::mins(5)), Some(Span::mins(10)));
        let forecast: Vec<StartForecast> =
            (0..waits.len() as u32).map(|job| StartForecast { job, p50, p90 }).collect();
        Calibration::new(&forecast, &outcomes, Time(0) + Span::hours(held_back))
    }

    #[test]
    fn a_forecast_that_errs_by_a_factor_is_put_right_by_it() {
        // Nine of ten wait up to 21 minutes, where ten were told.
        let past = [2, 4, 6, 8, 12, 14, 16, 18, 21, 40];
        let all: Vec<i64> = past.iter().cycle().take(100).copied().collect();
        let found = calibration(&all, 50);
        assert!((found.factor - 2.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.learned.jobs, found.held_back.jobs), (50, 50));
        assert!((found.held_back.by_p90 - 0.4).abs() < 1e-9, "{found:?}");
        assert!((found.held_back.by_corrected - 0.9).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn jobs_that_start_at_once_are_told_apart() {
        let found = calibration(&[0, 0, 0, 20], 0);
        assert_eq!((found.held_back.jobs, found.held_back.waited), (4, 1));
        assert!((found.held_back.by_p90 - 0.75).abs() < 1e-9);
        assert!(found.held_back.waited_by_p90.abs() < 1e-9);
        assert!((found.factor - 1.0).abs() < 1e-9, "nothing was learned");
    }

    #[test]
    fn what_is_not_known_yet_teaches_no_more_than_what_has_been_seen_of_it() {
        // Each waits ten hours, and another comes every hour: of the last nine only so much is
        // known as they have waited.
        let found = calibration(&[600; 40], 30);
        assert!(found.factor <= 601.0 / 11.0 + 1e-9, "{found:?}");
        assert!(found.held_back.by_corrected > 0.99, "{found:?}");
    }
}
