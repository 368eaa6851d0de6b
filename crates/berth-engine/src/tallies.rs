//! What has happened since the server was started, in numbers that only grow.

use crate::live::LiveJob;
use berth_model::{Cause, JobState, Span};
use std::collections::BTreeMap;

/// Teams that are told apart. Those beyond count together, without a name.
const MOST_TEAMS: usize = 1_000;

/// How often something took how long: in classes, each up to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations {
    bounds: &'static [Span],
    /// One for each bound, and one for what is longer than all.
    counts: Vec<u64>,
    sum_us: u64,
}

impl Durations {
    pub fn new(bounds: &'static [Span]) -> Durations {
        Durations { bounds, counts: vec![0; bounds.len() + 1], sum_us: 0 }
    }

    pub fn add_us(&mut self, us: u64) {
        let class = self.bounds.partition_point(|bound| bound.0.unsigned_abs() * 1_000 < us);
        self.counts[class] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    pub fn add(&mut self, span: Span) {
        self.add_us(span.0.max(0).unsigned_abs().saturating_mul(1_000));
    }

    /// Each bound in seconds with what is in its class alone; the last is without a bound.
    pub fn classes(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().map(|bound| bound.0 as f64 / 1e3);
        bounds.chain([f64::INFINITY]).zip(self.counts.iter().copied()).collect()
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn seconds(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }
}

/// Of plans. Most take a millisecond; some of a large cluster take a second.
pub const PLAN_BOUNDS: &[Span] = &[
    Span::ms(1),
    Span::ms(2),
    Span::ms(5),
    Span::ms(10),
    Span::ms(25),
    Span::ms(50),
    Span::ms(100),
    Span::ms(250),
    Span::ms(500),
    Span::secs(1),
    Span::ms(2_500),
    Span::secs(5),
    Span::secs(10),
];

/// Of waits, from a job that starts at once to one that waits for days.
pub const WAIT_BOUNDS: &[Span] = &[
    Span::secs(1),
    Span::secs(5),
    Span::secs(15),
    Span::mins(1),
    Span::mins(5),
    Span::mins(15),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(24),
    Span::hours(72),
];

/// By team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tallies {
    teams: BTreeMap<String, TeamTallies>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamTallies {
    pub submitted: u64,
    /// From the submission to the first start.
    pub waits: Durations,
    /// Jobs that Berth has stopped, by cause.
    pub stops: BTreeMap<Cause, u64>,
    pub ended: BTreeMap<JobState, u64>,
}

impl Default for TeamTallies {
    fn default() -> TeamTallies {
        let (stops, ended) = (BTreeMap::new(), BTreeMap::new());
        TeamTallies { submitted: 0, waits: Durations::new(WAIT_BOUNDS), stops, ended }
    }
}

impl Tallies {
    pub fn teams(&self) -> impl Iterator<Item = (&str, &TeamTallies)> {
        self.teams.iter().map(|(team, tallies)| (team.as_str(), tallies))
    }

    fn of(&mut self, team: &str) -> &mut TeamTallies {
        let is_known = self.teams.contains_key(team);
        let team = if is_known || self.teams.len() < MOST_TEAMS { team } else { "" };
        self.teams.entry(team.to_owned()).or_default()
    }

    pub(crate) fn submitted(&mut self, team: &str) {
        self.of(team).submitted += 1;
    }

    pub(crate) fn started(&mut self, team: &str, wait: Span) {
        self.of(team).waits.add(wait);
    }

    /// A lease is told to stop. A job counts once, however many leases it has.
    pub(crate) fn stopping(&mut self, job: &LiveJob, cause: Cause) {
        if job.leases.values().all(|lease| lease.stopping.is_none()) {
            *self.of(&job.row.team).stops.entry(cause).or_default() += 1;
        }
    }

    pub(crate) fn ended(&mut self, team: &str, state: JobState) {
        *self.of(team).ended.entry(state).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_class_that_has_room_for_it() {
        const BOUNDS: [Span; 2] = [Span::ms(1), Span::secs(1)];
        let mut times = Durations::new(&BOUNDS);
        for us in [0, 1_000, 1_001, 1_000_000, 5_000_000] {
            times.add_us(us);
        }
        assert_eq!(times.classes(), [(0.001, 2), (1.0, 2), (f64::INFINITY, 1)]);
        assert_eq!((times.count(), times.seconds()), (5, 6.002001));
    }

    #[test]
    fn however_many_teams_there_are_so_many_are_told_apart() {
        let mut tallies = Tallies::default();
        for n in 0..MOST_TEAMS + 50 {
            tallies.submitted(&format!("team-{n:05}"));
        }
        tallies.submitted("team-00000");
        assert_eq!(tallies.teams().count(), MOST_TEAMS + 1);
        let of = |team: &str| tallies.teams().find(|(name, _)| *name == team).unwrap().1.submitted;
        assert_eq!((of(""), of("team-00000")), (50, 2));
    }
}
