//! Budgets: the limits of queues, and how far they are spent.

use super::{month_start, spent};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_engine::{Act, Write};
use berth_ledger::BudgetMeter;
use berth_model::{
    Budget, BudgetAction, BudgetPeriod, Event, Micros, Milli, Name, QueueSnapshot, QueueSpec, Span,
    Time,
};
use berth_store::{CostKey, CostQuery};
use serde_json::json;
use std::collections::BTreeMap;

/// What each queue spent in the last day, without those below it.
type Daily = BTreeMap<String, i64>;

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Budget>, Fault> {
    let mut items = all(service).await?;
    items.retain(|budget| caller.may(Permission::BudgetsRead, Some(&budget.queue), None));
    Ok(wire::Items { items })
}

/// Every budget, whoever may read it.
pub async fn all(service: &Service) -> Result<Vec<wire::Budget>, Fault> {
    let daily = daily(service).await?;
    let queues = live::queues(service);
    Ok(queues.iter().filter_map(|queue| shown(queue, &queues, &daily)).collect())
}

pub async fn set(
    service: &Service,
    caller: &Caller,
    name: &str,
    wish: wire::BudgetSet,
) -> Result<wire::Budget, Fault> {
    let budget = wanted(&wish)?;
    let detail = serde_json::to_value(&wish).unwrap_or_default();
    put(service, caller, name, Some(budget), detail).await?;
    let daily = daily(service).await?;
    let queues = live::queues(service);
    let queue = queues.iter().find(|queue| *queue.spec.name == *name);
    let budget = queue.and_then(|queue| shown(queue, &queues, &daily));
    budget.ok_or_else(|| Fault::not_found("budget", name))
}

pub async fn delete(service: &Service, caller: &Caller, name: &str) -> Result<(), Fault> {
    put(service, caller, name, None, json!({})).await?;
    Ok(())
}

/// Changes the budget of a queue and nothing else of it, whatever else is changed meanwhile.
async fn put(
    service: &Service,
    caller: &Caller,
    name: &str,
    budget: Option<Budget>,
    detail: serde_json::Value,
) -> Result<(), Fault> {
    let audit = caller.audit(format!("budget of {name}"), detail);
    let name = name.to_owned();
    let amend = move |state: &berth_core::State| {
        let found = state.queue_snapshots().into_iter().find(|queue| *queue.spec.name == *name);
        let queue = found.ok_or_else(|| Fault::not_found("queue", &name).0)?.spec;
        if budget.is_none() && queue.budget.is_none() {
            return Err(Fault::not_found("budget", &name).0);
        }
        let queue = Box::new(QueueSpec { budget, ..queue });
        Ok(vec![Event::QueueSet { queue }])
    };
    service.engine.write(Write::act(Act::Amend(Box::new(amend)), audit)).await?;
    Ok(())
}

fn wanted(wish: &wire::BudgetSet) -> Result<Budget, Fault> {
    if wish.limit_micros < 0 {
        let fault = Fault::new(Code::BadRequest, "limit_micros: a budget is not negative");
        return Err(fault.next("use 0 for nothing, or delete the budget for no limit"));
    }
    if let Some(odd) = wish.thresholds_milli.iter().find(|milli| !(1..=1_000).contains(*milli)) {
        let detail = format!("thresholds_milli: {odd} is not between 1 and 1000");
        return Err(Fault::new(Code::BadRequest, detail));
    }
    Ok(Budget {
        limit: Micros(wish.limit_micros),
        per: match wish.per {
            wire::BudgetPeriod::Day => BudgetPeriod::Day,
            wire::BudgetPeriod::Week => BudgetPeriod::Week,
            wire::BudgetPeriod::Month => BudgetPeriod::Month,
            wire::BudgetPeriod::Once => BudgetPeriod::Once,
        },
        action: match wish.action {
            wire::BudgetAction::Notify => BudgetAction::Notify,
            wire::BudgetAction::Block => BudgetAction::Block,
            wire::BudgetAction::LowerPriority => BudgetAction::LowerPriority,
            wire::BudgetAction::Pause => BudgetAction::Pause,
        },
        thresholds: wish.thresholds_milli.iter().copied().map(Milli).collect(),
    })
}

async fn daily(service: &Service) -> Result<Daily, Fault> {
    let since = Some(clock::now() - Span::days(1));
    let query = CostQuery { by: vec![CostKey::Team], since, ..CostQuery::default() };
    let sums = spent::sums(service, &query).await?.into_iter();
    Ok(sums.filter_map(|sum| Some((sum.keys.into_iter().next()?, sum.amount.0))).collect())
}

