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
use serde::{Deserialize, Serialize};

/// A job as a peer sees it. Jobs are given in order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub submit: Time,
    /// How long it really runs; only the clock of the simulation looks at it, and the policies
    /// that are bounds.
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
    /// Shortest estimate first; what does not fit is passed over.
    Sjf,
    /// Shortest true remaining time first, pausing others at no cost. A bound: nobody knows the
    /// true time, and pausing is not free.
    Srtf,
    /// As [`Policy::Srtf`], by remaining time × GPUs.
    Srsf,
    /// The team that holds least for its quota first, each team in order of submission; the first
    /// job that does not fit stops the rest.
    FairShare,
}

impl Policy {
    pub const ALL: [Policy; 7] = [
        Policy::Fifo,
        Policy::FifoSkip,
        Policy::Easy,
        Policy::Sjf,
        Policy::Srtf,
        Policy::Srsf,
        Policy::FairShare,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::FifoSkip => "fifo-skip",
            Policy::Easy => "easy",
            Policy::Sjf => "sjf",
            Policy::Srtf => "srtf",
            Policy::Srsf => "srsf",
            Policy::FairShare => "fair-share",
        }
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
    match policy {
        Policy::Fifo => round::play(pool, jobs, &mut fifo::Fifo::new(jobs)),
        Policy::FifoSkip => {
            let mut line = skipping::Skipping::new(jobs, |_| 0);
            round::play(pool, jobs, &mut line)
        }
        Policy::Sjf => {
            let mut line = skipping::Skipping::new(jobs, |job| job.estimate.0);
            round::play(pool, jobs, &mut line)
        }
        Policy::Easy => round::play(pool, jobs, &mut easy::Easy::new(jobs)),
        Policy::FairShare => round::play(pool, jobs, &mut fair::Fair::new(jobs, quotas)),
        Policy::Srtf => pausing::play(pool, jobs, |_, left| left.0),
        Policy::Srsf => {
            pausing::play(pool, jobs, |job, left| left.0.saturating_mul(i64::from(job.gpus)))
        }
    }
}

/// An outcome without anything in it yet.
fn blank(index: usize, job: &Job) -> Outcome {
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
