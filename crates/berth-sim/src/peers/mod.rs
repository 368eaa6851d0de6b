//! Schedulers to compare with, each as its literature describes it.
//!
//! They share no code with the core: a peer that ran on the planner's own bookkeeping would share
//! its mistakes, and the comparison would prove nothing. They are small on purpose. A job that fits
//! one node runs on one, and a larger one takes whole nodes, of the largest that suit it, and one
//! part of a node for the rest (*consolidated* placement).
//!
//! At one moment all ends come before repairs and failures, those before all submissions, and
//! decisions are made once after them. Jobs of the same moment keep the order in which they were
//! given, and a job that a failure has thrown out keeps its place in the line.

mod easy;
mod fair;
mod fifo;
pub(crate) mod free;
mod pausing;
mod round;
mod skipping;

#[cfg(test)]
use crate::fleet::ANY;
use crate::outcome::{Outcome, Timeline};
use crate::site::Site;
use berth_model::{Milli, Span, Time};
use easy::{Easy, Room};
use fair::Fair;
use fifo::Fifo;
use free::FreeGpus;
use serde::{Deserialize, Serialize};
use skipping::{Blocked, Skipping};

/// A job as a peer sees it. Jobs are given in order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub submit: Time,
    /// How long it really runs; only the clock of the simulation looks at it, and the policies
    /// that are yardsticks.
    pub duration: Span,
    /// How long its user would have said.
    pub estimate: Span,
    /// Whole GPUs, at least one.
    pub gpus: u32,
    /// Its place in the list of teams.
    pub team: u32,
    /// The models it may run on, as bits by their place in the fleet's list.
    pub models: u64,
}

/// What a job needs of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ask {
    pub gpus: u32,
    pub models: u64,
}

impl Ask {
    #[cfg(test)]
    pub(crate) fn any(gpus: u32) -> Ask {
        Ask { gpus, models: ANY }
    }

    pub(crate) fn of(job: &Job) -> Ask {
        Ask { gpus: job.gpus, models: job.models }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// In order of submission; the first that does not fit stops the rest.
    Fifo,
    /// In order of submission; what does not fit is passed over. Large gangs may starve.
    FifoSkip,
    /// As [`Policy::FifoSkip`], named for where it puts jobs: on the node where least is left free.
    BestFit,
    /// As [`Policy::FifoSkip`], on the node where least becomes unusable for jobs like those of the
    /// whole trace: fragmentation gradient descent.
    Fgd,
    /// In order of submission, with a reservation for the first that does not fit: others may
    /// pass it if, by the estimates, they do not delay it.
    Easy,
    /// As [`Policy::Easy`], but the reservation counts GPUs and does not look at nodes.
    EasyCounting,
    /// Shortest estimate first; what does not fit is passed over.
    Sjf,
    /// Shortest estimate first; the first that does not fit stops the rest.
    SjfStrict,
    /// Shortest true remaining time first, pausing others at no cost; what does not fit is passed
    /// over. A yardstick and no rival: nobody knows the true time, and pausing is not free. With
    /// gangs it is not the least possible either; [`Policy::Srsf`] may be lower.
    Srtf,
    /// As [`Policy::Srtf`], but the first that does not fit stops the rest.
    SrtfStrict,
    /// As [`Policy::Srtf`], by remaining time × GPUs.
    Srsf,
    /// As [`Policy::SrtfStrict`], by remaining time × GPUs.
    SrsfStrict,
    /// The team that holds least for its quota first, each team in order of submission; the first
    /// job that does not fit stops the rest.
    FairShare,
}

impl Policy {
    pub const ALL: [Policy; 13] = [
        Policy::Fifo,
        Policy::FifoSkip,
        Policy::BestFit,
        Policy::Fgd,
        Policy::Easy,
        Policy::EasyCounting,
        Policy::Sjf,
        Policy::SjfStrict,
        Policy::Srtf,
        Policy::SrtfStrict,
        Policy::Srsf,
        Policy::SrsfStrict,
        Policy::FairShare,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::FifoSkip => "fifo-skip",
            Policy::BestFit => "best-fit",
            Policy::Fgd => "fgd",
            Policy::Easy => "easy",
            Policy::EasyCounting => "easy-counting",
            Policy::Sjf => "sjf",
            Policy::SjfStrict => "sjf-strict",
            Policy::Srtf => "srtf",
            Policy::SrtfStrict => "srtf-strict",
            Policy::Srsf => "srsf",
            Policy::SrsfStrict => "srsf-strict",
            Policy::FairShare => "fair-share",
        }
    }