fn shown(queue: &QueueSnapshot, queues: &[QueueSnapshot], daily: &Daily) -> Option<wire::Budget> {
    let budget = queue.spec.budget.as_ref()?;
    let now = clock::now();
    let (from, to) = period(budget, now);
    let rate = below(&queue.spec.name, queues).map(|name| daily.get(name).copied().unwrap_or(0));
    let rate: i64 = rate.sum();
    Some(wire::Budget {
        queue: queue.spec.name.to_string(),
        limit_micros: budget.limit.0,
        spent_micros: queue.spent.0,
        per: match budget.per {
            BudgetPeriod::Day => wire::BudgetPeriod::Day,
            BudgetPeriod::Week => wire::BudgetPeriod::Week,
            BudgetPeriod::Month => wire::BudgetPeriod::Month,
            BudgetPeriod::Once => wire::BudgetPeriod::Once,
        },
        action: match budget.action {
            BudgetAction::Notify => wire::BudgetAction::Notify,
            BudgetAction::Block => wire::BudgetAction::Block,
            BudgetAction::LowerPriority => wire::BudgetAction::LowerPriority,
            BudgetAction::Pause => wire::BudgetAction::Pause,
        },
        thresholds_milli: budget.thresholds.iter().map(|milli| milli.0).collect(),
        period_from: from.map(wire::At),
        period_to: to.map(wire::At),
        forecast_micros: to.map(|to| forecast(queue.spent, rate, to - now)),
    })
}

/// The queue and all below it: a budget pays for the whole tree.
pub(super) fn below<'a>(
    name: &'a str,
    queues: &'a [QueueSnapshot],
) -> impl Iterator<Item = &'a str> {
    let parent = |of: &str| {
        let queue = queues.iter().find(|queue| *queue.spec.name == *of)?;
        queue.spec.parent.as_deref()
    };
    let is_below = move |of: &str| {
        let mut above = Some(of);
        // No tree is deeper than it has queues.
        (0..=queues.len()).any(|_| {
            let found = above == Some(name);
            above = above.and_then(parent);
            found
        })
    };
    queues.iter().map(|queue| queue.spec.name.as_str()).filter(move |of| is_below(of))
}

/// What it will have come to at the end, if it goes on as in the last day.
fn forecast(spent: Micros, daily: i64, left: Span) -> i64 {
    let more = i128::from(daily) * i128::from(left.0.max(0)) / i128::from(Span::days(1).0);
    i64::try_from(i128::from(spent.0) + more).unwrap_or(i64::MAX)
}

/// The period of this moment.
pub(super) fn period(budget: &Budget, at: Time) -> (Option<Time>, Option<Time>) {
    let day = Span::days(1);
    let midnight = Time(at.0 - at.0.rem_euclid(day.0));
    let to = BudgetMeter::new(Name::default(), budget.clone(), at).next_period(at);
    let from = match budget.per {
        BudgetPeriod::Day => Some(midnight),
        BudgetPeriod::Week => to.map(|to| to - Span::days(7)),
        BudgetPeriod::Month => Some(month_start(at)),
        BudgetPeriod::Once => None,
    };
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, parent: Option<&str>) -> QueueSnapshot {
        let mut spec = QueueSpec::new(name);
        spec.parent = parent.map(Name::new);
        QueueSnapshot { spec, credits: 0, past_use: 0, spent: Micros::ZERO, daily: Vec::new() }
    }

    #[test]
    fn a_budget_pays_for_the_whole_tree() {
        let queues = [
            queue("lab", None),
            queue("nlp", Some("lab")),
            queue("chat", Some("nlp")),
            queue("vision", None),
        ];
        assert_eq!(below("lab", &queues).collect::<Vec<_>>(), ["lab", "nlp", "chat"]);
        assert_eq!(below("chat", &queues).collect::<Vec<_>>(), ["chat"]);
    }

    #[test]
    fn periods_begin_and_end_on_the_calendar() {
        let at: Time = "2026-11-15T09:30:00Z".parse().unwrap();
        let of = |per| {
            let budget =
                Budget { limit: Micros(1), per, action: BudgetAction::Notify, thresholds: vec![] };
            let (from, to) = period(&budget, at);
            (from.map(|at| at.to_string()), to.map(|at| at.to_string()))
        };
        let days = |from: &str, to: &str| {
            (Some(format!("2026-{from}T00:00:00Z")), Some(format!("2026-{to}T00:00:00Z")))
        };
        assert_eq!(of(BudgetPeriod::Day), days("11-15", "11-16"));
        assert_eq!(of(BudgetPeriod::Week), days("11-09", "11-16"));
        assert_eq!(of(BudgetPeriod::Month), days("11-01", "12-01"));
        assert_eq!(of(BudgetPeriod::Once), (None, None));
    }

    #[test]
    fn a_forecast_goes_on_at_the_rate_of_the_last_day() {
        assert_eq!(forecast(Micros(100), 24, Span::hours(36)), 136);
        assert_eq!(forecast(Micros(100), 24, Span(-5)), 100);
        assert_eq!(forecast(Micros(i64::MAX), i64::MAX, Span::days(9)), i64::MAX);
    }
}
