//! What is reported of a run, worked out from [outcomes](crate::outcome) alone.
//!
//! Sums are exact: time in milliseconds, GPU time in thousandths of a GPU × milliseconds. A float
//! appears only as the last step, in the figure that is shown.

mod account;
mod figures;
mod shares;
mod sweep;
mod usage;

pub use account::{Account, Cost, Parts};
pub use figures::{Figures, Group};
pub use shares::{Fairness, Shares};
pub use sweep::{BINS, Series};
pub use usage::Usage;

use crate::outcome::{Outcome, SizeClass};
use berth_model::{Milli, Name, Span};
use serde::{Deserialize, Serialize};

/// What a run was about, beside its outcomes.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// GPUs of the cluster.
    pub gpus: u64,
    /// Teams by number.
    pub teams: Vec<Name>,
    /// Their quotas in any unit; empty if fairness is of no interest.
    pub quotas: Vec<u64>,
    /// The part of the jobs at either end that waits and completions leave out: the cluster is
    /// empty at first, and at last nobody arrives any more. Usual is 0.05.
    pub trim: Milli,
}

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub all: Group,
    pub by_size: Vec<(SizeClass, Group)>,
    /// Teams that have jobs, by name.
    pub by_team: Vec<(Name, Group)>,
    /// Jobs that were not done in the end; they are in no other figure of `all`.
    pub unfinished: u64,
    pub usage: Usage,
    pub preemptions: u64,
    /// Times that a machine failed or left under a job.
    pub interruptions: u64,
    /// Restarts, checkpoints and work done twice.
    pub lost_gpu_hours: f64,
    pub fairness: Option<Fairness>,
}

impl Report {
    /// `outcomes` in order of submission.
    pub fn new(outcomes: &[Outcome], setting: &Setting) -> Report {
        let counted = middle(outcomes, setting.trim);
        let by_size = SizeClass::ALL
            .into_iter()
            .map(|size| (size, Group::new(counted.iter().filter(|outcome| outcome.size() == size))))
            .filter(|(_, group)| group.jobs > 0)
            .collect();
        let mut of_team: Vec<Vec<&Outcome>> = vec![Vec::new(); setting.teams.len()];
        for outcome in counted {
            if let Some(team) = of_team.get_mut(outcome.team as usize) {
                team.push(outcome);
            }
        }
        let by_team = setting
            .teams
            .iter()
            .zip(of_team)
            .filter(|(_, outcomes)| !outcomes.is_empty())
            .map(|(team, outcomes)| (team.clone(), Group::new(outcomes)))
            .collect();
        Report {
            all: Group::new(counted),
            by_size,
            by_team,
            unfinished: outcomes.iter().filter(|outcome| outcome.end.is_none()).count() as u64,
            usage: Usage::new(outcomes, setting.gpus),
            preemptions: outcomes.iter().map(|outcome| u64::from(outcome.preemptions)).sum(),
            interruptions: outcomes.iter().map(|outcome| u64::from(outcome.interruptions)).sum(),
            lost_gpu_hours: gpu_hours(outcomes.iter().map(lost).sum()),
            fairness: (!setting.quotas.is_empty())
                .then(|| Fairness::new(outcomes, &setting.quotas, setting.gpus)),
        }
    }

    /// The largest jobs there are: what a policy that likes small ones sacrifices.
    pub fn largest(&self) -> Option<&(SizeClass, Group)> {
        self.by_size.last()
    }
}

/// GPU time in thousandths of a GPU × milliseconds: exact for any trace.
type GpuTime = i128;

fn gpu_time(gpus: Milli, time: Span) -> GpuTime {
    i128::from(gpus.0) * i128::from(time.0)
}

fn lost(outcome: &Outcome) -> GpuTime {
    gpu_time(outcome.gpus, outcome.wasted())
}

fn gpu_hours(time: GpuTime) -> f64 {
    time as f64 / (1_000.0 * 3_600_000.0)
}

fn seconds(time: Span) -> f64 {
    time.0 as f64 / 1_000.0
}

fn middle(outcomes: &[Outcome], trim: Milli) -> &[Outcome] {
    let cut = outcomes.len() * trim.0.clamp(0, 499) as usize / 1_000;
    &outcomes[cut..outcomes.len() - cut]
}

#[cfg(test)]
mod tests;
