//! What queues may use and spend, counted from rows and leases.

use berth_ledger::CostRow;
use berth_model::{Amount, BudgetAction, BudgetPeriod, Name, QueueSpec, Time};
use std::collections::BTreeMap;

/// The days since 1970 a moment lies in; there is one period only for a budget that never starts
/// anew. Made-up budgets have no others.
fn period(per: BudgetPeriod, at: Time) -> i64 {
    match per {
        BudgetPeriod::Once => 0,
        BudgetPeriod::Day | BudgetPeriod::Week | BudgetPeriod::Month => at.0.div_euclid(86_400_000),
    }
}

#[derive(Default)]
pub(super) struct Bounds {
    queues: BTreeMap<Name, QueueSpec>,
    /// The latest period something was spent in, and how much.
    spent: BTreeMap<Name, (i64, i128)>,
}

impl Bounds {
    pub fn set(&mut self, queue: &QueueSpec) {
        self.queues.insert(queue.name.clone(), queue.clone());
    }

    /// A queue and those above it.
    pub fn path(&self, leaf: &Name) -> impl Iterator<Item = &QueueSpec> {
        let above = |queue: &&QueueSpec| self.queues.get(queue.parent.as_ref()?);
        std::iter::successors(self.queues.get(leaf), above)
    }

    /// A row counts for the period in which it began.
    pub fn row(&mut self, row: &CostRow) {
        let Some(leaf) = &row.queue else { return };
        let budgets =
            self.path(leaf).filter_map(|q| Some((q.name.clone(), q.budget.as_ref()?.per)));
        for (queue, per) in budgets.collect::<Vec<_>>() {
            let now = period(per, row.from);
            let (last, spent) = self.spent.entry(queue).or_insert((now, 0));
            if now > *last {
                (*last, *spent) = (now, 0);
            }
            if now == *last {
                *spent += i128::from(row.amount.0);
            }
        }
    }

    pub fn spent(&self, queue: &QueueSpec, at: Time) -> i128 {
        let per = queue.budget.as_ref().map_or(BudgetPeriod::Once, |budget| budget.per);
        let now = period(per, at);
        self.spent.get(&queue.name).filter(|(last, _)| *last == now).map_or(0, |(_, spent)| *spent)
    }

    /// The first queue above a job whose budget is spent, and what is to happen then.
    pub fn stops(&self, leaf: &Name, at: Time) -> Option<(&Name, BudgetAction)> {
        self.path(leaf).find_map(|queue| {
            let budget = queue.budget.as_ref()?;
            let acts = matches!(budget.action, BudgetAction::Block | BudgetAction::Pause);
            let over = self.spent(queue, at) >= i128::from(budget.limit.0);
            (acts && over).then_some((&queue.name, budget.action))
        })
    }

    /// The limit of a queue in thousandths of GPUs.
    pub fn limit(queue: &QueueSpec) -> Option<i64> {
        match queue.limit.gpu.total? {
            Amount::Of(milli) => Some(milli.0),
            Amount::Share(_) | Amount::Unlimited => None,
        }
    }
}
