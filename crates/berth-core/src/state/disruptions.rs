//! Disruption budgets: how many tasks of a set of jobs may be stopped now. They are told from
//! outside, and what is stopped meanwhile counts until they are told anew.

use crate::ix::JobIx;
use crate::state::State;
use berth_model::Name;

/// What a budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Allowance {
    pub allowed: u32,
    /// Tasks stopped since.
    pub taken: u32,
}

impl State {
    /// How many tasks may be stopped; nothing where there is no such budget.
    pub(crate) fn disruptions_left(&self, budget: &Name) -> Option<u32> {
        let allowance = self.disruptions.get(budget)?;
        Some(allowance.allowed.saturating_sub(allowance.taken))
    }

    /// Counts a task that is stopped, or takes that back.
    pub(crate) fn count_disruption(&mut self, job: JobIx, is_stopped: bool) {
        if self.disruptions.is_empty() {
            return;
        }
        for budget in &self.jobs.get(job).budgets {
            if let Some(allowance) = self.disruptions.get_mut(budget) {
                match is_stopped {
                    true => allowance.taken += 1,
                    false => allowance.taken = allowance.taken.saturating_sub(1),
                }
            }
        }
    }

    /// The budgets of the job that are exceeded by what has been stopped.
    pub(crate) fn exceeded_budgets(&self, job: JobIx) -> Vec<Name> {
        let is_exceeded = |budget: &&Name| {
            self.disruptions.get(*budget).is_some_and(|known| known.taken > known.allowed)
        };
        self.jobs.get(job).budgets.iter().filter(is_exceeded).cloned().collect()
    }

    /// How many tasks of jobs under the budget may be stopped now; nothing where it is gone.
    pub(crate) fn disruptions_set(&mut self, budget: &Name, allowed: Option<u32>) {
        match allowed {
            Some(allowed) => {
                self.disruptions.insert(budget.clone(), Allowance { allowed, taken: 0 });
            }
            None => drop(self.disruptions.remove(budget)),
        }
    }
}
