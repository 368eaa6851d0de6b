//! How a budget burns down, and when it will be spent.

use super::budgets::{below, period};
use super::spent;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{self, BudgetForecast, BudgetForecastPoint, BudgetPoint};
use berth_engine::clock;
use berth_model::{Span, Time};
use berth_store::{CostKey, CostQuery};
use std::collections::BTreeMap;

/// Days that the forecast looks back.
const DAYS: i64 = 14;
/// How far it goes where the budget has no period.
const AHEAD: Span = Span::days(30);
/// What is shown of a budget without a period.
const BEHIND: Span = Span::days(90);
/// Nine of ten lie below the mean and so many deviations.
const P90: f64 = 1.2816;

pub async fn forecast(
    service: &Service,
    caller: &Caller,
    name: &str,
) -> Result<BudgetForecast, Fault> {
    caller.must(Permission::BudgetsRead, Some(name), None)?;
    let queues = live::queues(service);
    let queue = queues.iter().find(|queue| *queue.spec.name == *name);
    let queue = queue.ok_or_else(|| Fault::not_found("budget", name))?;
    let budget = queue.spec.budget.as_ref().ok_or_else(|| Fault::not_found("budget", name))?;
    let now = clock::now();
    let (from, to) = period(budget, now);
    let teams: Vec<String> = below(name, &queues).map(str::to_owned).collect();
    let since = from.unwrap_or(now - BEHIND).min(midnight(now) - Span::days(DAYS));
    let query =
        CostQuery { by: vec![CostKey::Day], since: Some(since), teams, ..CostQuery::default() };
    let mut days: BTreeMap<Time, i64> = BTreeMap::new();
    for sum in spent::sums(service, &query).await? {
        let day = sum.keys.first().and_then(|day| format!("{day}T00:00:00Z").parse().ok());
        if let Some(day) = day {
            days.insert(day, sum.amount.0);
        }
    }
    let spent = queue.spent.0;
    let rate = Rate::of(&days, now);
    let until = to.unwrap_or(now + AHEAD);
    Ok(BudgetForecast {
        queue: name.to_owned(),
        limit_micros: budget.limit.0,
        spent_micros: spent,
        period_from: from.map(wire::At),
        period_to: to.map(wire::At),
        points: points(&days, from.unwrap_or(since), now, spent),
        forecast: rate.points(spent, now, until),
        runs_out_at: rate.meets(budget.limit.0, spent, now, until, 0.0).map(wire::At),
        runs_out_at_p90: rate.meets(budget.limit.0, spent, now, until, P90).map(wire::At),
        days: rate.days,
    })
}

fn midnight(at: Time) -> Time {
    Time(at.0 - at.0.rem_euclid(Span::days(1).0))
}

/// What was spent at the end of each day, and now.
fn points(days: &BTreeMap<Time, i64>, from: Time, now: Time, spent: i64) -> Vec<BudgetPoint> {
    let mut points = vec![BudgetPoint { at: from.into(), spent_micros: 0 }];
    let mut sum = 0;
    for (day, amount) in days.range(midnight(from)..midnight(now)) {
        sum += amount;
        let at = wire::At(*day + Span::days(1));
        // Rows are written a moment after the meter counts.
        points.push(BudgetPoint { at, spent_micros: sum.min(spent) });
    }
    points.push(BudgetPoint { at: now.into(), spent_micros: spent });
    points
}

/// What a day costs, and how far days differ, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    mean: f64,
    deviation: f64,
    days: u32,
}

