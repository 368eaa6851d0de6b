//! Which rows of a trace are wanted.

use super::Job;
use crate::random::Rng;
use berth_model::Time;

/// A part of a trace. The default is all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Select {
    /// Of a file with several workloads, told apart by a first column `set` or `variant`: which.
    pub set: Option<String>,
    pub team: Option<String>,
    /// Submitted then or later.
    pub from: Option<Time>,
    /// Submitted before.
    pub until: Option<Time>,
}

impl Select {
    pub fn set(name: &str) -> Select {
        Select { set: Some(name.to_owned()), ..Select::default() }
    }

    pub fn team(name: &str) -> Select {
        Select { team: Some(name.to_owned()), ..Select::default() }
    }

    pub(super) fn wants_time(&self, submit: Time) -> bool {
        self.from.is_none_or(|from| from <= submit) && self.until.is_none_or(|end| submit < end)
    }
}

/// Puts jobs submitted at the same moment into an order by chance. A third of a trace may share
/// its seconds with other jobs, and a policy that lives on the order of the file would not work
/// elsewhere: compare a few seeds.
pub fn shuffle_ties(jobs: &mut [Job], seed: u64) {
    let mut rng = Rng::new(seed);
    for group in jobs.chunk_by_mut(|a, b| a.submit == b.submit) {
        for place in (1..group.len()).rev() {
            group.swap(place, rng.below(place as u64 + 1) as usize);
        }
    }
}
