//! In order of a key. Whoever does not fit is passed over, or stops the rest.

use super::free::FreeGpus;
use super::round::{Line, Start};
use super::{Ask, Job};
use berth_model::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of those behind a job that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    Skips,
    Stops,
}

/// Those who wait, by what they ask for and then by key. Whether a job fits depends on that only,
/// so the first that fits is the first of some size: a full cluster costs one look per size, however many
/// wait.
pub(super) struct Skipping<'a, K> {
    jobs: &'a [Job],
    key: K,
    blocked: Blocked,
    waiting: BTreeMap<Ask, BTreeSet<(i64, u32)>>,
}

impl<'a, K: Fn(&Job) -> i64> Skipping<'a, K> {
    /// Equal keys keep the order of submission.
    pub(super) fn new(jobs: &'a [Job], blocked: Blocked, key: K) -> Skipping<'a, K> {
        Skipping { jobs, key, blocked, waiting: BTreeMap::new() }
    }
}

impl<K: Fn(&Job) -> i64> Line for Skipping<'_, K> {
    fn arrive(&mut self, index: u32) {
        let job = &self.jobs[index as usize];
        self.waiting.entry(Ask::of(job)).or_default().insert(((self.key)(job), index));
    }

    fn ended(&mut self, _job: u32) {}

    fn start(&mut self, _now: Time, free: &mut FreeGpus, started: &mut Vec<Start>) {
        loop {
            let heads = self.waiting.iter().filter_map(|(ask, line)| {
                let counts = self.blocked == Blocked::Stops || free.fits(*ask);
                line.first().filter(|_| counts).map(|first| (*first, *ask))
            });
            let Some((first, ask)) = heads.min() else { return };
            let Some(place) = free.take(ask) else { return };
            self.waiting.get_mut(&ask).expect("it was just there").pop_first();
            started.push((first.1, place));
        }
    }
}