impl Rate {
    /// From the last whole days since something was spent; from today, where there are none.
    fn of(days: &BTreeMap<Time, i64>, now: Time) -> Rate {
        let today = midnight(now);
        let first = days.keys().next().copied().unwrap_or(today);
        let first = first.max(today - Span::days(DAYS));
        let count = ((today - first).0 / Span::days(1).0).max(0);
        if count == 0 {
            let spent = days.get(&today).copied().unwrap_or(0) as f64;
            let part = ((now - today).0.max(Span::hours(1).0)) as f64 / Span::days(1).0 as f64;
            return Rate { mean: spent / part, deviation: 0.0, days: 0 };
        }
        let each = (0..count).map(|nth| {
            let day = first + Span::days(nth);
            days.get(&day).copied().unwrap_or(0) as f64
        });
        let each: Vec<f64> = each.collect();
        let mean = each.iter().sum::<f64>() / count as f64;
        let squares: f64 = each.iter().map(|day| (day - mean) * (day - mean)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Rate { mean, deviation, days: count as u32 }
    }

    /// After so many days, so many deviations above the mean. Days are taken as independent, so
    /// they differ less the more there are.
    fn after(&self, days: f64, deviations: f64) -> f64 {
        self.mean * days + deviations * self.deviation * days.max(0.0).sqrt()
    }

    fn points(&self, spent: i64, now: Time, until: Time) -> Vec<BudgetForecastPoint> {
        let mut points = Vec::new();
        let mut at = now;
        loop {
            let days = (at - now).0 as f64 / Span::days(1).0 as f64;
            let by = |deviations| spent.saturating_add(self.after(days, deviations) as i64);
            points.push(BudgetForecastPoint {
                at: at.into(),
                p50_micros: by(0.0),
                p90_micros: by(P90),
            });
            if at >= until {
                return points;
            }
            at = (midnight(at) + Span::days(1)).min(until);
        }
    }

    /// When the limit is met, to the quarter of an hour.
    fn meets(
        &self,
        limit: i64,
        spent: i64,
        now: Time,
        until: Time,
        deviations: f64,
    ) -> Option<Time> {
        let mut at = now;
        while at <= until {
            let days = (at - now).0 as f64 / Span::days(1).0 as f64;
            if spent.saturating_add(self.after(days, deviations) as i64) >= limit {
                return Some(at);
            }
            at = at + Span::mins(15);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-15T12:00:00Z";

    fn days(amounts: &[i64]) -> BTreeMap<Time, i64> {
        let today = midnight(NOW.parse().unwrap());
        let first = today - Span::days(amounts.len() as i64);
        let each = amounts.iter().enumerate();
        each.map(|(nth, amount)| (first + Span::days(nth as i64), *amount)).collect()
    }

    #[test]
    fn it_goes_on_as_the_last_days_did_and_meets_the_limit_then() {
        let now: Time = NOW.parse().unwrap();
        let rate = Rate::of(&days(&[100, 100, 100, 100]), now);
        assert_eq!((rate.mean as i64, rate.deviation as i64, rate.days), (100, 0, 4));
        let until = now + Span::days(5);
        let points = rate.points(400, now, until);
        assert_eq!(points.first().map(|point| point.p50_micros), Some(400));
        assert_eq!(points.last().map(|point| (point.at.0, point.p50_micros)), Some((until, 900)));
        let meets = |limit| rate.meets(limit, 400, now, until, 0.0);
        assert_eq!(meets(600), Some(now + Span::days(2)));
        assert_eq!(meets(400), Some(now), "it is spent");
        assert_eq!(meets(2_000), None);
    }

    #[test]
    fn days_that_differ_make_the_p90_larger_and_it_is_spent_earlier() {
        let now: Time = NOW.parse().unwrap();
        let rate = Rate::of(&days(&[0, 200, 0, 200]), now);
        let until = now + Span::days(10);
        let last = rate.points(0, now, until).pop().unwrap();
        assert!(last.p90_micros > last.p50_micros, "{last:?}");
        let p50 = rate.meets(800, 0, now, until, 0.0).unwrap();
        assert!(rate.meets(800, 0, now, until, P90).unwrap() < p50);
    }

    #[test]
    fn what_was_spent_goes_up_day_by_day_to_what_it_is_now() {
        let now: Time = NOW.parse().unwrap();
        let from = midnight(now) - Span::days(2);
        let spent: Vec<i64> =
            points(&days(&[7, 10, 20]), from, now, 35).iter().map(|one| one.spent_micros).collect();
        assert_eq!(spent, [0, 10, 30, 35]);
    }

    #[test]
    fn the_first_day_of_a_queue_is_taken_for_the_next_ones() {
        let now: Time = NOW.parse().unwrap();
        let today = [(midnight(now), 50)].into();
        assert_eq!(Rate::of(&today, now).mean as i64, 100, "half of the day is over");
        assert_eq!(Rate::of(&BTreeMap::new(), now).mean as i64, 0);
    }
}
