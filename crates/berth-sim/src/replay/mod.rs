//! Traces under the real core: the same state, planner and checker as in production, on pretend
//! machines that start and stop tasks at once.
//!
//! It gives the same [outcomes](crate::outcome) as the [peers](crate::peers), from the same jobs,
//! so that one piece of code works out the figures of both.
//!
//! **What the core is told.** The estimate is the time limit a job is submitted with, and nothing
//! else: every job has a name of its own, so the core learns nothing from earlier runs that the
//! peers could not know, unless [`Rules::learns`] says otherwise. A user whose job is not through by then has its limit raised, to twice
//! what it was: no job is killed because an estimate was too short, and nobody knows beforehand
//! that it was. EASY among the peers corrects its estimates in the same way.
//!
//! **Machines.** A job that fits one node is one task. A larger one is a gang of whole nodes and
//! one part of a node for the rest, as the peers place it. What is stopped has saved its progress,
//! holds its GPUs no longer, and begins its next run with the restart cost, in which it makes no
//! progress. Bought machines come after their boot time and are paid from the order on. When a
//! machine fails or leaves, what runs there goes back to its last checkpoint; what is left of a
//! gang holds its GPUs until the core stops it or fills the gap, which no outcome tells.
//!
//! At one moment ends come before what happens to machines, that before submissions, and plans
//! after all of them.

mod lifecycle;
mod machines;
mod market;
mod play;
mod run;
mod world;

#[cfg(test)]
mod tests;

use crate::engine::LoadError;
use crate::outcome::{Bought, Outage, Outcome, Timeline};
use crate::site::Site;
use crate::workload::Workload;
use berth_model::{Policy, Rejected, Span};
use serde::{Deserialize, Serialize};

/// A way to run the core, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The default policy. No job can be stopped for another.
    Berth,
    /// The default policy with time sharing. All jobs can be stopped, and going on costs five
    /// minutes.
    BerthSharing,
}

impl Preset {
    pub const ALL: [Preset; 2] = [Preset::Berth, Preset::BerthSharing];

    pub fn word(self) -> &'static str {
        match self {
            Preset::Berth => "berth",
            Preset::BerthSharing => "berth-sharing",
        }
    }

    /// The preset of a word, if there is one.
    pub fn from_word(word: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.word() == word)
    }

    pub fn rules(self) -> Rules {
        match self {
            Preset::Berth => Rules {
                policy: Policy::default(),
                preemptible: false,
                restart: Span::ZERO,
                quotas: Vec::new(),
                learns: false,
                asks: None,
            },
            Preset::BerthSharing => Rules {
                policy: Policy { time_sharing: true, ..Policy::default() },
                preemptible: true,
                restart: Span::mins(5),
                quotas: Vec::new(),
                learns: false,
                asks: None,
            },
        }
    }
}

/// How the core runs.
#[derive(Debug, Clone)]
pub struct Rules {
    pub policy: Policy,
    /// Whether jobs can be stopped for others.
    pub preemptible: bool,
    /// What going on after a stop costs.
    pub restart: Span,
    /// With as many as there are teams, each team is a queue that is guaranteed this part of the
    /// pool, in any unit. Without, all jobs are in one queue.
    pub quotas: Vec<u64>,
    /// Whether the core knows which jobs are runs of the same thing, and so learns how long they
    /// run. The peers cannot, so comparisons leave it out.
    pub learns: bool,
    pub asks: Option<ForecastRequests>,
}

/// Which jobs are told at submission when they will start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForecastRequests {
    /// Every so many-th job.
    pub every: u32,
    /// Runs of a forecast.
    pub runs: u32,
    pub seed: u64,
    /// Nobody asks for so long after the first submission.
    pub after: Span,
}

/// What a job was told at submission, as a wait from there on. Nothing where it was not expected to
/// start as far as a forecast looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartForecast {
    pub job: u32,
    pub p50: Option<Span>,
    pub p90: Option<Span>,
}

impl Rules {
    /// That asks so much of the core and lets it learn.
    #[must_use]
    pub fn with_forecasts(self, asks: ForecastRequests) -> Rules {
        Rules { learns: true, asks: Some(asks), ..self }
    }

    /// With teams as queues. All jobs can be stopped then, at a restart cost of five minutes: the
    /// core lets a queue borrow only for jobs that it can take GPUs back from.
    pub fn with_quotas(self, quotas: Vec<u64>) -> Rules {
        if quotas.is_empty() {
            return self;
        }
        Rules { quotas, preemptible: true, restart: Span::mins(5), ..self }
    }
}

/// What was counted beside the outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Events that the state took, decisions among them.
    pub events: u64,
    pub plans: u64,
    /// Decisions that the checker refused.
    pub findings: u64,
    /// Limits that were raised.
    pub raised: u64,
}

/// A trace as the core ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// One for each job of the workload, in its order.
    pub outcomes: Vec<Outcome>,
    pub outages: Vec<Outage>,
    pub bought: Vec<Bought>,
    pub counts: Counts,
    /// What jobs were told at submission, in their order.
    pub forecasts: Vec<StartForecast>,
}

impl Replayed {
    pub fn timeline(self) -> Timeline {
        Timeline { outcomes: self.outcomes, outages: self.outages, bought: self.bought }
    }
}

/// Why a replay came to no end. Neither is the trace's fault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the core does not take the cluster: {0}")]
    World(#[from] LoadError),
    #[error("the core refused an event at {at}: {rejected}")]
    Refused { at: berth_model::Time, rejected: Rejected },
    #[error("the plans at {at} did not come to an end")]
    Endless { at: berth_model::Time },
}

/// Runs a workload at a site, or on a pool. `progress` is told now and then how many jobs are through.
///
/// A job that would not fit the empty site is not submitted: it would wait for ever and change nothing.
///
/// # Panics
///
/// If the jobs are not in order of submission, or one of them needs no GPU.
pub fn run(
    rules: &Rules,
    site: impl Into<Site>,
    workload: &Workload,
    progress: &mut dyn FnMut(usize),
) -> Result<Replayed, Error> {
    let jobs = &workload.jobs;
    assert!(jobs.is_sorted_by_key(|job| job.submit), "jobs come in order of submission");
    assert!(jobs.iter().all(|job| job.gpus > 0), "every job needs a GPU");
    play::Play::new(rules, &site.into(), workload)?.play_out(progress)
}
