//! How long users say their jobs will run.
//!
//! A policy that is given true durations wins comparisons it would lose in production. So every
//! policy is given the same estimates, made once from the trace and a seed, and only the clock of
//! the simulation knows the truth.

use crate::random::{Rng, exp};
use crate::trace;
use berth_model::{Milli, Span};
use serde::{Deserialize, Serialize};

/// What an estimate is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// The true duration: for yardsticks, and to reproduce figures of others.
    Exact,
    /// The run time that was asked for in the trace.
    Limit,
    /// The true duration × a lognormal error with median 1. Each job has its own draw by its place
    /// in the list, whatever the others are.
    ///
    /// The error is cut off at three deviations (with σ = 1, between a twentieth and twenty times
    /// the truth), because beyond that single draws would decide a comparison, and an estimate is
    /// at least a second.
    Noisy { sigma: Milli, seed: u64 },
}

impl Estimate {
    /// The error most comparisons are made with: σ = 1.
    pub fn noisy(seed: u64) -> Estimate {
        Estimate::Noisy { sigma: Milli::ONE, seed }
    }

    /// For the job at `place` of its list. Nothing if the trace does not tell enough.
    pub fn of(self, place: usize, job: &trace::Job) -> Option<Span> {
        match self {
            Estimate::Exact => job.duration,
            Estimate::Limit => job.limit,
            Estimate::Noisy { sigma, seed } => {
                let z = Rng::stream(seed, place as u64).normal().clamp(-3.0, 3.0);
                let factor = exp(z * sigma.0 as f64 / 1_000.0);
                let guess = (job.duration?.0 as f64 * factor).round() as i64;
                Some(Span(guess).max(Span::secs(1)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(count: usize) -> Vec<trace::Job> {
        let rows: String = (0..count).map(|job| format!("{job},0,1000,1,3600\n")).collect();
        let text = format!("job_id,submit_s,duration_s,gpus,limit_s\n{rows}");
        trace::jobs("t", &text, &trace::Select::default()).unwrap()
    }

    #[test]
    fn half_of_noisy_estimates_are_too_short_and_none_is_absurd() {
        let jobs = jobs(10_000);
        let guess = |(place, job)| Estimate::noisy(5).of(place, job).unwrap();
        let guesses: Vec<Span> = jobs.iter().enumerate().map(guess).collect();
        let short = guesses.iter().filter(|guess| **guess < Span::secs(1_000)).count();
        assert!((4_850..5_150).contains(&short), "{short}");
        assert!(guesses.iter().all(|guess| (49_000..=20_090_000).contains(&guess.0)));
        // One deviation on either side of the truth holds two thirds.
        let near = guesses.iter().filter(|guess| (367_880..2_718_280).contains(&guess.0)).count();
        assert!((6_680..6_980).contains(&near), "{near}");
    }

    #[test]
    fn a_job_keeps_its_estimate_whatever_the_others_are() {
        let jobs = jobs(3);
        let first = Estimate::noisy(5).of(2, &jobs[2]);
        assert_eq!(Estimate::noisy(5).of(2, &jobs[2]), first);
        assert_ne!(Estimate::noisy(6).of(2, &jobs[2]), first);
    }

    #[test]
    fn without_a_limit_in_the_trace_there_is_no_estimate_from_it() {
        let mut job = jobs(1).remove(0);
        assert_eq!(Estimate::Limit.of(0, &job), Some(Span::secs(3_600)));
        job.limit = None;
        assert_eq!(Estimate::Limit.of(0, &job), None);
    }
}
