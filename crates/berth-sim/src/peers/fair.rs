//! The team that holds least for its quota first, and nobody passes.

use super::free::FreeGpus;
use super::round::{Line, Start};
use super::{Ask, Job};
use berth_model::Time;
use std::cmp::Ordering;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
struct Team {
    waiting: BTreeSet<u32>,
    held: u64,
    quota: u64,
}

/// A plain fair share: what counts is what a team holds now, not what it has used before.
pub(super) struct Fair<'a> {
    jobs: &'a [Job],
    teams: Vec<Team>,
}

impl<'a> Fair<'a> {
    pub(super) fn new(jobs: &'a [Job], quotas: &[u64]) -> Fair<'a> {
        let count = jobs.iter().map(|job| job.team as usize + 1).max().unwrap_or(0);
        let quota = |team: usize| quotas.get(team).copied().unwrap_or(1);
        let teams = (0..count)
            .map(|team| Team { waiting: BTreeSet::new(), held: 0, quota: quota(team) })
            .collect();
        Fair { jobs, teams }
    }

    fn team(&mut self, job: u32) -> &mut Team {
        &mut self.teams[self.jobs[job as usize].team as usize]
    }
}

/// By held / quota, then by who was submitted first. A team without a quota comes after all that
/// have one, in order of what it holds.
fn order(a: &Team, b: &Team) -> Ordering {
    let across = |held: u64, quota: u64| u128::from(held) * u128::from(quota);
    let by_ratio = match (a.quota, b.quota) {
        (0, 0) => a.held.cmp(&b.held),
        _ => across(a.held, b.quota).cmp(&across(b.held, a.quota)),
    };
    (a.quota == 0)
        .cmp(&(b.quota == 0))
        .then(by_ratio)
        .then(a.waiting.first().cmp(&b.waiting.first()))
}

impl Line for Fair<'_> {
    fn arrive(&mut self, job: u32) {
        self.team(job).waiting.insert(job);
    }

    fn ended(&mut self, job: u32) {
        let gpus = self.jobs[job as usize].gpus;
        self.team(job).held -= u64::from(gpus);
    }

    fn start(&mut self, _now: Time, free: &mut FreeGpus, started: &mut Vec<Start>) {
        loop {
            let waiting = self.teams.iter_mut().filter(|team| !team.waiting.is_empty());
            let Some(team) = waiting.min_by(|a, b| order(a, b)) else { return };
            let Some(job) = team.waiting.first().copied() else { return };
            let ask = Ask::of(&self.jobs[job as usize]);
            let Some(place) = free.take(ask) else { return };
            team.waiting.pop_first();
            team.held += u64::from(ask.gpus);
            started.push((job, place));
        }
    }
}
