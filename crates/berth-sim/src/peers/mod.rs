//! Schedulers to compare with, each as its literature describes it.
//!
//! They share no code with the core: a peer that ran on the planner's own bookkeeping would share
//! its mistakes, and the comparison would prove nothing. They are small on purpose. The cluster is
//! a number of like nodes; a job that fits one node runs on one, and a larger one takes whole
//! nodes and one part of a node for the rest (*consolidated* placement).
//!
//! At one moment all ends come before all submissions, and decisions are made once after both.
//! Jobs of the same moment keep the order in which they were given.

mod easy;
mod fair;
mod fifo;
mod floor;
mod pausing;
mod round;
mod skipping;

use crate::outcome::Outcome;
use berth_model::{Milli, Span, Time};
use easy::{Easy, Room};
use fair::Fair;
use fifo::Fifo;
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
}

/// Like nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub nodes: u32,
    pub gpus_per_node: u32,
}

impl Pool {
    pub fn gpus(self) -> u64 {
        u64::from(self.nodes) * u64::from(self.gpus_per_node)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// In order of submission; the first that does not fit stops the rest.
    Fifo,
    /// In order of submission; what does not fit is passed over. Large gangs may starve.
    FifoSkip,
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
    pub const ALL: [Policy; 11] = [
        Policy::Fifo,
        Policy::FifoSkip,
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

/// What happens to `jobs` on `pool`: an outcome for each, in their order. A job larger than the
/// pool never runs and stops nobody.
///
/// `quotas` are the teams' shares in any unit; a team beyond the list has a share of one. Only
/// [`Policy::FairShare`] looks at them.
///
/// # Panics
///
/// If the jobs are not in order of submission, or one of them needs no GPU.
pub fn run(policy: Policy, pool: Pool, jobs: &[Job], quotas: &[u64]) -> Vec<Outcome> {
    assert!(jobs.is_sorted_by_key(|job| job.submit), "jobs come in order of submission");
    assert!(jobs.iter().all(|job| job.gpus > 0), "every job needs a GPU");
    let in_order = |blocked| Skipping::new(jobs, blocked, |job: &Job| job.estimate.0);
    let time = |_: &Job, left: Span| left.0;
    let service = |job: &Job, left: Span| left.0.saturating_mul(i64::from(job.gpus));
    match policy {
        Policy::Fifo => round::play(pool, jobs, &mut Fifo::new(jobs)),
        Policy::FifoSkip => {
            round::play(pool, jobs, &mut Skipping::new(jobs, Blocked::Skips, |_| 0))
        }
        Policy::Easy => round::play(pool, jobs, &mut Easy::new(jobs, Room::Nodes)),
        Policy::EasyCounting => round::play(pool, jobs, &mut Easy::new(jobs, Room::Gpus)),
        Policy::Sjf => round::play(pool, jobs, &mut in_order(Blocked::Skips)),
        Policy::SjfStrict => round::play(pool, jobs, &mut in_order(Blocked::Stops)),
        Policy::Srtf => pausing::play(pool, jobs, Blocked::Skips, time),
        Policy::SrtfStrict => pausing::play(pool, jobs, Blocked::Stops, time),
        Policy::Srsf => pausing::play(pool, jobs, Blocked::Skips, service),
        Policy::SrsfStrict => pausing::play(pool, jobs, Blocked::Stops, service),
        Policy::FairShare => round::play(pool, jobs, &mut Fair::new(jobs, quotas)),
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
    }
}

#[cfg(test)]
mod tests;
