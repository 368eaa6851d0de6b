//! When waiting jobs are likely to start: copies of the state run forward, with no driver attached.
//!
//! A run lets jobs end after durations drawn from the history of their user and name, carries out
//! every plan at once, and lets jobs come as they came in the recent past, as far as the caller has
//! kept it. Machines that are bought come when they should,
//! stops take their whole grace, and a job that has saved before saves again when it is stopped.
//! One set of runs serves every waiting job.

mod arrivals;
mod draw;
mod simulation;

use crate::forecast::arrivals::ArrivalStream;
use crate::forecast::simulation::Simulation;
use crate::state::State;
pub use arrivals::Arrived;
use berth_model::{JobId, Time};
pub use simulation::STEPS;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// When jobs that do not run are likely to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The time of the state it was made of.
    pub at: Time,
    pub runs: u32,
    /// Runs that were cut off after [`STEPS`].
    pub cut_off: u32,
    /// Every job that had no GPUs at that time.
    pub jobs: BTreeMap<JobId, Eta>,
}

/// The first start of a job over all runs. Nothing where it lies beyond the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Eta {
    /// It had started by then in half of the runs.
    pub p50: Option<Time>,
    /// In nine of ten.
    pub p90: Option<Time>,
    /// Runs in which it started at all.
    pub runs_started: u32,
}

impl fmt::Display for Eta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.p50, self.p90) {
            (Some(p50), Some(p90)) if p50 == p90 => write!(f, "it is expected to start at {p50}"),
            (Some(p50), Some(p90)) => {
                write!(f, "it starts by {p50} in half of all cases, and by {p90} in nine of ten")
            }
            (Some(p50), None) => {
                write!(f, "it starts by {p50} in half of all cases; in some it is far off")
            }
            (None, _) => write!(f, "it is not expected to start as far as can be seen"),
        }
    }
}

/// What is asked of a forecast.
#[derive(Debug, Clone, Default)]
pub struct Ask<'a> {
    pub runs: u32,
    pub seed: u64,
    /// Submissions of the last days, oldest first; those who come during a run are like them.
    pub arrivals: &'a [Arrived],
    /// Only these jobs are of interest, and a run is over when they have started; `None`: all.
    pub jobs: Option<BTreeSet<JobId>>,
}

/// What forecasts are made on: a copy of the state, and one of that for the run under way. Whoever
/// makes one forecast after the other keeps them in between, so that what has room for the first has
/// room for all.
#[derive(Debug, Default)]
pub struct Copies {
    base: State,
    run: State,
}

impl Copies {
    /// Lets go of what the last forecast was made on, for a state that is copied next.
    pub fn clear(&mut self) {
        *self = Copies::default();
    }

    /// Runs a copy of the state forward as asked.
    pub fn forecast(&mut self, state: State, ask: &Ask<'_>) -> Forecast {
        let (runs, seed, at) = (ask.runs, ask.seed, state.now);
        self.base = state;
        let base = &mut self.base;
        // Turns are given from outside, and soon.
        base.jobs.give_turns();
        base.refresh();
        let wanted = |job: &JobId| ask.jobs.as_ref().is_none_or(|jobs| jobs.contains(job));
        let mut starts: BTreeMap<JobId, Vec<Time>> = base
            .jobs
            .iter()
            .filter(|(_, job)| job.open == 0 && wanted(&job.id))
            .map(|(_, job)| (job.id, Vec::new()))
            .collect();
        let waiting: BTreeSet<JobId> = starts.keys().copied().collect();
        let horizon = base.now + base.policy.forecast_horizon;
        let mut cut_off = 0;
        for number in 0..runs {
            let coming = ArrivalStream::new(ask.arrivals, base.now, seed, number);
            // The old copy goes before the next one is made.
            drop(std::mem::take(&mut self.run));
            let mut run = Simulation::new(base.clone(), number, seed, &waiting, coming);
            cut_off += u32::from(!run.go(horizon));
            for (job, at) in run.started {
                starts.entry(job).or_default().push(at);
            }
            self.run = run.state;
        }
        let jobs = starts.into_iter().map(|(job, times)| (job, eta(times, runs))).collect();
        Forecast { at, runs, cut_off, jobs }
    }
}

/// Runs the state forward so many times, without new jobs. The same state and seed give the same
/// forecast.
pub fn forecast(state: &State, runs: u32, seed: u64) -> Forecast {
    forecast_with(state, &Ask { runs, seed, ..Ask::default() })
}

/// Runs the state forward as asked.
pub fn forecast_with(state: &State, ask: &Ask<'_>) -> Forecast {
    Copies::default().forecast(state.clone(), ask)
}

fn eta(mut times: Vec<Time>, runs: u32) -> Eta {
    times.sort_unstable();
    let after = |percent: u64| {
        let needed = (u64::from(runs) * percent).div_ceil(100) as usize;
        times.get(needed.max(1) - 1).copied()
    };
    Eta { p50: after(50), p90: after(90), runs_started: times.len() as u32 }
}
