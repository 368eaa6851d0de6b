//! Counters of commits, changes and points.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Figures {
    pub(crate) commits: AtomicU64,
    pub(crate) failed_commits: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) points: AtomicU64,
    pub(crate) commit_micros: AtomicU64,
    pub(crate) removed_runs: AtomicU64,
    pub(crate) removed_experiments: AtomicU64,
    pub(crate) removed_points: AtomicU64,
}

impl Figures {
    pub(crate) fn add(to: &AtomicU64, number: u64) {
        to.fetch_add(number, Ordering::Relaxed);
    }

    fn read(of: &AtomicU64) -> u64 {
        of.load(Ordering::Relaxed)
    }

    /// Committed groups of changes.
    pub fn commits(&self) -> u64 {
        Figures::read(&self.commits)
    }

    /// Failed groups of changes.
    pub fn failed_commits(&self) -> u64 {
        Figures::read(&self.failed_commits)
    }

    /// Changes in committed groups.
    pub fn changes(&self) -> u64 {
        Figures::read(&self.changes)
    }

    /// Points of metrics in committed groups.
    pub fn points(&self) -> u64 {
        Figures::read(&self.points)
    }

    /// Deleted runs that Berth has removed for good.
    pub fn removed_runs(&self) -> u64 {
        Figures::read(&self.removed_runs)
    }

    /// Deleted experiments that Berth has removed for good.
    pub fn removed_experiments(&self) -> u64 {
        Figures::read(&self.removed_experiments)
    }

    /// Points of removed runs.
    pub fn removed_points(&self) -> u64 {
        Figures::read(&self.removed_points)
    }

    /// The sum of the durations of all groups.
    pub fn commit_micros(&self) -> u64 {
        Figures::read(&self.commit_micros)
    }
}
