//! What a job may cost beside what is left of the budgets it counts for.

use super::expected;
use crate::caller::Caller;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire;
use berth_core::State;
use berth_engine::clock;
use berth_model::{BudgetAction, BudgetPeriod, JobId, Micros, QueueSnapshot};

/// The tightest budget of a queue and the queues above it, of those that the caller may read.
pub struct BudgetLeft {
    queue: String,
    left: i64,
    limit: i64,
    per: BudgetPeriod,
    action: BudgetAction,
}

pub fn of(state: &State, caller: &Caller, queue: &str) -> Option<BudgetLeft> {
    let (path, now) = (state.queue_snapshots_of(queue), clock::now());
    path.iter()
        .filter(|queue| caller.may(Permission::BudgetsRead, Some(&queue.spec.name), None))
        .filter_map(|queue| budget_left(queue, || state.unbilled_below(&queue.spec.name, now)))
        .min_by_key(|budget| budget.left)
}

/// `unbilled` scans all running jobs, so Berth calls it only for a queue with a budget.
fn budget_left(queue: &QueueSnapshot, unbilled: impl Fn() -> Micros) -> Option<BudgetLeft> {
    let budget = queue.spec.budget.as_ref()?;
    let spent = queue.spent + unbilled();
    Some(BudgetLeft {
        queue: queue.spec.name.to_string(),
        left: (budget.limit.0 - spent.0).max(0),
        limit: budget.limit.0,
        per: budget.per,
        action: budget.action,
    })
}

/// The same for a new job or array.
pub fn warning_of(
    service: &Service,
    caller: &Caller,
    job: JobId,
    elements: u32,
) -> Option<wire::Warning> {
    let core = service.engine.core();
    let mut found = core.jobs.range(job..JobId::new(job.number + 1)).map(|(_, live)| live);
    let live = found.next()?;
    let each = expected::cost(&core, live)?;
    let budget = of(&core.state, caller, &live.row.team);
    warning(budget.as_ref(), Some(each.0.saturating_mul(i64::from(elements))))
}

/// What to say of a job that is expected to cost more than is left.
pub fn warning(budget: Option<&BudgetLeft>, total: Option<i64>) -> Option<wire::Warning> {
    let (budget, total) = (budget?, total?);
    if total <= budget.left {
        return None;
    }
    let per = match budget.per {
        BudgetPeriod::Day => "daily ",
        BudgetPeriod::Week => "weekly ",
        BudgetPeriod::Month => "monthly ",
        BudgetPeriod::Once => "",
    };
    let then = match budget.action {
        BudgetAction::Notify => "the people who watch the budget get a message",
        BudgetAction::Block => "no new job of the team starts",
        BudgetAction::LowerPriority => "the team's jobs go after all others",
        BudgetAction::Pause => "Berth saves and stops the team's running jobs",
    };
    let message = format!(
        "the job is expected to cost {}, and {} has {} left of its {per}budget of {}; when that is \
         spent, {then}",
        dollars(total),
        budget.queue,
        dollars(budget.left),
        dollars(budget.limit),
    );
    Some(wire::Warning { key: "budget".to_owned(), message, line: None })
}

/// Rounded to cents: `$1.25`.
fn dollars(micros: i64) -> String {
    let cents = (Micros(micros).0 + 5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_costs_more_than_is_left_is_told_so() {
        let budget = BudgetLeft {
            queue: "nlp".to_owned(),
            left: 100_000,
            limit: 50_000_000,
            per: BudgetPeriod::Month,
            action: BudgetAction::Block,
        };
        let told = warning(Some(&budget), Some(40_000_000)).unwrap();
        assert_eq!(
            told.message,
            "the job is expected to cost $40.00, and nlp has $0.10 left of its monthly budget of \
             $50.00; when that is spent, no new job of the team starts"
        );
        assert_eq!(warning(Some(&budget), Some(100_000)), None);
        assert_eq!(warning(Some(&budget), None), None);
        assert_eq!(warning(None, Some(1)), None);
    }
}