    /// The policy of a word, if there is one.
    pub fn from_word(word: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.word() == word)
    }
}

/// What happens to `jobs` on a pool: an outcome for each, in their order. See [`run_at`].
pub fn run(policy: Policy, site: impl Into<Site>, jobs: &[Job], quotas: &[u64]) -> Vec<Outcome> {
    run_at(policy, &site.into(), jobs, quotas).outcomes
}

/// What happens to `jobs` at a site. A job larger than all of it never runs and stops nobody.
///
/// `quotas` are the teams' shares in any unit; a team beyond the list has a share of one. Only
/// [`Policy::FairShare`] looks at them. The yardsticks, which pause at no cost, know no failures.
///
/// # Panics
///
/// If the jobs are not in order of submission, or one of them needs no GPU.
pub fn run_at(policy: Policy, site: &Site, jobs: &[Job], quotas: &[u64]) -> Timeline {
    assert!(jobs.is_sorted_by_key(|job| job.submit), "jobs come in order of submission");
    assert!(jobs.iter().all(|job| job.gpus > 0), "every job needs a GPU");
    let by_estimate = |blocked| Skipping::new(jobs, blocked, |job: &Job| job.estimate.0);
    let skipping = || Skipping::new(jobs, Blocked::Skips, |_| 0);
    let time = |_: &Job, left: Span| left.0;
    let service = |job: &Job, left: Span| left.0.saturating_mul(i64::from(job.gpus));
    let free = || FreeGpus::new(&site.fleet);
    let timeline = |outcomes| Timeline { outcomes, ..Timeline::default() };
    let pausing = |blocked, by_service: bool| match by_service {
        true => timeline(pausing::play(&site.fleet, jobs, blocked, service)),
        false => timeline(pausing::play(&site.fleet, jobs, blocked, time)),
    };
    match policy {
        Policy::Fifo => round::play(site, free(), jobs, Fifo::new(jobs)),
        Policy::FifoSkip | Policy::BestFit => round::play(site, free(), jobs, skipping()),
        Policy::Fgd => {
            let free = free().with_mix(jobs.iter().map(Ask::of));
            round::play(site, free, jobs, skipping())
        }
        Policy::Easy => round::play(site, free(), jobs, Easy::new(jobs, Room::Nodes)),
        Policy::EasyCounting => round::play(site, free(), jobs, Easy::new(jobs, Room::Gpus)),
        Policy::Sjf => round::play(site, free(), jobs, by_estimate(Blocked::Skips)),
        Policy::SjfStrict => round::play(site, free(), jobs, by_estimate(Blocked::Stops)),
        Policy::Srtf => pausing(Blocked::Skips, false),
        Policy::SrtfStrict => pausing(Blocked::Stops, false),
        Policy::Srsf => pausing(Blocked::Skips, true),
        Policy::SrsfStrict => pausing(Blocked::Stops, true),
        Policy::FairShare => round::play(site, free(), jobs, Fair::new(jobs, quotas)),
    }
}

/// An outcome without anything in it yet.
pub(crate) fn blank(index: usize, job: &Job) -> Outcome {
    Outcome {
        job: index as u32,
        submit: job.submit,
        duration: job.duration,
        gpus: Milli::whole(i64::from(job.gpus)),
        team: job.team,
        end: None,
        segments: Vec::new(),
        preemptions: 0,
        interruptions: 0,
    }
}

#[cfg(test)]
mod tests;
