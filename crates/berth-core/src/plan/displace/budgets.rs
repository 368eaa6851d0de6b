//! Disruption budgets: of some jobs only so many tasks may be stopped for others at a time. Victims
//! within their budgets come first; where none of these make room, a budget is exceeded.

use crate::jobs::Job;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;
use berth_model::Name;
use std::collections::BTreeMap;

impl Planner<'_> {
    /// Whether stopping the unit alone would exceed a budget.
    pub(super) fn exceeds_budget(&self, unit: &Unit) -> bool {
        let job = self.state().jobs.get(unit.job);
        if job.budgets.is_empty() {
            return false;
        }
        let tasks = stopped_tasks(job, unit);
        let left = |budget: &Name| self.state().disruptions_left(budget);
        job.budgets.iter().filter_map(left).any(|left| left < tasks)
    }

    /// Stops beyond what the budgets allow if all of these were taken.
    pub(super) fn budget_violations(&self, units: &[&Unit]) -> u32 {
        let mut asked: BTreeMap<&Name, u32> = BTreeMap::new();
        for unit in units {
            let job = self.state().jobs.get(unit.job);
            for budget in &job.budgets {
                *asked.entry(budget).or_default() += stopped_tasks(job, unit);
            }
        }
        let beyond = asked.into_iter().map(|(budget, asked)| {
            let left = self.state().disruptions_left(budget);
            left.map_or(0, |left| asked.saturating_sub(left))
        });
        beyond.sum()
    }
}

/// How many tasks stop with the unit.
fn stopped_tasks(job: &Job, unit: &Unit) -> u32 {
    let live = job.leases().filter(|(_, lease)| lease.stopping.is_none());
    live.filter(|(task, _)| unit.takes(*task)).count() as u32
}
